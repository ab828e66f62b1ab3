"""Receipts: the canonical JSON record of one act, in sixteen kinds.

    {"act":{...},"act_digest":"sha256:...","issued_at":"...","issuer":{"key":"ed25519:...","name":"..."},
     "kind":"intent","ledger":"...","nonce":"...","producer":{...},"run":"sha256:...","schema":"receipt-ledger.receipt/v1"}

The receipt id is the digest of these bytes. A receipt is parsed once, at the edge; `print_receipt(parse_receipt(b)) == b`.

Source: docs/spec/receipts.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field, ValidationError

from ledger import canonical
from ledger.digest import digest
from ledger.errors import FormatError, LedgerError, UnknownFormatError, clip
from ledger.members import (
    Act,
    Actor,
    Adapter,
    Artifact,
    Charge,
    Continues,
    Count,
    CurrencyAmount,
    Digest,
    Effect,
    Issuer,
    KeyId,
    Limit,
    Member,
    Name,
    NextKeys,
    Nonce,
    Origin,
    PeriodLimit,
    Producer,
    Runbook,
    Source,
    Time,
)
from ledger.words import CALL_REASONS, OutcomeStatus, Reason, RunStatus

__all__ = [
    "ACT_SCHEMA",
    "MAX_CHILDREN",
    "RECEIPT_SCHEMA",
    "Approval",
    "Decision",
    "Erasure",
    "Evaluation",
    "Grant",
    "Header",
    "Hold",
    "Import",
    "Intent",
    "Key",
    "Opening",
    "Outcome",
    "Receipt",
    "Repair",
    "Resolution",
    "Run",
    "Step",
    "WouldHave",
    "act_digest",
    "children_of",
    "parse_receipt",
    "print_receipt",
    "read_members",
    "receipt_id",
    "run_of",
]

RECEIPT_SCHEMA: Final = "receipt-ledger.receipt/v1"
ACT_SCHEMA: Final = "receipt-ledger.act/v1"
MAX_CHILDREN: Final = 10_000


def _among(reasons: frozenset[Reason]) -> AfterValidator:
    """Return a validator that lets through only some of the reasons."""

    def check(reason: Reason) -> Reason:
        if reason not in reasons:
            raise ValueError(f"expected one of {', '.join(sorted(reasons))}")
        return reason

    return AfterValidator(check)


def _once(member: str) -> AfterValidator:
    """Return a validator of a list whose items differ in one member."""

    def check(items: tuple[Any, ...]) -> tuple[Any, ...]:
        if len({getattr(item, member) for item in items}) != len(items):
            raise ValueError(f"expected each {member} once")
        return items

    return AfterValidator(check)


Why: TypeAlias = Annotated[Reason, Field(strict=False)]
CallWhy: TypeAlias = Annotated[Reason, Field(strict=False), _among(CALL_REASONS)]
ErasureWhy: TypeAlias = Annotated[
    Reason, Field(strict=False), _among(frozenset(reason for reason in Reason if reason.startswith("erasure.")))
]
RepairWhy: TypeAlias = Annotated[
    Reason, Field(strict=False), _among(frozenset(reason for reason in Reason if reason.startswith("repair.")))
]
Children: TypeAlias = Annotated[tuple[Digest, ...], Field(max_length=MAX_CHILDREN, strict=False)]
Artifacts: TypeAlias = Annotated[tuple[Artifact, ...], Field(max_length=1_000, strict=False)]
Charges: TypeAlias = Annotated[tuple[Charge, ...], Field(max_length=100, strict=False)]
Names: TypeAlias = Annotated[tuple[Name, ...], Field(max_length=1_000, strict=False)]
Digests: TypeAlias = Annotated[tuple[Digest, ...], Field(max_length=1_000, strict=False)]


class Common(Member):
    """Members of every receipt."""

    schema_: Literal["receipt-ledger.receipt/v1"] = Field(default=RECEIPT_SCHEMA, alias="schema")
    ledger: Origin
    """Origin of the ledger that this receipt was written for."""
    issuer: Issuer
    issued_at: Time
    nonce: Nonce
    """16 random bytes: two equal acts are two receipts."""
    producer: Producer
    source: Source | None = None


class InRun(Common):
    """A receipt of a run."""

    run: Digest
    """Receipt id of the run's opening."""


class Header(Common):
    """Entry 0: what this ledger is and which keys speak first."""

    kind: Literal["header"] = "header"
    format: Name
    """`receipt-ledger/v1`; a later one is refused by this version."""
    log_key: KeyId
    next: NextKeys
    continues: Continues | None = None


