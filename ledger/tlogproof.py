"""Transparency log proofs (C2SP): one entry, its place, its inclusion proof and the checkpoint that it ends in.

    c2sp.org/tlog-proof@v1
    extra <base64>                       absent where there is none; ours is the entry's bytes
    index <decimal>
    <base64 of 32 bytes>                 the leaf's sibling first; none for a log of one entry
                                         an empty line
    <signed note>                        to the end, as it is

`print_tlog_proof(parse_tlog_proof(b)) == b` for every accepted `b`.

Source: docs/spec/bundles.md, C2SP tlog-proof v1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ledger.errors import FormatError, clip
from ledger.keys import parse_base64, print_base64
from ledger.note import NOTE_MAX_BYTES

__all__ = ["TLOG_PROOF_LINE", "TlogProof", "parse_tlog_proof", "print_tlog_proof"]

TLOG_PROOF_LINE: Final = b"c2sp.org/tlog-proof@v1\n"

_MAX_EXTRA_BYTES: Final = 16 * 1024
_MAX_BYTES: Final = 4 * _MAX_EXTRA_BYTES + NOTE_MAX_BYTES
_PROOF = re.compile(
    rb"c2sp\.org/tlog-proof@v1\n"
    rb"(?:extra (?P<extra>[A-Za-z0-9+/]+={0,2})\n)?"
    rb"index (?P<index>0|[1-9][0-9]{0,18})\n"
    rb"(?P<hashes>(?:[A-Za-z0-9+/]{43}=\n){0,64})"
    rb"\n"
    rb"(?P<checkpoint>[^\n].*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class TlogProof:
    """Index, inclusion proof (hashes of 32 bytes, the leaf's sibling first), signed note, and extra bytes, if any.

    Nothing authenticates `extra`: it is to be hashed, and the proof says whether that leads to the root.
    """

    index: int
    proof: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes | None = None


def parse_tlog_proof(data: bytes) -> TlogProof:
    """Return the proof whose bytes are `data`; nothing in it is verified, and the note is not parsed.

    Raises:
        FormatError: `tlogproof.malformed`, or `base64.malformed`.
    """
    match = _PROOF.fullmatch(data) if len(data) <= _MAX_BYTES else None
    if match is None:
        raise FormatError(
            f"tlog-proof: got {clip(data)}, expected index, hashes and a signed note", code="tlogproof.malformed"
        )
    extra = match["extra"]
    return TlogProof(
        int(match["index"]),
        tuple(parse_base64(line.decode("ascii")) for line in match["hashes"].split()),
        match["checkpoint"],
        None if extra is None else parse_base64(extra.decode("ascii")),
    )


def print_tlog_proof(proof: TlogProof) -> bytes:
    """Return the bytes of a proof; the inverse of `parse_tlog_proof`.

    Raises:
        FormatError: `tlogproof.malformed` for what the format cannot hold.
    """
    extra = "" if proof.extra is None else f"extra {print_base64(proof.extra)}\n"
    hashes = "".join(f"{print_base64(found)}\n" for found in proof.proof)
    data = TLOG_PROOF_LINE + f"{extra}index {proof.index}\n{hashes}\n".encode("ascii") + proof.checkpoint
    if parse_tlog_proof(data) != proof:
        raise FormatError(f"tlog-proof: got {clip(proof)}, which the format cannot hold", code="tlogproof.malformed")
    return data
