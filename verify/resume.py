r"""The state of a verification, to go on from later: after a stop, or with what is new since a good verdict.

    {"closed":7,"good":true,"head":{...},"ids":[...],"issuers":[...],...,"schema":"receipt-ledger.state/v1",...}\n
    <8 bytes of each receipt id, by first byte><8 bytes of each closed run><SHA-256 of all before>

- It is what this user's own machine wrote down of what it saw; it lies with the user, never in a ledger's folder, and is no
  evidence for anybody else.
- What does not fit is dropped, and everything is read again (`verify.state`).
- The keyring is made again from its sealed entries.

What `parse_state` takes is what `print_state` gives for the same state, byte for byte.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ledger import canonical
from ledger.digest import digest
from ledger.envelope import parse_envelope, print_envelope
from ledger.errors import FormatError, LedgerError
from ledger.keys import parse_base64, print_base64
from ledger.line import HEAD_PREFIX
from ledger.members import Digest, Member
from ledger.rules.replay import ReplayState
from verify.chain import ChainPoint
from verify.heads import HeadPoint, HeadTotals, KeyEntry
from verify.ids import IdSet
from verify.issuers import Issuers
from verify.proof import FoldState, RootFold
from verify.receipts import ReceiptState
from verify.report import Check, NameState
from verify.rules import RuleRow, RuleState
from verify.state import Binding, LedgerState
from verify.tree import Node, OpenRun, TreeState

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

__all__ = ["STATE_SCHEMA", "parse_state", "print_state"]

STATE_SCHEMA: Final = "receipt-ledger.state/v1"
_MAX_DEPTH: Final = 16
_MAX_LINE: Final = 1 << 30
_REPLAY: Final = TypeAdapter(ReplayState)
_Count = Annotated[int, Field(ge=0, le=canonical.MAX_INTEGER)]


class _Binding(Member):
    trust: Digest | None = None
    asked: Digest
    version: str


class _Head(Member):
    line: str
    leaves: tuple[Digest, ...]
    count: _Count
    signatures: _Count
    unverified: bool
    signed: bool
    where: str
    watched_root: Digest | None = None


class _KeyEntry(Member):
    index: _Count
    receipt: Digest
    envelope: str


class _Check(Member):
    name: str
    status: Literal["ok", "failed", "not_checked", "absent", "unreadable"]
    code: str | None = None
    where: str | None = None
    message: str
    count: _Count
    asked: bool


class _Name(Member):
    name: str
    ran: _Count | None = None
    passed: bool
    findings: tuple[_Check, ...]
    more: tuple[tuple[str, _Count], ...]


class _Issuer(Member):
    name: str
    key: str
    first: _Count
    last: _Count
    roles: tuple[str, ...]


class _Node(Member):
    id: Digest
    index: _Count
    kind: str
    height: _Count
    count: _Count
    bare: _Count
    committed: bool
    needs: tuple[tuple[_Count, _Count], ...] | None = None


class _Run(Member):
    id: Digest
    opening: _Count
    parent: str | None = None
    overflow: bool
    unread: bool
    nodes: tuple[_Node, ...]


class _Opening(Member):
    id: Digest
    index: _Count
    payload: str
    time: str


class _Rules(Member):
    openings: tuple[_Opening, ...]
    known: tuple[Digest, ...]
    seen: _Count
    replay: str


class _Receipts(Member):
    origin: str | None = None
    receipts: _Count
    own_seals: _Count
    issuers: tuple[_Issuer, ...]
    runs: tuple[_Run, ...]
    rules: _Rules
    by_root: _Count
    blind: bool
    unsettled: _Count
    strays: _Count
    unread: tuple[str, ...]


class _File(Member):
    schema_: Annotated[Literal["receipt-ledger.state/v1"], Field(alias="schema")] = STATE_SCHEMA
    binding: _Binding
    good: bool
    files: Annotated[tuple[tuple[_Count, _Count], ...], Field(min_length=1)]
    size: Annotated[int, Field(ge=1, le=canonical.MAX_INTEGER)]
    previous: Digest
    time: str
    keyring: _Count
    head: _Head
    keys: tuple[_KeyEntry, ...]
    watch: _Count | None = None
    ids: Annotated[tuple[_Count, ...], Field(min_length=256, max_length=256)]
    closed: _Count
    report: tuple[_Name, ...]
    receipts: _Receipts | None = None


def print_state(state: LedgerState, bound: Binding) -> Iterator[bytes | bytearray]:
    """Yield the bytes of a state piece by piece; they are not to be changed."""
    buckets = state.ids.buckets()
    closed = array("Q") if state.receipts is None else array("Q", state.receipts.trees.closed_runs)
    if sys.byteorder == "little":
        closed.byteswap()
    pieces: tuple[bytes | bytearray, ...] = (*buckets, closed.tobytes())
    point, totals = state.point, state.totals
    file = _File(
        binding=_Binding(trust=bound.trust, asked=bound.asked, version=bound.version),
        good=state.good,
        files=state.files,
        size=point.size,
        previous="sha256:" + point.previous,
        time=point.time.decode("ascii"),
        keyring=point.keyring,
        head=_Head(
            line=point.head.line.decode("utf-8"),
            leaves=tuple("sha256:" + found.hex() for found in point.head.fold.hashes),
            count=totals.count,
            signatures=totals.signatures,
            unverified=totals.unverified,
            signed=totals.signed,
            where=totals.where,
            watched_root=None if totals.watched_root is None else "sha256:" + totals.watched_root.hex(),
        ),
        keys=tuple(
            _KeyEntry(index=index, receipt=id_, envelope=print_base64(print_envelope(envelope)))
            for index, id_, envelope in point.head.keys
            if envelope is not None
        ),
        watch=state.watch,
        ids=tuple(len(bucket) // 8 for bucket in buckets),
        closed=len(closed),
        report=tuple(map(_print_name, state.report)),
        receipts=None if state.receipts is None else _print_receipts(state.receipts),
    )
    hash_ = sha256()
    for piece in (_line_of(file) + b"\n", *pieces):
        hash_.update(piece)
        yield piece
    yield hash_.digest()


def _line_of(file: _File) -> bytes:
    return canonical.encode(file.model_dump(mode="json", by_alias=True, exclude_none=True), max_depth=_MAX_DEPTH)


def parse_state(source: BinaryIO) -> tuple[LedgerState, Binding]:
    """Return the state whose bytes are read from `source`, and what it is good for.

    Raises:
        FormatError: `state.malformed`: not the bytes of a state, or of one that cannot be.
    """
    line = source.readline(_MAX_LINE)
    try:
        file = _File.model_validate_json(line.removesuffix(b"\n"))
        if _line_of(file) + b"\n" != line:
            raise _malformed("the first line is not the canonical text of its value")
        return _state_of(file, source, sha256(line)), Binding(
            file.binding.trust, file.binding.asked, file.binding.version
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _malformed(f"{where}: {first['msg'].lower()}") from error
    except LedgerError as error:
        raise error if error.code == "state.malformed" else _malformed(str(error)) from error


def _state_of(file: _File, source: BinaryIO, hash_: HASH) -> LedgerState:
    counts = file.ids
    if sum(counts) > file.size or file.closed > file.size or (file.closed and file.receipts is None):
        raise _malformed("it counts more than its entries")

    def take(count: int) -> bytes:
        found = source.read(8 * count)
        hash_.update(found)
        return found

    ids = IdSet.of(take(count) for count in counts)
    closed = array("Q", take(file.closed))
    if source.read(33) != hash_.digest() or len(ids) != sum(counts):
        raise _malformed("other bytes follow the first line than it says")
    if sys.byteorder == "little":
        closed.byteswap()
    head = file.head
    fold = FoldState(0, file.size, tuple(map(_raw, head.leaves)))
    RootFold.resume(fold)
    keys: list[KeyEntry] = [
        (each.index, each.receipt, parse_envelope(parse_base64(each.envelope))) for each in file.keys
    ]
    if not keys or any(envelope is None or envelope.receipt_id != id_ for _, id_, envelope in keys):
        raise _malformed("a key entry has another receipt than it names")
    line = head.line.encode("utf-8")
    if not line.startswith(HEAD_PREFIX) or b"\n" in line or file.files[-1][1] == 0:
        raise _malformed("what it holds cannot be of one ledger")
    watched = None if head.watched_root is None else _raw(head.watched_root)
    return LedgerState(
        file.good,
        file.files,
        ChainPoint(file.previous[7:], file.time.encode("ascii"), file.keyring, HeadPoint(line, fold, tuple(keys))),
        HeadTotals(head.count, head.signatures, head.unverified, head.signed, head.where, watched),
        file.watch,
        ids,
        tuple(map(_parse_name, file.report)),
        None if file.receipts is None else _parse_receipts(file.receipts, closed),
    )


def _print_name(state: NameState) -> _Name:
    findings = tuple(
        _Check(
            name=each.name,
            status=each.status,
            code=each.code,
            where=each.where,
            message=each.message,
            count=each.count,
            asked=each.asked,
        )
        for each in state.findings
    )
    return _Name(name=state.name, ran=state.ran, passed=state.passed, findings=findings, more=state.more)


def _parse_name(name: _Name) -> NameState:
    findings = tuple(
        Check(each.name, each.status, each.code, each.where, each.message, each.count, each.asked)
        for each in name.findings
    )
    return NameState(name.name, name.ran, name.passed, findings, name.more)


def _print_receipts(state: ReceiptState) -> _Receipts:
    issuers, trees = state.issuers, state.trees
    return _Receipts(
        origin=state.origin,
        receipts=state.receipts,
        own_seals=state.own_seals,
        issuers=tuple(
            _Issuer(
                name=name,
                key=key,
                first=issuers.first[number],
                last=issuers.last[number],
                roles=tuple(sorted(issuers.roles[number])),
            )
            for (name, key), number in issuers.numbers.items()
        ),
        runs=tuple(_print_run(id_, run) for id_, run in trees.runs.items()),
        rules=_print_rules(state.rules),
        by_root=trees.by_root,
        blind=trees.blind,
        unsettled=trees.unsettled,
        strays=trees.strays,
        unread=tuple(sorted(trees.unread)),
    )


def _print_rules(state: RuleState) -> _Rules:
    return _Rules(
        openings=tuple(
            _Opening(id=row.id_, index=row.at, payload=row.payload.decode("utf-8"), time=row.time.decode("ascii"))
            for row in state.openings.values()
        ),
        known=tuple(sorted(state.known)),
        seen=state.seen,
        replay=_REPLAY.dump_json(state.replay).decode("utf-8"),
    )


def _print_run(id_: str, run: OpenRun) -> _Run:
    nodes = tuple(
        _Node(
            id=child,
            index=node.index,
            kind=node.kind,
            height=node.height,
            count=node.count,
            bare=node.bare,
            committed=node.committed,
            needs=None if node.needs is None else tuple(node.needs.items()),
        )
        for child, node in run.nodes.items()
    )
    return _Run(id=id_, opening=run.opening, parent=run.parent, overflow=run.overflow, unread=run.unread, nodes=nodes)


def _parse_receipts(file: _Receipts, closed: array[int]) -> ReceiptState:
    issuers = Issuers()
    for number, each in enumerate(file.issuers):
        issuers.numbers[each.name, each.key] = number
        issuers.first.append(each.first)
        issuers.last.append(each.last)
        issuers.roles.append(set(each.roles))
    if len(issuers.numbers) != len(issuers.first):
        raise _malformed("an issuer stands in it twice")
    runs = {run.id: _parse_run(run, len(issuers.first)) for run in file.runs}
    if len(runs) != len(file.runs):
        raise _malformed("a run stands in it twice")
    trees = TreeState(runs, closed, file.by_root, file.blind, file.unsettled, file.strays, frozenset(file.unread))
    return ReceiptState(file.origin, file.receipts, file.own_seals, issuers, trees, _parse_rules(file.rules))


def _parse_rules(file: _Rules) -> RuleState:
    openings = {
        each.id: RuleRow(each.index, each.id, each.payload.encode("utf-8"), each.time.encode("ascii"))
        for each in file.openings
    }
    if len(openings) != len(file.openings) or any(digest(row.payload) != id_ for id_, row in openings.items()):
        raise _malformed("an opening stands in it twice, or is another one than it says")
    replay = _REPLAY.validate_json(file.replay)
    if _REPLAY.dump_json(replay).decode("utf-8") != file.replay or tuple(sorted(set(file.known))) != file.known:
        raise _malformed("what the rules came to is not printed as it would be")
    return RuleState(openings, frozenset(file.known), file.seen, replay)


def _parse_run(file: _Run, issuers: int) -> OpenRun:
    nodes: dict[str, Node] = {}
    for each in file.nodes:
        needs = None if each.needs is None else dict(each.needs)
        if needs is not None and any(number >= issuers for number in needs):
            raise _malformed("a receipt needs an issuer that is not there")
        node = Node(each.index, each.kind, each.height, each.count, each.bare, needs)
        node.committed = each.committed
        nodes[each.id] = node
    if len(nodes) != len(file.nodes):
        raise _malformed("a receipt stands in it twice")
    return OpenRun(file.opening, file.parent, nodes, file.overflow, file.unread)


def _raw(text: str) -> bytes:
    return bytes.fromhex(text[7:])


def _malformed(message: str) -> FormatError:
    return FormatError(f"state: {message}", code="state.malformed")
