"""Plain writers of every format, from docs/spec alone: nothing here imports the code that the vectors test.

Canonical JSON by the standard library's encoder (right for names below U+D800), hashes by hashlib, signatures by PyNaCl.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from nacl.signing import SigningKey

ORIGIN = "ledger.example/vectors"
BOUND = ("name", "tool", "arguments_digest", "resource", "environment", "amount", "precondition")
"""Members of an act that its digest is of."""
ZERO = "sha256:" + "0" * 64
RECEIPT_TYPE = "application/vnd.receipt-ledger.receipt+json"
SCHEMA = "receipt-ledger.receipt/v1"
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
FIELD = 2**255 - 19


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def nonce(label: str) -> str:
    """16 bytes where a real ledger draws random ones."""
    return sha(b"receipt-ledger vectors: " + label.encode())[:16].hex()


@dataclass(frozen=True)
class Key:
    """A published test key: its seed is SHA-256("receipt-ledger test key: <name>")."""

    name: str

    @property
    def seed(self) -> bytes:
        return sha(b"receipt-ledger test key: " + self.name.encode())

    @property
    def public(self) -> bytes:
        return bytes(SigningKey(self.seed).verify_key)

    @property
    def id(self) -> str:
        return "ed25519:" + self.public.hex()

    @property
    def commitment(self) -> str:
        return digest(self.public)

    def sign(self, message: bytes) -> bytes:
        return SigningKey(self.seed).sign(message).signature


ISSUER, ISSUER2, LOG, LOG2 = Key("issuer"), Key("issuer-2"), Key("log"), Key("log-2")
APPROVER, NOTARY, WITNESS = Key("approver"), Key("notary"), Key("witness")
OTHER_ISSUER, OTHER_LOG = Key("other-issuer"), Key("other-log")
KEYS = (ISSUER, ISSUER2, LOG, LOG2, APPROVER, NOTARY, WITNESS, OTHER_ISSUER, OTHER_LOG)
NAMES = {ISSUER.name: "build", ISSUER2.name: "build", APPROVER.name: "ada", OTHER_ISSUER.name: "deploy"}


def flip(data: bytes, offset: int = 0, bit: int = 0) -> bytes:
    """The same bytes with one bit changed."""
    offset %= len(data)
    return data[:offset] + bytes([data[offset] ^ (1 << bit)]) + data[offset + 1 :]


# Envelopes.


def pae(payload: bytes, type_: str = RECEIPT_TYPE) -> bytes:
    return f"DSSEv1 {len(type_)} {type_} {len(payload)} ".encode() + payload


def envelope(payload: bytes, key: str | None = None, signature: bytes = b"", type_: str = RECEIPT_TYPE) -> bytes:
    seals = b"" if key is None else f'{{"key":"{key}","signature":"{b64(signature)}"}}'.encode()
    return b'{"payload":' + payload + f',"payload_type":"{type_}","seals":['.encode() + seals + b"]}"


def sealed(payload: bytes, key: Key, type_: str = RECEIPT_TYPE) -> bytes:
    return envelope(payload, key.id, key.sign(pae(payload, type_)), type_)


# Merkle, RFC 9162, 2.1.


def leaf(entry: bytes) -> bytes:
    return sha(b"\x00" + entry)


def node(left: bytes, right: bytes) -> bytes:
    return sha(b"\x01" + left + right)


def _split(count: int) -> int:
    k = 1
    while k * 2 < count:
        k *= 2
    return k


def root(leaves: list[bytes]) -> bytes:
    if not leaves:
        return sha(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = _split(len(leaves))
    return node(root(leaves[:k]), root(leaves[k:]))


def inclusion(index: int, leaves: list[bytes]) -> list[bytes]:
    if len(leaves) == 1:
        return []
    k = _split(len(leaves))
    if index < k:
        return [*inclusion(index, leaves[:k]), root(leaves[k:])]
    return [*inclusion(index - k, leaves[k:]), root(leaves[:k])]


def consistency(old: int, leaves: list[bytes], *, whole: bool = True) -> list[bytes]:
    if old == len(leaves):
        return [] if whole else [root(leaves)]
    k = _split(len(leaves))
    if old <= k:
        return [*consistency(old, leaves[:k], whole=whole), root(leaves[k:])]
    return [*consistency(old - k, leaves[k:], whole=False), root(leaves[:k])]


# Notes and heads.


def note_key_id(name: str, public: bytes, type_: int = 1) -> bytes:
    return sha(name.encode() + b"\n" + bytes([type_]) + public)[:4]


def vkey(name: str, key: Key, type_: int = 1) -> str:
    return f"{name}+{note_key_id(name, key.public, type_).hex()}+{b64(bytes([type_]) + key.public)}"


def signature_line(name: str, key_id: bytes, signature: bytes) -> str:
    return f"\u2014 {name} {b64(key_id + signature)}\n"


def note_line(text: str, name: str, key: Key) -> str:
    return signature_line(name, note_key_id(name, key.public), key.sign(text.encode()))


def cosignature_line(text: str, name: str, key: Key, time_s: int) -> str:
    signed = key.sign(f"cosignature/v1\ntime {time_s}\n{text}".encode())
    return signature_line(name, note_key_id(name, key.public, 4), time_s.to_bytes(8, "big") + signed)


def checkpoint(origin: str, size: int | str, root_: bytes, *extensions: str) -> str:
    return f"{origin}\n{size}\n{b64(root_)}\n" + "".join(f"{found}\n" for found in extensions)


def head_note(origin: str, size: int | str, root_: bytes, *keys: Key, extensions: tuple[str, ...] = ()) -> str:
    text = checkpoint(origin, size, root_, *extensions)
    return text + "\n" + "".join(note_line(text, origin, key) for key in keys)


# Entries and lines.


def entry(
    *,
    envelope: str,
    index: int | str,
    keyring: int | str,
    previous: str,
    receipt: str,
    recorded_at: str,
    schema: str = "receipt-ledger.entry/v1",
) -> bytes:
    return (
        f'{{"envelope":"{envelope}","index":{index},"keyring":{keyring},"previous":"{previous}",'
        f'"receipt":"{receipt}","recorded_at":"{recorded_at}","schema":"{schema}"}}'
    ).encode()


def head_line(note: str, previous: str) -> bytes:
    return canonical({"head": note, "previous_head": previous})


@dataclass
class Row:
    """One entry of a ledger and what it was made of."""

    kind: str
    id: str
    payload: bytes
    envelope: bytes
    entry: bytes

    @property
    def line(self) -> bytes:
        return b'{"entry":' + self.entry + b',"envelope":' + self.envelope + b"}"


@dataclass
class Book:
    """A ledger under construction, lawful or not: what an honest writer chooses by itself can be given."""

    origin: str = ORIGIN
    issuer: Key = ISSUER
    log: Key = LOG
    label: str = ""
    rows: list[Row] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keyring: int = 0
    last_head: str = ZERO
    run_id: str = ""
    actors: dict[str, Any] = field(default_factory=dict)
    """Run -> the actor of its opening."""
    clock_ms: int = 0

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def leaves(self) -> list[bytes]:
        return [leaf(row.entry) for row in self.rows]

    @property
    def root(self) -> bytes:
        return root(self.leaves)

    def tick(self) -> str:
        self.clock_ms += 1
        return (
            f"2026-11-30T09:{self.clock_ms // 60000:02d}:{self.clock_ms // 1000 % 60:02d}.{self.clock_ms % 1000:03d}Z"
        )

    # Receipts.

    def value(
        self, kind: str, members: dict[str, Any], *, issuer: Key | None = None, name: str | None = None
    ) -> dict[str, Any]:
        who = issuer or self.issuer
        return {
            "schema": SCHEMA,
            "kind": kind,
            "ledger": self.origin,
            "issuer": {"name": name or NAMES.get(who.name, who.name), "key": who.id},
            "issued_at": self.tick(),
            "nonce": nonce(f"{self.label} {self.size}"),
            "producer": {"name": "vectors", "version": "1"},
            **members,
        }

    def add(
        self,
        kind: str,
        members: dict[str, Any] | None = None,
        *,
        issuer: Key | None = None,
        name: str | None = None,
        seal: bool | Key | None = None,
        payload: bytes | None = None,
        raw_envelope: bytes | None = None,
        type_: str = RECEIPT_TYPE,
        entry_members: dict[str, Any] | None = None,
        drop: tuple[str, ...] = (),
    ) -> str:
        """Add a receipt; return its id. By default it is sealed where its kind always is."""
        value = self.value(kind, members or {}, issuer=issuer, name=name)
        for member in drop:
            del value[member]
        data = canonical(value) if payload is None else payload
        who = issuer or self.issuer
        wanted = kind not in {"intent", "outcome", "decision", "step"} if seal is None else seal
        if raw_envelope is not None:
            printed = raw_envelope
        elif isinstance(wanted, Key):
            printed = envelope(data, wanted.id, wanted.sign(pae(data, type_)), type_)
        else:
            printed = sealed(data, who, type_) if wanted else envelope(data, type_=type_)
        return self.append(kind, data, printed, **(entry_members or {}))

    def append(self, kind: str, payload: bytes, printed: bytes, **change: Any) -> str:
        """Add an envelope as the next entry, some of whose members may be given."""
        id_ = digest(payload)
        made = {
            "envelope": digest(printed),
            "index": self.size,
            "keyring": self.keyring,
            "previous": digest(self.rows[-1].entry) if self.rows else ZERO,
            "receipt": id_,
            "recorded_at": self.tick(),
            **change,
        }
        row = Row(kind, id_, payload, printed, entry(**made))
        self.rows.append(row)
        self.lines.append(row.line)
        if kind in {"header", "key"}:
            self.keyring = self.size - 1
        return id_

    def header(self, **members: Any) -> str:
        next_ = {"issuer": ISSUER2.commitment, "log": LOG2.commitment}
        return self.add("header", {"format": "receipt-ledger/v1", "log_key": self.log.id, "next": next_, **members})

    def opening(self, *, seal: bool | Key | None = None, issuer: Key | None = None, **members: Any) -> str:
        common = {
            "name": "deploy web",
            "actor": {"agent": "ci", "user": "unknown", "model": "unknown"},
            "adapter": {"name": "vectors", "version": "1", "coverage": "in-loop"},
        }
        given = {**common, **members}
        self.run_id = self.add("opening", given, seal=seal, issuer=issuer)
        self.actors[self.run_id] = given["actor"]
        return self.run_id

    def act(self) -> dict[str, Any]:
        return {
            "name": "deploy",
            "tool": {"name": "shell", "version": "5", "digest": "unknown"},
            "access": "write",
            "arguments_digest": digest(b"arguments"),
            "resource": "host/1",
            "environment": "test",
        }

    def act_digest(
        self, act: dict[str, Any] | None = None, *, run: str | None = None, effect: dict[str, Any] | None = None
    ) -> str:
        """The digest of an act, the usual one where none is given, of a run of this ledger."""
        of, made = run or self.run_id, act or self.act()
        hashed = {
            "schema": "receipt-ledger.act/v1",
            "ledger": self.origin,
            "run": of,
            "actor": self.actors.get(of, "unknown"),
            **{member: made[member] for member in BOUND if member in made},
            **({} if effect is None else {"effect_key": effect["key"]}),
        }
        return digest(canonical(hashed))

    def _with_digest(self, members: dict[str, Any]) -> dict[str, Any]:
        found = self.act_digest(members["act"], run=members["run"], effect=members.get("effect"))
        return {"act_digest": found, **members}

    def intent(
        self, *, run: str | None = None, seal: bool | Key | None = None, issuer: Key | None = None, **members: Any
    ) -> str:
        common = {"run": run or self.run_id, "act": self.act()}
        return self.add("intent", self._with_digest({**common, **members}), seal=seal, issuer=issuer)

    def outcome(
        self,
        intent: str,
        *inside: str,
        run: str | None = None,
        seal: bool | Key | None = None,
        issuer: Key | None = None,
        **members: Any,
    ) -> str:
        common = {
            "run": run or self.run_id,
            "intent": intent,
            "status": "committed",
            "duration_ms": 5,
            "children": [intent, *inside],
        }
        return self.add("outcome", {**common, **members}, seal=seal, issuer=issuer)

    def decision(self, *, run: str | None = None, **members: Any) -> str:
        common = {
            "run": run or self.run_id,
            "act": self.act(),
            "status": "denied",
            "reason": "policy.denied",
        }
        return self.add("decision", self._with_digest({**common, **members}))

    def step(
        self, *children: str, run: str | None = None, seal: bool | Key | None = None, issuer: Key | None = None
    ) -> str:
        members: dict[str, Any] = {"run": run or self.run_id, "name": "build", "status": "completed"}
        if children:
            members["children"] = list(children)
        return self.add("step", members, seal=seal, issuer=issuer)

    def close(
        self,
        *children: str,
        run: str | None = None,
        seal: bool | Key | None = None,
        issuer: Key | None = None,
        opening: bool = True,
    ) -> str:
        """Add the `run` receipt; the opening stands first among its children unless told otherwise."""
        id_ = run or self.run_id
        members = {
            "run": id_,
            "status": "completed",
            "duration_ms": 9,
            "children": [*((id_,) if opening else ()), *children],
        }
        return self.add("run", members, seal=seal, issuer=issuer)

    def rotate(
        self,
        new: Key,
        retired: Key,
        *,
        role: str = "issuer",
        next_key: Key | None = None,
        issuer: Key | None = None,
        seal: bool | Key | None = None,
        name: str = "build",
        **members: Any,
    ) -> str:
        common = {
            "action": "rotate",
            "role": role,
            "key": new.id,
            "retired": retired.id,
            "next": {} if next_key is None else {role: next_key.commitment},
        }
        return self.add("key", {**common, **members}, issuer=issuer or new, name=name, seal=seal)

    # Heads.

    def commit(
        self,
        *keys: Key,
        origin: str | None = None,
        size: int | str | None = None,
        root_: bytes | None = None,
        previous: str | None = None,
        note: str | None = None,
        extensions: tuple[str, ...] = (),
    ) -> str:
        """End a commit with a signed head; return its note."""
        if note is None:
            note = head_note(
                origin or self.origin,
                self.size if size is None else size,
                self.root if root_ is None else root_,
                *(keys or (self.log,)),
                extensions=extensions,
            )
        line = head_line(note, previous or self.last_head)
        self.lines.append(line)
        self.notes.append(note)
        self.last_head = digest(line)
        return note

    def journal(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)

    def trust(self, *, header: bool = True) -> str:
        """A trust file that pins this ledger, its issuer, a second issuer and an approver."""
        pin = f'header = "{self.rows[0].id}"\n' if header and self.rows else ""
        return (
            f'[[origin]]\nname = "{self.origin}"\nlog_key = "{LOG.id}"\n{pin}\n'
            f'[[issuer]]\nname = "build"\nkey = "{ISSUER.id}"\n\n'
            f'[[issuer]]\nname = "deploy"\nkey = "{OTHER_ISSUER.id}"\n\n'
            f'[[approver]]\nname = "ada"\nkey = "{APPROVER.id}"\nroles = ["release"]\n'
        )
