"""ctrlrun in our words: a run for each principal of a document, each of its receipts an act.

- A sink or a store that grew since it was imported holds the same receipts again: only those of later places become receipts, in a
  run that continues the earlier one.
- What a store holds beside its receipts stands as acts of its own, named `ctrlrun.…`: approvals, delegations, effects that nobody
  settled or that a person did. They are claims of that store and give nobody any authority here.

Source: docs/spec/words.md, "ctrlrun".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from ledger.canonical import JsonObject
from ledger.errors import StorageError
from ledger.importing.ctrlrun import MAPPING, actor_of, fact_of_receipt
from ledger.importing.facts import CallFact, CallStatus, Facts, RunFact, name_of
from ledger.members import Actor
from ledger.words import Reason, RunStatus
from verify.foreign import strict
from verify.foreign.ctrlrun.reading import read
from verify.foreign.ctrlrun.tables import Row, Tables, integer, text
from verify.foreign.mapping import EarlierOf, Given

__all__ = ["CHAIN", "MAPPING", "facts"]

CHAIN: Final = "ctrlrun.chain"
"""Correlation that names a chain, and the principal that acted: by the hash that its first receipt has."""
_APPROVALS: Final[dict[str, tuple[CallStatus, Reason | None]]] = {
    "granted": ("committed", None),
    "consumed": ("committed", None),
    "denied": ("denied", Reason.APPROVAL_DENIED),
    "expired": ("denied", Reason.APPROVAL_EXPIRED),
    "pending": ("waiting", Reason.APPROVAL_REQUIRED),
}


def facts(given: Sequence[Given], earlier: EarlierOf) -> Facts:
    """Return what documents of ctrlrun say: runs for receipts, rows and stores, nothing for events and reports."""
    runs: list[RunFact] = []
    notes: list[str] = []
    known: dict[str, set[str]] = {}
    for each in given:
        documents, beside = _held(each)
        chain = _chain_of(documents)
        by_actor: dict[tuple[str, str], list[CallFact]] = {}
        left = old = 0
        seen = _seen(chain, documents, earlier, known)
        for document in documents:
            if document.get("receipt_id") in seen:
                old += 1
                continue
            fact = fact_of_receipt(document, each.digest)
            if fact is None:
                left += 1
            else:
                by_actor.setdefault(actor_of(document), []).append(fact)
            known.setdefault(chain, set()).add(str(document.get("receipt_id")))
        if beside and not old:
            by_actor.setdefault(("ctrlrun", "unknown"), []).extend(beside)
        for (agent, user), calls in by_actor.items():
            runs.append(_run(each.digest, agent, user, calls, chain, earlier))
        if left:
            notes.append(
                f"{left} receipts say of nothing that it ran or was refused, or do not read: they stay in the document"
            )
        if old:
            notes.append(f"{old} receipts are recorded from an earlier import")
    return Facts(tuple(runs), tuple(notes))


def _run(document: str, agent: str, user: str, calls: list[CallFact], chain: str, earlier: EarlierOf) -> RunFact:
    name = f"{chain} {agent} {user}" if chain else ""
    before = earlier(CHAIN, name_of(name)) if chain else None
    return RunFact(
        "ctrlrun.receipts",
        RunStatus.COMPLETED,
        document,
        tuple(calls),
        actor=Actor(agent=name_of(agent), user=name_of(user), model="unknown"),
        adapter="ctrlrun",
        correlation={CHAIN: name_of(name), f"{CHAIN}.head": chain} if chain else {},
        continues=None if before is None else before.run,
    )


def _held(given: Given) -> tuple[list[dict[str, Any]], list[CallFact]]:
    """Return the receipts of a document in the order of their places, and what else it holds as acts."""
    if given.found.kind == "store":
        from ledger.foreign.ctrlrun_store import open_bytes  # noqa: PLC0415  few documents are databases

        try:
            with open_bytes(given.data) as store:
                return _of_texts(row[1] for row in store.receipts()), _beside(store, given.digest)
        except StorageError:
            return [], []
    if given.found.kind == "rows":
        rows = (read(line.data).value for line in strict.lines(given.data))
        texts = [row["json"].encode("utf-8", "surrogatepass") for row in rows if _is_row(row)]
        return _of_texts(texts), []
    if given.found.kind == "receipt":
        return _of_texts([given.data]), []
    if given.found.kind != "receipts":
        return [], []
    return _of_texts(line.data for line in strict.lines(given.data)), []


def _is_row(row: object) -> bool:
    return type(row) is dict and type(row.get("json")) is str


def _of_texts(texts: Iterable[object]) -> list[dict[str, Any]]:
    values = [read(each).value for each in texts if isinstance(each, bytes)]
    return sorted((each for each in values if type(each) is dict), key=_place)


def _place(document: dict[str, Any]) -> int:
    seq = document.get("seq")
    return seq if type(seq) is int else 0


def _chain_of(documents: list[dict[str, Any]]) -> str:
    """Return a word for the chain that documents are of: the id of its first receipt; empty where the first is not among them."""
    first = next((each for each in documents if _place(each) <= 1), None)
    return name_of(first.get("receipt_id"), "") if first is not None else ""


def _seen(chain: str, documents: list[dict[str, Any]], earlier: EarlierOf, known: dict[str, set[str]]) -> set[str]:
    """Return the ids of receipts of a chain that are recorded already."""
    found = set(known.get(chain, ()))
    if not chain:
        return found
    before = earlier(f"{CHAIN}.head", chain)
    if before is None:
        return found
    from verify.foreign.ctrlrun.lines import recognise  # noqa: PLC0415  only documents that came before need it

    kind = recognise(before.data)
    if kind is not None:
        held, _ = _held(Given("", before.data, kind))
        found |= {str(each.get("receipt_id")) for each in held}
    return found & {str(each.get("receipt_id")) for each in documents}


def _beside(store: Tables, document: str) -> list[CallFact]:
    return [*_approvals(store, document), *_delegations(store, document), *_effects(store, document)]


def _approvals(store: Tables, document: str) -> Iterator[CallFact]:
    for row in store.rows("approvals"):
        status, reason = _APPROVALS.get(text(row.get("status")) or "", ("waiting", Reason.APPROVAL_REQUIRED))
        members = ("approval_id", "action_hash", "status", "approver", "policy_hash_at_approval", "expires_at")
        yield CallFact("ctrlrun.approval", status, document, reason=reason, inline=_members(row, members))


def _delegations(store: Tables, document: str) -> Iterator[CallFact]:
    members = (
        "delegation_id",
        "parent_id",
        "created_by_agent",
        "created_via",
        "created_at",
        "revoked_at",
        "revoked_by",
    )
    for row in store.rows("delegations"):
        grant = read(row["grant_json"]).value if isinstance(row.get("grant_json"), bytes) else None
        known = grant if type(grant) is dict else None
        yield CallFact("ctrlrun.delegation", "committed", document, arguments=known, inline=_members(row, members))


def _effects(store: Tables, document: str) -> Iterator[CallFact]:
    """Yield effects that a person or a remote settled, and those that were begun and never ended."""
    for row in store.rows("effects"):
        state, key, attempt = text(row.get("state")), text(row.get("effect_key")), integer(row.get("attempt"))
        inline = _members(row, ("effect_key", "state", "action_id", "resolved_by", "lease_expires_at"))
        effect = (key, attempt) if key and attempt and attempt > 0 else None
        if row.get("resolved_by") is not None:
            yield CallFact("ctrlrun.resolution", "committed", document, inline=inline)
        elif state in {"reserved", "executing"}:
            reason = Reason.RECORDER_LOST
            yield CallFact("ctrlrun.effect", "ambiguous", document, reason=reason, inline=inline, effect=effect)


def _members(row: Row, names: Sequence[str]) -> JsonObject:
    found = {name: text(row.get(name)) for name in names}
    return {name: name_of(value) for name, value in found.items() if value}
