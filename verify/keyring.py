"""The keyring: which keys are in force at each place of the chain, followed from the header.

- The header names the first issuer key and the first log key, and commits the digests of the next ones.
- A rotation or revocation names the key in force as retired, is sealed by the next key, and commits the one after it.
- It takes effect with the next entry; a revocation may reach back to an earlier index. A retired key never returns.
- A head of size s is signed by the log key in force after entry s-1.

Validity is by place in the chain, never by a stated time.

Source: docs/spec/keys.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ledger.errors import LedgerError, UnknownFormatError, clip
from ledger.keys import next_digest, refuse_weak_point
from ledger.members import Continues
from ledger.receipt import Header, Key

__all__ = ["Keyring", "header_problem"]

_FORMAT: Final = "receipt-ledger/v1"


def header_problem(header: Header) -> tuple[str, str] | None:
    """Return the code and the message that speak against a header's format and keys, if any."""
    if header.format != _FORMAT:
        return "format.unknown", f"got format {clip(header.format)}, expected {_FORMAT}"
    try:
        refuse_weak_point(header.log_key)
        refuse_weak_point(header.issuer.key)
    except UnknownFormatError as error:
        return "format.unknown", str(error)
    except LedgerError as error:
        return "key.chain", str(error)
    if header.log_key == header.issuer.key:
        return "key.chain", "one key is both log key and issuer key"
    return None


@dataclass(slots=True)
class _Line:
    """The keys of one role, the first one first, and the commitment to the next."""

    keys: list[str]
    next: str | None


@dataclass(slots=True)
class Keyring:
    """The keys in force after the entries taken so far.

    Attributes:
        header: receipt id of the header.
        origin: the ledger that it names.
        issuer_name: the name that the issuer's keys speak under.
        continues: the head of the older ledger that it says to follow, if any.
    """

    header: str
    origin: str
    issuer_name: str
    continues: Continues | None
    _issuer: _Line
    _log: _Line
    _since: dict[str, int] = field(default_factory=dict)
    """Key -> index of the key receipt that put it in force; the header's keys are not in it."""
    _retired: dict[str, int] = field(default_factory=dict)
    """Key -> first index at which it may no longer be used."""
    _revoked: dict[str, int] = field(default_factory=dict)
    """Key -> first index at which it is not believed, though it may have been used."""

    @classmethod
    def start(cls, header: Header, id_: str) -> Keyring:
        """Return the keyring after entry 0."""
        return cls(
            id_,
            header.ledger,
            header.issuer.name,
            header.continues,
            _Line([header.issuer.key], header.next.issuer),
            _Line([header.log_key], header.next.log),
        )

    @property
    def log_key(self) -> str:
        """The log key in force: it signs the head over the entries so far."""
        return self._log.keys[-1]

    @property
    def log_keys(self) -> tuple[str, ...]:
        """All log keys so far, the first one first."""
        return tuple(self._log.keys)

    @property
    def first_log_key(self) -> str:
        """The log key that the header names."""
        return self._log.keys[0]

    @property
    def first_issuer_key(self) -> str:
        """The issuer key that the header names."""
        return self._issuer.keys[0]

    def anchor(self, name: str, key: str, first: int) -> str:
        """Return the key to look up in the trust for an issuer whose first receipt stands at index `first`.

        It is the header's, if a chain of rotations leads from that to `key` before the receipt.
        """
        follows = name == self.issuer_name and key in self._issuer.keys and first >= self._since.get(key, 0)
        return self._issuer.keys[0] if follows else key

    def take(self, receipt: Key, index: int) -> str | None:
        """Take a key receipt whose seal by its issuer key was verified; return what speaks against it, if anything.

        A receipt that does not follow changes nothing.
        """
        line = self._issuer if receipt.role == "issuer" else self._log
        problem = self._problem(receipt, line, index)
        if problem is not None:
            return problem
        retired = line.keys[-1]
        self._since[receipt.key] = index
        line.keys.append(receipt.key)
        line.next = receipt.next.issuer if receipt.role == "issuer" else receipt.next.log
        self._retired[retired] = index
        if receipt.action == "revoke":
            self._revoked[retired] = index if receipt.from_index is None else receipt.from_index
        return None

    def judge(self, key: str, index: int) -> str | None:
        """Return the code that speaks against a key at an index: `key.revoked`, `key.retired` or None."""
        revoked = self._revoked.get(key)
        if revoked is not None and index >= revoked:
            return "key.revoked"
        retired = self._retired.get(key)
        return "key.retired" if retired is not None and index >= retired else None

    def _problem(self, receipt: Key, line: _Line, index: int) -> str | None:
        if line.next is None:
            return f"no next {receipt.role} key was committed"
        try:
            committed = next_digest(receipt.key)
            refuse_weak_point(receipt.key)
        except LedgerError as error:
            return str(error)
        if committed != line.next:
            return f"the new key is not the one committed: got {committed}, expected {line.next}"
        if receipt.retired != line.keys[-1]:
            return f"it retires {clip(receipt.retired)}, in force is {line.keys[-1]}"
        if receipt.issuer.key != receipt.key or receipt.issuer.name != self.issuer_name:
            return "it is not sealed by the next key under the header's issuer name"
        if receipt.key in self._issuer.keys or receipt.key in self._log.keys:
            return "the new key was in use before"
        if receipt.from_index is not None and (receipt.action == "rotate" or receipt.from_index > index):
            return f"got from_index {receipt.from_index} in a {receipt.action} at {index}"
        return None
