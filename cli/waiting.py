"""What waits for a notary: the queue of a ledger, in the user's state folder, where nobody else can make us send anything."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import typer

from cli.options import Shared, program_name
from cli.text import escape, say, short
from ledger.storage.clock import now
from ledger.storage.places import Places
from notary.queue import Pending, Queue

__all__ = ["print_waiting", "queue_of", "waiting_value"]


def queue_of(places: Places, origin: str) -> Queue:
    """Return the queue of a ledger."""
    return Queue(places.state / "notarize" / hashlib.sha256(origin.encode("utf-8")).hexdigest())


def waiting_value(waiting: Sequence[Pending]) -> dict[str, Any]:
    """Return what waits as a JSON value."""
    return {"pending": [_value(each) for each in waiting]}


def print_waiting(waiting: Sequence[Pending], options: Shared) -> None:
    """Print what waits, and for how long."""
    if not waiting:
        say("nothing waits for a notary")
        return
    for each in waiting:
        what = "the newest head" if each.receipt is None else short(each.receipt)
        tried = f"tried {each.attempts} times, {each.last}" if each.attempts else "not sent yet"
        typer.echo(f"pending       {what}  for {waited(each)}  at {escape(each.url)}  ({tried})")
    at = f"-L {escape(shlex.quote(str(options.ledger)))} " if options.ledger is not None else ""
    say(f"send again with: {program_name()} {at}notarize --pending")


def waited(pending: Pending) -> str:
    """Return how long something has waited, as people write it."""
    seconds = _waited_s(pending)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def _waited_s(pending: Pending) -> int:
    moment, since = (datetime.fromisoformat(text) for text in (now(), pending.since))
    return max(int((moment - since).total_seconds()), 0)


def _value(pending: Pending) -> dict[str, Any]:
    value: dict[str, Any] = {
        "notary": pending.url, "since": pending.since, "waiting_s": _waited_s(pending), "attempts": pending.attempts,
        "last": pending.last, "full": pending.full, "publish": pending.publish,
    }  # fmt: skip
    return value | ({"head": True} if pending.receipt is None else {"receipt": pending.receipt})
