r"""The body of `add-checkpoint` (C2SP tlog-witness v1).

    old <size>\n
    <base64 of 32 bytes>\n           at most 63
    \n
    <signed note>

Source: docs/spec/notary.md, clause 19.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledger.checkpoint import MAX_SIZE
from ledger.errors import LedgerError, clip
from ledger.keys import parse_base64
from ledger.note import NOTE_MAX_BYTES
from notary.errors import RefusedError
from notary.rules import Shown, read_shown

__all__ = ["SUBMISSION_MAX_BYTES", "Submission", "parse_submission"]

SUBMISSION_MAX_BYTES: Final = NOTE_MAX_BYTES + 4 * 1024
_BODY = re.compile(
    rb"old (?P<old>0|[1-9][0-9]{0,18})\n(?P<hashes>(?:[A-Za-z0-9+/]{43}=\n){0,63})\n(?P<checkpoint>.+)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Submission:
    """The size that the witness is thought to remember, the proof from there, and the checkpoint."""

    old: int
    proof: tuple[bytes, ...]
    shown: Shown


def parse_submission(data: bytes) -> Submission:
    """Return the submission whose bytes are `data`.

    Raises:
        RefusedError: 400.
    """
    match = _BODY.fullmatch(data) if len(data) <= SUBMISSION_MAX_BYTES else None
    if match is None or int(match["old"]) > MAX_SIZE:
        raise RefusedError(
            f"add-checkpoint: got {clip(data)}, expected old size, proof lines and a checkpoint",
            status=400,
            code="witness.malformed",
        )
    try:
        proof = tuple(parse_base64(line.decode("ascii")) for line in match["hashes"].split())
    except LedgerError as error:
        raise RefusedError(str(error), status=400, code=error.code) from error
    return Submission(int(match["old"]), proof, read_shown(match["checkpoint"], foreign=True))
