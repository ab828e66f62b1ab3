"""Saved verifications of this user: where one stopped, the last good one, and that of the index, by origin.

    <state>/verified/<sha256 of the origin>.stopped
    <state>/verified/<sha256 of the origin>.good
    <state>/verified/<sha256 of the origin>.index      what the index of a ledger goes on from

They are this user's own memory, mode 0600, and never lie in a ledger's folder. One that somebody else may have written, that is
malformed or that does not fit the journal is not used, and that is said.

Source: docs/explanation/at-size.md.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from ledger.errors import LedgerError
from ledger.storage.durable import temporary_beside
from ledger.storage.places import Places
from verify.chain import Segment
from verify.state import Binding, LedgerState, unlike

__all__ = ["Kind", "drop", "load", "save"]

Kind: TypeAlias = Literal["stopped", "good", "index"]


def load(
    places: Places,
    origin: str,
    kind: Kind,
    *,
    bound: Binding,
    files: Sequence[tuple[int, int]],
    read: Callable[[int, int], Segment],
) -> LedgerState | str:
    """Return the saved state of a ledger, or why there is none that fits.

    Args:
        places: the user's folders.
        origin: the ledger.
        kind: which state.
        bound: what it must be good for.
        files: first index and size in bytes of each segment of the journal now.
        read: gives one of these segments.
    """
    from verify.resume import parse_state  # noqa: PLC0415  its import would cost every command

    try:
        with _path(places, origin, kind).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o022:
                return "somebody else may have written it"
            state, good_for = parse_state(file)
    except FileNotFoundError:
        return "none is saved"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except LedgerError as error:
        return str(error)
    if state.good != (kind == "good"):
        return "it is of another kind"
    if good_for.version != bound.version:
        return f"it is of version {good_for.version}"
    if good_for.trust != bound.trust:
        return "it was made under another trust"
    if good_for.asked != bound.asked:
        return "other options were asked for"
    now = list(files[: len(state.files)])
    *before, (last, _) = state.files
    if now[:-1] != before or len(now) != len(state.files) or now[-1][0] != last:
        return "the journal has other segments than it had"
    return unlike(state, read(*now[-1])) or state


def save(places: Places, origin: str, kind: Kind, state: LedgerState, bound: Binding) -> str | None:
    """Save a state; return what went wrong, None where nothing did."""
    from verify.resume import print_state  # noqa: PLC0415  its import would cost every command

    path = _path(places, origin, kind)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = temporary_beside(path)
        try:
            with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
                file.writelines(print_state(state, bound))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    except LedgerError as error:
        return str(error)
    return None


def drop(places: Places, origin: str, kind: Kind) -> None:
    """Remove a saved state, if there is one."""
    with suppress(OSError):
        _path(places, origin, kind).unlink()


def _path(places: Places, origin: str, kind: Kind) -> Path:
    return places.state / "verified" / f"{places.memory_file(origin).name}.{kind}"
