"""Evidence for one receipt, gathered from a ledger folder into a bundle.

Gathering judges nothing: what is here is copied as it lies, and `verify` says what it is worth.

Source: docs/spec/bundles.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.bundle import Bundle, CarriedArtifact, Item, LastEntry, print_range
from ledger.checkpoint import Head, head_of
from ledger.errors import LedgerError, NotFoundError, StorageError
from ledger.line import HEAD_PREFIX, parse_head_line
from ledger.members import Artifact
from ledger.merkle import HashReader, consistency_proof, inclusion_proof, root_of
from ledger.receipt import Erasure, Import, Opening, Receipt, children_of, parse_receipt, run_of
from ledger.storage.journal import Stored, read_segment, segments
from ledger.storage.reader import Reader
from ledger.storage.search import holding

if TYPE_CHECKING:
    # Most evidence is a bundle without artifacts, so what the rest needs is loaded where it is made.
    from ledger.consistency import ConsistencyFile
    from ledger.storage.artifacts import ArtifactStore
    from ledger.tlogproof import TlogProof

__all__ = ["gather", "gather_consistency", "gather_proof", "gather_range", "note_at"]

_MAX_RECEIPTS = 40_000
"""More than a lawful tree with its path holds: an unlawful one is cut there, and the verifier says so."""
_RUN_SALT = "run-salt"


def gather(reader: Reader, receipt: str, *, artifacts: ArtifactStore | None = None, erasures: bool = False) -> Bundle:
    """Return the bundle of a receipt: itself, its tree, the path to the nearest seal, its opening, the keyring chain.

    With `artifacts`, the stored bytes of those that its tree refers to as well, and the erasures of those that are not there. With
    `erasures`, no bytes, and the erasures of all that its tree refers to.

    Raises:
        NotFoundError: the receipt is not in the ledger.
        DamagedError: the journal does not lead to its own head, so nothing can be proved from it.
    """
    note = reader.note()
    head = head_of(note)
    found: dict[str, Stored] = {}
    subject = reader.get(receipt)
    _add_tree(reader, subject, found)
    carried: tuple[CarriedArtifact, ...] = ()
    if artifacts is not None or erasures:
        carried, erased = _carry(reader, artifacts, found.values(), head)
        found.update((each.entry.receipt, each) for each in erased)
    above: Stored | None = subject
    while above is not None and above.envelope.seal is None and len(found) < _MAX_RECEIPTS:
        above = reader.parent_of(above.entry.receipt, after=above.entry.index)
        # Another process may have appended it after the head was read.
        if above is not None and above.entry.index >= head.size:
            above = None
        if above is not None:
            found.setdefault(above.entry.receipt, above)
    _add_opening(reader, subject, found)
    read = cache(reader.hash_reader(head))
    last = reader.at(head.size - 1)
    items = sorted(found.values(), key=lambda stored: stored.entry.index)
    return Bundle(
        receipt,
        tuple(_item(stored, head.size, read) for stored in items),
        tuple(_item(stored, head.size, read) for stored in _keyring_chain(reader, last)),
        note,
        last=_last(last, read),
        artifacts=carried,
    )


def gather_range(
    reader: Reader, start: int, stop: int, *, artifacts: ArtifactStore | None = None, erasures: bool = False
) -> Bundle:
    """Return the bundle of the entries from index `start` up to, not including, `stop`.

    It carries the receipts that cover the unsealed ones among them as well, up to the nearest seal.

    Raises:
        NotFoundError: the range is empty, reaches beyond the head, or holds more than 40,000 entries.
        DamagedError: the journal does not lead to its own head.
    """
    note = reader.note()
    head = head_of(note)
    if not 0 <= start < stop <= head.size or stop - start > _MAX_RECEIPTS:
        raise NotFoundError(
            f"range: got {start}:{stop}, expected at most {_MAX_RECEIPTS} entries below {head.size}",
            code="range.absent",
        )
    chosen = list(reader.entries(start, stop))
    beside = {each.entry.index: each for each in _covers(reader, chosen, stop, head.size)}
    carried: tuple[CarriedArtifact, ...] = ()
    if artifacts is not None or erasures:
        carried, erased = _carry(reader, artifacts, chosen, head)
        beside.update((each.entry.index, each) for each in erased if not start <= each.entry.index < stop)
    read = cache(reader.hash_reader(head))
    last = reader.at(head.size - 1)
    return Bundle(
        print_range(start, stop),
        tuple(_item(stored, head.size, read) for stored in chosen),
        tuple(_item(stored, head.size, read) for stored in _keyring_chain(reader, last)),
        note,
        last=_last(last, read),
        covers=tuple(_item(beside[index], head.size, read) for index in sorted(beside)),
        artifacts=carried,
    )


def gather_proof(reader: Reader, receipt: str) -> TlogProof:
    """Return the proof that a receipt's entry stands under the newest head.

    Raises:
        NotFoundError: the receipt is not in the ledger.
        DamagedError: the journal does not lead to its own head.
    """
    from ledger.tlogproof import TlogProof  # noqa: PLC0415

    note = reader.note()
    head = head_of(note)
    stored = reader.get(receipt)
    proof = inclusion_proof(stored.entry.index, head.size, reader.hash_reader(head))
    return TlogProof(stored.entry.index, proof, note, stored.entry_bytes)


def gather_consistency(reader: Reader, old: bytes, new: bytes) -> ConsistencyFile:
    """Return the proof that the head of the note `new` extends that of `old`; both are heads of this ledger.

    Raises:
        LedgerError: `head.unreconciled` for a head that this ledger does not hold: another origin, size or root.
        DamagedError: the journal does not lead to its own head.
    """
    from ledger.consistency import ConsistencyFile  # noqa: PLC0415

    newest = reader.head()
    read = reader.hash_reader(newest)
    heads = head_of(old), head_of(new)
    for head in heads:
        if head.origin != newest.origin or head.size > newest.size or root_of(head.size, read) != head.root:
            raise LedgerError(
                f"head: {head.origin} at size {head.size} is no head of this ledger, so no proof joins it",
                code="head.unreconciled",
            )
    older, newer = heads
    if not 1 <= older.size <= newer.size:
        raise LedgerError(
            f"heads: got sizes {older.size} and {newer.size}, expected the older one first", code="usage.heads"
        )
    last = reader.at(newer.size - 1)
    keyring = tuple(_item(stored, newer.size, read) for stored in _keyring_chain(reader, last))
    return ConsistencyFile(old, new, consistency_proof(older.size, newer.size, read), keyring, _last(last, read))


def note_at(folder: Path, size: int) -> bytes:
    """Return the signed note of the head that a commit of the ledger in `folder` ended with, by its size.

    Raises:
        NotFoundError: no commit ended there.
    """
    known = segments(folder)
    position = bisect_right(known, max(size - 1, 0)) - 1
    needle = f"\\n{size}\\n".encode("ascii")
    for line in read_segment(folder, known[position]).split(b"\n") if position >= 0 else ():
        if line.startswith(HEAD_PREFIX) and needle in line:
            note = parse_head_line(line)[0]
            if head_of(note).size == size:
                return note
    raise NotFoundError(
        f"head: no commit of this ledger ended at size {size}",
        code="head.absent",
        hint="give a note that you kept, or a size at which a commit ended",
    )


def _item(stored: Stored, size: int, read: HashReader) -> Item:
    return Item(stored.entry_bytes, stored.envelope_bytes, inclusion_proof(stored.entry.index, size, read))


def _last(last: Stored, read: HashReader) -> LastEntry:
    index = last.entry.index
    return LastEntry(last.entry_bytes, inclusion_proof(index, index + 1, read))


def _parsed(stored: Stored) -> Receipt | None:
    """Return the receipt of an entry, None where this version cannot read it."""
    try:
        return parse_receipt(stored.envelope.payload)
    except LedgerError:
        return None


def _covers(reader: Reader, chosen: list[Stored], stop: int, size: int) -> list[Stored]:
    """Return the receipts from `stop` on that commit unsealed ones of a range, each path up to its nearest seal."""
    inside: set[str] = set()
    for stored in chosen:
        inside.update(() if (receipt := _parsed(stored)) is None else children_of(receipt))
    waiting = {each.entry.receipt for each in chosen if each.envelope.seal is None} - inside
    found: list[Stored] = []
    for stored in reader.entries(stop, size) if waiting else ():
        if not waiting or len(found) >= _MAX_RECEIPTS // 2:
            break
        if b'"children":[' not in stored.envelope.payload or (receipt := _parsed(stored)) is None:
            continue
        held = waiting.intersection(children_of(receipt))
        if held:
            found.append(stored)
            waiting -= held
            if stored.envelope.seal is None:
                waiting.add(stored.entry.receipt)
    return found


def _carry(
    reader: Reader, store: ArtifactStore | None, chosen: Iterable[Stored], head: Head
) -> tuple[tuple[CarriedArtifact, ...], list[Stored]]:
    """Return the artifacts that receipts refer to, and the erasures of those that are not there; of all, without a store.

    Bytes that cannot be read are left out as those that are not there: the verifier says what is missing.
    """
    wanted: set[str] = set()
    for stored in chosen:
        receipt = _parsed(stored)
        references: tuple[Artifact, ...] = getattr(receipt, "artifacts", ())
        if isinstance(receipt, Import):
            references = (*references, receipt.document)
        # The run salt is a key: whoever has it can confirm guesses of artifacts that are not carried.
        wanted.update(
            each.digest for each in references if not (isinstance(receipt, Opening) and each.name == _RUN_SALT)
        )
    carried = []
    missing: set[str] = set()
    for digest in sorted(wanted):
        if store is None:
            missing.add(digest)
            continue
        try:
            carried.append(CarriedArtifact(digest, store.get(digest)))
        except (NotFoundError, StorageError):
            missing.add(digest)
    erasures = []
    kind = b'"kind":"erasure"'
    for stored in holding(reader.folder, kind, stop=head.size, newest_first=True) if missing else ():
        receipt = _parsed(stored)
        if isinstance(receipt, Erasure) and receipt.digest in missing:
            erasures.append(stored)
            missing.discard(receipt.digest)
    return tuple(carried), erasures


def _add_tree(reader: Reader, top: Stored, found: dict[str, Stored]) -> None:
    """Add a receipt and all that it commits, as far as the ledger holds it."""
    waiting = [top]
    while waiting and len(found) < _MAX_RECEIPTS:
        stored = waiting.pop()
        if stored.entry.receipt in found:
            continue
        found[stored.entry.receipt] = stored
        try:
            children = children_of(parse_receipt(stored.envelope.payload))
        except LedgerError:
            continue
        for child in children:
            try:
                waiting.append(reader.get(child))
            except NotFoundError:
                continue


def _add_opening(reader: Reader, subject: Stored, found: dict[str, Stored]) -> None:
    try:
        run = run_of(parse_receipt(subject.envelope.payload), subject.entry.receipt)
        if run is not None and run not in found:
            found[run] = reader.get(run)
    except LedgerError:
        return


def _keyring_chain(reader: Reader, last: Stored) -> list[Stored]:
    """Return the header and every key entry up to the last entry, oldest first: each entry names the one before."""
    chain: list[Stored] = []
    index = last.entry.index if _is_key(last) else last.entry.keyring
    while True:
        stored = reader.at(index)
        chain.append(stored)
        if index == 0 or stored.entry.keyring >= index:
            return chain[::-1]
        index = stored.entry.keyring


def _is_key(stored: Stored) -> bool:
    try:
        return parse_receipt(stored.envelope.payload).kind in ("header", "key")
    except LedgerError:
        return False
