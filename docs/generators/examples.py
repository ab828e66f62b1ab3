"""One small ledger, made from printed seeds: every example of docs/spec/ is a part of it.

A run that reads one amount and refunds it: header, opening, intent, outcome, run, and a rotation of the issuer key. Merkle
hashes, notes and salts are computed here from the clauses of the pages themselves, apart from the code that they describe.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ledger import canonical
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry, print_entry
from ledger.envelope import RECEIPT_TYPE, Envelope, pae, print_envelope, seal
from ledger.keys import PrivateKey, next_digest
from ledger.line import print_entry_line, print_head_line
from ledger.receipt import parse_receipt

ORIGIN = "ledger.example/spec"
ISSUER = "refunds@ledger.example/spec"
NAMES = ("header", "opening", "intent", "outcome", "run", "key")

ARGUMENTS = {"amount_cents": 4200, "customer": "c_102", "payment": "p_7781"}


def secret(label: str, size: int = 32) -> bytes:
    """Return the bytes that an example uses where a real ledger draws random ones."""
    return hashlib.sha256(b"receipt-ledger documentation: " + label.encode("ascii")).digest()[:size]


def private_key(name: str) -> PrivateKey:
    """Return a published test key, one of those of vectors/: nobody may trust it."""
    return PrivateKey.from_seed(hashlib.sha256(b"receipt-ledger test key: " + name.encode("ascii")).digest())


KEY_NAMES = ("issuer", "issuer-2", "log", "log-2", "approver", "notary", "witness", "other-issuer", "other-log")


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of a merkle leaf."""
    return hashlib.sha256(b"\x00" + entry).digest()


def root_hash(leaves: list[bytes]) -> bytes:
    """Return the merkle root of leaf hashes, by the recursive definition of RFC 9162, 2.1.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + root_hash(leaves[:split]) + root_hash(leaves[split:])).digest()


def inclusion(leaves: list[bytes], index: int) -> list[bytes]:
    """Return the inclusion proof of one leaf, by RFC 9162, 2.1.3.1."""
    if len(leaves) == 1:
        return []
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if index < split:
        return [*inclusion(leaves[:split], index), root_hash(leaves[split:])]
    return [*inclusion(leaves[split:], index - split), root_hash(leaves[:split])]


def consistency(leaves: list[bytes], size: int, *, whole: bool = True) -> list[bytes]:
    """Return the consistency proof from the first `size` leaves to all of them, by RFC 9162, 2.1.4.1."""
    if size == len(leaves):
        return [] if whole else [root_hash(leaves)]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= split:
        return [*consistency(leaves[:split], size, whole=whole), root_hash(leaves[split:])]
    return [*consistency(leaves[split:], size - split, whole=False), root_hash(leaves[:split])]


def note_key_id(name: str, key: PrivateKey) -> bytes:
    """Return the four bytes that name a key on a signed note."""
    return hashlib.sha256(name.encode("utf-8") + b"\n\x01" + key.public).digest()[:4]


def signed_note(text: str, key: PrivateKey) -> str:
    """Return a note signed by one key under the ledger's origin."""
    signature = note_key_id(ORIGIN, key) + key.sign(text.encode("utf-8"))
    return f"{text}\n\u2014 {ORIGIN} {base64.b64encode(signature).decode('ascii')}\n"


def checkpoint_text(size: int, root: bytes) -> str:
    """Return the three lines of a checkpoint."""
    return f"{ORIGIN}\n{size}\n{base64.b64encode(root).decode('ascii')}\n"


def salt_of(content: bytes) -> bytes:
    """Return the salt of an artifact of the example's run."""
    return hmac.digest(secret("run salt"), hashlib.sha256(content).digest(), "sha256")


@dataclass
class Example:
    """The ledger: parallel lists by index."""

    receipts: list[dict[str, Any]] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    envelopes: list[bytes] = field(default_factory=list)
    entries: list[bytes] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    head_lines: list[bytes] = field(default_factory=list)

    def id_of(self, name: str) -> str:
        """Return the receipt id of one of `NAMES`."""
        return digest(self.payloads[NAMES.index(name)])

    @property
    def leaves(self) -> list[bytes]:
        """The leaf hashes of all entries."""
        return [leaf_hash(entry) for entry in self.entries]

    def append(self, members: dict[str, Any], *, key: PrivateKey | None, keyring: int) -> str:
        """Add one receipt as a commit of its own and return its id."""
        index = len(self.entries)
        issued_at = f"2026-11-30T09:15:0{index}.123Z"
        receipt = {
            "schema": "receipt-ledger.receipt/v1",
            "ledger": ORIGIN,
            "issuer": {"name": ISSUER, "key": private_key("issuer").key},
            "issued_at": issued_at,
            "nonce": secret(f"nonce {index}", 16).hex(),
            "producer": {"name": "receipt-ledger", "version": "1"},
            **members,
        }
        payload = canonical.encode(receipt, max_depth=canonical.RECEIPT_MAX_DEPTH)
        parse_receipt(payload)
        envelope = print_envelope(Envelope(payload) if key is None else seal(payload, key))
        previous = digest(self.entries[-1]) if self.entries else ZERO_DIGEST
        entry = print_entry(Entry(digest(envelope), index, keyring, previous, digest(payload), issued_at))
        self.receipts.append(receipt)
        self.payloads.append(payload)
        self.envelopes.append(envelope)
        self.entries.append(entry)
        self.lines.append(print_entry_line(entry, envelope))
        self.notes.append(signed_note(checkpoint_text(index + 1, root_hash(self.leaves)), private_key("log")))
        before = digest(self.head_lines[-1]) if self.head_lines else ZERO_DIGEST
        self.head_lines.append(print_head_line(self.notes[-1].encode("utf-8"), before))
        return digest(payload)


