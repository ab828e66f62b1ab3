"""What lies beside a ledger from notaries: put into bundles, and listed with the receipt that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.options import Shared
from cli.text import escape
from ledger.bundle import Bundle
from ledger.storage.reader import Reader

__all__ = ["counter_seal_lines", "counter_seals_of", "with_counter_seals"]

_NOTARY = "notary"


def with_counter_seals(bundle: Bundle, reader: Reader, folder: Path) -> Bundle:
    """Return a bundle with what notaries gave for it, where any did."""
    if not (folder / _NOTARY).is_dir():
        return bundle
    from ledger.storage.counterseals import attach  # noqa: PLC0415  most ledgers need none of it

    return attach(bundle, reader, folder)


def counter_seals_of(folder: Path, receipt: str, origin: str, options: Shared) -> list[dict[str, Any]]:
    """Return what notaries say that they sealed of a receipt, and what waits for one; nothing of it is judged here."""
    found: list[dict[str, Any]] = []
    if (folder / _NOTARY).is_dir():
        from ledger.storage.counterseals import CounterSeals  # noqa: PLC0415
        from verify.counterseal import open_problem  # noqa: PLC0415

        for path, document in CounterSeals(folder).of(receipt):
            seal, problem = open_problem(document)
            value: dict[str, Any] = {"file": str(path)}
            if seal is None:
                value |= {"problem": problem[0]}
            else:
                value |= {
                    "by": seal.notary,
                    "key": seal.key,
                    "issued_at": seal.issued_at,
                    "size": seal.size,
                    "mode": seal.mode,
                }
            found.append(value)
    waiting = options.places.state / "notarize"
    if waiting.is_dir():
        from cli.waiting import queue_of, waited  # noqa: PLC0415

        found.extend(
            {"pending": each.url, "since": each.since, "waited": waited(each)}
            for each in queue_of(options.places, origin).all()
            if each.receipt == receipt
        )
    return found


def counter_seal_lines(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines that list counter-seals for people."""
    lines = []
    for each in found:
        if "pending" in each:
            lines.append(f"counter-seal pending for {each['waited']} at {escape(each['pending'])}")
        elif "problem" in each:
            lines.append(f"counter-seal {each['problem']}: {escape(each['file'])}")
        else:
            lines.append(
                f"counter-seal by {escape(each['by'])} at {each['issued_at']}, size {each['size']}, {each['mode']}"
            )
    return lines
