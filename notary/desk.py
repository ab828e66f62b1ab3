"""The desk: takes submissions in batches; decides, remembers, signs, records, answers, in this order.

- One compare-and-swap and one commit of the notary's own ledger serve a whole batch.
- Nothing is signed before memory is durable; nothing is given out before the ledger is.
- What was sealed before is found again, so that a submission made twice has one seal, whatever ended the process between.
- A refused submission leaves nothing behind but a proof of equivocation, where it is one.

Source: docs/spec/notary.md, clauses 13 to 20.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias

from ledger.bundle import Item, LastEntry
from ledger.counterseal import CounterSeal, FullVerdict, print_root, seal_counter_seal
from ledger.digest import digest
from ledger.entry import Entry
from ledger.errors import LedgerError
from ledger.notarization import Notarization, Request, print_notarization
from ledger.note import Note, print_note, sign_cosignature
from ledger.storage.clock import now
from notary.equivocation import shown_by
from notary.errors import NotaryError, RefusedError
from notary.folder import NotaryFolder
from notary.memory import Memory, origin_hash
from notary.record import Draft, OwnLedger
from notary.rules import Known, Shown, admit, check_entry, decide, follow_log_key, log_line, open_shown, read_shown
from notary.seals import Row, SealIndex, head_name, seal_name

__all__ = ["Ask", "Desk", "HeadAsk", "MonitorAsk", "Outcome", "ReceiptAsk"]

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class ReceiptAsk:
    """A receipt to be counter-sealed. `admits` is whether an unknown origin may be admitted by it.

    `verdict` is the canonical verdict and its exit code, in mode full.
    """

    request: Request
    shown: Shown
    admits: bool
    verdict: tuple[bytes, int] | None = None


@dataclass(frozen=True, slots=True)
class HeadAsk:
    """A head to be cosigned. Without `log_key` the origin must be admitted and its key known."""

    shown: Shown
    old: int
    proof: tuple[bytes, ...]
    log_key: str | None = None
    keyring: tuple[Item, ...] = ()
    last: LastEntry | None = None
    admits: bool = False


@dataclass(frozen=True, slots=True)
class MonitorAsk:
    """The newest remembered head of the origin with this hash, to be given out cosigned."""

    hash: str


Ask: TypeAlias = ReceiptAsk | HeadAsk | MonitorAsk
Outcome: TypeAlias = bytes | LedgerError
"""The answer's bytes: a notarization, a signature line, a cosigned note; or why there is none."""


