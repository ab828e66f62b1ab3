"""Members that receipts share: their types, patterns and small objects.

An absent member does not apply. What an adapter does not know is the word `unknown`. `null` stands only inside inline
arguments.

Source: docs/spec/receipts.md.
"""

from __future__ import annotations

import threading
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from typing_extensions import TypeAliasType

from ledger.times import TIME_PATTERN
from ledger.words import Access, Basis, Period, Profile, Risk

__all__ = [
    "TIME_PATTERN",
    "Act",
    "Actor",
    "Adapter",
    "Amount",
    "Artifact",
    "Charge",
    "Continues",
    "Count",
    "CurrencyAmount",
    "Digest",
    "Effect",
    "Issuer",
    "KeyId",
    "Limit",
    "Member",
    "Name",
    "NextKeys",
    "Nonce",
    "Origin",
    "PeriodLimit",
    "Producer",
    "Runbook",
    "Source",
    "Time",
    "Tool",
    "Unknown",
    "build_members",
]

Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
KeyId: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}:[0-9a-f]{64}$")]
Nonce: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Name: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,256}$")]
Count: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
Unknown: TypeAlias = Literal["unknown"]
Amount: TypeAlias = Count | Unknown

# A schema-less URL (C2SP checkpoint origin): what a URL may hold, without `+`, which separates the parts of a note's key.
Origin: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._~:/@!$&'()*,;=%-]{1,255}$")]

Time: TypeAlias = Annotated[str, StringConstraints(pattern=TIME_PATTERN)]
"""UTC, milliseconds, a real day of the Gregorian calendar: `2026-11-30T09:15:00.123Z`."""

Json = TypeAliasType(
    "Json",
    "Annotated[str, Field()] | Annotated[int, Field(ge=-(2**53 - 1), le=2**53 - 1)] | bool | list[Json] | dict[str, Json] | None",
)
"""Any canonical JSON value: what inline arguments may hold."""


_building = threading.RLock()


class Member(BaseModel):
    """Base of every object inside a receipt: strict, frozen, unknown members refused.

    What checks a model is built when the model is first used, by one thread: most programs use few of them.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **how: Any) -> bool | None:  # noqa: ANN401
        """Return as pydantic does, but let no two threads build at once."""
        with _building:
            return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **how)


# What builds the others is loaded with this one: judging evidence must not open a file, not even of a library.
Member.model_rebuild()


def build_members() -> None:
    """Build what checks each model that there is now, for whoever goes on to threads, forked processes or a deadline."""
    waiting: list[type[Member]] = [Member]
    while waiting:
        model = waiting.pop()
        model.model_rebuild()
        waiting.extend(model.__subclasses__())


class Issuer(Member):
    """Who wrote the receipt, and the key that speaks for it."""

    name: Name
    key: KeyId


class Producer(Member):
    """The program that made the receipt."""

    name: Name
    version: Name


class Source(Member):
    """The foreign document whose claim this receipt restates."""

    document: Digest
    """Digest of the document's original bytes."""
    format: Name
    import_: Digest | None = Field(default=None, alias="import")
    """Receipt id of the `import` that brought it in, where that came first."""


class Actor(Member):
    """On whose behalf the run acts."""

    agent: Name
    user: Name
    model: Name


class Tool(Member):
    """The tool that an act uses."""

    name: Name
    version: Name
    digest: Digest | Unknown


class CurrencyAmount(Member):
    """An amount that an act moves, in the smallest unit of a named meter such as `usd_micro`."""

    meter: Name
    value: Count


class Act(Member):
    """What is about to be done."""

    name: Name
    tool: Tool
    access: Annotated[Access, Field(strict=False)] | Unknown
    arguments: dict[str, Json] | None = None
    """The members of the arguments that were named inline."""
    arguments_digest: Digest | Unknown
    """Digest of the stored (salted) canonical JSON of all arguments, secrets cut out."""
    resource: Name
    environment: Name
    amount: CurrencyAmount | None = None
    precondition: Digest | None = None
    """Digest of the state that was looked at before deciding."""


class Artifact(Member):
    """Bytes kept outside the chain."""

    digest: Digest
    """Digest of the stored bytes: of salt and content where `salted`."""
    media_type: Annotated[
        str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$")
    ]
    name: Name
    size_bytes: Count
    """Size of the content, without the salt."""
    salted: bool
    """Whether the stored bytes are 32 bytes of salt followed by the content."""
    truncated_bytes: Count | None = None
    """How many bytes after the kept ones were not kept."""
    full_digest: Digest | None = None
    """Digest of all the content, where not all of it is kept."""


class Limit(Member):
    """A limit on one meter."""

    meter: Name
    limit: Count
    grace: Count | None = None
    soft: Count | None = None


class PeriodLimit(Member):
    """A limit on one meter of an account, day by day, week by week or month by month."""

    account: Name
    """Grants that name one account spend from it together."""
    meter: Name
    period: Annotated[Period, Field(strict=False)]
    limit: Count
    """Nothing beyond this is admitted within one period."""


class Charge(Member):
    """What an act costs on one meter; amounts that do not apply are absent."""

    meter: Name
    quoted: Amount | None = None
    reserved: Amount | None = None
    settled: Amount | None = None
    released: Amount | None = None
    payer: Name | None = None
    basis: Annotated[Basis, Field(strict=False)]


class Effect(Member):
    """The name of an effect across retries, and which attempt this is."""

    key: Name
    attempt: Annotated[int, Field(ge=1, le=2**53 - 1)]


class Adapter(Member):
    """What carried the run out, and its published statement of what it sees."""

    name: Name
    version: Name
    coverage: Name | Digest
    """A coverage word of docs/reference/adapters.md, or the digest of the statement."""


class Runbook(Member):
    """The runbook that a run follows, and how much of it is enforced."""

    envelope: Digest
    """Digest of the policy envelope."""
    profile: Annotated[Profile, Field(strict=False)]
    ceiling: Annotated[Risk, Field(strict=False)]
    """The highest risk of a step that the client runs."""


class Continues(Member):
    """The head of the older ledger that a ledger follows."""

    origin: Origin
    size: Count
    root: Digest


class NextKeys(Member):
    """Commitments to the next keys: digests of their public bytes."""

    issuer: Digest | None = None
    log: Digest | None = None
