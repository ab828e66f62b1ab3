"""Resume documents: answers and approvals bound to the exact requests that they answer.

    {"schema":"runx.resume.v1",
     "answers":{"summarize":{"request_digest":"sha256:...","value":{...}}},
     "approvals":{"deliver":{"request_digest":"sha256:...","approved":true,"reason":"..."},
                  "send/retry":{"request_digest":"sha256:...","value":{"retry":true}}},
     "standing_approvals":[{"commands":{"argv_prefix":["make"]}}]}
    {"close":{"outcome":"declined"}}

- An entry whose address is not awaited, or whose digest belongs to another request, refuses the whole document.
- An answer that the run took, sent again exactly, is accepted and changes nothing.
- A close comes alone. How a request's digest is computed is not published: it is compared as it is given.
- 0.8.2 has the two maps without digests: nothing binds them, and they are refused here.

Source: the prose of runx 0.12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ledger.canonical import JsonObject, JsonValue
from ledger.digest import is_digest
from verify.foreign.runx.stablejson import stable_bytes
from verify.foreign.shape import (
    ANY,
    ANY_TEXT,
    BOOLEAN,
    TEXT,
    Misfit,
    Shape,
    Test,
    each,
    one_of,
    text_like,
)

__all__ = ["RESUME_SCHEMA", "Bound", "bind", "is_resume", "resume_misfits"]

RESUME_SCHEMA: Final = "runx.resume.v1"
_MEMBERS: Final = frozenset({"schema", "answers", "approvals", "close", "standing_approvals"})
_DIGEST: Final = text_like(r"sha256:[0-9a-f]{64}", "a digest")
_ANSWER: Final = Shape({"request_digest*": _DIGEST, "value*": ANY})
_APPROVAL: Final = Shape({"request_digest*": _DIGEST, "approved*": BOOLEAN, "reason": ANY_TEXT})
_CLOSE: Final = Shape({"outcome*": one_of("declined|superseded")})
_STANDING: Final = Shape(
    {
        "edits": Shape({"paths*": each(ANY_TEXT)}),
        "commands": Shape({"argv_prefix*": each(TEXT)}),
        "operations": Shape({"names*": each(TEXT)}),
        "local": BOOLEAN,
    }
)


@dataclass(frozen=True, slots=True)
class Bound:
    """What one entry comes to: it answers a request, repeats an answer that was taken, or refuses the document."""

    lane: Literal["answers", "approvals"]
    address: str
    result: Literal["answers", "repeats", "not_awaited", "other_request"]


def is_resume(value: JsonObject) -> bool:
    """Return whether an object shows itself to be a resume document, digests or not."""
    if value.get("schema") == RESUME_SCHEMA:
        return True
    if "schema" in value or not value or not value.keys() <= _MEMBERS:
        return False
    close = value.get("close")
    if isinstance(close, dict) and close.keys() == {"outcome"}:
        return True
    entries = list(_entries(value))
    return bool(entries) and all(isinstance(entry, dict) and "request_digest" in entry for _, _, entry in entries)


def resume_misfits(value: JsonObject) -> tuple[Misfit, ...]:
    """Return what does not fit in a resume document."""
    return tuple(_misfits(value))


def _misfits(value: JsonObject) -> Iterator[Misfit]:
    for name in value:
        if name not in _MEMBERS:
            yield Misfit(name, "is a member that is not known", unknown=True)
    if "close" in value:
        yield from _CLOSE(value["close"], "close")
        if value.keys() - {"schema", "close"}:
            yield Misfit("close", "does not stand alone")
    for lane in ("answers", "approvals"):
        if lane in value and not isinstance(value[lane], dict):
            yield Misfit(lane, "is not an object of entries by address")
    for lane, address, entry in _entries(value):
        # A person answers a gate with yes or no, and everything else with a value.
        decides = lane == "approvals" and isinstance(entry, dict) and "approved" in entry
        test: Test = _APPROVAL if decides else _ANSWER
        yield from test(entry, f"{lane}.{address}")
    standing = value.get("standing_approvals", [])
    yield from each(_STANDING)(standing, "standing_approvals")
    for place, entry in enumerate(standing if isinstance(standing, list) else ()):
        if isinstance(entry, dict) and (len(entry) != 1 or entry.get("local") is False):
            yield Misfit(f"standing_approvals[{place}]", "is not exactly one of edits, commands, operations, local")


def bind(
    value: JsonObject, waiting: Mapping[str, str], *, taken: Mapping[str, tuple[str, JsonValue]] | None = None
) -> tuple[Bound, ...]:
    """Return what each entry comes to; the document is refused if any is `not_awaited` or `other_request`.

    Args:
        value: a document without misfits.
        waiting: address -> digest of the request that the run waits on.
        taken: address -> digest and value of the answer that the run took.
    """
    before = taken or {}
    bound: list[Bound] = []
    for lane, address, entry in _entries(value):
        lane_: Literal["answers", "approvals"] = "answers" if lane == "answers" else "approvals"
        given = entry["request_digest"]
        if address in waiting:
            matches = waiting[address] == given and is_digest(given)
            bound.append(Bound(lane_, address, "answers" if matches else "other_request"))
        elif address in before and _same(before[address], entry):
            bound.append(Bound(lane_, address, "repeats"))
        else:
            bound.append(Bound(lane_, address, "not_awaited"))
    return tuple(bound)


def _entries(value: JsonObject) -> Iterator[tuple[str, str, JsonValue]]:
    for lane in ("answers", "approvals"):
        entries = value.get(lane)
        if isinstance(entries, dict):
            for address, entry in entries.items():
                yield lane, address, entry


def _same(before: tuple[str, JsonValue], entry: JsonObject) -> bool:
    digest, answer = before
    given = {name: item for name, item in entry.items() if name != "request_digest"}
    expected = answer if isinstance(answer, dict) and "approved" in answer else {"value": answer}
    return entry["request_digest"] == digest and stable_bytes(given) == stable_bytes(expected)