def arguments() -> bytes:
    """Return the content of the artifact that holds the arguments of the example's act."""
    return canonical.encode(ARGUMENTS)


def act() -> dict[str, Any]:
    """Return the act of the example: one refund, its amount inline."""
    content = arguments()
    return {
        "name": "payments.refund",
        "tool": {"name": "payments", "version": "2.4.0", "digest": "unknown"},
        "access": "write",
        "arguments": {"amount_cents": 4200},
        "arguments_digest": digest(salt_of(content) + content),
        "resource": "p_7781",
        "environment": "production",
        "amount": {"meter": "eur_cent", "value": 4200},
    }


ACTOR = {"agent": "support-agent", "user": "unknown", "model": "unknown"}
EFFECT = {"key": "refund:p_7781", "attempt": 1}


def act_document(run: str) -> dict[str, Any]:
    """Return what an act digest is the digest of, by the clause of receipts.md."""
    value = act()
    taken = {name: value[name] for name in ("name", "tool", "arguments_digest", "resource", "environment", "amount")}
    return {
        "schema": "receipt-ledger.act/v1",
        "ledger": ORIGIN,
        "run": run,
        "actor": ACTOR,
        "effect_key": EFFECT["key"],
        **taken,
    }


def _artifact(name: str, content: bytes, *, salt: bytes, media_type: str = "application/json") -> dict[str, Any]:
    return {
        "digest": digest(salt + content),
        "media_type": media_type,
        "name": name,
        "size_bytes": len(content),
        "salted": salt != b"",
    }


@cache
def example() -> Example:
    """Return the example ledger."""
    made = Example()
    key = private_key("issuer")
    header = {
        "kind": "header",
        "format": "receipt-ledger/v1",
        "log_key": private_key("log").key,
        "next": {
            "issuer": next_digest(private_key("issuer-2").key),
            "log": next_digest(private_key("log-2").key),
        },
    }
    made.append(header, key=key, keyring=0)
    run_salt = _artifact("run-salt", secret("run salt"), salt=b"", media_type="application/octet-stream")
    opening = {
        "kind": "opening",
        "name": "refund p_7781",
        "actor": ACTOR,
        "adapter": {"name": "receipt-ledger-python", "version": "1", "coverage": "in-loop"},
        "limits": [{"meter": "tool_calls", "limit": 60}],
        "correlation": {"ticket": "4711"},
        "artifacts": [run_salt],
    }
    run = made.append(opening, key=key, keyring=0)
    content = arguments()
    intent_members = {
        "kind": "intent",
        "run": run,
        "act": act(),
        "act_digest": digest(canonical.encode(act_document(run))),
        "effect": EFFECT,
        "lease_ms": 300_000,
        "artifacts": [_artifact("arguments", content, salt=salt_of(content))],
    }
    intent = made.append(intent_members, key=None, keyring=0)
    outcome_members = {
        "kind": "outcome",
        "run": run,
        "intent": intent,
        "status": "committed",
        "duration_ms": 412,
        "charges": [{"meter": "tool_calls", "reserved": 1, "settled": 1, "basis": "measured"}],
        "children": [intent],
    }
    outcome = made.append(outcome_members, key=None, keyring=0)
    run_members = {
        "kind": "run",
        "run": run,
        "status": "completed",
        "duration_ms": 2_900,
        "totals": [{"meter": "tool_calls", "value": 1}],
        "children": [run, outcome],
    }
    made.append(run_members, key=key, keyring=0)
    new = private_key("issuer-2")
    rotation = {
        "kind": "key",
        "issuer": {"name": ISSUER, "key": new.key},
        "action": "rotate",
        "role": "issuer",
        "key": new.key,
        "retired": key.key,
        "next": {"issuer": next_digest(private_key("other-issuer").key)},
    }
    made.append(rotation, key=new, keyring=0)
    return made


def pre_authentication(payload: bytes) -> bytes:
    """Return the bytes that a seal signs."""
    return pae(RECEIPT_TYPE, payload)
