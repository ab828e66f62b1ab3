"""ctrlrun in our words: a run for each principal of a document, each of its receipts an act.

- `failed` means the same there and here. `observed` receipts are outcomes by what was executed; what was only proposed is left out.
- The first charge of a receipt is the one of the grant that decided it; those of the grants above it count the same amount again and
  stay in the document.
- A sink or a store that grew since it was imported holds the same receipts again: only those of later places become receipts, in a
  run that continues the earlier one.
- What a store holds beside its receipts stands as acts of its own, named `ctrlrun.…`: approvals, delegations, effects that nobody
  settled or that a person did. They are claims of that store and give nobody any authority here.

Source: docs/spec/words.md, "ctrlrun".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from ledger.canonical import JsonObject
from ledger.errors import StorageError
from ledger.importing.facts import CallFact, CallStatus, Facts, RunFact, name_of
from ledger.members import Actor, Charge
from ledger.words import Basis, Reason, RunStatus
from verify.foreign import strict
from verify.foreign.ctrlrun.reading import read
from verify.foreign.ctrlrun.tables import Row, Tables, integer, text
from verify.foreign.mapping import EarlierOf, Given

__all__ = ["CHAIN", "MAPPING", "fact_of_receipt", "facts"]

MAPPING: Final = "ctrlrun/1"
CHAIN: Final = "ctrlrun.chain"
"""Correlation that names a chain, and the principal that acted: by the hash that its first receipt has."""
_MAX_INLINE: Final = 16
_RULE: Final = re.compile(r"rule\[[0-9]+\]|decision")
_REASONS: Final = {
    "unknown_action": Reason.ACTION_UNKNOWN,
    "no_matching_rule": Reason.POLICY_NOT_LISTED,
    "policy_unapproved": Reason.POLICY_MISSING,
    "principal_expired": Reason.GRANT_EXPIRED,
    "scope_unavailable": Reason.COVERAGE,
    "out_of_scope": Reason.SCOPE_OUT_OF_SCOPE_TOOL,
    "budget_exhausted": Reason.LIMIT,
    "budget_unmeasurable": Reason.PRICE_UNKNOWN,
    "budget_unkeyed": Reason.PRICE_UNKNOWN,
    "authority_expired": Reason.GRANT_EXPIRED,
    "authority_escalation": Reason.GRANT_WIDENED,
    "authority_revoked": Reason.GRANT_REVOKED,
}
_BLOCKED: Final = (
    ("unknown outcome", Reason.EFFECT_AMBIGUOUS),
    ("already committed", Reason.EFFECT_COMMITTED),
    ("in progress", Reason.EFFECT_IN_PROGRESS),
    ("consumed", Reason.APPROVAL_CONSUMED),
    ("expired", Reason.APPROVAL_EXPIRED),
    ("approval", Reason.APPROVAL_MISMATCH),
    ("attempt", Reason.EFFECT_AMBIGUOUS),
)
"""What the text of a blocked receipt says: ctrlrun gives the cause in no other member."""
_STATUSES: Final[dict[str, CallStatus]] = {
    "committed": "committed",
    "failed": "failed",
    "ambiguous": "ambiguous",
    "denied": "denied",
    "blocked": "blocked",
}
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
                by_actor.setdefault(_actor_of(document), []).append(fact)
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
    if given.found.kind != "receipts":
        return [], []
    whole = read(given.data).value
    if type(whole) is dict:
        return [whole], []
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


def _actor_of(document: dict[str, Any]) -> tuple[str, str]:
    principal = document.get("principal")
    if type(principal) is not dict:
        return "unknown", "unknown"
    return name_of(principal.get("agent")), name_of(principal.get("user"))


def fact_of_receipt(document: dict[str, Any], digest: str) -> CallFact | None:
    """Return a receipt as an act, None for one that says of nothing that it ran or was refused.

    Args:
        document: the receipt.
        digest: digest of the document that holds it.
    """
    status = _status_of(document)
    if status is None:
        return None
    reason = str(document.get("decision_reason"))
    arguments = document.get("arguments")
    known = arguments if type(arguments) is dict else {}
    return CallFact(
        name_of(document.get("action")),
        status,
        digest,
        reason=_reason_of(document, status, reason),
        rule=reason if _RULE.fullmatch(reason) else None,
        arguments=known,
        inline=_inline(known, document),
        resource=name_of(document.get("resource")),
        environment=name_of(document.get("environment")),
        effect=_effect_of(document),
        charges=_charges(document),
        duration_ms=_duration(document.get("started_at"), document.get("finished_at")),
    )


def _effect_of(document: dict[str, Any]) -> tuple[str, int] | None:
    key, attempt = document.get("effect_key"), document.get("attempt")
    return (key, attempt) if type(key) is str and key and type(attempt) is int and attempt > 0 else None


def _status_of(document: dict[str, Any]) -> CallStatus | None:
    word = document.get("execution") if document.get("result") == "observed" else document.get("result")
    return _STATUSES.get(word) if type(word) is str else None


def _reason_of(document: dict[str, Any], status: CallStatus, reason: str) -> Reason | None:
    match status:
        case "committed":
            return None
        case "failed":
            return Reason.NOT_EXECUTED
        case "ambiguous":
            return Reason.EXCEPTION
        case "blocked":
            said = str(document.get("error"))
            return next((word for mark, word in _BLOCKED if mark in said), Reason.APPROVAL_MISMATCH)
        case _:
            otherwise = Reason.GRANT_MISSING if "authority" in reason else Reason.POLICY_DENIED
            return _REASONS.get(reason, otherwise)


def _inline(arguments: JsonObject, document: dict[str, Any]) -> JsonObject:
    """Return members that SQL and rules need: what receipt it was, amounts, and the names that effect or resource are made of."""
    names = f"{document.get('effect_key')}\n{document.get('resource')}"
    found: JsonObject = {
        f"ctrlrun_{name}": document[name]
        for name in ("receipt_id", "seq", "approval_id", "approver", "authority_grant_id", "policy_hash")
        if type(document.get(name)) in (str, int)
    }
    for name, value in list(arguments.items())[:_MAX_INLINE]:
        if type(value) is int or (type(value) is str and 0 < len(value) <= 128 and value in names):
            found[name] = value
    return found


def _charges(document: dict[str, Any]) -> tuple[Charge, ...]:
    """Return what the deciding grant was charged; an observed receipt was charged nothing."""
    charges = document.get("budget_charges")
    if type(charges) is not list or document.get("result") == "observed":
        return ()
    settled = document.get("result") != "failed"
    found: dict[str, Charge] = {}
    for charge in charges:
        if type(charge) is not dict or charge.get("grant_id") != document.get("authority_grant_id"):
            continue
        metric, amount = name_of(charge.get("metric")), charge.get("amount")
        if type(amount) is int and 0 <= amount < 2**53:
            taken = {"settled": amount} if settled else {"released": amount}
            found[metric] = Charge.model_validate(
                {"meter": f"ctrlrun.{metric}"[:256], **taken, "basis": Basis.REPORTED}
            )
    return tuple(found.values())


def _duration(started: object, finished: object) -> int | None:
    try:
        span = datetime.fromisoformat(str(finished)) - datetime.fromisoformat(str(started))
    except (ValueError, TypeError):
        return None
    milliseconds = round(span.total_seconds() * 1_000)
    return milliseconds if 0 <= milliseconds < 2**53 else None


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
