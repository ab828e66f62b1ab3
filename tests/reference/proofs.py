"""Files that travel, made from built ledgers: a small ledger in every kind of file."""

from __future__ import annotations

from hashlib import sha256

from ledger.bundle import Bundle, CarriedArtifact, LastEntry, print_bundle, print_range
from ledger.consistency import ConsistencyFile, print_consistency
from ledger.dsse import print_dsse
from ledger.envelope import parse_envelope
from ledger.merkle import consistency_proof, inclusion_proof, leaf_hash, tree_of
from ledger.tlogproof import TlogProof, print_tlog_proof
from tests.reference.build import Builder

__all__ = ["carried", "consistency_of", "files", "member_of", "range_of", "tiny", "tlog_proof_of"]

CONTENT = b"what was said"


def member_of(data: bytes, name: str = "output", *, salted: bool = False) -> dict[str, object]:
    """Return the member of a receipt that refers to stored bytes."""
    return {
        "digest": "sha256:" + sha256(data).hexdigest(),
        "media_type": "text/plain",
        "name": name,
        "size_bytes": len(data) - (32 if salted else 0),
        "salted": salted,
    }


def carried(data: bytes) -> CarriedArtifact:
    return CarriedArtifact("sha256:" + sha256(data).hexdigest(), data)


def tiny() -> Builder:
    """Return a ledger of a header, a run of one call with an artifact, and a grant after it; three commits."""
    ledger = Builder()
    ledger.header()
    ledger.commit()
    ledger.opening()
    ledger.outcome(ledger.intent(), artifacts=[member_of(CONTENT)])
    ledger.run()
    ledger.commit()
    ledger.grant()
    ledger.commit()
    return ledger


def range_of(ledger: Builder, start: int, stop: int, *covers: int) -> Bundle:
    """Return the bundle of a range, with the receipts at `covers` beside it."""
    whole = ledger.bundle(ledger.rows[0].id)
    items = tuple(ledger.item(index) for index in range(start, stop))
    beside = tuple(ledger.item(index) for index in covers)
    return Bundle(print_range(start, stop), items, whole.keyring, whole.checkpoint, whole.last, beside)


def tlog_proof_of(ledger: Builder, index: int) -> bytes:
    return print_tlog_proof(TlogProof(index, ledger.item(index).proof, ledger.notes[-1], ledger.rows[index].entry))


def consistency_of(ledger: Builder, old: int, new: int = -1) -> ConsistencyFile:
    """Return the consistency file from one note of a ledger to another, by their places in `notes`."""
    sizes = [int(note.split(b"\n")[1]) for note in ledger.notes]
    size = sizes[new]
    read = tree_of([leaf_hash(row.entry) for row in ledger.rows])

    def item(index: int):
        found = ledger.item(index)
        return type(found)(found.entry, found.envelope, inclusion_proof(index, size, read))

    keyring = tuple(item(row.index) for row in ledger.rows[:size] if row.kind in {"header", "key"})
    last = item(size - 1)
    return ConsistencyFile(
        ledger.notes[old],
        ledger.notes[new],
        consistency_proof(sizes[old], size, read),
        keyring,
        LastEntry(last.entry, last.proof),
    )


def files(ledger: Builder) -> dict[str, bytes]:
    """Return every kind of file of a `tiny` ledger."""
    whole = ledger.bundle(ledger.rows[4].id)
    return {
        "bundle": print_bundle(Bundle(
            whole.subject, whole.items, whole.keyring, whole.checkpoint, whole.last, artifacts=(carried(CONTENT),)
        )),
        "range": print_bundle(range_of(ledger, 2, 3, 3, 4)),
        "tlog-proof": tlog_proof_of(ledger, 3),
        "dsse": print_dsse(parse_envelope(ledger.rows[4].envelope)),
        "consistency": print_consistency(consistency_of(ledger, 0)),
        "envelope": ledger.rows[4].envelope,
        "head": ledger.notes[-1],
    }  # fmt: skip
