"""A slow, plain check of a journal, written from FORMAT with hashlib, json and `cryptography` alone.

It takes nothing from the project. `check_folder` raises AssertionError with the place of the first thing that does not hold,
and returns what the journal says.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ZERO = "sha256:" + "0" * 64
SEALED = {
    "header", "opening", "run", "approval", "resolution", "grant", "evaluation", "key", "import", "erasure", "hold",
    "repair",
}  # fmt: skip
IN_RUN = {"intent", "outcome", "decision", "step", "run"}


@dataclass(frozen=True)
class Row:
    """One entry: its index, receipt id, the receipt's members, and the size of the head that acknowledges it."""

    index: int
    id: str
    receipt: dict[str, Any]
    envelope: bytes
    acknowledged: int


@dataclass(frozen=True)
class Journal:
    """Everything that a journal says."""

    rows: list[Row]
    sizes: list[int]
    """Size of every head, in order."""
    segments: list[int]

    @property
    def ids(self) -> list[str]:
        return [row.id for row in self.rows]

    def of(self, kind: str) -> list[Row]:
        return [row for row in self.rows if row.receipt["kind"] == kind]


def name_of(data: bytes) -> str:
    return "sha256:" + sha256(data).hexdigest()


def root(stack: list[tuple[int, bytes]]) -> bytes:
    """Return the RFC 6962 root of a stack of (leaves, hash) of complete subtrees, the largest first."""
    if not stack:
        return sha256(b"").digest()
    result = stack[-1][1]
    for _, left in reversed(stack[:-1]):
        result = sha256(b"\x01" + left + result).digest()
    return result


def push(stack: list[tuple[int, bytes]], leaf: bytes) -> None:
    node = (1, sha256(b"\x00" + leaf).digest())
    while stack and stack[-1][0] == node[0]:
        leaves, left = stack.pop()
        node = (2 * leaves, sha256(b"\x01" + left + node[1]).digest())
    stack.append(node)


def check_folder(folder: Path, *, signatures: bool = True) -> Journal:
    """Check every byte of the journal in a ledger's folder."""
    paths = sorted((folder / "journal").iterdir())
    rows: list[Row] = []
    sizes: list[int] = []
    stack: list[tuple[int, bytes]] = []
    previous, head_line, keyring, waiting, log_key, origin = ZERO, ZERO, 0, 0, "", ""
    for path in paths:
        assert re.fullmatch(r"[0-9]{16}\.jsonl", path.name), path.name
        assert int(path.name[:16]) == len(rows), f"{path.name} does not follow entry {len(rows) - 1}"
        assert not waiting, f"{path.name}: a commit spans segments"
        data = path.read_bytes()
        assert data.endswith(b"\n"), f"{path.name} does not end in LF"
        assert len(data) > 0, path.name
        for number, line in enumerate(data[:-1].split(b"\n")):
            where = f"{path.name} line {number}"
            if line.startswith(b'{"head":'):
                value = json.loads(line)
                assert list(value) == ["head", "previous_head"], where
                assert value["previous_head"] == head_line, f"{where}: previous_head"
                text, _, lines = value["head"].partition("\n\n")
                name, size, hash_ = text.split("\n")
                assert (name, int(size)) == (origin, len(rows)), f"{where}: origin or size"
                assert base64.b64decode(hash_, validate=True) == root(stack), f"{where}: root"
                assert waiting > 0, f"{where}: a commit of nothing"
                if signatures:
                    check_note(text + "\n", lines, origin, log_key)
                head_line, waiting = name_of(line), 0
                sizes.append(len(rows))
                continue
            entry, envelope = cut(line, where)
            members = json.loads(entry)
            receipt = json.loads(payload_of(envelope))
            assert json.dumps(members, sort_keys=True, separators=(",", ":")).encode() == entry, f"{where}: layout"
            assert members["index"] == len(rows), f"{where}: index"
            assert members["previous"] == previous, f"{where}: previous"
            assert members["keyring"] == keyring, f"{where}: keyring"
            assert members["envelope"] == name_of(envelope), f"{where}: envelope"
            assert members["receipt"] == name_of(payload_of(envelope)), f"{where}: receipt"
            if not rows:
                assert receipt["kind"] == "header", where
                origin, log_key = receipt["ledger"], receipt["log_key"]
            assert receipt["ledger"] == origin, f"{where}: ledger"
            check_seal(envelope, receipt, where, signatures=signatures)
            if receipt["kind"] in {"header", "key"}:
                keyring = len(rows)
                log_key = receipt["key"] if receipt.get("role") == "log" else log_key
            rows.append(Row(len(rows), members["receipt"], receipt, envelope, -1))
            previous = name_of(entry)
            push(stack, entry)
            waiting += 1
    assert not waiting, "the last entries have no head"
    assert sizes, "no head"
    repeated = [id_ for id_, count in Counter(row.id for row in rows).items() if count > 1]
    assert not repeated, f"repeated receipts: {repeated[:3]}"
    check_trees(rows)
    bounds = iter(sizes)
    bound = next(bounds)
    for at, row in enumerate(rows):
        while row.index >= bound:
            bound = next(bounds)
        rows[at] = Row(row.index, row.id, row.receipt, row.envelope, bound)
    return Journal(rows, sizes, [int(path.name[:16]) for path in paths])