@dataclass(slots=True)
class _Plan:
    """What a batch comes to, before anything of it is durable."""

    before: dict[str, Known | None] = field(default_factory=dict)
    after: dict[str, Known] = field(default_factory=dict)
    drafts: dict[str, Callable[[], Draft]] = field(default_factory=dict)
    """Name -> makes the sealed document; called once memory is durable."""
    heads: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Name of a draft of a receipt -> size and root of its head."""
    results: list[str | Row | RefusedError] = field(default_factory=list)
    """For each ask: the name of a draft, what was sealed before, or the refusal."""
    accusations: list[tuple[str, bytes]] = field(default_factory=list)


class Desk:
    """One notary at work. One thread calls `process`; the rest may be called by any."""

    def __init__(self, folder: NotaryFolder) -> None:
        """Open a notary and bring its index up to its ledger.

        Raises:
            NotaryError: no memory, or an old copy of it.
            LedgerError: its ledger or its keys cannot be used.
        """
        self.about: Final = folder.about
        self._seal_key, self._cosigner_key = folder.read_keys()
        self.memory: Final[Memory] = folder.open_memory()
        self._own = OwnLedger(folder.open_ledger())
        self.index: Final = SealIndex(folder.seals_file)
        self._settled = False
        self._settle()

    def close(self) -> None:
        """Close every file."""
        self._own.ledger.close()
        self.index.close()
        self.memory.close()

    @property
    def log_key(self) -> str:
        """The log key of its own ledger that is in force."""
        return self._own.log_key

    def process(self, asks: Sequence[Ask]) -> list[Outcome]:
        """Return what becomes of each submission, in their order.

        Raises:
            LedgerError: memory or the ledger refused; nothing of the batch was given out.
        """
        if not self._settled:
            self._settle()
        for _ in range(_TRIES):
            plan = self._plan(asks)
            if self.memory.remember([(plan.before[origin], after) for origin, after in plan.after.items()]):
                break
        else:
            raise NotaryError("notary: its memory is being changed by somebody else", code="notary.memory")
        for origin, document in plan.accusations:
            self.memory.keep_equivocation(origin, document)
        made = self._record(_made(plan.drafts))
        rows = [made.get(found, _FAULT) if isinstance(found, str) else found for found in plan.results]
        self.memory.publish([row_key for ask, row in zip(asks, rows, strict=True) if (row_key := _publishes(ask, row))])
        return self._answers(asks, rows)

    def notarizations(self, receipt: str) -> list[tuple[Row, bytes]]:
        """Return the counter-seals of a receipt, each with its answer's bytes, the verdict left out: it was for who submitted."""
        rows = self.index.of_receipt(receipt)
        public = self.memory.published_in(receipt) if rows else frozenset()
        return [
            (row, _print(replace(row, verdict=None), proof, published=row.origin in public))
            for row, proof in zip(rows, self._own.prove(rows), strict=True)
        ]

    # Deciding.

    def _plan(self, asks: Sequence[Ask]) -> _Plan:
        plan = _Plan()
        for ask in asks:
            try:
                match ask:
                    case ReceiptAsk():
                        plan.results.append(self._plan_receipt(plan, ask))
                    case HeadAsk():
                        plan.results.append(self._plan_head(plan, ask))
                    case MonitorAsk():
                        plan.results.append(self._plan_monitor(plan, ask))
            except RefusedError as refused:
                plan.results.append(refused)
        return plan

    def _plan_receipt(self, plan: _Plan, ask: ReceiptAsk) -> str | Row:
        request, shown, head = ask.request, ask.shown, ask.request.head
        known = self._known(plan, shown.head.origin, head.log_key if ask.admits else None)
        known = follow_log_key(known, shown, head.log_key, keyring=head.keyring, last=head.last)
        open_shown(known, shown)
        entry = check_entry(request.entry, request.proof, shown.head)
        if request.bundle is not None and (request.bundle.subject, request.bundle.checkpoint) != (
            entry.receipt,
            head.checkpoint,
        ):
            raise RefusedError("bundle: it is of another receipt or checkpoint", status=422, code="notarize.bundle")
        name = seal_name(
            origin=known.origin, receipt=entry.receipt, envelope=entry.envelope, index=entry.index, mode=request.mode
        )
        row = self.index.find(name)
        under = (shown.head.size, shown.head.root)
        if row is not None and (row.size, row.root) == (under[0], print_root(under[1])):
            return row
        if row is None and plan.heads.get(name) == under:
            return name
        # The very head that is remembered is joined to it: many may hand in receipts under one head at once.
        same = bool(known.note) and under == (known.size, known.root)
        old, proof = (known.size, ()) if same else (head.old, head.consistency)
        self._see(plan, known, shown, old=old, proof=proof, keyring=head.keyring)
        if row is not None:
            return row
        plan.drafts.setdefault(name, lambda: self._seal(ask, entry))
        plan.heads.setdefault(name, under)
        return name

    def _plan_head(self, plan: _Plan, ask: HeadAsk) -> str | Row:
        shown = ask.shown
        known = self._known(plan, shown.head.origin, ask.log_key if ask.admits else None)
        if ask.log_key is not None:
            known = follow_log_key(known, shown, ask.log_key, keyring=ask.keyring, last=ask.last)
        open_shown(known, shown)
        self._see(plan, known, shown, old=ask.old, proof=ask.proof, keyring=ask.keyring)
        return self._plan_cosignature(plan, known, shown)

    def _plan_monitor(self, plan: _Plan, ask: MonitorAsk) -> str | Row:
        found = self.memory.known_by_hash(ask.hash)
        if found is None or not found.note:
            raise RefusedError("origin: nothing is remembered of it", status=404, code="origin.unknown")
        known = self._known(plan, found.origin, None)
        return self._plan_cosignature(plan, known, read_shown(known.note, foreign=True))

    def _plan_cosignature(self, plan: _Plan, known: Known, shown: Shown) -> str | Row:
        name = head_name(shown.note.text)
        row = self.index.find(name)
        if row is not None:
            return row
        plan.drafts.setdefault(name, lambda: self._cosign(known, shown))
        return name

    def _known(self, plan: _Plan, origin: str, admitted_key: str | None) -> Known:
        """Return what is remembered of an origin after the submissions before, admitting it where that may be."""
        if origin in plan.after:
            return plan.after[origin]
        if origin not in plan.before:
            plan.before[origin] = self.memory.known(origin)
        found = plan.before[origin]
        if found is not None:
            return found
        if admitted_key is None:
            raise RefusedError("origin: it was not admitted", status=404, code="origin.unknown")
        return admit(origin, admitted_key)

    def _see(
        self, plan: _Plan, known: Known, shown: Shown, *, old: int, proof: Sequence[bytes], keyring: Sequence[Item]
    ) -> None:
        try:
            plan.after[known.origin] = decide(known, shown, old=old, proof=proof)
        except RefusedError as refused:
            if refused.status == 422:
                document = shown_by(known, shown, proof=proof, keyring=keyring)
                if document is not None:
                    plan.accusations.append((known.origin, document))
                refused.origin_hash = origin_hash(known.origin)
            raise

    # Signing and recording.

    def _seal(self, ask: ReceiptAsk, entry: Entry) -> Draft:
        head = ask.shown.head
        verdict = None
        if ask.verdict is not None:
            verdict = FullVerdict(digest=digest(ask.verdict[0]), exit=ask.verdict[1])
        found = CounterSeal(
            notary=self.about.name,
            key=self._seal_key.key,
            receipt=entry.receipt,
            envelope=entry.envelope,
            origin=head.origin,
            entry_index=entry.index,
            size=head.size,
            root=print_root(head.root),
            mode=ask.request.mode,
            verdict=verdict or "not_checked",
            issued_at=now(),
        )
        document = seal_counter_seal(found, self._seal_key)
        return Draft(document, found, None if ask.verdict is None else ask.verdict[0])

    def _cosign(self, known: Known, shown: Shown) -> Draft:
        line = sign_cosignature(shown.note.text, self.about.name, self._cosigner_key, time_s=_now_s())
        return Draft(print_note(Note(shown.note.text, (log_line(known, shown), line))), None)

    def _record(self, drafts: dict[str, Draft]) -> dict[str, Row]:
        if not drafts:
            return {}
        self._settled = False
        rows = self._own.record(list(drafts.values()))
        self._settled = self._index(rows)
        return {row.name: row for row in rows}

    def _index(self, rows: Sequence[Row]) -> bool:
        """Return whether the index took the rows; where it did not, it is brought up to the ledger next time."""
        try:
            self.index.add(rows, self._own.tail)
        except sqlite3.Error:
            return False
        return True

    def _settle(self) -> None:
        """Bring the index up to the ledger, and refuse a memory that knows less than was sealed."""
        tail = self.index.load_tail(self._own.ledger.folder)
        if tail is None:
            self.index.reset()
        for rows in self._own.catch_up(tail):
            if not self._index(rows):
                raise NotaryError("notary: the index of its seals cannot be written", code="notary.index")
        for origin, size, root in self.index.newest_heads():
            known = self.memory.known(origin)
            if known is None or known.size < size or (known.size == size and print_root(known.root) != root):
                raise NotaryError(
                    f"notary: it sealed a head of {origin} at size {size} that its memory does not know",
                    code="notary.memory_old",
                    hint="its memory is an old copy: bring the newest one back",
                )
        self._settled = True

    # Answering.

    def _answers(self, asks: Sequence[Ask], rows: Sequence[Row | RefusedError]) -> list[Outcome]:
        sealed = {
            row.entry: row
            for ask, row in zip(asks, rows, strict=True)
            if isinstance(row, Row) and isinstance(ask, ReceiptAsk)
        }
        proofs = dict(zip(sealed, self._own.prove(list(sealed.values())), strict=True))
        answers: list[Outcome] = []
        for ask, row in zip(asks, rows, strict=True):
            match ask, row:
                case _, RefusedError():
                    answers.append(row)
                case ReceiptAsk(), _:
                    published = row.origin in self.memory.published_in(row.receipt)
                    answers.append(_print(row, proofs[row.entry], published=published))
                case HeadAsk(), _:
                    answers.append(row.document[row.document.rindex(_LINE) + 1 :])
                case MonitorAsk(), _:
                    answers.append(row.document)
        return answers


_LINE: Final = "\n\u2014 ".encode()
_FAULT: Final = RefusedError("notary: a fault of the program", status=503, code="notary.unavailable")
_log = logging.getLogger(__name__)


def _made(drafts: dict[str, Callable[[], Draft]]) -> dict[str, Draft]:
    """Return the sealed documents; one that cannot be made is left out, so that it takes no other with it."""
    made = {}
    for name, make in drafts.items():
        try:
            made[name] = make()
        except Exception as error:  # noqa: BLE001  what was checked should be sealed: a fault of this program
            _log.error("a draft: %s", type(error).__name__)
    return made


def _now_s() -> int:
    """Return this moment in Unix seconds."""
    return int(datetime.fromisoformat(now()).timestamp())


def _publishes(ask: Ask, row: Row | RefusedError) -> tuple[str, str] | None:
    if isinstance(row, RefusedError) or not isinstance(ask, ReceiptAsk) or not ask.request.publish:
        return None
    return row.receipt, row.origin


def _print(row: Row, proof: bytes, *, published: bool) -> bytes:
    return print_notarization(Notarization(row.document, row.record, proof, published, row.verdict))
