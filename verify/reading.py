"""Facts of receipts that may not be readable: what is wrong with one is reported, and what it says all the same."""

from __future__ import annotations

from ledger import canonical
from ledger.errors import CanonicalError, FormatError, UnknownFormatError
from ledger.facts import Facts, read_facts
from verify.report import Report

__all__ = ["read_reported", "stated_run"]


def read_reported(payload: bytes, index: int | None, report: Report) -> Facts | None:
    """Return the facts of a receipt, None after saying why it has none; `index` is that of its entry, if it has one."""
    try:
        return read_facts(payload)
    except UnknownFormatError as error:
        code, message = "format.unknown", str(error)
    except CanonicalError as error:
        code, message = "receipt.canonical", str(error)
    except FormatError as error:
        code, message = "receipt.malformed", str(error)
    report.find("receipts", code, where=None if index is None else f"entry {index}", message=message)
    return None


def stated_run(payload: bytes) -> str | None:
    """Return the run that a receipt names which this version cannot read otherwise, None where it names none."""
    try:
        run = canonical.decode(payload).get("run")
    except FormatError:
        return None
    return run if isinstance(run, str) else None
