"""Checks of vectors: the function of ours that answers each.

Each reader's value is printed again: a reader and its printer are inverses.

Source: vectors/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from ledger import canonical
from ledger.checkpoint import Head, open_head, parse_checkpoint, print_checkpoint
from ledger.digest import digest, parse_digest, print_digest
from ledger.entry import parse_entry, print_entry
from ledger.envelope import parse_envelope, print_envelope, verify_seal
from ledger.errors import LedgerError
from ledger.facts import facts_of, read_facts
from ledger.keys import (
    next_digest,
    parse_base64,
    parse_key_id,
    print_base64,
    print_key_id,
    refuse_weak_point,
    verify_signature,
)
from ledger.line import parse_entry_line, parse_head_line, print_entry_line, print_head_line
from ledger.note import check_note, parse_note, parse_vkey, print_note, print_vkey
from ledger.receipt import act_digest, parse_receipt, print_receipt, receipt_id
from verify.proof import RootFold, leaf_hash, verify_consistency, verify_inclusion
from verify.trust import parse_trust
from verify.vectorevidence import answer_file, answer_ledger, answer_published
from verify.vectorinputs import (
    ActInput,
    Answer,
    Bytes,
    Check,
    ConsistencyInput,
    Document,
    HeadInput,
    InclusionInput,
    Leaves,
    NoteInput,
    Read,
    SignatureInput,
    Text,
    TrustInput,
    accepted,
)

__all__ = ["CHECKS"]


# Checks. Each reader's value is printed again: a reader and its printer are inverses.


def _canonical(given: Document, _read: Read) -> Answer:
    value = canonical.decode(given.data, max_depth=given.max_depth)
    return _same(canonical.encode(value, max_depth=given.max_depth), given.data)


def _canonical_write(given: Text, _read: Read) -> Answer:
    return accepted(canonical.encode(orjson.loads(given.text)).decode("utf-8"))


def _digest(given: Text, _read: Read) -> Answer:
    return _same(print_digest(parse_digest(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _digest_of(given: Bytes, _read: Read) -> Answer:
    return accepted(digest(given.data))


def _receipt(given: Bytes, _read: Read) -> Answer:
    # The verifier's fast reader and the whole one accept the same receipts.
    facts = read_facts(given.data)
    try:
        receipt = parse_receipt(given.data)
    except LedgerError:
        return Answer(1, ("vectors.readers_differ",))
    if facts._replace(receipt=None) != facts_of(receipt)._replace(receipt=None):
        return Answer(1, ("vectors.readers_differ",))
    again = _same(print_receipt(receipt), given.data)
    return again if again.exit else accepted({"id": receipt_id(given.data), "kind": receipt.kind})


def _act_digest(given: ActInput, _read: Read) -> Answer:
    return accepted(
        act_digest(given.act, ledger=given.ledger, run=given.run, actor=given.actor, effect_key=given.effect_key)
    )


def _envelope(given: Bytes, _read: Read) -> Answer:
    envelope = parse_envelope(given.data)
    again = _same(print_envelope(envelope), given.data)
    if again.exit:
        return again
    return accepted(
        {
            "receipt": envelope.receipt_id,
            "payload_type": envelope.payload_type,
            "seal": None if envelope.seal is None else envelope.seal.key,
        }
    )


def _seal(given: Bytes, _read: Read) -> Answer:
    verify_seal(parse_envelope(given.data))
    return accepted()


def _key(given: Text, _read: Read) -> Answer:
    return _same(print_key_id(parse_key_id(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _key_pin(given: Text, _read: Read) -> Answer:
    refuse_weak_point(given.text)
    return accepted()


def _key_next(given: Text, _read: Read) -> Answer:
    return accepted(next_digest(given.text))


def _base64(given: Text, _read: Read) -> Answer:
    data = parse_base64(given.text)
    again = _same(print_base64(data).encode("utf-8"), given.text.encode("utf-8"))
    return again if again.exit else accepted(data.hex())


def _signature(given: SignatureInput, _read: Read) -> Answer:
    verify_signature(given.key, bytes.fromhex(given.signature), bytes.fromhex(given.message))
    return accepted()


def _entry(given: Bytes, _read: Read) -> Answer:
    return _same(print_entry(parse_entry(given.data)), given.data)


def _entry_line(given: Bytes, _read: Read) -> Answer:
    entry, envelope = parse_entry_line(given.data)
    parse_entry(entry)
    parse_envelope(envelope)
    return _same(print_entry_line(entry, envelope), given.data)


def _head_line(given: Bytes, _read: Read) -> Answer:
    note, previous = parse_head_line(given.data)
    return _same(print_head_line(note, previous), given.data)


def _merkle_root(given: Leaves, _read: Read) -> Answer:
    fold = RootFold()
    for entry in given.entries:
        fold.append(leaf_hash(bytes.fromhex(entry)))
    return accepted(fold.root().hex())


def _inclusion(given: InclusionInput, _read: Read) -> Answer:
    verify_inclusion(
        leaf=leaf_hash(bytes.fromhex(given.entry)),
        index=given.index,
        size=given.size,
        proof=[bytes.fromhex(found) for found in given.proof],
        root=bytes.fromhex(given.root),
    )
    return accepted()


def _consistency(given: ConsistencyInput, _read: Read) -> Answer:
    verify_consistency(
        old_size=given.old_size,
        old_root=bytes.fromhex(given.old_root),
        new_size=given.new_size,
        new_root=bytes.fromhex(given.new_root),
        proof=[bytes.fromhex(found) for found in given.proof],
    )
    return accepted()


def _note(given: NoteInput, _read: Read) -> Answer:
    note = parse_note(given.data)
    again = _same(print_note(note), given.data)
    if again.exit:
        return again
    verified = check_note(note, [parse_vkey(text) for text in given.keys])
    return accepted([f"{found.name}+{found.key_id.hex()}" for found in verified])


def _note_key(given: Text, _read: Read) -> Answer:
    return _same(print_vkey(parse_vkey(given.text)).encode("utf-8"), given.text.encode("utf-8"))


def _checkpoint(given: Text, _read: Read) -> Answer:
    head = parse_checkpoint(given.text)
    again = _same(print_checkpoint(head).encode("utf-8"), given.text.encode("utf-8"))
    return again if again.exit else accepted(_head_value(head))


def _head(given: HeadInput, _read: Read) -> Answer:
    return accepted(_head_value(open_head(given.data, origin=given.origin, log_key=given.log_key)))


def _trust(given: TrustInput, _read: Read) -> Answer:
    parse_trust(given.data, source="vector", allow_test_keys=given.allow_test_keys)
    return accepted()


def _head_value(head: Head) -> dict[str, Any]:
    return {"origin": head.origin, "size": head.size, "root": head.root.hex()}


def _same(printed: bytes, given: bytes) -> Answer:
    """Return acceptance if a reader's value prints as what was read, else the fault of our own that it is."""
    return accepted() if printed == given else Answer(1, ("vectors.not_inverse",))


CHECKS: Final[Mapping[str, Check]] = {
    "canonical-json": _canonical,
    "canonical-json.write": _canonical_write,
    "digest": _digest,
    "digest.of": _digest_of,
    "receipt": _receipt,
    "act-digest": _act_digest,
    "envelope": _envelope,
    "seal": _seal,
    "key": _key,
    "key.pin": _key_pin,
    "key.next": _key_next,
    "base64": _base64,
    "signature": _signature,
    "entry": _entry,
    "line.entry": _entry_line,
    "line.head": _head_line,
    "merkle.root": _merkle_root,
    "merkle.inclusion": _inclusion,
    "merkle.consistency": _consistency,
    "note": _note,
    "note.key": _note_key,
    "checkpoint": _checkpoint,
    "head": _head,
    "trust": _trust,
    "ledger": answer_ledger,
    "file": answer_file,
    "published": answer_published,
}
"""Check -> the function of ours that answers it."""