class Opening(Common):
    """First receipt of a run, durable before anything runs; its receipt id is the run id."""

    kind: Literal["opening"] = "opening"
    name: Name
    actor: Actor
    adapter: Adapter
    limits: Annotated[tuple[Limit, ...], Field(max_length=100, strict=False), _once("meter")] = ()
    policy: Digest | None = None
    grant: Digest | None = None
    correlation: Annotated[dict[Name, Name], Field(max_length=100)] | None = None
    program: Digest | None = None
    document: Digest | None = None
    runbook: Runbook | None = None
    artifacts: Artifacts = ()
    continues: Digest | None = None
    """Run id of the closed run that this one follows."""
    parent_opening: Digest | None = None
    """Run id of the run that started this one."""
    parent_intent: Digest | None = None
    """Receipt id of the intent of the call that started this run."""


class WouldHave(Member):
    """What a policy that only observes would have decided about an act that ran."""

    status: Literal["denied", "waiting"]
    reason: Why


class Intent(InRun):
    """About to act. Durable before the act."""

    kind: Literal["intent"] = "intent"
    act: Act
    act_digest: Digest
    effect: Effect | None = None
    lease_ms: Count | None = None
    reserved: Charges = ()
    policy: Digest | None = None
    grant: Digest | None = None
    rule: Name | None = None
    """The rule that allowed it."""
    step: Name | None = None
    """The step of the run's runbook that was current."""
    would_have: WouldHave | None = None
    """Where the policy only observes and would not have let it run: what it would have decided."""
    approvals: Digests = ()
    artifacts: Artifacts = ()


class Outcome(InRun):
    """Settles an intent, and commits it with what happened inside the call."""

    kind: Literal["outcome"] = "outcome"
    intent: Digest
    status: Annotated[OutcomeStatus, Field(strict=False)]
    reason: CallWhy | None = None
    error: Name | None = None
    """Name of the exception's class; its text is an artifact."""
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: Annotated[int, Field(ge=1, le=127)] | None = None
    duration_ms: Count | Literal["unknown"]
    charges: Charges = ()
    usage: Charges = ()
    artifacts: Artifacts = ()
    children: Annotated[tuple[Digest, ...], Field(min_length=1, max_length=MAX_CHILDREN, strict=False)]


class Decision(InRun):
    """Nothing ran: denied, blocked, or waiting for an approval."""

    kind: Literal["decision"] = "decision"
    act: Act
    act_digest: Digest
    status: Literal["denied", "blocked", "waiting"]
    reason: Why
    rule: Name | None = None
    step: Name | None = None
    """The step of the run's runbook that was current, or that was asked for."""
    policy: Digest | None = None
    grant: Digest | None = None
    effect: Effect | None = None
    meter: Name | None = None
    limit: Count | None = None
    spent: Count | None = None
    reserved: Count | None = None
    asked: Count | Literal["unknown"] | None = None
    roles: Names = ()
    """Roles whose approval is waited for."""
    needed: Count | None = None
    """How many approvals are waited for."""
    expires_at: Time | None = None
    artifacts: Artifacts = ()


class Step(InRun):
    """Groups what happened."""

    kind: Literal["step"] = "step"
    name: Name
    status: Literal["completed", "failed", "blocked", "folded"]
    reason: Why | None = None
    duration_ms: Count | None = None
    artifacts: Artifacts = ()
    children: Children = ()


class Run(InRun):
    """Closes a run: nothing follows it but a resolution."""

    kind: Literal["run"] = "run"
    status: Annotated[RunStatus, Field(strict=False)]
    reason: Why | None = None
    error: Name | None = None
    duration_ms: Count | Literal["unknown"]
    totals: Annotated[tuple[CurrencyAmount, ...], Field(max_length=100, strict=False), _once("meter")] = ()
    artifacts: Artifacts = ()
    children: Annotated[tuple[Digest, ...], Field(min_length=1, max_length=MAX_CHILDREN, strict=False)]


class Approval(Common):
    """The answer to a waiting decision, sealed by the approver's own key."""

    kind: Literal["approval"] = "approval"
    run: Digest | None = None
    request: Digest | None = None
    """Receipt id of the waiting decision; absent for a standing approval."""
    answer: Literal["granted", "denied"]
    role: Name
    act_digest: Digest | None = None
    pattern: Name | None = None
    """Name pattern of the acts that a standing approval covers."""
    precondition: Digest | None = None
    policy: Digest | None = None
    expires_at: Time
    uses: Annotated[int, Field(ge=1, le=2**53 - 1)]


