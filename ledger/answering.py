"""Requests and answers as files: a request says what exactly would run, an answer is made anywhere by the approver's own key.

    {"requests":[{"act":{...},"act_digest":"sha256:...","actor":{...},"answer":null,"arguments":{...},"request":"sha256:...",...}],
     "schema":"receipt-ledger.requests/v1"}

A person sets `answer` to `granted` or `denied`, or leaves null what they do not answer; `role` is left to them in the same way. Null
stands nowhere else but inside `arguments`. The act's digest is computed again from what the file shows: where one differs, nothing in
the file is answered.

Source: docs/spec/rules/approvals.md, "Files".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from ledger.canonical import JsonObject, JsonValue
from ledger.errors import LedgerError, clip
from ledger.members import Act, Actor, Digest, Issuer, Member, Name, Origin, Time
from ledger.receipt import Approval, act_digest
from ledger.rules.document import read_object
from ledger.storage.clock import nonce, now
from ledger.storage.ledger import PRODUCER

__all__ = [
    "REQUESTS_SCHEMA",
    "AnswerError",
    "Asked",
    "answers_of",
    "print_requests",
    "read_requests",
    "standing_approval",
]

REQUESTS_SCHEMA: Final = "receipt-ledger.requests/v1"
_BLANKS: Final = ("answer", "role")
"""Members of a request that are null until a person sets them."""
_REQUEST_DEPTH: Final = len(("requests", "0"))


class AnswerError(LedgerError):
    """A file of requests, or an answer, outside its form; nothing was answered."""

    code = "approval.malformed"


class Asked(Member):
    """One request as a file carries it: the waiting decision, who acts, and the answer a person gives."""

    ledger: Origin
    request: Digest
    run: Digest
    run_name: Name
    actor: Actor
    act: Act
    act_digest: Digest
    arguments: dict[str, Any] | None = None
    """All arguments as they are kept, so that whoever answers sees them; None where they are not at hand."""
    effect_key: Name | None = None
    policy: Digest | None = None
    rule: Name | None = None
    meter: Name | None = None
    roles: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    needed: Annotated[int, Field(ge=1)] = 1
    expires_at: Time | None = None
    answer: Literal["granted", "denied"] | None = None
    role: Name | None = None


class _File(Member):
    schema_: Annotated[Literal["receipt-ledger.requests/v1"], Field(alias="schema")] = REQUESTS_SCHEMA
    requests: Annotated[tuple[Asked, ...], Field(strict=False, min_length=1, max_length=1_000)]


def print_requests(requests: Iterable[Asked]) -> JsonObject:
    """Return the value of a file of requests; what is to be filled in is null, and what does not apply is absent."""
    file: JsonObject = _File(requests=tuple(requests)).model_dump(mode="json", by_alias=True)
    shown = [{**_present(each), **{name: each[name] for name in _BLANKS}} for each in file["requests"]]
    return {**file, "requests": shown}


def read_requests(data: bytes) -> tuple[Asked, ...]:
    """Return the requests of a file that a person filled in.

    Raises:
        AnswerError: no such file, or a digest that is not that of what the file shows; nothing in it is to be answered.
    """
    value = read_object(data, "requests", AnswerError)
    _refuse_nulls(value, ())
    try:
        file = _File.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise AnswerError(f"requests: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error
    for asked in file.requests:
        _check_digests(asked)
    return file.requests


def _present(value: JsonValue) -> JsonValue:
    """Return a value without the members that are null; arguments are an act's own and stay as they are."""
    if isinstance(value, list):
        return [_present(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: item if name == "arguments" else _present(item) for name, item in value.items() if item is not None}


def _refuse_nulls(value: JsonValue, place: tuple[str, ...]) -> None:
    """Raise where null stands for no member, or for an item; a blank that nobody filled in may be null."""
    if value is None:
        raise AnswerError(f"requests: {clip('.'.join(place))}: got null, expected a value, or no such member")
    members = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    for name, item in members:
        blank = len(place) == _REQUEST_DEPTH and name in _BLANKS
        if not (item is None and blank) and not (name == "arguments" and isinstance(item, dict)):
            _refuse_nulls(item, (*place, str(name)))


def _check_digests(asked: Asked) -> None:
    """Raise unless the digests of a request are those of the act and the arguments that it shows."""
    found = act_digest(asked.act, ledger=asked.ledger, run=asked.run, actor=asked.actor, effect_key=asked.effect_key)
    if found != asked.act_digest:
        raise AnswerError(
            f"request {asked.request[7:19]}: the act shown is not the one of its digest: got {found}, expected {asked.act_digest}",
            code="approval.mismatch",
            hint="nothing was answered; take the request from the ledger again",
        )


def answers_of(
    requests: Iterable[Asked],
    issuer: Issuer,
    *,
    role: str | None = None,
    roles: Sequence[str] = (),
    answer: str | None,
    expires_at: str,
) -> list[Approval]:
    """Return the answers of an approver to requests.

    Args:
        requests: Those of a file; where a request has an answer of its own, that one counts.
        issuer: The approver: name and key.
        role: In which role they answer; None for the one of theirs that the request names.
        roles: Their roles, as far as they are known here.
        answer: `granted` or `denied` for requests without an answer; None to leave these.
        expires_at: Until when a grant may be used.

    Raises:
        AnswerError: a role that a request does not ask for, or none where one must be said; nothing is answered.
    """
    made = []
    for asked in requests:
        word = asked.answer or answer
        if word is None:
            continue
        fitting = [each for each in roles if each in asked.roles] if asked.roles else [*roles, "approver"]
        chosen = asked.role or role or next(iter(fitting), None)
        if chosen is None and len(asked.roles) == 1:
            chosen = asked.roles[0]
        if chosen is None or (asked.roles and chosen not in asked.roles):
            raise AnswerError(
                f"request {asked.request[7:19]}: got role {chosen!r}, expected one of {', '.join(asked.roles)}",
                code="approval.mismatch",
                hint="say it with --role",
            )
        made.append(
            Approval(
                **_common(asked.ledger, issuer),
                run=asked.run,
                request=asked.request,
                answer="granted" if word == "granted" else "denied",
                role=chosen,
                act_digest=asked.act_digest,
                precondition=asked.act.precondition,
                policy=asked.policy,
                expires_at=expires_at,
                uses=1,
            )
        )
    return made


def standing_approval(
    ledger: str,
    issuer: Issuer,
    *,
    pattern: str,
    uses: int,
    expires_at: str,
    role: str,
    run: str | None = None,
    policy: str | None = None,
) -> Approval:
    """Return an approval of acts whose name a pattern covers, so many times, until a time; bound to a run or policy if given.

    Raises:
        AnswerError: a member outside its form.
    """
    try:
        return Approval(
            **_common(ledger, issuer),
            run=run,
            answer="granted",
            role=role,
            pattern=pattern,
            policy=policy,
            expires_at=expires_at,
            uses=uses,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise AnswerError(f"approval: {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error


def _common(ledger: str, issuer: Issuer) -> dict[str, Any]:
    return {"ledger": ledger, "issuer": issuer, "issued_at": now(), "nonce": nonce(), "producer": PRODUCER}
