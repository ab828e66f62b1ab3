"""Builds ledgers byte by byte from the formats alone: no storage, no clock, no randomness.

    ledger = Builder()
    ledger.header()
    run = ledger.opening()
    call = ledger.outcome(ledger.intent())
    ledger.run()
    ledger.commit()
    ledger.journal()        # the bytes of one segment

Everything is derived from `seed`, so the same calls give the same bytes. What an honest writer chooses by itself (children,
seal, issuer, entry members, head members) can be given, so that a dishonest ledger is built by the same code:
`issuer=`, `seal=`, `children=`, `ledger=`, `entry={...}`, `payload=`, and the arguments of `commit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from ledger import canonical
from ledger.bundle import Bundle, Item, LastEntry
from ledger.checkpoint import Head, print_checkpoint, sign_head
from ledger.digest import ZERO_DIGEST, digest
from ledger.entry import Entry, print_entry
from ledger.envelope import RECEIPT_TYPE, Envelope, print_envelope, seal
from ledger.keys import PrivateKey, next_digest
from ledger.line import print_entry_line, print_head_line
from ledger.merkle import Frontier, inclusion_proof, leaf_hash, tree_of
from ledger.note import Note, print_note, sign_note
from verify.chain import Segment
from verify.trust import Trust, parse_trust

ORIGIN = "ledger.invalid/test"
_BOUND = ("name", "tool", "arguments_digest", "resource", "environment", "amount", "precondition")
"""Members of an act that its digest is of."""
SEALED = {
    "header", "opening", "run", "approval", "resolution", "grant", "evaluation", "key", "import", "erasure", "hold",
    "repair",
}  # fmt: skip
TREE = {"opening", "intent", "outcome", "decision", "step", "run"}


@dataclass(frozen=True)
class Party:
    """A name and a key."""

    name: str
    private: PrivateKey

    @property
    def key(self) -> str:
        return self.private.key


def test_key(label: str) -> PrivateKey:
    """Return the published test key of a label."""
    return PrivateKey.from_seed(sha256(b"receipt-ledger test key: " + label.encode()).digest())


test_key.__test__ = False  # type: ignore[attr-defined]  # not a test, whatever its name says


def party(label: str, name: str | None = None) -> Party:
    return Party(name or label, test_key(label))


@dataclass
class Row:
    """An entry of the ledger with everything it was made of."""

    index: int
    id: str
    kind: str
    entry: bytes
    envelope: bytes
    line: bytes


@dataclass
class Builder:
    """A ledger under construction."""

    origin: str = ORIGIN
    issuer: Party = field(default_factory=lambda: party("issuer"))
    log: PrivateKey = field(default_factory=lambda: test_key("log"))
    seed: int = 0
    start: str = "2026-11-30T09:00:00.000Z"
    inline: Any = None
    rows: list[Row] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    """All lines so far, heads included, without LF."""
    notes: list[bytes] = field(default_factory=list)
    uncommitted: dict[str, list[str]] = field(default_factory=dict)
    """Open run -> its receipts that nothing commits yet, in order."""
    parents: dict[str, str | None] = field(default_factory=dict)
    actors: dict[str, Any] = field(default_factory=dict)
    """Run -> the actor of its opening."""
    current: str = ""
    """The run that receipts are of, unless `run=` says otherwise."""

    def __post_init__(self) -> None:
        self._counter = 0
        self._previous = ZERO_DIGEST
        self._keyring = 0
        self._head_line = ZERO_DIGEST
        self._frontier = Frontier()
        self._time = datetime.strptime(self.start, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)

    # Receipts.

    def header(self, **members: Any) -> str:
        next_ = {"issuer": next_digest(test_key("issuer-2").key), "log": next_digest(test_key("log-2").key)}
        common = {"format": "receipt-ledger/v1", "log_key": self.log.key, "next": next_}
        return self.add("header", **{**common, **members})

    def opening(self, name: str = "work", *, parent: str | None = None, **members: Any) -> str:
        common = {
            "name": name,
            "actor": {"agent": "builder", "user": "unknown", "model": "unknown"},
            "adapter": {"name": "api", "version": "1", "coverage": "calls"},
        }
        if parent is not None:
            common["parent_opening"] = parent
        given = {**common, **members}
        self.current = self.add("opening", **given)
        self.actors[self.current] = given["actor"]
        self.uncommitted[self.current] = [self.current]
        return self.current

    def intent(self, name: str = "deploy", **members: Any) -> str:
        act: dict[str, Any] = {
            "name": name,
            "tool": {"name": "shell", "version": "5", "digest": "unknown"},
            "access": "write",
            "arguments_digest": digest(b"arguments %d" % self._counter),
            "resource": "host/1",
            "environment": "test",
        }
        if self.inline is not None:
            act["arguments"] = self.inline
        return self.add("intent", **self._with_digest({"act": act, **members}))

    def act_digest(self, act: dict[str, Any], *, run: str | None = None, effect: dict[str, Any] | None = None) -> str:
        """Return the digest of an act of a run: the current one, unless another is named."""
        of = run or self.current
        bound = {name: act[name] for name in _BOUND if name in act}
        who = {
            "schema": "receipt-ledger.act/v1",
            "ledger": self.origin,
            "run": of,
            "actor": self.actors.get(of, "unknown"),
        }
        return digest(canonical.encode({**bound, **who, **({} if effect is None else {"effect_key": effect["key"]})}))

    def _with_digest(self, members: dict[str, Any]) -> dict[str, Any]:
        found = self.act_digest(members["act"], run=members.get("run"), effect=members.get("effect"))
        return {"act_digest": found, **members}

    def outcome(self, intent: str, inside: tuple[str, ...] = (), **members: Any) -> str:
        common = {"intent": intent, "status": "committed", "duration_ms": 5, "children": [intent, *inside]}
        return self.add("outcome", **{**common, **members})

    def call(self, **members: Any) -> str:
        """Add an intent and its outcome; return the outcome's id."""
        return self.outcome(self.intent(**members), **members)

    def decision(self, **members: Any) -> str:
        act = {
            "name": "deploy",
            "tool": {"name": "shell", "version": "5", "digest": "unknown"},
            "access": "write",
            "arguments_digest": "unknown",
            "resource": "host/1",
            "environment": "test",
        }
        common = {"act": act, "status": "denied", "reason": "policy.denied"}
        return self.add("decision", **self._with_digest({**common, **members}))

    def step(self, *children: str, **members: Any) -> str:
        common: dict[str, Any] = {"name": "step", "status": "completed"}
        if children:
            common["children"] = list(children)
        return self.add("step", **{**common, **members})

    def run(self, run: str | None = None, **members: Any) -> str:
        """Close a run, committing everything of it that nothing commits yet."""
        run = run or self.current
        common = {"status": "completed", "duration_ms": 10, "children": list(self.uncommitted.get(run, ()))}
        id_ = self.add("run", **{"run": run, **common, **members})
        self.uncommitted.pop(run, None)
        return id_

    def approval(self, **members: Any) -> str:
        common = {
            "answer": "granted", "role": "release", "expires_at": "2027-01-01T00:00:00.000Z", "uses": 1,
            "act_digest": digest(b"act"),
        }  # fmt: skip
        return self.add("approval", **{"issuer": party("approver"), **common, **members})

    def resolution(self, intent: str, **members: Any) -> str:
        return self.add("resolution", **{"intent": intent, "happened": "happened", "resolved_by": "ada", **members})

    def grant(self, **members: Any) -> str:
        return self.add("grant", **{"action": "given", "grantee": "bot", "acts": ["deploy*"], **members})

    def evaluation(self, subject: str, **members: Any) -> str:
        common = {
            "subject": subject, "criteria": digest(b"criteria"), "verdict": "met",
            "evaluator": {"package": "p", "method": "m", "run": "unknown"},
        }  # fmt: skip
        return self.add("evaluation", **{**common, **members})

    def key(self, new: Party, retired: str, *, role: str = "issuer", next_: str | None = None, **members: Any) -> str:
        """Add a rotation to `new`, sealed by it; a rotation of the issuer changes the builder's own issuer."""
        id_ = self.add(
            "key",
            **{
                "issuer": new, "action": "rotate", "role": role, "key": new.key, "retired": retired,
                "next": {role: next_digest(next_)} if next_ else {}, **members,
            },
        )  # fmt: skip
        if role == "issuer":
            self.issuer = new
        else:
            self.log = new.private
        return id_

    def erasure(self, of: str, *receipts: str, **members: Any) -> str:
        return self.add("erasure", **{"digest": of, "reason": "erasure.request", "receipts": list(receipts), **members})

    def hold(self, of: str, **members: Any) -> str:
        return self.add("hold", **{"action": "placed", "digest": of, **members})

    def repair(self, **members: Any) -> str:
        common = {
            "reason": "repair.torn_tail", "segment": 0, "offset_bytes": 10, "cut_bytes": 2, "cut_digest": digest(b"x"),
        }  # fmt: skip
        return self.add("repair", **{**common, **members})

    def import_(self, **members: Any) -> str:
        document = {
            "digest": digest(b"doc"), "media_type": "application/json", "name": "d", "size_bytes": 3, "salted": False,
        }  # fmt: skip
        common = {
            "format": "axlr", "version": "1", "document": document, "native_status": "holds", "native_code": "ok",
            "mapping": "1",
        }  # fmt: skip
        return self.add("import", **{**common, **members})

    def add(
        self,
        kind: str,
        *,
        issuer: Party | None = None,
        seal: bool | PrivateKey | None = None,
        ledger: str | None = None,
        payload: bytes | None = None,
        payload_type: str = RECEIPT_TYPE,
        entry: dict[str, Any] | None = None,
        drop: tuple[str, ...] = (),
        **members: Any,
    ) -> str:
        """Add a receipt of any kind with any members; return its id.

        Args:
            kind: the receipt's kind.
            issuer: who issues it, if not the ledger's own issuer.
            seal: whether to seal it, or the key to seal it with; by default what the kind asks for.
            ledger: the origin that it names, if not its own.
            payload: bytes to use in place of the receipt.
            payload_type: type in the envelope.
            entry: members of the entry to change.
            drop: members of the receipt to leave out.
            members: members of the receipt.
        """
        who = issuer or self.issuer
        value: dict[str, Any] = {
            "schema": "receipt-ledger.receipt/v1",
            "kind": kind,
            "ledger": ledger or self.origin,
            "issuer": {"name": who.name, "key": who.key},
            "issued_at": self._tick(),
            "nonce": sha256(b"nonce %d %d" % (self.seed, self._counter)).hexdigest()[:32],
            "producer": {"name": "builder", "version": "1"},
        }
        if kind in {"intent", "outcome", "decision", "step", "run"}:
            value["run"] = self.current
        value.update(members)
        for name in drop:
            del value[name]
        data = canonical.encode(value) if payload is None else payload
        envelope = self._seal(data, payload_type, kind, who, seal)
        id_ = self._append(envelope, kind, entry or {})
        if kind in TREE and kind != "opening":
            pending = self.uncommitted.get(value.get("run", ""), None)
            if pending is not None:
                for child in value.get("children", ()):
                    if child in pending:
                        pending.remove(child)
                pending.append(id_)
            if kind == "run":
                # The root of a child run waits in its parent's run to be committed by the call that started it.
                parent = self.parents.get(value.get("run", ""))
                if parent in self.uncommitted:
                    self.uncommitted[parent].append(id_)
        if kind == "opening":
            self.parents[id_] = value.get("parent_opening")
        if kind in {"header", "key"}:
            self._keyring = len(self.rows) - 1
        return id_

    def _seal(self, data: bytes, type_: str, kind: str, who: Party, wanted: bool | PrivateKey | None) -> Envelope:
        if isinstance(wanted, PrivateKey):
            return seal(data, wanted, payload_type=type_)
        if wanted or (wanted is None and kind in SEALED):
            return seal(data, who.private, payload_type=type_)
        return Envelope(data, type_, None)

    def _append(self, envelope: Envelope, kind: str, change: dict[str, Any]) -> str:
        printed = print_envelope(envelope)
        members = {
            "envelope": digest(printed),
            "index": len(self.rows),
            "keyring": self._keyring,
            "previous": self._previous,
            "receipt": envelope.receipt_id,
            "recorded_at": self._now(),
            **change,
        }
        schema = members.pop("schema", None)
        data = print_entry(Entry(**members))
        if schema is not None:
            data = data.replace(b'"schema":"receipt-ledger.entry/v1"', f'"schema":"{schema}"'.encode())
        line = print_entry_line(data, printed)
        self.rows.append(Row(len(self.rows), envelope.receipt_id, kind, data, printed, line))
        self.lines.append(line)
        self._previous = digest(data)
        self._frontier.append(leaf_hash(data))
        return envelope.receipt_id

    # Heads.

    def commit(
        self,
        *,
        key: PrivateKey | None = None,
        size: int | None = None,
        root: bytes | None = None,
        origin: str | None = None,
        previous_head: str | None = None,
        also: tuple[PrivateKey, ...] = (),
    ) -> bytes:
        """End a commit with a signed head; return the note."""
        head = Head(
            origin or self.origin,
            len(self.rows) if size is None else size,
            self._frontier.root() if root is None else root,
        )
        note = sign_head(head, key or self.log)
        if also:
            text = print_checkpoint(head)
            keys = (*also, key or self.log)
            note = print_note(Note(text, tuple(sign_note(text, head.origin, found) for found in keys)))
        line = print_head_line(note, previous_head or self._head_line)
        self.lines.append(line)
        self.notes.append(note)
        self._head_line = digest(line)
        return note

    # What comes out.

    def journal(self) -> bytes:
        """Return all lines as one segment."""
        return b"".join(line + b"\n" for line in self.lines)

    def segments(self) -> tuple[Segment, ...]:
        """Return the ledger as one segment."""
        return (Segment("journal/0000000000000000.jsonl", 0, self.journal()),)

    def trust(self, *, header: bool = True) -> Trust:
        """Return a trust that pins this ledger's log, header, first issuer and the test approver."""
        return parse_trust(self.trust_file(header=header), source="test", allow_test_keys=True)

    def trust_file(self, *, header: bool = True) -> bytes:
        """Return the text of that trust."""
        first = canonical.decode(self.payload(0))
        pin = f'header = "{self.rows[0].id}"\n' if header else ""
        return (
            f'[[origin]]\nname = "{self.origin}"\nlog_key = "{first["log_key"]}"\n{pin}'
            f'[[issuer]]\nname = "{first["issuer"]["name"]}"\nkey = "{first["issuer"]["key"]}"\n'
            f'[[approver]]\nname = "approver"\nkey = "{test_key("approver").key}"\nroles = ["release"]\n'
        ).encode()

    def payload(self, index: int) -> bytes:
        """Return the receipt's bytes at an index."""
        envelope = self.rows[index].envelope
        return envelope[len(b'{"payload":') : envelope.rfind(b',"payload_type":"')]

    def index_of(self, id_: str) -> int:
        """Return the index of a receipt."""
        return next(row.index for row in self.rows if row.id == id_)

    def item(self, index: int) -> Item:
        """Return an entry with its proof into the newest head."""
        reader = tree_of([leaf_hash(row.entry) for row in self.rows])
        row = self.rows[index]
        return Item(row.entry, row.envelope, inclusion_proof(index, len(self.rows), reader))

    def bundle(self, subject: str, *more: str, leave_out: tuple[str, ...] = ()) -> Bundle:
        """Return the bundle of a receipt: its whole run with the runs inside it, or the ids in `more`, and the keyring."""
        run = self._run_of(subject)
        wanted = {subject, *more}
        if not more and run is not None:
            wanted |= {row.id for row in self.rows if self._run_of(row.id) == run and row.kind in TREE}
            # The roots of child runs bring their runs with them.
            for row in reversed(self.rows):
                if row.id in wanted:
                    wanted |= set(canonical.decode(self.payload(row.index)).get("children", ()))
        chosen = [row.index for row in self.rows if row.id in wanted and row.id not in leave_out]
        keyring = [row.index for row in self.rows if row.kind in {"header", "key"}]
        return Bundle(
            subject,
            tuple(self.item(index) for index in chosen),
            tuple(self.item(index) for index in keyring),
            self.notes[-1],
            LastEntry(self.rows[-1].entry, self.item(len(self.rows) - 1).proof),
        )

    def _run_of(self, id_: str) -> str | None:
        row = next(found for found in self.rows if found.id == id_)
        if row.kind == "opening":
            return id_
        return canonical.decode(self.payload(row.index)).get("run")

    def _tick(self) -> str:
        self._counter += 1
        self._time += timedelta(milliseconds=1)
        return self._now()

    def _now(self) -> str:
        return self._time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self._time.microsecond // 1000:03d}Z"


def small(**options: Any) -> Builder:
    """Return a small good ledger: a header, a run of two calls, a step and a decision, a child run, an approval; 4 commits."""
    ledger = Builder(**options)
    ledger.header()
    ledger.commit()
    run = ledger.opening()
    ledger.commit()
    call = ledger.call()
    refused = ledger.decision()
    ledger.step(call, refused)
    intent = ledger.intent()
    child = ledger.opening("child", parent=run)
    ledger.call()
    root = ledger.run(child)
    ledger.commit()
    ledger.current = run
    ledger.outcome(intent, (root,))
    ledger.approval()
    ledger.run(run)
    ledger.commit()
    return ledger