class Resolution(Common):
    """Settles an ambiguous effect."""

    kind: Literal["resolution"] = "resolution"
    run: Digest | None = None
    intent: Digest
    effect: Effect | None = None
    happened: Literal["happened", "did_not_happen"]
    resolved_by: Name
    charges: Charges = ()
    artifacts: Artifacts = ()


class Grant(Common):
    """Authority given, narrowed or revoked."""

    kind: Literal["grant"] = "grant"
    action: Literal["given", "narrowed", "revoked"]
    grantee: Name
    acts: Names | None = None
    """Name patterns of the acts; an empty list covers nothing."""
    conditions: Digest | None = None
    limits: Annotated[tuple[Limit, ...], Field(max_length=100, strict=False)] = ()
    periods: Annotated[tuple[PeriodLimit, ...], Field(max_length=100, strict=False)] = ()
    expires_at: Time | None = None
    parent: Digest | None = None
    """Receipt id of the grant that this one narrows, delegates or revokes."""
    mandate: Name | None = None


class Evaluator(Member):
    """Who evaluated, named by the runtime."""

    package: Name
    method: Name
    run: Digest | Literal["unknown"]


class Answer(Member):
    """The answer to one criterion."""

    criterion: Name
    required: bool
    answer: Literal["met", "not_met", "inconclusive"]


class Evaluation(Common):
    """A verdict of an evaluator on a subject against a criteria set."""

    kind: Literal["evaluation"] = "evaluation"
    run: Digest | None = None
    subject: Digest
    criteria: Digest
    evaluator: Evaluator
    verdict: Literal["met", "not_met", "inconclusive"]
    answers: Annotated[tuple[Answer, ...], Field(max_length=1_000, strict=False), _once("criterion")] = ()
    artifacts: Artifacts = ()


class Key(Common):
    """A rotation or a revocation of the issuer or log key."""

    kind: Literal["key"] = "key"
    action: Literal["rotate", "revoke"]
    role: Literal["issuer", "log"]
    key: KeyId
    """The key in force from the next entry on."""
    retired: KeyId
    """The key that this one replaces."""
    next: NextKeys
    from_index: Count | None = None
    """First index at which the retired key is no longer believed; a revocation only."""


class Import(Common):
    """A foreign document that came in."""

    kind: Literal["import"] = "import"
    format: Name
    version: Name
    document: Artifact
    native_status: Literal["holds", "fails", "unverifiable", "unreadable"]
    native_code: Name
    mapping: Name
    artifacts: Artifacts = ()


class Erasure(Common):
    """An artifact was erased."""

    kind: Literal["erasure"] = "erasure"
    digest: Digest
    reason: ErasureWhy
    receipts: Digests
    """Every receipt that refers to the artifact."""


class Hold(Common):
    """Artifacts are held, which forbids their erasure, or a hold ends."""

    kind: Literal["hold"] = "hold"
    action: Literal["placed", "released"]
    digest: Digest | None = None
    """The artifact that is held."""
    held_run: Digest | None = None
    """Run id of the run all of whose artifacts are held, and those of the runs below it."""
    matter: Name | None = None
    """The matter that it is held for, such as a case number."""
    hold: Digest | None = None
    """Receipt id of the hold that ends; of a release only."""


class Repair(Common):
    """Bytes of a commit that never ended were set aside."""

    kind: Literal["repair"] = "repair"
    reason: RepairWhy
    segment: Count
    """First index of the segment that was cut."""
    offset_bytes: Count
    cut_bytes: Count
    cut_digest: Digest


Receipt: TypeAlias = (
    Header
    | Opening
    | Intent
    | Outcome
    | Decision
    | Step
    | Run
    | Approval
    | Resolution
    | Grant
    | Evaluation
    | Key
    | Import
    | Erasure
    | Hold
    | Repair
)

_KINDS: Final[dict[str, type[Receipt]]] = {model.model_fields["kind"].default: model for model in get_args(Receipt)}

# Lists that are empty are absent: one value has one text.
_ABSENT_WHEN_EMPTY: Final = {
    model: tuple(name for name, field in model.model_fields.items() if field.default == ())
    for model in get_args(Receipt)
}


