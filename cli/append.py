"""`ledger append`: receipts made elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, TrustOption, shared
from cli.text import print_json
from cli.trustfile import read_trust
from ledger.consent import refuse_answers
from ledger.envelope import Envelope, parse_envelope
from ledger.rules.approval import Approver
from ledger.storage.ledger import Ledger, Position
from ledger.storage.writer import View
from verify.rules import approvers_of

__all__ = ["append_checked", "register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(append)


def append(
    context: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="[FILE|-]", help="Envelopes, one a line; - is standard input.")
    ] = Path("-"),
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Append envelopes as one commit: all of them or none. Approvals among them must fit their requests."""
    options = shared(context, ledger, json=json, trust=trust)
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    envelopes = [parse_envelope(line) for line in data.split(b"\n") if line]
    with Ledger.open(options.folder(), places=options.places) as opened:
        positions = append_checked(opened, envelopes, approvers_of(read_trust(options)))
    if options.json:
        print_json([{"receipt": p.receipt, "index": p.index, "already": p.already} for p in positions])
        return
    for position in positions:
        typer.echo(f"{position.index}  {position.receipt}{'  already there' if position.already else ''}")


def append_checked(opened: Ledger, envelopes: Sequence[Envelope], approvers: Mapping[str, Approver]) -> list[Position]:
    """Append envelopes as one commit, after every answer among them was checked against its request.

    Raises:
        AdmissionError: one of them is not to be taken; none was appended.
    """

    def build(view: View) -> Sequence[Envelope]:
        refuse_answers(opened, view, envelopes, approvers=approvers)
        return envelopes

    return opened.commit(build)
