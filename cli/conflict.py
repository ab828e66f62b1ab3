"""What is kept of heads that do not agree: a proof of equivocation where there is one, else the head that nothing joins.

    <state>/equivocations/<digits of the origin>-<digits of the file>.json     shows two signed histories to anybody
    <state>/unreconciled/<digits of the origin>-<digits of the note>.note      accuses nobody

Only heads that were verified under a pinned log key are kept, and a proof only after the verifier has accepted it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Final

from cli.options import Shared
from cli.text import escape, say
from cli.trustfile import read_trust
from ledger.bundle import Bundle
from ledger.checkpoint import head_of
from ledger.errors import LedgerError, NotFoundError
from ledger.merkle import HashReader, consistency_proof, root_of
from ledger.storage.durable import write_new
from ledger.storage.evidence import gather
from ledger.storage.reader import Reader
from verify.given import GIVEN
from verify.options import Options
from verify.report import Verdict

__all__ = ["constructive_path", "keep_conflict", "keyring_of", "path_between", "with_heads"]

_MAX_KEPT: Final = 1_000
_DIGITS: Final = 16


def constructive_path(old: int, new: int, read: HashReader) -> tuple[bytes, ...]:
    """Return the consistency proof between two sizes of a tree, its first node always present; none for equal sizes."""
    if old == new:
        return ()
    proof = tuple(consistency_proof(old, new, read))
    return (root_of(old, read), *proof) if old & (old - 1) == 0 else proof


def path_between(reader: Reader, old: int, new: int) -> tuple[bytes, ...]:
    """Return the path between two sizes of a ledger in constructive form."""
    head = reader.head()
    if new > head.size:
        raise NotFoundError(f"ledger: got size {new}, it has {head.size}")
    return constructive_path(old, new, reader.hash_reader(head))


def keyring_of(reader: Reader) -> Bundle:
    """Return a ledger's newest head with the keyring that leads to its log key."""
    return gather(reader, reader.at(0).entry.receipt)


def with_heads(verdict: Verdict, judge: Callable[[bytes], Verdict], asked: Options) -> Verdict:
    """Return a verdict with what is found where each given head stands in the place of the one remembered."""
    checks = list(verdict.checks)
    for number, note in enumerate(asked.heads):
        for check in judge(note).checks:
            if check.name == "memory":
                message = check.message.replace("what is remembered", "it").replace("remembered", "given")
                checks.append(replace(check, name=GIVEN, where=f"head {number + 1}", message=message, asked=True))
    return replace(verdict, checks=tuple(checks))


def keep_conflict(
    verdict: Verdict,
    others: Sequence[bytes],
    *,
    evidence: Bundle,
    reader: Reader | None,
    options: Shared,
    file: Path | None = None,
) -> tuple[str, ...]:
    """Return notes that say what was kept of heads that do not agree with the one that was judged; none where all agree.

    Args:
        verdict: on the ledger or bundle.
        others: the notes that it was compared with.
        evidence: the head that was judged, with its keyring.
        reader: the ledger, where one is at hand, to make the path from.
        options: the user's trust and state folder.
        file: where a proof goes, None for the state folder.
    """
    codes = {check.code for check in verdict.checks}
    try:
        if "head.forked" in codes:
            return _keep_proofs(others, evidence, reader, options, file)
        if "head.unreconciled" in codes and not codes & {"trust.log_key_unpinned", "trust.log_key_mismatch"}:
            return _keep_note(evidence.checkpoint, options)
    except (LedgerError, OSError) as error:
        return (f"the heads that do not agree could not be kept: {error}",)
    return ()


def _keep_proofs(
    others: Sequence[bytes], evidence: Bundle, reader: Reader | None, options: Shared, file: Path | None
) -> tuple[str, ...]:
    # Two histories are rare: who never meets them does not load what proves them.
    from ledger.equivocation import Equivocation, print_equivocation  # noqa: PLC0415
    from verify.equivocation import verify_equivocation  # noqa: PLC0415

    newer = head_of(evidence.checkpoint)
    kept = []
    for note in others:
        older = head_of(note)
        if older.origin != newer.origin or older.size > newer.size or (older.size < newer.size and reader is None):
            continue
        path = () if reader is None else constructive_path(older.size, newer.size, reader.hash_reader(newer))
        data = print_equivocation(Equivocation(note, evidence.checkpoint, path, evidence.keyring))
        judged = verify_equivocation(data, trust=read_trust(options), subject="proof")
        if all(check.code != "head.forked" for check in judged.checks):
            continue
        target = file or _place(options, "equivocations", newer.origin, data, ".json")
        _write(target, data)
        say(f"two histories of this ledger were signed; the proof, for anybody who pinned it: {escape(str(target))}")
        kept.append(f"proof of equivocation: {target}")
    return tuple(kept)


def _keep_note(note: bytes, options: Shared) -> tuple[str, ...]:
    target = _place(options, "unreconciled", head_of(note).origin, note, ".note")
    if target.parent.is_dir() and len(list(target.parent.iterdir())) >= _MAX_KEPT:
        return (f"the head was not kept: {target.parent} holds {_MAX_KEPT} of them",)
    _write(target, note)
    return (f"a head that nothing joins to what was seen is kept: {target}",)


def _place(options: Shared, folder: str, origin: str, data: bytes, suffix: str) -> Path:
    name = f"{sha256(origin.encode('utf-8')).hexdigest()[:_DIGITS]}-{sha256(data).hexdigest()[:_DIGITS]}{suffix}"
    return options.places.state / folder / name


def _write(target: Path, data: bytes) -> None:
    if target.exists() and target.read_bytes() == data:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    write_new(target, data)
