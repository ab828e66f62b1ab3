"""Requests for approval in a run and what answers them; approvals without a request that its acts used."""

from __future__ import annotations

from cli.report.collect import Collected
from cli.report.model import Approval
from ledger.receipt import Approval as Receipt
from ledger.receipt import Decision, Intent, Opening

__all__ = ["approvals_of"]


def approvals_of(found: Collected, run: str, opening: Opening) -> tuple[Approval, ...]:
    """Return every request that waited and every approval that was used, in the run and the runs below it."""
    used: dict[str, list[str]] = {}
    requests: dict[str, Decision] = {}
    answers: dict[str, list[tuple[str, Receipt]]] = {}
    actors = {opening.actor.agent, opening.actor.user, opening.issuer.name} - {"unknown"}
    for id_ in found.whole(run):
        receipt = found.get(id_)
        if isinstance(receipt, Intent):
            for approval in receipt.approvals:
                used.setdefault(approval, []).append(id_)
        elif isinstance(receipt, Decision) and receipt.status == "waiting":
            requests[id_] = receipt
    for id_, (_, receipt) in found.receipts.items():
        if isinstance(receipt, Receipt) and (receipt.request in requests or id_ in used):
            answers.setdefault(receipt.request or "", []).append((id_, receipt))
    rows = [
        _row(request.act.name, id_, request.roles, None, (), actors, expires_at=request.expires_at or "")
        for id_, request in requests.items()
        if id_ not in answers
    ]
    for asked, given in answers.items():
        waited = requests.get(asked)
        for id_, receipt in given:
            act = waited.act.name if waited is not None else receipt.pattern or "one act"
            roles = waited.roles if waited is not None else ()
            rows.append(
                _row(act, asked, roles, receipt, tuple(used.get(id_, ())), actors, expires_at=receipt.expires_at)
            )
    return tuple(rows)


def _row(
    act: str,
    asked: str,
    roles: tuple[str, ...],
    answer: Receipt | None,
    used_by: tuple[str, ...],
    actors: set[str],
    *,
    expires_at: str,
) -> Approval:
    if answer is None:
        return Approval(act, asked, roles, "waiting", "", "", "", expires_at, 0, (), by_actor=False)
    by = answer.issuer.name
    return Approval(
        act, asked, roles, answer.answer, by, answer.role, answer.issued_at, expires_at, answer.uses, used_by,
        by_actor=by in actors,
    )  # fmt: skip
