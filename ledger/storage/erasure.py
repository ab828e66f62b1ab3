"""Erasing artifacts, and holding them: both are receipts first, sealed by the ledger's issuer.

    plan = plan_erasure(ledger, digest)            who refers to it, what goes with it, what forbids it
    erase(ledger, plan, reason=Reason.ERASURE_REQUEST)

Rules, each checked under the ledger's lock before anything is written:

- what is held is not erased, and what is not there is not said to be erased;
- every receipt that refers to the bytes is named by the plan, or nothing happens;
- the salt of a closed run goes with its first artifact that is erased, else a guess at that could be confirmed;
- the salt of an open run stays: the run needs it.

The `erasure` receipts are durable before any byte is removed; a crash in between is finished by the next commit
(`ledger.storage.erasing`). Large bytes that another process is about to refer to for the first time are not known to be: where
it records them a moment after they were erased, they are missing, and `verify` says that they were erased.

Source: docs/spec/artifacts.md, "Erasure" and "Holds".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ledger.errors import LedgerError, NotFoundError
from ledger.receipt import Decision, Erasure, Hold, Intent, Opening, Receipt, parse_receipt, run_of
from ledger.rules.hold import Held, holds_of
from ledger.storage.artifacts import Condition
from ledger.storage.clock import nonce, now
from ledger.storage.erasing import Erasing
from ledger.storage.journal import Stored
from ledger.storage.ledger import PRODUCER, Ledger
from ledger.storage.reader import Reader
from ledger.storage.search import holding
from ledger.storage.writer import Position, View
from ledger.words import Reason

__all__ = [
    "MAX_REFERENCES",
    "Plan",
    "Reference",
    "erase",
    "erasures_of",
    "holds",
    "place_hold",
    "plan_erasure",
    "release_hold",
]

RUN_SALT: Final = "run-salt"
MAX_REFERENCES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Reference:
    """A receipt that refers to an artifact.

    `name` is what it calls it, empty where it is only named by digest; `salted` is None there. `inline` says that the receipt
    itself holds members of the arguments, which no erasure reaches.
    """

    receipt: str
    index: int
    kind: str
    run: str | None
    name: str
    salted: bool | None
    inline: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What erasing an artifact comes to, as of the first `size` entries."""

    digest: str
    size: int
    condition: Condition
    references: tuple[Reference, ...]
    salts: tuple[tuple[str, str], ...]
    """Run salts that go with it, each with its run; of closed runs."""
    open_runs: tuple[str, ...]
    """Runs that refer to it and are open: their salt stays until they are closed."""
    holds: tuple[Held, ...]
    """Holds that forbid it."""
    erased_by: str | None
    """Receipt id of the newest `erasure` that names it."""
    said: Mapping[str, int]
    """Index of the newest `erasure` of it, and of each of these salts, where there is one."""

    @property
    def settled(self) -> bool:
        """Whether an `erasure` says it and no receipt refers to the bytes since."""
        return self.digest in self.said and all(each.index < self.said[self.digest] for each in self.references)


def plan_erasure(ledger: Ledger, digest: str) -> Plan:
    """Return what erasing an artifact would come to; nothing is changed.

    Raises:
        FormatError: not a digest.
        NotFoundError: no receipt refers to it and nothing is stored under it.
    """
    size = ledger.head().size
    condition, _ = ledger.artifacts.inspect(digest)
    found: list[Reference] = []
    _find_references(ledger, digest, found, 0, size)
    plan: list[Plan] = []
    ledger.look(lambda view: plan.append(_plan(ledger, view, digest, found, size, condition)))
    if not plan[0].references and condition == "absent" and plan[0].erased_by is None:
        raise NotFoundError(f"artifact {digest}: absent, and no receipt refers to it", code="artifact.absent")
    return plan[0]


def erase(ledger: Ledger, plan: Plan, *, reason: Reason) -> list[Position]:
    """Record that the planned artifacts are erased, and remove their bytes; return where the `erasure` receipts stand.

    An empty list says that it was recorded before; what was left of the bytes is gone now.

    Raises:
        LedgerError: `erasure.held`, `erasure.references` (more receipts refer to it than the plan names), `erasure.run_open`
            (a run that is open needs it), `erasure.too_many`, `artifact.absent`: nothing was recorded or removed.
        StorageError: the disk refused. Where the receipts are durable already, the same call removes the rest.
    """
    erasing = Erasing(ledger.artifacts)
    found = list(plan.references)

    def build(view: View) -> list[Any]:
        _find_references(ledger, plan.digest, found, plan.size, view.size)
        current = _plan(ledger, view, plan.digest, found, view.size, ledger.artifacts.inspect(plan.digest)[0])
        _refuse(current, known=len(plan.references))
        new: dict[str, tuple[str, ...]] = {
            salt: (opening,) for salt, opening in current.salts if salt not in current.said
        }
        if not current.settled:
            new[plan.digest] = tuple(dict.fromkeys(each.receipt for each in current.references))
        said = {digest: index for digest, index in current.said.items() if digest not in new}
        erasing.mark(said | dict.fromkeys(new, view.size))
        return [ledger.seal(_erasure(ledger, digest, reason, receipts)) for digest, receipts in reversed(new.items())]

    positions = ledger.commit(build)

    def finish(_: View) -> None:
        erasing.finish(ledger.reader.entries)

    ledger.look(finish)
    return positions


