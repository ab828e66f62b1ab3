"""Ledgers to test with, and receipts to put in: fresh folders, nothing of the user's."""

from __future__ import annotations

import os
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ledger import Ledger, Places
from ledger import receipt as kinds
from ledger.digest import digest
from ledger.envelope import Envelope
from ledger.members import Act, Actor, Adapter, Tool
from ledger.receipt import print_receipt
from ledger.storage.clock import nonce
from ledger.storage.ledger import PRODUCER
from verify.chain import Segment
from verify.ledger import verify_ledger
from verify.report import Verdict
from verify.trust import IssuerPin, OriginPin, parse_trust, pin

TIME = "2026-11-30T09:15:00.123Z"


def places_of(folder: Path) -> Places:
    return Places.under(folder / "home")


def new_ledger(folder: Path, **options: Any) -> Ledger:
    """Return a new ledger in `folder/ledger`, its keys and register under `folder/home`."""
    return Ledger.create(folder / "ledger", places=places_of(folder), **options)


def open_ledger(folder: Path) -> Ledger:
    return Ledger.open(folder / "ledger", places=places_of(folder))


def common(ledger: Ledger, **members: Any) -> dict[str, Any]:
    return {
        "ledger": ledger.origin,
        "issuer": ledger.issuer,
        "issued_at": TIME,
        "nonce": nonce(),
        "producer": PRODUCER,
        **members,
    }


def grant(ledger: Ledger, **members: Any) -> Envelope:
    """Return a small sealed receipt that stands alone."""
    return ledger.seal(kinds.Grant(**{**common(ledger, action="given", grantee="bot", acts=("read",)), **members}))


def opening(ledger: Ledger, **members: Any) -> Envelope:
    actor = Actor(agent="bot", user="unknown", model="unknown")
    adapter = Adapter(name="test", version="1", coverage="reported-calls")
    return ledger.seal(kinds.Opening(**common(ledger, name="work", actor=actor, adapter=adapter, **members)))


ACT = Act(
    name="act",
    tool=Tool(name="tool", version="1", digest="unknown"),
    access="read",
    arguments_digest="unknown",
    resource="unknown",
    environment="test",
)


def intent(ledger: Ledger, run: str, **members: Any) -> Envelope:
    return Envelope(
        print_receipt(kinds.Intent(**common(ledger, run=run, act=ACT, act_digest=digest(b"act"), **members)))
    )


def many_intents(ledger: Ledger, run: str, count: int) -> list[Envelope]:
    """Return intents that differ in their nonce only: quick to make."""
    first = intent(ledger, run).payload
    start = first.index(b'"nonce":"') + len(b'"nonce":"')
    return [Envelope(first[:start] + nonce().encode() + first[start + 32 :]) for _ in range(count)]


def outcome(ledger: Ledger, run: str, of: str, *more: str, **members: Any) -> Envelope:
    return Envelope(
        print_receipt(
            kinds.Outcome(
                **{
                    **common(ledger, run=run, intent=of, status="committed", duration_ms=1, children=(of, *more)),
                    **members,
                }
            )
        )
    )


def step(ledger: Ledger, run: str, *children: str, **members: Any) -> Envelope:
    return Envelope(
        print_receipt(
            kinds.Step(**{**common(ledger, run=run, name="step", status="completed", children=children), **members})
        )
    )


def closing(ledger: Ledger, run: str, *children: str, **members: Any) -> Envelope:
    return ledger.seal(
        kinds.Run(
            **{
                **common(ledger, run=run, status="completed", duration_ms=1, children=(run, *children)),
                **members,
            }
        )
    )


def last_segment(ledger: Ledger) -> Path:
    return max((ledger.folder / "journal").iterdir())


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a ledger's journal and quarantine."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in ("journal", "quarantine")
        for path in sorted((folder / name).glob("*"))
    }


def verdict(ledger: Ledger, *, memory: bytes | None = None) -> Verdict:
    """Return the verifier's word on a whole ledger, its keys pinned."""
    data = pin(
        b"",
        origin=OriginPin(name=ledger.origin, log_key=ledger.header.log_key),
        issuer=IssuerPin(name=ledger.header.issuer.name, key=ledger.header.issuer.key),
    )
    segments = tuple(Segment(*each) for each in ledger.journal())
    return verify_ledger(segments, trust=parse_trust(data, source="test"), memory=memory)


def fork(body: Callable[[], None]) -> int:
    """Return the process id of a fork that runs `body` and ends with 0 if it returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    try:
        body()
    except BaseException:  # noqa: BLE001  nothing may run on in the child
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def ended(child: int) -> int:
    """Return how a child ended: its exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def quick_folder(fallback: Path) -> Iterator[Path]:
    """Give a folder in memory where there is one: these tests sync thousands of times, and no power is lost in them."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield fallback
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)
