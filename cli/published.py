"""What the command line gives the verifier of published trees: files from disk, the user's trust and memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cli.conflict import with_heads
from cli.options import Shared
from cli.trustfile import read_memory, read_trust, write_memory
from ledger.checkpoint import head_of
from ledger.errors import LedgerError
from ledger.storage.published import CHECKPOINT, PublishedTree, is_published
from verify.options import Options
from verify.report import Verdict

__all__ = ["is_published", "judge_published"]


def judge_published(folder: Path, options: Shared, asked: Options) -> Verdict:
    """Return the verdict on a published tree, and remember its head where it earned that."""
    from verify.published import verify_published  # noqa: PLC0415  what it loads would cost every other target

    tree = PublishedTree(folder)
    try:
        origin = head_of(tree(CHECKPOINT) or b"").origin
    except LedgerError:
        origin = None  # the verdict says what is wrong with it
    trust, memory = read_trust(options), read_memory(options.places, origin) if origin else None

    def judge(note: bytes | None) -> Verdict:
        return verify_published(tree, trust=trust, memory=note, options=asked, subject=str(folder))

    verdict = with_heads(judge(memory), judge, asked)
    if verdict.remember is None or origin is None:
        return verdict
    problem = write_memory(options.places, origin, verdict.remember, seen=memory)
    if problem is None:
        return verdict
    return replace(verdict, notes=(*verdict.notes, f"the head could not be remembered: {problem}"))
