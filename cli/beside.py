"""What lies beside a ledger from notaries: put into bundles, and listed with the receipt that it is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from cli.options import Shared
from cli.text import escape, say
from ledger import canonical
from ledger.bundle import BUNDLE_MAX_BYTES, Bundle, CarriedSeal
from ledger.checkpoint import Head
from ledger.errors import LedgerError
from ledger.storage.reader import Reader
from verify.options import Options
from verify.report import Report, TimeBounds
from verify.trust import Trust

__all__ = [
    "counter_seal_lines",
    "counter_seals_of",
    "counter_seals_of_ledger",
    "printable",
    "with_cosignatures",
    "with_counter_seals",
]

_NOTARY = "notary"
CounterSealCheck: TypeAlias = Callable[[Report, Head, bytes, Sequence[str]], TimeBounds | None]


def with_counter_seals(bundle: Bundle, reader: Reader, folder: Path) -> Bundle:
    """Return a bundle with what notaries gave for it, where any did."""
    if not (folder / _NOTARY).is_dir():
        return bundle
    from ledger.storage.counterseals import attach  # noqa: PLC0415  most ledgers need none of it

    return attach(bundle, reader, folder)


def printable(bundle: Bundle) -> Bundle:
    """Return a bundle without what lies beside the ledger and is no document that a bundle can hold; what is left out is said."""
    kept = []
    for each in bundle.counter_seals:
        try:
            if isinstance(each, CarriedSeal):
                canonical.decode(each.document, max_bytes=BUNDLE_MAX_BYTES)
            else:
                each.note.decode("utf-8")
        except (LedgerError, UnicodeDecodeError) as error:
            say(f"a counter-seal is not in the bundle, it cannot be read: {escape(str(error))}")
        else:
            kept.append(each)
    return replace(bundle, counter_seals=tuple(kept))


def with_cosignatures(note: bytes, folder: Path) -> bytes:
    """Return the note of a head with the cosignatures of it that lie beside the ledger."""
    if not (folder / _NOTARY).is_dir():
        return note
    from ledger.storage.counterseals import cosigned  # noqa: PLC0415  most ledgers need none of it

    return cosigned(note, folder)


def counter_seals_of_ledger(
    reader: Reader, folder: Path, trust: Trust | None, asked: Options
) -> CounterSealCheck | None:
    """Return what reports on the counter-seals of a whole ledger, None where there are none and none is asked for."""
    if not (folder / _NOTARY).is_dir() and not asked.counter_seals and (trust is None or not trust.notaries):
        return None

    def look(report: Report, head: Head, note: bytes, log_keys: Sequence[str]) -> TimeBounds | None:
        from ledger.storage.counterseals import carried_of_ledger  # noqa: PLC0415
        from verify.counterseal import Subject, check_counter_seals, open_problem  # noqa: PLC0415

        carried, note = carried_of_ledger(reader, folder, head, note)
        entries = {}
        for each in carried:
            seal = open_problem(each.document)[0] if isinstance(each, CarriedSeal) else None
            if seal is not None and seal.entry_index < head.size:
                entry = reader.at(seal.entry_index).entry
                entries[entry.index] = (entry.receipt, entry.envelope)
        subject = Subject(head, note, log_keys, entries, -1, head.size - 1)
        return check_counter_seals(report, carried, subject=subject, trust=trust, required=asked.counter_seals)

    return look


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
