"""What is asked for beyond, or less than, the usual."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import LedgerError, clip
from verify.report import accept_codes

if TYPE_CHECKING:
    from ledger.members import Limit

__all__ = ["REQUIREMENTS", "Options", "parse_options"]

REQUIREMENTS = ("closed", "memory", "every-head", "artifacts", "counter-seal=N")
"""Words of `--require`."""
_COUNTER_SEAL = re.compile(r"counter-seal=([1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a verification; `accept` holds codes that are taken out of what is asked."""

    bytes_only: bool = False
    every_head: bool = False
    closed: bool = False
    memory: bool = False
    artifacts: bool = False
    counter_seals: int = 0
    accept: tuple[str, ...] = ()
    heads: tuple[bytes, ...] = ()
    """Signed notes from elsewhere that a ledger must contain."""
    policy: bytes | None = None
    """A policy file, under which a document of another system that records calls is checked again."""
    limits: tuple[Limit, ...] = ()
    """Limits, under which a document of another system that records use is checked again."""


def parse_options(*, require: tuple[str, ...] = (), accept: tuple[str, ...] = (), bytes_only: bool = False) -> Options:
    """Return the options that `--require` and `--accept` words ask for.

    Raises:
        LedgerError: `usage.require` or `usage.accept` for a word that is not known.
    """
    counter_seals = 0
    for word in require:
        match = _COUNTER_SEAL.fullmatch(word)
        if match is not None:
            counter_seals = max(counter_seals, int(match[1]))
        elif word not in REQUIREMENTS[:-1]:
            raise LedgerError(
                f"require: got {clip(word)}, expected one of {', '.join(REQUIREMENTS)}", code="usage.require"
            )
    return Options(
        bytes_only=bytes_only,
        every_head="every-head" in require,
        closed="closed" in require,
        memory="memory" in require,
        artifacts="artifacts" in require,
        counter_seals=counter_seals,
        accept=accept_codes(accept),
    )
