"""`ledger export otlp`: runs as OpenTelemetry spans."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import JsonOption, LedgerOption, OutputOption, TrustOption, shared
from cli.text import escape, print_json, say, write_bytes

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command of this file to `ledger export`."""
    app.command()(otlp)


def otlp(
    context: typer.Context,
    reference: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="A run, 8 or more of its digits. Without it: latest.", show_default=False),
    ] = None,
    output: OutputOption = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="T", help="All runs opened since then: 2026-11-30, 2026-11-30T09:15Z, 24h.", show_default=False
        ),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Write runs as OpenTelemetry spans, in OTLP's JSON encoding, on one line.

    What is written is judged first, and what does not hold is not written. The exit is that of the verdict, which also stands in the
    spans' resource, with the head. Times are those that receipts claim.
    """  # fmt: skip
    from cli.reported import collect  # noqa: PLC0415  what it loads would cost `ledger --help`
    from cli.spans import traces  # noqa: PLC0415

    options = shared(context, ledger, json=json, trust=trust)
    if reference is not None and since is not None:
        raise typer.BadParameter("RUN and --since do not go together")
    found, verdict = collect(reference, since, options)
    if verdict.exit in {1, 5}:
        say(f"{escape(verdict.subject)}: {verdict.status.replace('_', ' ')}, so nothing was written", style="bold red")
        raise typer.Exit(verdict.exit)
    head = verdict.head
    resource: dict[str, str | int] = {"receipt_ledger.verdict": verdict.status}
    if head is not None:
        resource |= {
            "receipt_ledger.origin": head.origin,
            "receipt_ledger.head.size": head.size,
            "receipt_ledger.head.root": "sha256:" + head.root.hex(),
        }
    value = traces(found, resource=resource)
    spans = sum(len(scope["spans"]) for each in value["resourceSpans"] for scope in each["scopeSpans"])
    import orjson  # noqa: PLC0415

    data = orjson.dumps(value) + b"\n"
    if output is None:
        write_bytes(data)
    else:
        output.write_bytes(data)
        if options.json:
            print_json(
                {
                    "file": str(output),
                    "status": verdict.status,
                    "exit": verdict.exit,
                    "spans": spans,
                    "size_bytes": len(data),
                }
            )
        else:
            say(f"wrote {escape(str(output))}: {spans} spans, {verdict.status.replace('_', ' ')}")
    raise typer.Exit(verdict.exit)
