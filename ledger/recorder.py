"""What the scopes of one run share: where they record, under which opening, with which salt.

Source: docs/spec/receipts.md, docs/spec/artifacts.md.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final

from pydantic import ValidationError

from ledger.arguments import ArgumentsError
from ledger.digest import ZERO_DIGEST
from ledger.envelope import Envelope
from ledger.errors import NotFoundError, StorageError, clip
from ledger.members import Artifact
from ledger.receipt import MAX_CHILDREN, Opening, Receipt, Step, parse_receipt
from ledger.rules.approval import Approver
from ledger.rules.instant import ms_of
from ledger.storage.artifacts import SALTED_BELOW_BYTES, salted_bytes
from ledger.storage.clock import monotonic_ms, nonce, now
from ledger.storage.ledger import PRODUCER, Ledger

__all__ = [
    "MAX_ARTIFACTS",
    "MAX_REFERENCES_BYTES",
    "MAX_USAGE",
    "Recorder",
    "common_of",
    "exception_name",
    "explain",
    "opening_of",
    "reference_bytes",
    "shielded",
]

# What one receipt may refer to, so that whatever a scope gathered it can be recorded when its block ends.
MAX_ARTIFACTS: Final = 998
MAX_USAGE: Final = 100
_REFERENCE_BYTES: Final = 300
_FEW_REFERENCES_BYTES: Final = 128 << 10
MAX_REFERENCES_BYTES: Final = 768 << 10
_FEW_CHILDREN: Final = 1_500


class Recorder:
    """Where one run is recorded. Threads may share it."""

    def __init__(
        self, ledger: Ledger, opening: Opening, id_: str, *, root: str | None = None, limited: bool = False
    ) -> None:
        self.ledger: Final = ledger
        self.opening: Final = opening
        self.id: Final = id_
        self.mutex: Final = threading.Lock()
        """Guards what the scopes gather."""
        self.root: Final = root or id_
        """The outermost run of the tree."""
        self.limited: Final = limited
        """Whether this run or one above it has limits."""
        self.approvers: Mapping[str, Approver] = {}
        """Whom trust names as approvers, by name."""
        self.started_ms: int | None = None
        """When the run opened on the monotonic clock, where this process opened it."""
        self._salt = _read_salt(ledger, opening)

    def common(self) -> dict[str, Any]:
        """Return the members that every receipt of the run has, with a new nonce and the time."""
        return {**common_of(self.ledger), "run": self.id}

    def elapsed_ms(self) -> int:
        """Return how long the run has gone on: by the monotonic clock, or by the times of opening and now in another process."""
        if self.started_ms is not None:
            return monotonic_ms() - self.started_ms
        return max(0, ms_of(now()) - ms_of(self.opening.issued_at))

    def keep(self, content: bytes, media_type: str, name: str) -> Artifact:
        """Return the reference of content that is staged: durable with the next commit."""
        salted = len(content) < SALTED_BELOW_BYTES
        try:
            reference = Artifact(
                digest=ZERO_DIGEST, media_type=media_type, name=name, size_bytes=len(content), salted=salted
            )
        except ValidationError as error:
            raise explain("artifact", error) from error
        stored = salted_bytes(content, run_salt=self._salt) if salted else content
        return reference.model_copy(update={"digest": self.ledger.artifacts.stage(stored)})

    def fold(self, children: Sequence[str], references_bytes: int) -> tuple[list[Envelope], list[str]]:
        """Return steps that hold the first of the children where they are too many for one receipt, and what is left to commit."""
        room = MAX_CHILDREN - 1 if references_bytes <= _FEW_REFERENCES_BYTES else _FEW_CHILDREN
        made: list[Envelope] = []
        while len(made) + len(children) > room:
            folded = Step(**self.common(), name="folded", status="folded", children=tuple(children[:MAX_CHILDREN]))
            made.append(self.ledger.envelope(folded))
            children = children[MAX_CHILDREN:]
        return made, [*(each.receipt_id for each in made), *children]


def reference_bytes(name: str, media_type: str) -> int:
    """Return about how much room the reference of an artifact takes in a receipt."""
    return len(name.encode("utf-8", "replace")) + len(media_type) + _REFERENCE_BYTES


def exception_name(kind: type[BaseException]) -> str:
    """Return the name of an exception's class as a receipt can hold it."""
    return "".join(each for each in kind.__name__ if each.isprintable())[:256] or "Exception"


def common_of(ledger: Ledger) -> dict[str, Any]:
    """Return the members that every receipt of a ledger has, with a new nonce and the time."""
    return {
        "ledger": ledger.origin,
        "issuer": ledger.issuer,
        "issued_at": now(),
        "nonce": nonce(),
        "producer": PRODUCER,
    }


def opening_of(ledger: Ledger, id_: str) -> Opening:
    """Return the opening of a run.

    Raises:
        NotFoundError: no such run.
    """
    receipt: Receipt = parse_receipt(ledger.get(id_).envelope.payload)
    if not isinstance(receipt, Opening):
        raise NotFoundError(
            f"run {id_[:15]}: is a receipt of kind {receipt.kind}, no opening", code="run.unknown_opening"
        )
    return receipt


def _read_salt(ledger: Ledger, opening: Opening) -> bytes | None:
    for artifact in opening.artifacts:
        if artifact.name == "run-salt":
            try:
                return ledger.artifact(artifact)
            except (NotFoundError, StorageError):
                return None  # erased: what is kept from now on has salts of its own
    return None


def explain(what: str, error: ValidationError) -> ArgumentsError:
    """Return what a model refused as an error for the person who gave it."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"{part}: " for part in first["loc"])
    return ArgumentsError(f"{what}: {where}{first['msg'].lower()}, got {clip(first.get('input'))}")


async def shielded(
    leave: Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None],
    kind: type[BaseException] | None,
    value: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Leave a block in a thread; a cancelled task waits for it, since a half-recorded outcome helps nobody."""
    task = asyncio.ensure_future(asyncio.to_thread(leave, kind, value, trace))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
