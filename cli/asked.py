"""What stands beside the rows of an answer: which verified heads they are over, proofs, Parquet, and the exit code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer

from cli.text import escape, say, short
from ledger.errors import LedgerError, clip
from ledger.index.asking import ask
from ledger.index.session import Session, Source
from ledger.storage.reader import Reader
from verify.codes import CODES, worst

__all__ = ["Footer", "exit_of_answer", "footer_of", "footers", "parquet_members", "read_values"]

_VALUE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_BROKEN: Final = 6
"""The exit of a rule that was broken."""
_WORDS: Final = {
    0: "verified",
    1: "DOES NOT HOLD",
    3: "not established",
    4: "NOT TRUSTED",
    5: "absent",
    _BROKEN: "authentic, a rule was broken",
}


@dataclass(frozen=True, slots=True)
class Footer:
    """What is said of one ledger: its verified head and coverage, whether its signer is pinned, how far behind the index is.

    `exit` is that of the verdict, `doubt` what it would be but for broken rules, which are no reason to doubt an answer.
    """

    ledger: str
    status: str
    exit: int
    doubt: int
    codes: tuple[str, ...]
    head_size: int | None
    head_root: str | None
    end_index: int
    left_out: int
    log_pinned: bool
    issuers_pinned: bool
    trust: str | None
    behind: int | None

    def to_value(self) -> dict[str, object]:
        """Return it as a JSON value."""
        return {
            "ledger": self.ledger,
            "status": self.status,
            "exit": self.exit,
            "codes": list(self.codes),
            "head": None if self.head_size is None else {"size": self.head_size, "root": self.head_root},
            "coverage": {"from": 0, "to": self.end_index, "left_out": self.left_out},
            "signer_pinned": self.log_pinned,
            "issuers_pinned": self.issuers_pinned,
            "trust": self.trust,
            "behind": self.behind,
        }

    @property
    def _word(self) -> str:
        if self.doubt and self.exit == _BROKEN:
            return f"{_WORDS[self.doubt]}; a rule was broken"
        return _WORDS.get(self.exit, self.status)

    def say(self) -> None:
        """Say it on standard error."""
        root = "" if self.head_root is None else f" root {short(self.head_root)}"
        parts = [
            f"{escape(self.ledger)}: {self._word}",
            f"head size {self.head_size:,}{root}" if self.head_size is not None else "no head",
            f"entries 0 to {self.end_index:,} indexed" + (f" but {self.left_out:,}" if self.left_out else ""),
            "signer pinned" if self.log_pinned else "signer NOT pinned",
        ]
        if self.behind:
            parts.append(f"{self.behind:,} entries came since")
        say("; ".join(parts), style="bold red" if self.doubt in {1, 4} else "dim" if self.exit == 0 else "yellow")
        for code in self.codes:
            say(f"  {code}: {CODES[code].meaning if code in CODES else ''}")
        if self.codes:
            say("  what was found stands in the table findings")


def footers(connection: Session, sources: Sequence[Source], accepted: tuple[str, ...]) -> list[Footer]:
    """Return what is said of each ledger of a session; `accepted` are codes that do not count."""
    found = []
    for source in sources:
        row = _one(connection, "SELECT * FROM index_state WHERE ledger = ?", source.ledger)
        checks = ask(connection, 'SELECT code, "exit" FROM checks WHERE ledger = ?', [source.ledger]).rows
        found.append(footer_of(source, row, ((code, each) for code, each in checks), accepted))
    return found


def footer_of(
    source: Source, row: Mapping[str, Any], checks: Iterable[tuple[str | None, int]], accepted: tuple[str, ...] = ()
) -> Footer:
    """Return what is said of a ledger, from its row of `index_state` and the code and exit of each of its checks."""
    counted = [(code, each) for code, each in checks if each and code is not None and code not in accepted]
    return Footer(
        source.ledger,
        str(row["status"]),
        worst(each for _, each in counted),
        worst(each for _, each in counted if each != _BROKEN),
        tuple(dict.fromkeys(code for code, each in counted if each != _BROKEN)),
        row["head_size"],
        row["head_root"],
        int(row["end_index"]),
        int(row["left_out"]),
        bool(row["log_pinned"]),
        bool(row["issuers_pinned"]),
        row["trust_source"],
        _behind(source, row["head_size"]),
    )


def exit_of_answer(found: Sequence[Footer], *, rows: bool) -> int:
    """Return the exit code of an answer.

    It is that of the verdicts but for broken rules; `rows` says that rows came which must not.
    """
    return worst([*(each.doubt for each in found), _BROKEN if rows else 0])


def read_values(words: Sequence[str]) -> dict[str, object]:
    """Return the parameters of a query: texts, which the query casts to what it needs."""
    found: dict[str, object] = {}
    for word in words:
        match = _VALUE.fullmatch(word)
        if match is None:
            raise typer.BadParameter(f"got {clip(word)}, expected NAME=VALUE", param_hint="-p")
        found[match[1]] = match[2]
    return found


def parquet_members(found: Sequence[Footer]) -> dict[str, str]:
    """Return what a Parquet file says of each ledger in its own metadata: head, range, and what it was verified to."""
    return {"receipt-ledger": "1"} | {
        f"ledger.{number}.{name}": str(value)
        for number, each in enumerate(found)
        for name, value in (
            ("origin", each.ledger),
            ("head_size", each.head_size),
            ("head_root", each.head_root),
            ("first_index", 0),
            ("end_index", each.end_index),
            ("left_out", each.left_out),
            ("status", each.status),
            ("signer_pinned", each.log_pinned),
        )
    }


def _one(connection: Session, query: str, *values: object) -> dict[str, Any]:
    answer = ask(connection, query, values)
    return dict(zip(answer.columns, next(answer.rows), strict=True))


def _behind(source: Source, size: int | None) -> int | None:
    """Return how many entries the ledger has by now that the index has not; None where that cannot be told."""
    try:
        return max(0, Reader(source.folder).head().size - (size or 0))
    except (LedgerError, OSError):
        return None
