"""Formats of other systems, verified by their own rules.

A format is a package here that gives `name`, `recognise` and `judge`: bytes in, findings out. Two verdicts stay apart:

- the *native* one is what the rules of that system say, under its own names, whatever we think of them;
- ours is the report: the native findings under codes of our table, and what their check misses.

Nothing but the content tells a format, and no two formats may recognise the same bytes. A reader never raises over evidence:
what it cannot read is a finding, and one bad record does not blind the rest. What is no single run of bytes (a database, a
folder) is read by whoever calls, and handed to the format's own functions.

Source: docs/reference/verdicts.md, docs/spec/words.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from verify.options import Options
from verify.pins import trust_used
from verify.report import Coverage, Native, NativeFinding, NativeStatus, Report, Verdict
from verify.trust import Trust

__all__ = [
    "FORMATS",
    "Format",
    "Judgement",
    "Native",
    "NativeFinding",
    "NativeStatus",
    "Recognised",
    "format_of",
    "recognise",
    "verdict_of",
    "verify_foreign",
]

FORMATS: Final[tuple[str, ...]] = ("ctrlrun", "runx", "axlr")
"""Packages of this one, in the order in which they are asked."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """What bytes show themselves to be: `ctrlrun`, `receipts`, `ctrlrun.receipt/v7`.

    `version` is a word of the format's own, or `unknown`: a format recognises later versions of itself too, and says that it
    cannot judge them.
    """

    format: str
    kind: str
    version: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The native verdict on a foreign document, and ours."""

    native: Native
    report: Report
    coverage: Coverage
    notes: tuple[str, ...] = ()


class Format(Protocol):
    """A package of this one. A module fits it."""

    name: str
    """The word that `ledger import` takes, and that `Recognised.format` holds."""

    def recognise(self, data: bytes) -> Recognised | None:
        """Return what the bytes are of this format, None where they are nothing of it. Never raises."""

    def judge(self, data: bytes, found: Recognised, *, trust: Trust | None, options: Options) -> Judgement:
        """Return the judgement on bytes that `recognise` knew. Never raises over what they hold."""


def format_of(name: str) -> Format:
    """Return the format of a name of `FORMATS`; its package is loaded when it is first asked for."""
    return cast("Format", import_module(f"verify.foreign.{name}"))


def _formats() -> Iterator[Format]:
    return (format_of(name) for name in FORMATS)


def recognise(data: bytes) -> Recognised | None:
    """Return what the bytes are of any format here, None where no format knows them."""
    return next((found for each in _formats() if (found := each.recognise(data)) is not None), None)


def verify_foreign(data: bytes, *, subject: str, trust: Trust | None, options: Options) -> Verdict | None:
    """Return the verdict on a foreign document, None where no format knows it.

    Args:
        data: the whole document.
        subject: what the verdict calls it.
        trust: whom to believe, None for nobody.
        options: what is asked for.
    """
    found = recognise(data)
    if found is None:
        return None
    judgement = format_of(found.format).judge(data, found, trust=trust, options=options)
    return verdict_of(judgement, subject=subject, trust=trust, options=options)


def verdict_of(judgement: Judgement, *, subject: str, trust: Trust | None, options: Options) -> Verdict:
    """Return a judgement as a verdict."""
    native = judgement.native
    return Verdict(
        subject,
        judgement.report.checks(),
        judgement.coverage,
        None,
        trust_used(trust),
        accepted=options.accept,
        notes=(
            f"{subject}: judged as {native.kind} of {native.format}",
            *judgement.report.notes,
            *judgement.notes,
            f"by the rules of {native.format}: {native.status}, {native.code}",
        ),
        native=native,
    )
