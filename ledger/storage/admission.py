"""Which receipts a ledger lets in, and what they change in its state.

The rules, each checked before anything is written:

- a receipt names this ledger, and a kind that is always sealed carries its issuer's own seal;
- `header` stands at index 0 and nowhere else;
- a receipt of a run follows the run's opening and stands before its `run`;
- a parent commits receipts of its own run that nothing commits yet, or the root of a child run; an `outcome` its intent first;
- a `run` commits the opening first and then everything that is left;
- an unsealed receipt has the issuer of its run, since only that issuer's seal above it can speak for it;
- a tree stays within 30,002 receipts and 64 levels, with room kept for what closes it.

Source: docs/spec/trees.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ledger.envelope import RECEIPT_TYPE, Envelope, verify_seal
from ledger.errors import AdmissionError, AlreadyClosedError, SignatureError, UnknownFormatError, clip
from ledger.facts import Facts
from ledger.keys import next_digest, refuse_weak_point
from ledger.receipt import Header, Key, Opening, Receipt, parse_receipt
from ledger.storage.rows import Keyring, Pending, RunState
from ledger.storage.state import State
from ledger.words import SEALED_KINDS, TREE_KINDS, Kind

__all__ = [
    "LEVELS_A_RUN",
    "MAX_LEVELS",
    "MAX_TREE",
    "STEP_LEVELS",
    "apply",
    "check_key",
    "check_no_open_runs",
    "check_seal",
    "check_tree",
    "keyring_after",
]

MAX_TREE: Final = 30_002
MAX_LEVELS: Final = 64
STEP_LEVELS: Final = 8
"""How deep steps nest inside a run."""
LEVELS_A_RUN: Final = STEP_LEVELS + 4
"""Levels kept for a run inside another: its `run`, the outcome that commits it, a step that folds, and the steps around."""
_IN_RUN: Final = TREE_KINDS - {Kind.OPENING}
_MANY_CHILDREN: Final = 1_000
"""A step of more is one that folds, and is let into the room that is kept: no receipt could commit its children otherwise."""
_KEPT_FOR_CLOSING: Final = 8
"""Receipts kept free in each tree: its `run`, the steps that fold long lists, and outcomes of what is under way."""


def check_seal(envelope: Envelope, receipt: Facts, *, origin: str, retired: Sequence[str] = ()) -> None:
    """Raise unless the envelope may carry this receipt in this ledger, whose `retired` keys issue nothing any more.

    Raises:
        AdmissionError: another ledger's receipt, another key's seal, or a retired key as issuer.
        SignatureError: a missing or wrong seal.
    """
    if envelope.payload_type != RECEIPT_TYPE:
        raise UnknownFormatError(
            f"envelope: payload type {clip(envelope.payload_type)} is not known to this version",
            code="envelope.unknown_type",
        )
    if receipt.ledger != origin:
        raise AdmissionError(
            f"receipt: got ledger {clip(receipt.ledger)}, expected {clip(origin)}", code="receipt.foreign_ledger"
        )
    if receipt.key in retired:
        raise AdmissionError(
            f"receipt: its issuer's key {clip(receipt.key)} was replaced",
            code="key.retired",
            hint="make the receipt again: the keys in force are read anew",
        )
    if envelope.seal is None:
        if receipt.kind in SEALED_KINDS:
            raise SignatureError(f"receipt: kind {receipt.kind} is always sealed, got no seal", code="seal.absent")
        return
    if envelope.seal.key != receipt.key:
        raise AdmissionError("receipt: the seal is by another key than the issuer's", code="seal.issuer")
    verify_seal(envelope)


def check_tree(state: State, receipt: Facts, *, sealed: bool, index: int) -> None:
    """Raise unless the receipt may follow what the state holds.

    Raises:
        AdmissionError: a rule of receipt trees; the state is unchanged.
        AlreadyClosedError: its run is closed.
    """
    if (receipt.kind == Kind.HEADER) != (index == 0):
        raise AdmissionError(f"entry {index}: only entry 0 is a header", code="chain.first_entry")
    if receipt.parent_opening is not None:
        parent = _open_run(state, receipt.parent_opening)
        _check_room(state, parent, kept=2 * _KEPT_FOR_CLOSING)
        if parent.level + 2 * LEVELS_A_RUN > MAX_LEVELS:
            raise AdmissionError(
                f"run: {parent.level // LEVELS_A_RUN + 1} runs are open around it already", code="tree.too_deep"
            )
    if receipt.kind not in _IN_RUN or receipt.run is None:
        return
    run = _open_run(state, receipt.run)
    if not sealed and (receipt.name, receipt.key) != (run.issuer_name, run.issuer_key):
        raise AdmissionError(
            f"receipt: unsealed, got issuer {clip(receipt.name)}, expected the run's {clip(run.issuer_name)}",
            code="receipt.borrowed_issuer",
        )
    if receipt.kind not in (Kind.RUN, Kind.OUTCOME):
        _check_room(state, run, kept=1 if len(receipt.children) > _MANY_CHILDREN else _KEPT_FOR_CLOSING)
    if receipt.kind in (Kind.OUTCOME, Kind.STEP, Kind.RUN):
        _check_children(state, receipt, run, sealed=sealed)


def _open_run(state: State, id_: str) -> RunState:
    run = state.run(id_)
    if run is None:
        raise AdmissionError(f"run {id_[:15]}: no opening in this ledger", code="run.unknown_opening")
    if run.closed is not None:
        raise AlreadyClosedError(
            f"run {id_[:15]}: closed at entry {run.closed}", hint="open a new run that `continues` it"
        )
    return run


def _check_room(state: State, run: RunState, *, kept: int) -> None:
    root = state.run(run.root) or run
    if root.receipts < MAX_TREE // 2 - kept:
        return  # even if every receipt were an intent without outcome, or a run that is open, there is room
    if root.receipts + root.unsettled + kept * root.open >= MAX_TREE:
        raise AdmissionError(
            f"run {run.id[:15]}: its tree holds {root.receipts} receipts, at most {MAX_TREE} with those that close it",
            code="tree.too_many",
            hint="close this run and open one that `continues` it",
        )


def _check_children(state: State, receipt: Facts, run: RunState, *, sealed: bool) -> None:
    children = receipt.children
    if len(set(children)) != len(children):
        raise AdmissionError(f"{receipt.kind}: a child is listed twice", code="tree.repeated")
    foreign_seal = sealed and (receipt.name, receipt.key) != (run.issuer_name, run.issuer_key)
    height = 0
    for child in children:
        pending = state.pending(child)
        if pending is None or pending.run != run.id:
            raise AdmissionError(
                f"{receipt.kind}: child {child[:15]} is not in this run, or is committed already", code="tree.missing"
            )
        if foreign_seal and pending.uncovered:
            raise AdmissionError(
                f"{receipt.kind}: child {child[:15]} is unsealed and of another issuer", code="receipt.borrowed_issuer"
            )
        if pending.kind == Kind.OPENING and receipt.kind != Kind.RUN:
            raise AdmissionError(f"{receipt.kind}: only a run commits its opening", code="tree.order")
        height = max(height, pending.height + 1)
    above = 0 if receipt.kind == Kind.RUN else 2  # the `run`, and a step that folds
    if run.level + height + above > MAX_LEVELS:
        raise AdmissionError(
            f"{receipt.kind}: got {run.level + height + above} levels, expected at most {MAX_LEVELS}",
            code="tree.too_deep",
        )
    _check_order(state, receipt, run)


def _check_order(state: State, receipt: Facts, run: RunState) -> None:
    if receipt.kind == Kind.OUTCOME:
        if receipt.children[0] != receipt.intent:
            raise AdmissionError("outcome: the first child is not its intent", code="tree.order")
        intent = state.pending(receipt.intent)
        if intent is not None and intent.kind != Kind.INTENT:
            raise AdmissionError("outcome: what it settles is not an intent", code="tree.order")
    if receipt.kind == Kind.RUN:
        if receipt.children[0] != run.id:
            raise AdmissionError("run: the first child is not its opening", code="tree.order")
        left = {p.id for p in state.pending_of(run.id)} - set(receipt.children)
        if left:
            raise AdmissionError(f"run: {len(left)} receipts of the run are left out", code="tree.uncommitted")


def apply(
    state: State,
    receipt: Facts,
    payload: bytes,
    *,
    id_: str,
    index: int,
    sealed: bool,
    attempts: bool,
) -> None:
    """Change the state by a receipt that is in the journal; tolerant, since what is written is written.

    `attempts` says whether it is an intent that attempts an effect.
    """
    if receipt.kind == Kind.OPENING:
        _apply_opening(state, payload, id_=id_, index=index)
        return
    known = state.run(receipt.run) if receipt.kind in _IN_RUN and receipt.run is not None else None
    if known is None:
        return
    height, settled = _commit_children(state, receipt)
    closes = receipt.kind == Kind.RUN and known.closed is None
    _count(state, known.root, unsettled=(receipt.kind == Kind.INTENT) - settled, open_=-closes)
    if receipt.kind != Kind.RUN:
        state.add_pending(
            Pending(id_, known.id, index, receipt.kind, height, uncovered=not sealed, intent=None, attempts=attempts)
        )
        return
    if known.closed is None:
        known.closed = index
        state.put_run(known)
    parent = state.run(known.parent) if known.parent else None
    if parent is not None and parent.closed is None:
        intent = known.parent_intent
        state.add_pending(Pending(id_, parent.id, index, receipt.kind, height, uncovered=False, intent=intent))


def _apply_opening(state: State, payload: bytes, *, id_: str, index: int) -> None:
    receipt = parse_receipt(payload)
    assert isinstance(receipt, Opening)  # noqa: S101  its facts said so
    parent = state.run(receipt.parent_opening) if receipt.parent_opening else None
    state.put_run(
        RunState(
            id_,
            index,
            receipt.name,
            None,
            receipt.issuer.name,
            receipt.issuer.key,
            receipt.parent_opening,
            receipt.parent_intent,
            parent.root if parent else id_,
            parent.level + LEVELS_A_RUN if parent else 0,
            0 if parent else 1,
        )
    )
    if parent:
        _count(state, parent.root, open_=1)
    state.add_pending(Pending(id_, id_, index, receipt.kind, 0, uncovered=False, intent=None))


def _commit_children(state: State, receipt: Facts) -> tuple[int, int]:
    """Take the children out of what waits; return the height of the tree and how many of them are intents."""
    height = settled = 0
    for child in receipt.children:
        pending = state.pending(child)
        if pending is not None:
            height = max(height, pending.height + 1)
            settled += pending.kind == Kind.INTENT
            state.drop_pending(child)
    return height, settled


def _count(state: State, root: str, *, unsettled: int = 0, open_: int = 0) -> None:
    run = state.run(root)
    if run is not None:
        run.receipts += 1
        run.unsettled += unsettled
        run.open += open_
        state.put_run(run)


def check_key(keyring: Keyring, receipt: Key, *, index: int) -> None:
    """Raise unless a rotation or revocation, to stand at `index`, follows from the keys in force.

    Raises:
        AdmissionError: it replaces another key, is not by the next key that was committed, or brings a key back.
        FormatError, SignatureError: the new key is not one to be used.
    """
    retired, committed = (
        (keyring.issuer_key, keyring.next_issuer) if receipt.role == "issuer" else (keyring.log_key, keyring.next_log)
    )
    if receipt.retired != retired:
        raise AdmissionError(f"key: got {receipt.retired} as retired, in force is {retired}", code="key.not_in_force")
    if committed is None or next_digest(receipt.key) != committed:
        raise AdmissionError("key: the new key is not the next one that was committed", code="key.not_committed")
    if receipt.issuer.key != receipt.key or receipt.issuer.name != keyring.issuer_name:
        raise AdmissionError(
            "key: it is not sealed by the new key under the owner's name", code="key.not_sealed_by_next"
        )
    refuse_weak_point(receipt.key)
    if receipt.key in (*keyring.retired, keyring.issuer_key, keyring.log_key):
        raise AdmissionError("key: the new key was in use before, and a key never returns", code="key.returns")
    if receipt.from_index is not None and (receipt.action == "rotate" or receipt.from_index > index):
        raise AdmissionError(
            f"key: got from_index {receipt.from_index} in a {receipt.action} at {index}, expected an earlier one in a revoke",
            code="key.from_index",
        )


def check_no_open_runs(state: State, retired: str) -> None:
    """Raise where runs are open under an issuer key that is about to be retired: no key could close them then.

    Raises:
        AdmissionError: `key.runs_open`, with the runs.
    """
    runs = [run.id for run in state.open_runs() if run.issuer_key == retired]
    if runs:
        listed = ", ".join(run[7:19] for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise AdmissionError(
            f"key: {len(runs)} runs are open under the key to be retired: {listed}",
            code="key.runs_open",
            hint="only the key that opened a run can cover what is in it: end them first with: ledger close RUN",
        )


def keyring_after(keyring: Keyring, receipt: Receipt | None, *, id_: str) -> Keyring:
    """Return the keys in force after a receipt; most receipts change nothing."""
    if isinstance(receipt, Header):
        return Keyring(
            receipt.ledger,
            id_,
            receipt.issuer.name,
            receipt.issuer.key,
            receipt.log_key,
            receipt.next.issuer,
            receipt.next.log,
        )
    if not isinstance(receipt, Key):
        return keyring
    if receipt.role == "issuer":
        retired = (*keyring.retired, keyring.issuer_key)
        return replace(keyring, issuer_key=receipt.key, next_issuer=receipt.next.issuer, retired=retired)
    retired = (*keyring.retired, keyring.log_key)
    return replace(keyring, log_key=receipt.key, next_log=receipt.next.log, retired=retired)
