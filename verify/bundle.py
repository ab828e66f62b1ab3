"""One receipt, judged from its bundle: without the ledger, the disk or the network.

Bytes and canonical form, schema, seal or covering root, the whole tree below, inclusion of every entry in the head, the head's
signature, the keyring from the header, pinned log key and issuers, agreement with memory. The chain from entry 0 is not
checked and not asked for: the head's root covers it.

Source: docs/spec/bundles.md, docs/reference/verdicts.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ledger.bundle import Bundle, Item, parse_range
from ledger.canonical import JsonValue
from ledger.checkpoint import Head, head_of, open_head
from ledger.digest import digest
from ledger.entry import Entry, parse_entry
from ledger.envelope import RECEIPT_TYPE, Envelope, parse_envelope, verify_seal
from ledger.errors import FormatError, LedgerError, UnknownFormatError, clip
from ledger.facts import Facts
from ledger.receipt import Header, Intent, Key
from ledger.words import SEALED_KINDS
from verify.branch import Branch, Leaf
from verify.carried import StoredLook, check_artifacts, check_stored, erasures_at, references_of
from verify.errors import ProofError
from verify.headfile import check_memory
from verify.issuers import Issuers
from verify.keyring import Keyring, header_problem
from verify.memory import Consistency
from verify.options import Options
from verify.pins import check_issuers, check_log, trust_used
from verify.proof import leaf_hash, verify_inclusion
from verify.range import check_range
from verify.reading import read_reported
from verify.report import Coverage, Covered, Report, TimeBounds, Verdict
from verify.rulerun import NAME as RULES
from verify.rulerun import RuleRow, replay_run
from verify.trust import Trust

__all__ = ["verify_bundle"]

_NAMES: Final = (
    "subject", "entries", "inclusion", "keyring", "heads", "head signatures", "receipts", "seals", "trees", "attribution", RULES,
    "log key", "issuers", "memory",
)  # fmt: skip
_INDEX = re.compile(rb'"index":([0-9]{1,16}),')


@dataclass(frozen=True, slots=True)
class _Shown:
    """An entry that was read, with its envelope and its place in the findings."""

    entry: Entry
    entry_bytes: bytes
    envelope: Envelope
    where: str


def verify_bundle(
    bundle: Bundle,
    *,
    trust: Trust | None,
    memory: bytes | None = None,
    consistency: Consistency | None = None,
    options: Options = Options(),  # noqa: B008  frozen
    whole_ledger: bool = False,
    stored: StoredLook | None = None,
    document_of: Callable[[str], bytes | None] | None = None,
    arguments_of: Callable[[Intent], Mapping[str, JsonValue] | None] | None = None,
) -> Verdict:
    """Return the verdict on the subject of a bundle.

    Args:
        bundle: the evidence.
        trust: whom to believe, None for nobody.
        memory: the note remembered for this origin, None where none is.
        consistency: gives proofs that join the bundle's head with the remembered one, where something can.
        options: what is asked for.
        whole_ledger: whether the head is the newest of a ledger that is at hand, which must not be shorter than remembered.
        stored: says what is stored of artifacts beside a ledger that is at hand; asked for those that are not carried.
        document_of: digest -> bytes of a document beside a ledger that is at hand; asked for those that are not carried.
        arguments_of: intent -> all arguments of its act, from there too.
    """
    judge = _Judge(bundle, Report(), trust, options, whole_ledger=whole_ledger, stored=stored)
    judge.document_of, judge.arguments_of = document_of, arguments_of
    return judge.verdict(memory, consistency)


class _Judge:
    """Judges one bundle; each step reports and leaves what the next ones need."""

    def __init__(
        self,
        bundle: Bundle,
        report: Report,
        trust: Trust | None,
        options: Options,
        *,
        whole_ledger: bool,
        stored: StoredLook | None = None,
    ) -> None:
        self._bundle = bundle
        self._report = report
        self._trust = trust
        self._options = options
        self._whole_ledger = whole_ledger
        self._stored = stored
        self.document_of: Callable[[str], bytes | None] | None = None
        self.arguments_of: Callable[[Intent], Mapping[str, JsonValue] | None] | None = None
        self._head: Head | None = None
        self._keyring: Keyring | None = None
        self._keyring_indices: list[int] = []
        self._issuers = Issuers()
        self._leaves: dict[str, Leaf] = {}
        self._rows: dict[str, RuleRow] = {}
        self._unread: set[str] = set()
        self._signed = False
        self._span = parse_range(bundle.subject)
        self._tree: set[str] = set()
        """Ids of the receipts that the subject consists of."""

    def verdict(self, memory: bytes | None, consistency: Consistency | None) -> Verdict:
        """Return the verdict."""
        report, options = self._report, self._options
        report.expect(*_NAMES)
        self._read_head()
        keyring = [shown for item in self._bundle.keyring if (shown := self._show(item)) is not None]
        self._follow(keyring)
        items = [shown for item in self._bundle.items if (shown := self._show(item)) is not None]
        covers = [shown for item in self._bundle.covers if (shown := self._show(item)) is not None]
        self._check_order(items)
        self._check_order(covers)
        self._check_last([*items, *covers])
        self._check_signature()
        for shown in (*items, *covers):
            self._read_receipt(shown)
        report.ran("receipts", len(self._leaves))
        report.ran("seals", sum(leaf.sealed for leaf in self._leaves.values()))
        covered, path = self._check_subject() if self._span is None else self._check_range(self._span, items)
        remember = None
        if self._keyring is not None:
            pinned = check_log(report, self._trust, self._keyring)
            check_issuers(report, self._trust, self._keyring, self._issuers)
            remember = self._check_memory(memory, consistency, pinned=pinned)
        self._check_artifacts((*items, *covers))
        indices = [shown.entry.index for shown in items]
        time = self._check_counter_seals([*items, *covers], indices)
        if not indices:
            report.find("coverage", "coverage.empty")
        return Verdict(
            self._bundle.subject,
            report.checks(),
            Coverage(min(indices), max(indices) + 1, len(indices)) if indices else Coverage(0, 0, 0),
            self._head,
            trust_used(self._trust),
            covered,
            path,
            options.accept,
            tuple(report.notes),
            remember if report.exits() in {0, 3, 6} else None,
            time=time,
        )

    # Head and keyring.

    def _read_head(self) -> None:
        try:
            self._head = head_of(self._bundle.checkpoint)
        except LedgerError as error:
            self._report.find("heads", "head.malformed", message=str(error))
            return
        self._report.ran("heads")

    def _follow(self, chain: list[_Shown]) -> None:
        """Follow the keyring from the header."""
        report = self._report
        for shown in chain:
            index = shown.entry.index
            expected = self._keyring_indices[-1] if self._keyring_indices else 0
            if (index == 0) != (not self._keyring_indices) or (index and index <= expected):
                report.find(
                    "keyring", "chain.keyring", where=shown.where, message="the keyring starts at entry 0 and goes up"
                )
                return
            if shown.entry.keyring != expected:
                message = f"got keyring {shown.entry.keyring}, expected {expected}"
                report.find("keyring", "chain.keyring", where=shown.where, message=message)
                return
            problem = self._take_key(shown)
            if problem is not None:
                code, message = problem
                report.find("keyring", code, where=shown.where, message=message)
                return
            self._keyring_indices.append(index)
        if self._keyring is None:
            report.find("keyring", "chain.first_entry", message="the bundle holds no header")
            return
        report.ran("keyring", len(self._keyring_indices))

    def _take_key(self, shown: _Shown) -> tuple[str, str] | None:
        facts = read_reported(shown.envelope.payload, shown.entry.index, self._report)
        receipt = None if facts is None else facts.receipt
        if not isinstance(receipt, Header | Key) or isinstance(receipt, Header) != (shown.entry.index == 0):
            return "chain.first_entry" if shown.entry.index == 0 else "key.chain", "it is no receipt of the keyring"
        problem = self._seal_problem(shown, receipt.issuer.key, receipt.kind)
        if problem is not None:
            return problem
        if isinstance(receipt, Header):
            self._keyring = Keyring.start(receipt, shown.entry.receipt)
            return header_problem(receipt)
        if self._keyring is None:
            return "key.chain", "no header stands before it"
        found = self._keyring.take(receipt, shown.entry.index)
        return None if found is None else ("key.chain", found)

    def _check_signature(self) -> None:
        if self._head is None or self._keyring is None:
            return
        report = self._report
        try:
            open_head(self._bundle.checkpoint, origin=self._keyring.origin, log_key=self._keyring.log_key)
        except UnknownFormatError as error:
            report.find("head signatures", "format.unknown", message=str(error))
        except LedgerError as error:
            codes = {
                "note.unsigned": "head.unsigned",
                "head.origin": "head.origin",
                "note.bad_signature": "head.signature",
            }
            report.find("head signatures", codes.get(error.code, "head.malformed"), message=str(error))
        else:
            self._signed = True
            report.ran("head signatures")

    # Entries.

    def _show(self, item: Item) -> _Shown | None:
        """Return an entry whose digests and inclusion hold, None after saying what does not."""
        report = self._report
        try:
            entry = parse_entry(item.entry)
        except UnknownFormatError as error:
            # Its bytes still are a leaf, whatever they mean.
            self._check_leaf(item)
            report.find("entries", "format.unknown", message=str(error))
            return None
        except FormatError as error:
            report.find("entries", "entry.malformed", message=str(error))
            return None
        where = f"entry {entry.index}"
        if digest(item.envelope) != entry.envelope:
            report.find("entries", "entry.envelope_digest", where=where)
            return None
        try:
            envelope = parse_envelope(item.envelope)
        except FormatError as error:
            report.find("entries", "envelope.malformed", where=where, message=str(error))
            return None
        if envelope.receipt_id != entry.receipt:
            report.find("entries", "entry.receipt_id", where=where)
            return None
        report.ran("entries")
        return _Shown(entry, item.entry, envelope, where) if self._check_leaf(item) else None

    def _check_leaf(self, item: Item) -> bool:
        """Return whether an entry is proven to stand at its index under the head."""
        match = _INDEX.search(item.entry)
        if self._head is None or match is None:
            return False
        index = int(match[1])
        try:
            verify_inclusion(
                leaf=leaf_hash(item.entry), index=index, size=self._head.size, proof=item.proof, root=self._head.root
            )
        except ProofError as error:
            self._report.find("inclusion", error.code, where=f"entry {index}", message=str(error))
            return False
        self._report.ran("inclusion")
        return True

    def _check_order(self, items: list[_Shown]) -> None:
        """Check that items stand in order, once each, and name the keyring entry before them."""
        previous = -1
        seen: set[str] = set()
        for shown in items:
            entry = shown.entry
            if entry.index <= previous:
                message = f"it stands after entry {previous} in the bundle"
                self._report.find("entries", "chain.index", where=shown.where, message=message)
            previous = entry.index
            if entry.receipt in seen:
                self._report.find("entries", "receipt.repeated", where=shown.where)
            seen.add(entry.receipt)
            self._check_keyring_of(entry)

    def _check_last(self, items: list[_Shown]) -> None:
        """Check that no key entry behind the last entry shown is hidden: the last entry under the head names the newest one.

        Whether the last entry is a key entry itself is not asked: leaving it out is the same as showing the head before it.
        """
        report, head, last = self._report, self._head, self._bundle.last
        if head is None:
            return
        if last is None:
            shown = max((*self._keyring_indices, *(item.entry.index for item in items)), default=-1)
            if shown >= head.size - 1:
                return
            message = f"a key entry after entry {shown} would not show: nothing here names it"
            report.skip("keyring", "check.unreachable", message, asked=True)
            return
        try:
            entry = parse_entry(last.entry)
        except UnknownFormatError as error:
            self._check_leaf(Item(last.entry, b"", last.proof))
            report.find("entries", "format.unknown", message=str(error))
            return
        except FormatError as error:
            report.find("entries", "entry.malformed", message=str(error))
            return
        if entry.index != head.size - 1:
            message = f"it is not the last entry under the head, which is {head.size - 1}"
            report.find("entries", "chain.index", where=f"entry {entry.index}", message=message)
        if self._check_leaf(Item(last.entry, b"", last.proof)):
            self._check_keyring_of(entry)

    def _check_keyring_of(self, entry: Entry) -> None:
        expected = max((index for index in self._keyring_indices if index < entry.index), default=0)
        if entry.keyring != expected:
            message = f"got keyring {entry.keyring}, expected {expected}: a key entry is hidden"
            self._report.find("keyring", "chain.keyring", where=f"entry {entry.index}", message=message)

    # Receipts.

    def _read_receipt(self, shown: _Shown) -> None:
        report = self._report
        facts = None
        if shown.envelope.payload_type == RECEIPT_TYPE:
            facts = read_reported(shown.envelope.payload, shown.entry.index, report)
        else:
            message = f"payload type {clip(shown.envelope.payload_type)}"
            report.find("receipts", "format.unknown", where=shown.where, message=message)
        if facts is None:
            # A seal holds or not whatever the receipt means.
            seal = shown.envelope.seal
            if seal is not None and (problem := self._seal_problem(shown, seal.key, "receipt")) is not None:
                report.find("seals", problem[0], where=shown.where, message=problem[1])
            self._unread.add(shown.entry.receipt)
            return
        if self._keyring is not None and facts.ledger != self._keyring.origin:
            message = f"got ledger {clip(facts.ledger)}, expected {clip(self._keyring.origin)}"
            report.find("receipts", "receipt.foreign_ledger", where=shown.where, message=message)
        sealed = self._check_seal(shown, facts)
        self._issuers.see(facts, shown.entry.index)
        self._rows[shown.entry.receipt] = RuleRow(
            shown.entry.index, shown.entry.receipt, shown.envelope.payload, shown.entry.recorded_at[:-1].encode("ascii")
        )
        self._leaves[shown.entry.receipt] = Leaf(shown.entry.index, shown.entry.receipt, facts, sealed)

    def _check_seal(self, shown: _Shown, facts: Facts) -> bool:
        if shown.envelope.seal is None and facts.kind not in SEALED_KINDS:
            return False
        problem = self._seal_problem(shown, facts.key, facts.kind)
        if problem is not None:
            code, message = problem
            self._report.find("seals", code, where=shown.where, message=message)
        return problem is None

    def _seal_problem(self, shown: _Shown, key: str, kind: str) -> tuple[str, str] | None:
        if shown.envelope.seal is None:
            return "seal.absent", f"a {kind} without its seal"
        if shown.envelope.seal.key != key:
            return "seal.issuer", f"the seal of this {kind} is by another key than its issuer's"
        try:
            verify_seal(shown.envelope)
        except UnknownFormatError as error:
            return "format.unknown", str(error)
        except LedgerError as error:
            return "seal.invalid", str(error)
        return None

    def _check_subject(self) -> tuple[Covered, tuple[str, ...]]:
        """Check the tree below the subject and how it is covered; return that and the path to the covering seal."""
        report = self._report
        subject = self._leaves.get(self._bundle.subject)
        if subject is None:
            code = (
                "check.unreachable" if report.failed("entries", "inclusion", "receipts", "heads") else "subject.absent"
            )
            report.find("subject", code, where=self._bundle.subject)
            return Covered(), ()
        report.ran("subject")
        branch = Branch(self._leaves, self._unread, report)
        top = branch.close_of(subject) or subject
        tree = branch.walk(top)
        report.ran("trees", len(tree))
        self._tree = {leaf.id for leaf in tree}
        self._check_rules(top)
        branch.check_edges(leaf for leaf in self._leaves.values() if leaf.id not in self._tree)
        report.skip(
            "chain", "check.not_asked", "the chain from entry 0 is covered by the root of the head", asked=False
        )
        if subject.facts.kind == "opening" and top is subject:
            message = f"opened at entry {subject.index}"
            report.find("runs", "run.open", where=f"run {subject.id}", message=message)
        elif self._options.closed and not branch.in_closed_run(subject):
            report.find("runs", "run.open", where=f"run {subject.facts.run}")
        if subject.run is not None and subject.run not in self._leaves:
            message = (
                f"the opening of run {subject.run} is not at hand: who acts, and under which limits, does not show"
            )
            report.skip("runs", "check.unreachable", message, asked=True)
        self._state_strays({*self._tree, *branch.above(subject), subject.id, subject.run or ""})
        return branch.attribute(subject, tree)

    def _state_strays(self, of_it: set[str]) -> None:
        """Say how many receipts of the bundle are not of its subject: they are authentic, and nothing was asked of them."""
        strays = [leaf.index for leaf in self._leaves.values() if leaf.id not in of_it and leaf.facts.kind != "erasure"]
        if strays:
            self._report.notes.append(
                f"receipts beside the subject: {len(strays)}, the first is entry {min(strays)}; they are no part of the verdict"
            )

    def _check_rules(self, top: Leaf) -> None:
        """Replay budgets and policies over a whole closed run; what stands outside of it is not here."""
        if top.facts.kind != "run":
            self._report.skip(
                RULES, "check.not_asked", "only a whole run shows whether its rules were kept", asked=False
            )
            return
        replay_run(
            self._report,
            [self._rows[id_] for id_ in sorted(self._tree, key=lambda id_: self._leaves[id_].index)],
            self._document,
            self.arguments_of or (lambda _: None),
        )

    def _document(self, name: str) -> bytes | None:
        data = next((each.data for each in self._bundle.artifacts if each.digest == name), None)
        if data is None and self.document_of is not None:
            data = self.document_of(name)
        return data if data is not None and digest(data) == name else None

    def _check_range(self, span: tuple[int, int], items: list[_Shown]) -> tuple[Covered, tuple[str, ...]]:
        start, stop = span
        self._report.skip(RULES, "check.not_asked", "a range does not hold all that rules bear on", asked=False)
        self._tree = {leaf.id for leaf in self._leaves.values() if start <= leaf.index < stop}
        entries = [(shown.entry, shown.entry_bytes) for shown in items]
        covered = check_range(
            self._report, span, entries, leaves=self._leaves, unread=self._unread, options=self._options
        )
        return covered, ()

    def _check_artifacts(self, shown: Sequence[_Shown]) -> None:
        """Check the artifacts of the receipts that the subject consists of; erasures may stand anywhere in the bundle."""
        erasures = {leaf.id for leaf in self._leaves.values() if leaf.facts.kind == "erasure" and leaf.sealed}
        payloads = [(each.entry.index, each.envelope.payload) for each in shown if each.entry.receipt in self._tree]
        said = [(each.entry.index, each.envelope.payload) for each in shown if each.entry.receipt in erasures]
        if self._stored is not None and self._options.artifacts and not self._bundle.artifacts:
            check_stored(self._report, references_of(payloads), erased_at=erasures_at(said), look=self._stored)
            return
        check_artifacts(
            self._report,
            self._bundle.artifacts,
            payloads=payloads,
            erasures=said,
            asked=self._options.artifacts,
        )

    def _check_counter_seals(self, shown: Sequence[_Shown], indices: Sequence[int]) -> TimeBounds | None:
        """Check what others sealed or signed; what counts covers the subject, of a range all of it."""
        carried, required = self._bundle.counter_seals, self._options.counter_seals
        if not carried and not required and (self._trust is None or not self._trust.notaries):
            return None
        subject = self._leaves.get(self._bundle.subject)
        span = (min(indices), max(indices)) if indices and self._span is not None else None
        if subject is not None:
            span = subject.index, subject.index
        if self._head is None or self._keyring is None or span is None:
            asked = bool(carried or required or (self._trust is not None and self._trust.quorum))
            self._report.skip("counter-seals", "check.unreachable", asked=asked)
            return None
        # Most bundles carry none, and most verifiers ask for none.
        from verify.counterseal import Subject, check_counter_seals  # noqa: PLC0415

        entries = {each.entry.index: (each.entry.receipt, each.entry.envelope) for each in shown}
        return check_counter_seals(
            self._report,
            carried,
            subject=Subject(self._head, self._bundle.checkpoint, self._keyring.log_keys, entries, *span),
            trust=self._trust,
            required=required,
        )

    # Memory.

    def _check_memory(self, memory: bytes | None, consistency: Consistency | None, *, pinned: bool) -> bytes | None:
        report, head, keyring = self._report, self._head, self._keyring
        if head is None or keyring is None or not self._signed or not pinned:
            why = "only a head verified under a pinned log key is compared and remembered"
            report.skip("memory", "check.unreachable", why, asked=self._options.memory)
            return None
        return check_memory(
            report, self._bundle.checkpoint, head, log_keys=keyring.log_keys, memory=memory,
            consistency=consistency, options=self._options, whole=self._whole_ledger,
        )  # fmt: skip
