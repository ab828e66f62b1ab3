"""Receipts in chain order: schema, seal, issuer and place in their tree, one after the other in flat memory."""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ledger.envelope import RECEIPT_TYPE, pae
from ledger.errors import FormatError, LedgerError, UnknownFormatError, clip
from ledger.facts import Facts
from ledger.keys import parse_base64, verify_signature
from ledger.words import SEALED_KINDS
from verify.chain import Rows
from verify.issuers import Issuers
from verify.reading import read_reported, stated_run
from verify.report import Covered, Report
from verify.rules import ApartRules, RuleFold, RuleSources, RuleState
from verify.tree import Find, TreeFold, TreeState

__all__ = ["Issuers", "ReceiptFold", "ReceiptState", "read_reported"]

_SEALED: Final = frozenset(str(kind) for kind in SEALED_KINDS)
_TAIL = re.compile(
    rb',"payload_type":"([a-z0-9!#$&^_.+/-]{3,255})","seals":\[(?:\{"key":"([a-z0-9:-]+)","signature":"([A-Za-z0-9+/=]+)"\})?\]\}\}?'
)
_RECEIPT_TYPE: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'"'
_UNSEALED: Final = b',"payload_type":"' + RECEIPT_TYPE.encode("ascii") + b'","seals":[]}}'


# The usual seal, which the chain lets through as it is: a key id of 72 bytes, then 88 bytes of base64.
_USUAL_SEAL: Final = _RECEIPT_TYPE + b',"seals":[{"key":"ed25519:'
_USUAL_END: Final = b'=="}]}}'
_KEY: Final = slice(len(_USUAL_SEAL) - 8, len(_USUAL_SEAL) + 64)
_SIGNATURE: Final = slice(
    len(_USUAL_SEAL) + 64 + len('","signature":"'), len(_USUAL_SEAL) + 64 + len('","signature":"') + 88
)
_USUAL_LENGTH: Final = _SIGNATURE.stop + len('"}]}}')


def _verified(rows: Rows) -> list[str]:
    """Return for each row the key of its seal, if that has the usual layout and verifies; all others are empty.

    Signatures are verified faster one after the other than each between other work.
    """
    found = []
    for _, _, payload, tail, _ in rows:
        key = ""
        # The chain has matched what begins like this to the letter, base64 included.
        if len(tail) == _USUAL_LENGTH and tail.startswith(_USUAL_SEAL) and tail.endswith(_USUAL_END):
            try:
                key = tail[_KEY].decode()
                verify_signature(key, a2b_base64(tail[_SIGNATURE]), pae(RECEIPT_TYPE, payload))
            except LedgerError:
                key = ""
        found.append(key)
    return found


@dataclass(frozen=True, slots=True)
class ReceiptState:
    """A fold over receipts at rest."""

    origin: str | None = None
    receipts: int = 0
    own_seals: int = 0
    issuers: Issuers = field(default_factory=Issuers)
    trees: TreeState = field(default_factory=TreeState)
    rules: RuleState = field(default_factory=RuleState)


