"""Holds re-proved: a fold over receipts in chain order that finds what was erased although it was held.

A hold of an artifact is judged by its digest. A hold of a run is judged by the receipts that the `erasure` names: by their runs,
and the runs above these, which the fold asks for, since they may stand anywhere before it.

Source: docs/spec/artifacts.md, "Holds".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ledger.digest import digest
from ledger.errors import LedgerError
from ledger.receipt import Erasure, Hold, Opening, Receipt, parse_receipt, run_of
from ledger.rules.breach import Breach, Doubt, Finding
from ledger.rules.hold import Held, held_by

__all__ = ["HoldReplay", "HoldsState", "LineOf", "line_from"]

LineOf: TypeAlias = Callable[[str], "tuple[str, ...] | None"]
"""Receipt id -> its run and the runs above it, none outside any run; None where it is not at hand."""


@dataclass(frozen=True, slots=True)
class HoldsState:
    """A fold over holds at rest: those in force."""

    held: tuple[Held, ...] = ()


class HoldReplay:
    """Holds of one ledger, folded over its receipts."""

    def __init__(self, line_of: LineOf) -> None:
        self._line_of = line_of
        self._held: dict[str, Held] = {}
        """Those in force, by receipt id."""

    def state(self) -> HoldsState:
        """Return the state to go on from."""
        return HoldsState(tuple(self._held.values()))

    def resume(self, state: HoldsState) -> None:
        """Go on from a state."""
        self._held = {each.receipt: each for each in state.held}

    def see(self, index: int, id_: str, receipt: Receipt) -> list[Finding]:
        """Return what one receipt shows, and take it into account. Receipts come in chain order, each once."""
        if isinstance(receipt, Erasure):
            return self._erase(index, receipt)
        if isinstance(receipt, Hold):
            changed = held_by(self._held, id_, receipt)
            if changed is not None and changed.released is None:
                self._held[changed.receipt] = changed
            elif changed is not None:
                del self._held[changed.receipt]
        return []

    def _erase(self, index: int, erasure: Erasure) -> list[Finding]:
        runs: set[str] = set()
        absent = None
        if any(each.run is not None for each in self._held.values()):
            for receipt in erasure.receipts:
                line = self._line_of(receipt)
                absent = receipt if line is None else absent
                runs.update(line or ())
        for each in self._held.values():
            if each.covers(erasure.digest, runs):
                return [Breach("hold.erased", index, f"artifact {erasure.digest[:15]}: held by {each.receipt[:15]}")]
        if absent is None:
            return []
        return [Doubt("hold.receipt_absent", index, f"receipt {absent[:15]}, which the erasure names")]


def line_from(payload_of: Callable[[str], bytes | None]) -> LineOf:
    """Return how runs are found from receipts of a ledger, each held against its id.

    A line ends at a run whose opening is not in the ledger, as that of an evaluation's run may be.

    Args:
        payload_of: receipt id -> its canonical bytes, None for one that is not in the ledger, other bytes where that cannot be told.
    """

    def read(id_: str, data: bytes) -> Receipt | None:
        try:
            return parse_receipt(data) if digest(data) == id_ else None
        except LedgerError:
            return None

    def line_of(id_: str) -> tuple[str, ...] | None:
        data = payload_of(id_)
        receipt = None if data is None else read(id_, data)
        if receipt is None:
            return None
        line: list[str] = []
        run = run_of(receipt, id_)
        while run is not None:
            line.append(run)
            data = payload_of(run)
            if data is None:
                break
            opening = read(run, data)
            if not isinstance(opening, Opening):
                return None
            run = opening.parent_opening
        return tuple(line)

    return line_of