def parse_receipt(payload: bytes) -> Receipt:
    """Return the receipt whose canonical bytes are `payload`.

    Raises:
        CanonicalError: not canonical JSON, over 1 MiB or over 48 levels.
        UnknownFormatError: a schema or kind that this version does not know.
        FormatError: a known kind with members missing, unknown or malformed.
    """
    value = canonical.decode_for_schema(
        payload, max_depth=canonical.RECEIPT_MAX_DEPTH, max_bytes=canonical.RECEIPT_MAX_BYTES
    )
    schema = value.get("schema")
    if schema != RECEIPT_SCHEMA:
        raise _unknown_or_missing("schema", schema, payload)
    kind = value.get("kind")
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise _unknown_or_missing("kind", kind, payload)
    try:
        # The bytes are canonical by now, so both readers of them see one value.
        receipt = model.model_validate_json(payload)
    except ValidationError as error:
        # A fraction, which was left to the schema, is the better reason.
        canonical.decode(payload, max_depth=canonical.RECEIPT_MAX_DEPTH)
        raise _malformed(payload, error) from error
    # Only these two texts stand for an absent member as well; the round trip tells which member holds one.
    if (b"null" in payload or b"[]" in payload) and print_receipt(receipt) != payload:
        raise FormatError(
            "receipt: got null or an empty list for a member, expected the member to be absent",
            code="receipt.malformed",
        )
    return receipt


def read_members(kind: str, payload: bytes) -> Receipt:
    """Return the receipt of a kind whose bytes `parse_receipt` accepts, at half its cost: only the caller knows that it does."""
    return _KINDS[kind].model_validate_json(payload)


def print_receipt(receipt: Receipt) -> bytes:
    """Return the canonical bytes of a receipt; the inverse of `parse_receipt`.

    Raises:
        CanonicalError: an inline value is outside the profile.
        FormatError: the receipt is over 1 MiB.
    """
    value = receipt.model_dump(by_alias=True, exclude_none=True, mode="json")
    for name in _ABSENT_WHEN_EMPTY[type(receipt)]:
        if not value[name]:
            del value[name]
    data = canonical.encode(value, max_depth=canonical.RECEIPT_MAX_DEPTH)
    if len(data) > canonical.RECEIPT_MAX_BYTES:
        raise FormatError(
            f"receipt: got {len(data)} bytes, expected at most {canonical.RECEIPT_MAX_BYTES}", code="receipt.too_large"
        )
    return data


def receipt_id(payload: bytes) -> str:
    """Return the receipt id: the digest of the canonical bytes and nothing else."""
    return digest(payload)


def children_of(receipt: Receipt) -> tuple[str, ...]:
    """Return the ids that a receipt commits, in order; empty for kinds that commit nothing."""
    return receipt.children if isinstance(receipt, Outcome | Step | Run) else ()


def run_of(receipt: Receipt, id_: str) -> str | None:
    """Return the run id of a receipt whose own id is `id_`; an opening's is its own, None outside any run."""
    if isinstance(receipt, Opening):
        return id_
    if isinstance(receipt, InRun | Approval | Resolution | Evaluation):
        return receipt.run
    return None


def act_digest(act: Act, *, ledger: str, run: str, actor: Actor, effect_key: str | None) -> str:
    """Return the digest that an approval binds to: the act, who acts, and the effect key; the attempt is not part of it.

    Members that do not apply are absent from the hashed object.

    Source: docs/spec/receipts.md, "Act digest".
    """
    document: dict[str, Any] = {
        "schema": ACT_SCHEMA,
        "ledger": ledger,
        "run": run,
        "name": act.name,
        "tool": act.tool.model_dump(mode="json"),
        "arguments_digest": act.arguments_digest,
        "actor": actor.model_dump(mode="json"),
        "resource": act.resource,
        "environment": act.environment,
    }
    if effect_key is not None:
        document["effect_key"] = effect_key
    if act.amount is not None:
        document["amount"] = act.amount.model_dump(mode="json")
    if act.precondition is not None:
        document["precondition"] = act.precondition
    # Texts of models, which take no others than canonical JSON does.
    return digest(canonical.encode_part(document))


def _unknown_or_missing(member: str, found: object, payload: bytes) -> LedgerError:
    if isinstance(found, str):
        return UnknownFormatError(
            f"receipt: {member} {clip(found)} is not known to this version", code=f"receipt.unknown_{member}"
        )
    return FormatError(
        f"receipt {digest(payload)[:15]}: got {clip(found)} as {member}, expected a string", code="receipt.malformed"
    )


def _malformed(payload: bytes, error: ValidationError) -> FormatError:
    first = error.errors(include_url=False, include_context=False)[0]
    where = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return FormatError(
        f"receipt {digest(payload)[:15]}: {where}: {first['msg'].lower()}, got {clip(first.get('input'))}{more}",
        code="receipt.malformed",
        where=where,
    )