def cut(line: bytes, where: str) -> tuple[bytes, bytes]:
    match = re.fullmatch(rb'\{"entry":(\{[^{}]*\}),"envelope":(\{"payload":.*\})\}', line, re.DOTALL)
    assert match is not None, f"{where}: no entry line: {line[:60]!r}"
    return match[1], match[2]


def payload_of(envelope: bytes) -> bytes:
    end = envelope.rindex(b',"payload_type":"application/vnd.receipt-ledger.receipt+json","seals":[')
    return envelope[len(b'{"payload":') : end]


def check_note(text: str, lines: str, origin: str, log_key: str) -> None:
    public = bytes.fromhex(log_key.removeprefix("ed25519:"))
    id_ = sha256(origin.encode() + b"\n\x01" + public).digest()[:4]
    found = []
    for line in lines.rstrip("\n").split("\n"):
        dash, name, body = line.split(" ")
        raw = base64.b64decode(body, validate=True)
        if (dash, name, raw[:4]) == ("\N{EM DASH}", origin, id_):
            found.append(raw[4:])
    assert len(found) == 1, f"signatures by the log key: {len(found)}"
    Ed25519PublicKey.from_public_bytes(public).verify(found[0], text.encode())


def check_seal(envelope: bytes, receipt: dict[str, Any], where: str, *, signatures: bool) -> None:
    outer = json.loads(envelope)
    assert len(outer["seals"]) <= 1, where
    if receipt["kind"] in SEALED:
        assert outer["seals"], f"{where}: kind {receipt['kind']} without seal"
    for seal in outer["seals"]:
        assert seal["key"] == receipt["issuer"]["key"], f"{where}: sealed by another key"
        if signatures:
            kind, payload = outer["payload_type"].encode(), payload_of(envelope)
            message = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(seal["key"].removeprefix("ed25519:")))
            key.verify(base64.b64decode(seal["signature"], validate=True), message)


def check_trees(rows: list[Row]) -> None:
    """Check that every receipt of a closed run is reached exactly once from it, and that parents come after children."""
    by_id = {row.id: row for row in rows}
    parents: dict[str, str] = {}
    for row in rows:
        children = row.receipt.get("children", [])
        assert len(children) <= 10_000, f"entry {row.index}: too many children"
        for child in children:
            assert child in by_id, f"entry {row.index}: child {child[:15]} is missing"
            assert by_id[child].index < row.index, f"entry {row.index}: child {child[:15]} comes later"
            assert child not in parents, f"entry {row.index}: child {child[:15]} is committed twice"
            parents[child] = row.id
    for run in (row for row in rows if row.receipt["kind"] == "run"):
        own = run.receipt["run"]
        assert run.receipt["children"][0] == own, f"entry {run.index}: the opening is not first"
        reached, waiting, depth = set(), [(run.id, 0)], 0
        while waiting:
            id_, level = waiting.pop()
            assert id_ not in reached
            reached.add(id_)
            depth = max(depth, level)
            waiting += [(child, level + 1) for child in by_id[id_].receipt.get("children", [])]
        mine = {row.id for row in rows if row.receipt.get("run") == own and row.receipt["kind"] in IN_RUN} | {own}
        assert mine <= reached, f"entry {run.index}: {len(mine - reached)} receipts of its run are not reached"
        assert len(reached) <= 30_002, f"entry {run.index}: {len(reached)} receipts"
        assert depth <= 64, f"entry {run.index}: {depth} levels"
        late = [row.index for row in rows if row.index > run.index and row.id in mine]
        assert not late, f"entry {run.index}: {late} come after it"
    for row in rows:
        if row.receipt["kind"] == "outcome":
            assert row.receipt["children"][0] == row.receipt["intent"], f"entry {row.index}: its intent is not first"