class ReceiptFold:
    """Takes the committed entries of a ledger and checks their receipts."""

    def __init__(
        self,
        report: Report,
        trees: Callable[[Find], TreeFold] = TreeFold,
        rules: RuleFold | ApartRules | None = None,
    ) -> None:
        self._report = report
        self.rules: RuleFold | ApartRules = RuleFold(RuleSources()) if rules is None else rules
        self.issuers = Issuers()
        self.trees = trees(self._find)
        self.receipts = 0
        self.own_seals = 0
        self.origin: str | None = None

    def take(self, rows: Rows) -> None:
        """Check the receipts of commits."""
        report, issuers, trees = self._report, self.issuers, self.trees
        rules = self.rules
        rule, known, openings, in_order = rules.take, rules.known, rules.openings, isinstance(rules, RuleFold)
        for (index, hex_, payload, tail, time), verified in zip(rows, _verified(rows), strict=True):
            sealed = tail != _UNSEALED
            facts = read_reported(payload, index, report) if not sealed or tail.startswith(_RECEIPT_TYPE) else None
            if facts is None:
                self._unread(index, hex_, payload, tail)
                continue
            self.receipts += 1
            if facts.ledger != self.origin:
                if self.origin is None:
                    self.origin = facts.ledger
                else:
                    message = f"got ledger {clip(facts.ledger)}, expected {clip(self.origin)}"
                    report.find("receipts", "receipt.foreign_ledger", where=f"entry {index}", message=message)
            if sealed:
                if verified == facts.key:
                    self.own_seals += 1
                else:
                    sealed = self._check_seal(index, facts, payload, tail)
            elif facts.kind in _SEALED:
                report.find("seals", "seal.absent", where=f"entry {index}", message=f"a {facts.kind} without its seal")
            id_, kind = "sha256:" + hex_, facts.kind
            trees.add(index, id_, facts, issuers.see(facts, index), sealed=sealed)
            # Most receipts say nothing to rules: calls of runs that nothing rules.
            run = facts.run
            if (
                kind not in {"outcome", "intent"}
                or facts.ruled
                or ((run in known) if in_order else (run not in openings))
            ):
                rule(index, id_, facts, payload, time)

    def state(self) -> ReceiptState:
        """Return the state to resume from; it shares what it holds with the fold, which is not used after."""
        rules = self.rules.state() if isinstance(self.rules, RuleFold) else RuleState()
        return ReceiptState(self.origin, self.receipts, self.own_seals, self.issuers, self.trees.state(), rules)

    def resume(self, state: ReceiptState) -> None:
        """Go on from a state."""
        self.origin, self.receipts, self.own_seals = state.origin, state.receipts, state.own_seals
        self.issuers = state.issuers
        self.trees.resume(state.trees)
        if isinstance(self.rules, RuleFold):
            self.rules.resume(state.rules)

    def _unread(self, index: int, hex_: str, payload: bytes, tail: bytes) -> None:
        """Take an entry whose receipt cannot be read: its seal is checked, and trees know that it is there."""
        if not tail:
            self.trees.blind = True
            return
        if tail != _UNSEALED:
            self._check_seal(index, None, payload, tail)
        self.trees.add_unread("sha256:" + hex_, stated_run(payload))

    def covered(self) -> Covered:
        """Return how the receipts so far are attributed."""
        return Covered(self.own_seals, self.trees.by_root, self.trees.unattributed())

    def _find(self, name: str, code: str, index: int, message: str) -> None:
        self._report.find(name, code, where=f"entry {index}", message=message)

    def _check_seal(self, index: int, facts: Facts | None, payload: bytes, tail: bytes) -> bool:
        """Return whether a receipt that bears a seal is sealed by its issuer; without facts, by whom it says."""
        match = _TAIL.fullmatch(tail)
        where = f"entry {index}"
        if match is None:
            self._report.find("seals", "envelope.malformed", where=where)
            return False
        type_, key, signature = (None if found is None else found.decode("ascii") for found in match.groups())
        if type_ is None or type_ != RECEIPT_TYPE:
            self._report.find("receipts", "format.unknown", where=where, message=f"payload type {clip(type_)}")
        if key is None or signature is None or type_ is None:
            if facts is not None and facts.kind in _SEALED:
                self._report.find("seals", "seal.absent", where=where, message=f"a {facts.kind} without its seal")
            return False
        try:
            decoded = parse_base64(signature)
        except FormatError as error:
            self._report.find("seals", "seal.invalid", where=where, message=str(error))
            return False
        return self._check_signature(index, facts, key, decoded, pae(type_, payload))

    def _check_signature(self, index: int, facts: Facts | None, key: str, signature: bytes, message: bytes) -> bool:
        if facts is not None and key != facts.key:
            self._report.find("seals", "seal.issuer", where=f"entry {index}")
            return False
        try:
            verify_signature(key, signature, message)
        except UnknownFormatError as error:
            self._report.find("seals", "format.unknown", where=f"entry {index}", message=str(error))
            return False
        except LedgerError as error:
            self._report.find("seals", "seal.invalid", where=f"entry {index}", message=str(error))
            return False
        self.own_seals += 1
        return True
