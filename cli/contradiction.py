"""What a notary remembers against this ledger: fetched, and judged here; its word alone accuses nobody."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cli.judge import judge_receipt
from cli.options import Shared
from cli.text import escape, say
from cli.trustfile import read_trust
from ledger.errors import LedgerError
from ledger.storage.durable import make_folder, write_new
from ledger.storage.reader import Reader
from notary.client import NotaryClient
from verify.equivocation import verify_equivocation
from verify.options import Options

__all__ = ["report_contradiction"]


def report_contradiction(folder: Path, origin: str, urls: Sequence[str], options: Shared) -> int:
    """Say how the heads that notaries remember stand to the ledger's own; return 1 where one shows a cut or a fork, else 3."""
    exits = [_report(folder, origin, url, options) for url in dict.fromkeys(urls)]
    return 1 if 1 in exits else 3


def _report(folder: Path, origin: str, url: str, options: Shared) -> int:
    try:
        with NotaryClient(url) as client:
            note = client.checkpoint(origin)
            proof = _proof_of(client, origin)
        header = Reader(folder).at(0).entry.receipt
        verdict = judge_receipt(folder, header, options, replace(Options(), heads=(note,)))
    except LedgerError as error:
        say(f"what {escape(url)} remembers of this ledger could not be judged: {escape(str(error))}")
        return 3
    if proof is not None:
        _keep(proof, origin, options)
    found = {check.code: check.message for check in verdict.findings if check.code in {"head.shorter", "head.forked"}}
    for code, message in found.items():
        say(f"{code}  against the head that {escape(url)} remembers, judged here: {escape(message)}", style="bold red")
    if not found:
        say(
            f"the head that {escape(url)} remembers shows no cut and no fork of this ledger under the keys that you trust"
        )
    return 1 if found else 3


def _proof_of(client: NotaryClient, origin: str) -> bytes | None:
    with suppress(LedgerError):
        return client.equivocation(origin)
    return None


def _keep(proof: bytes, origin: str, options: Shared) -> None:
    """Keep a proof of equivocation that a notary serves, if the verifier accepts it."""
    judged = verify_equivocation(proof, trust=read_trust(options), subject="proof")
    if all(check.code != "head.forked" for check in judged.checks):
        return
    folder = options.places.state / "equivocations"
    digits = sha256(origin.encode("utf-8")).hexdigest()[:16], sha256(proof).hexdigest()[:16]
    path = folder / f"{digits[0]}-{digits[1]}.json"
    if not path.exists():
        make_folder(folder)
        write_new(path, proof)
    say(f"two histories of this ledger were signed; the proof, for anybody who pinned it: {escape(str(path))}")