def place_hold(
    ledger: Ledger, *, digest: str | None = None, run: str | None = None, matter: str | None = None
) -> Position:
    """Record that an artifact, or all artifacts of a run and of those below it, may not be erased; exactly one is given.

    Raises:
        NotFoundError: no bytes are stored under the digest, or no such run.
    """

    def build(view: View) -> list[Any]:
        if digest is not None and ledger.artifacts.inspect(digest)[0] == "absent":
            raise NotFoundError(f"artifact {digest}: absent, there is nothing to hold", code="artifact.absent")
        if run is not None and view.state.run(run) is None:
            raise NotFoundError(f"run {run[:15]}: no opening in this ledger", code="run.unknown_opening")
        return [ledger.seal(Hold(**_common(ledger), action="placed", digest=digest, held_run=run, matter=matter))]

    (position,) = ledger.commit(build)
    return position


def release_hold(ledger: Ledger, hold: str) -> Position:
    """Record that a hold, named by its receipt id, ends.

    Raises:
        NotFoundError: no such hold.
        LedgerError: `hold.released` already, or `hold.not_yours`: another issuer placed it.
    """

    def build(view: View) -> list[Any]:
        held = {each.receipt: each for each in holds(ledger.folder, stop=view.size)}.get(hold)
        if held is None:
            raise NotFoundError(
                f"hold {hold[:15]}: no such hold in this ledger", hint="list them with: ledger hold list"
            )
        if held.released is not None:
            raise LedgerError(f"hold {hold[:15]}: was released by {held.released[:15]}", code="hold.released")
        if held.placed_by != ledger.issuer.name:
            raise LedgerError(
                f"hold {hold[:15]}: got issuer {ledger.issuer.name!r}, expected {held.placed_by!r}, who placed it",
                code="hold.not_yours",
            )
        return [ledger.seal(Hold(**_common(ledger), action="released", hold=hold))]

    (position,) = ledger.commit(build)
    return position


def holds(folder: Path, *, stop: int | None = None) -> list[Held]:
    """Return every hold that was ever placed, in order, with its release where there is one."""
    return holds_of(
        (stored.entry.receipt, receipt)
        for stored, receipt in _receipts(folder, b'"kind":"hold"', stop)
        if isinstance(receipt, Hold)
    )


def erasures_of(folder: Path, *, stop: int | None = None) -> dict[str, tuple[Stored, Erasure]]:
    """Return the newest `erasure` of each artifact that was erased, by the artifact's digest."""
    return {
        receipt.digest: (stored, receipt)
        for stored, receipt in _receipts(folder, b'"kind":"erasure"', stop)
        if isinstance(receipt, Erasure)
    }


def _common(ledger: Ledger) -> dict[str, Any]:
    return {
        "ledger": ledger.origin,
        "issuer": ledger.issuer,
        "issued_at": now(),
        "nonce": nonce(),
        "producer": PRODUCER,
    }


def _erasure(ledger: Ledger, digest: str, reason: Reason, receipts: tuple[str, ...]) -> Erasure:
    return Erasure(**_common(ledger), digest=digest, reason=reason, receipts=receipts)


def _receipts(folder: Path, needle: bytes, stop: int | None) -> Iterator[tuple[Stored, Receipt]]:
    for stored in holding(folder, needle, stop=Reader(folder).head().size if stop is None else stop):
        with contextlib.suppress(LedgerError):
            yield stored, parse_receipt(stored.envelope.payload)


def _find_references(ledger: Ledger, digest: str, found: list[Reference], start: int, stop: int) -> None:
    """Add the receipts from index `start` up to, not including, `stop` that refer to an artifact, in chain order."""
    for stored in holding(ledger.folder, f'"{digest}"'.encode("ascii"), start=start, stop=stop):
        if f'"{digest}"'.encode("ascii") not in stored.envelope.payload:
            continue  # an entry names receipts and envelopes
        found.extend(_references_in(stored, digest))


