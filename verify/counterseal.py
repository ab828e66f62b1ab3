"""Counter-seals: what notaries sealed or cosigned of a receipt and of heads, judged by the trust in use, offline.

- A counter-seal and a cosigned head name a head (size, root). It must be a beginning of the head under judgement, or that head:
  else the history at hand is not the one that was seen.
- A counter-seal names a receipt, its envelope and its place. All of them must be those of the evidence that it stands beside.
- A notary counts once, under the name that it is pinned for, whatever it sealed and how often. Keys inside documents grant nothing.
- What counts for a subject is a head that covers all of it: a size above its last index.
- Times are the notary's word. The earliest that covers the subject bounds it from above. From below, the latest head that did not
  yet hold it: it was not shown before then, which is less than that it was not made.

Source: docs/spec/notary.md, docs/spec/bundles.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ledger.bundle import CarriedHead, CarriedSeal
from ledger.checkpoint import Head, head_of
from ledger.counterseal import CounterSeal, open_counter_seal
from ledger.envelope import parse_envelope, verify_seal
from ledger.errors import FormatError, LedgerError, SignatureError, UnknownFormatError, clip
from ledger.note import Note, parse_note
from verify.cosignature import cosigners_of
from verify.errors import ProofError
from verify.memory import open_remembered, proven_prefix
from verify.proof import verify_consistency
from verify.report import Report, TimeBound, TimeBounds
from verify.timestamp import judge_token, timestamped_bytes
from verify.trust import Trust

__all__ = ["COUNTER_SEALS", "Subject", "check_counter_seals", "open_problem"]

COUNTER_SEALS: Final = "counter-seals"


@dataclass(frozen=True, slots=True)
class Subject:
    """What is under judgement.

    `head` is its verified head, `checkpoint` the signed note of that, `log_keys` all log keys of the ledger so far. `entries`
    gives receipt id and digest of the envelope at an index, where they are at hand. `first` and `last` are the indices that the
    subject spans.
    """

    head: Head
    checkpoint: bytes
    log_keys: Sequence[str]
    entries: Mapping[int, tuple[str, str]]
    first: int
    last: int


@dataclass(slots=True)
class _Heard:
    """What pinned parties said: names of notaries that count, and the times that they gave for a size."""

    counted: set[str] = field(default_factory=set)
    bounds: list[tuple[int, TimeBound]] = field(default_factory=list)
    newest: int = 0
    """The largest size that a pinned notary vouched for."""


def check_counter_seals(
    report: Report,
    carried: Sequence[CarriedSeal | CarriedHead],
    *,
    subject: Subject,
    trust: Trust | None,
    required: int,
) -> TimeBounds | None:
    """Report on counter-seals and cosignatures; return the bounds of time that they give, None where they give none.

    Args:
        report: takes the findings, under the name `counter-seals`.
        carried: what stands beside the evidence.
        subject: what is under judgement.
        trust: whom to believe.
        required: how many notaries must have vouched for the subject, 0 for none.
    """
    required = max(required, 0 if trust is None else trust.quorum)
    heard = _Heard()
    judge = _Judge(report, subject, trust, heard)
    judge.cosignatures(parse_note(subject.checkpoint), subject.head, "checkpoint")
    for number, each in enumerate(carried):
        where = f"counter-seal {number + 1}"
        if isinstance(each, CarriedSeal):
            judge.seal(each, where)
        else:
            judge.older_head(each, where)
    if carried or judge.cosigned or required:
        report.ran(COUNTER_SEALS, len(carried) + judge.cosigned)
    if heard.newest and heard.newest <= subject.last:
        report.notes.append(f"the newest head that a pinned notary saw has size {heard.newest}")
    if len(heard.counted) < required:
        _report_quorum(report, heard, subject, required)
    return _bounds(report, heard, subject)


def open_problem(document: bytes) -> tuple[CounterSeal | None, tuple[str, str]]:
    """Return the counter-seal of a sealed document whose seal holds under the key that it names; else the code and the message."""
    try:
        return open_counter_seal(document)[0], ("", "")
    except UnknownFormatError as error:
        # A seal holds or not whatever the document means.
        return None, _unknown(document, error)
    except SignatureError as error:
        return None, ("counterseal.signature", str(error))
    except FormatError as error:
        return None, ("counterseal.malformed", str(error))


def _unknown(document: bytes, error: UnknownFormatError) -> tuple[str, str]:
    try:
        verify_seal(parse_envelope(document))
    except UnknownFormatError:
        return "format.unknown", str(error)
    except LedgerError as other:
        return "counterseal.signature", str(other)
    return "format.unknown", str(error)


@dataclass(slots=True)
class _Judge:
    """Judges what is carried, one by one; `cosigned` counts verified lines."""

    report: Report
    subject: Subject
    trust: Trust | None
    heard: _Heard
    cosigned: int = 0

    def seal(self, found: CarriedSeal, where: str) -> None:
        """Judge one sealed document."""
        seal, problem = open_problem(found.document)
        if seal is None:
            self._find(problem[0], where, problem[1])
            return
        if seal.origin != self.subject.head.origin:
            self._find("counterseal.subject", where, f"it is about the ledger {clip(seal.origin)}")
            return
        if self.subject.entries.get(seal.entry_index) != (seal.receipt, seal.envelope):
            message = f"entry {seal.entry_index} here is not receipt {seal.receipt} in that envelope"
            self._find("counterseal.subject", where, message)
            return
        if not self._joined(seal.size, bytes.fromhex(seal.root.removeprefix("sha256:")), found.consistency, where):
            return
        code = "trust.notary_unpinned" if self.trust is None else self.trust.judge_notary(seal.notary, seal.key)
        if code is not None:
            message = f"notary {seal.notary}, key {seal.key}"
            self._find(code, where, message, asked=code != "trust.notary_unpinned")
            return
        self._vouched(seal.notary, seal.size, seal.issued_at, "counter-seal")
        if not isinstance(seal.verdict, str):
            self.report.notes.append(
                f"notary {clip(seal.notary)} was sent the evidence and came to exit {seal.verdict.exit}"
            )

    def older_head(self, found: CarriedHead, where: str) -> None:
        """Judge one head of this ledger that others signed."""
        try:
            note, head = parse_note(found.note), head_of(found.note)
        except LedgerError as error:
            self._find("counterseal.malformed", where, str(error))
            return
        if head.origin != self.subject.head.origin:
            self._find("counterseal.subject", where, f"it is a head of {clip(head.origin)}")
            return
        if not self._joined(head.size, head.root, found.consistency, where):
            return
        if open_remembered(found.note, origin=head.origin, log_keys=self.subject.log_keys) is None:
            self._find("head.unsigned", where, "no line by a log key of this ledger")
            return
        if not self.cosignatures(note, head, where) and found.timestamp is None:
            message = f"no pinned notary cosigned the head of size {head.size}"
            self._find("trust.notary_unpinned", where, message, asked=False)
        if found.timestamp is not None:
            self._timestamp(found.timestamp, note, head, where)

    def cosignatures(self, note: Note, head: Head, where: str) -> int:
        """Judge the cosignature lines of a note whose head is joined to the one under judgement; return how many hold."""
        found = cosigners_of(note, self.trust)
        for name in found.bad:
            self._find("cosignature.invalid", where, f"the line of notary {clip(name)} does not verify")
        for each in found.good:
            self._vouched(each.notary, head.size, each.time, "cosignature")
        self.cosigned += len(found.good)
        return len(found.good)

    def _timestamp(self, token: bytes, note: Note, head: Head, where: str) -> None:
        result = judge_token(token, timestamped_bytes(note, head.origin), self.trust)
        if result.code is not None:
            self._find(result.code, where, result.message, asked=result.code != "trust.timestamp_unpinned")
        else:
            self.heard.bounds.append((head.size, TimeBound(result.time, result.name, "timestamp")))

    def _vouched(self, notary: str, size: int, time: str | None, kind: str) -> None:
        self.heard.newest = max(self.heard.newest, size)
        if size > self.subject.last:
            self.heard.counted.add(notary)
        if time is not None:
            self.heard.bounds.append((size, TimeBound(time, notary, kind)))

    def _joined(self, size: int, root: bytes, proof: Sequence[bytes], where: str) -> bool:
        """Return whether a head is the one under judgement, or proven to be a beginning of it."""
        head = self.subject.head
        if size > head.size:
            message = f"it was seen with {size} entries, the head here has {head.size}"
            self._find("head.shorter", where, message)
        elif size == head.size and root != head.root:
            self._find("head.forked", where, f"the head that was seen at size {size} has another root")
        elif size == head.size:
            if not proof:
                return True
            self._find("proof.consistency", where, "a proof between heads of one size")
        else:
            try:
                verify_consistency(old_size=size, old_root=root, new_size=head.size, new_root=head.root, proof=proof)
            except ProofError as error:
                prefix = proven_prefix(size, head.size, head.root, proof)
                code = "proof.consistency" if prefix in {None, root} else "head.forked"
                self._find(code, where, f"the head that was seen at size {size}: {error}")
            else:
                return True
        return False

    def _find(self, code: str, where: str, message: str, *, asked: bool = True) -> None:
        self.report.find(COUNTER_SEALS, code, where=where, message=message, asked=asked)


def _report_quorum(report: Report, heard: _Heard, subject: Subject, required: int) -> None:
    message = f"{len(heard.counted)} of the {required} notaries that are asked for vouch for it"
    if heard.newest and heard.newest <= subject.last:
        message += f"; the newest head that one saw has size {heard.newest}, it takes {subject.last + 1}"
    report.find(COUNTER_SEALS, "trust.quorum", message=message)


def _bounds(report: Report, heard: _Heard, subject: Subject) -> TimeBounds | None:
    """Return the bounds, and note them for people."""
    above = [bound for size, bound in heard.bounds if size > subject.last]
    after = min(above, key=lambda bound: bound.time, default=None)
    # What one party was shown late says nothing against what another one saw before.
    below = [
        bound
        for size, bound in heard.bounds
        if size <= subject.first and bound.kind != "timestamp" and (after is None or bound.time <= after.time)
    ]
    before = max(below, key=lambda bound: bound.time, default=None)
    if after is not None:
        report.notes.append(f"existed at {after.time}, says the {after.kind} of {clip(after.by)}")
    if before is not None:
        report.notes.append(f"had not been shown to {clip(before.by)} at {before.time}, when it saw an earlier head")
    return None if after is None and before is None else TimeBounds(before, after)