def _references_in(stored: Stored, digest: str) -> Iterator[Reference]:
    id_, index = stored.entry.receipt, stored.entry.index
    try:
        receipt = parse_receipt(stored.envelope.payload)
    except LedgerError:
        # What cannot be read here may still refer to it.
        yield Reference(id_, index, "unknown", None, "", None, inline=False)
        return
    if isinstance(receipt, Erasure | Hold):
        return
    names = [
        each for each in (*getattr(receipt, "artifacts", ()), getattr(receipt, "document", None)) if _is(each, digest)
    ]
    act = receipt.act if isinstance(receipt, Intent | Decision) else None
    inline = act is not None and act.arguments_digest == digest and bool(act.arguments)
    run = run_of(receipt, id_)
    for each in names[:1]:
        yield Reference(id_, index, receipt.kind, run, each.name, each.salted, inline)
    if not names:
        yield Reference(id_, index, receipt.kind, run, "", None, inline)


def _is(reference: object, digest: str) -> bool:
    return getattr(reference, "digest", None) == digest


def _plan(ledger: Ledger, view: View, digest: str, found: list[Reference], size: int, condition: Condition) -> Plan:
    """Return the plan from the receipts that refer to it, with what the state and the chain say of runs, holds and erasures."""
    erasures = erasures_of(ledger.folder, stop=size)
    runs = list(dict.fromkeys(each.run for each in found if each.run is not None))
    salts, open_runs = [], []
    for run in runs:
        state = view.state.run(run)
        if state is None or state.closed is None:
            open_runs.append(run)
            continue
        salt = _salt_of(ledger, run)
        if salt is not None and salt != digest and ledger.artifacts.inspect(salt)[0] != "absent":
            salts.append((salt, run))
    above = _with_parents(view, runs)
    forbidding = [
        held
        for held in holds(ledger.folder, stop=size)
        if held.covers(digest, above) or any(held.covers(salt, ()) for salt, _ in salts)
    ]
    said = {each: erasures[each][0] for each in (digest, *(salt for salt, _ in salts)) if each in erasures}
    return Plan(
        digest,
        size,
        condition,
        tuple(found),
        tuple(salts),
        tuple(open_runs),
        tuple(forbidding),
        said[digest].entry.receipt if digest in said else None,
        {each: stored.entry.index for each, stored in said.items()},
    )


def _salt_of(ledger: Ledger, run: str) -> str | None:
    receipt = parse_receipt(ledger.get(run).envelope.payload)
    artifacts = receipt.artifacts if isinstance(receipt, Opening) else ()
    return next((each.digest for each in artifacts if each.name == RUN_SALT), None)


def _with_parents(view: View, runs: list[str]) -> set[str]:
    """Return runs and all runs above them."""
    found: set[str] = set()
    waiting = list(runs)
    while waiting:
        run = waiting.pop()
        if run not in found:
            found.add(run)
            state = view.state.run(run)
            if state is not None and state.parent is not None:
                waiting.append(state.parent)
    return found


def _refuse(plan: Plan, *, known: int) -> None:
    """Raise unless what is planned may be done now; `known` is how many references whoever decided has seen."""
    if plan.holds:
        held = ", ".join(each.receipt[7:19] for each in plan.holds)
        raise LedgerError(
            f"artifact {plan.digest}: held by {held}, so nothing was erased",
            code="erasure.held",
            hint="see: ledger hold list; a hold ends with: ledger hold release HOLD",
        )
    if len(plan.references) > known:
        more = ", ".join(each.receipt[7:19] for each in plan.references[known:])
        raise LedgerError(
            f"artifact {plan.digest}: {more} came to refer to it meanwhile, so nothing was erased",
            code="erasure.references",
            hint="look at it again, then repeat the command",
        )
    salt_of = [each for each in plan.references if each.kind == "opening" and each.name == RUN_SALT]
    if any(each.run in plan.open_runs for each in salt_of):
        raise LedgerError(
            f"artifact {plan.digest}: it is the salt of a run that is open and needs it",
            code="erasure.run_open",
            hint="end the run first: ledger close RUN",
        )
    if len({each.receipt for each in plan.references}) > MAX_REFERENCES:
        raise LedgerError(
            f"artifact {plan.digest}: {len(plan.references)} receipts refer to it, at most {MAX_REFERENCES} fit one erasure",
            code="erasure.too_many",
        )
    if plan.condition == "absent" and not plan.settled:
        raise NotFoundError(
            f"artifact {plan.digest}: its bytes are not there, and what was lost is not said to be erased",
            code="artifact.absent",
            where=plan.digest,
        )
