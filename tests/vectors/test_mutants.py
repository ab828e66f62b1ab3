"""Every mutant of a right verifier is killed by a vector: a small wrong function takes the place of a right one in the runner."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from nacl.exceptions import BadSignatureError
from nacl.signing import VerifyKey

from ledger import canonical
from ledger.checkpoint import parse_checkpoint
from ledger.envelope import parse_envelope
from ledger.errors import LedgerError, SignatureError
from ledger.note import check_note, parse_note, parse_vkey
from tests.vectors.plain import Plain
from vectors import generate
from verify.errors import ProofError
from verify.vectors import CHECKS, Answer, accepted, parse_vectors, refused, run_case

VECTORS = Path(generate.__file__).parent
CASES = [case for path in sorted(VECTORS.glob("*.json")) for case in parse_vectors(path.read_bytes()).cases]


def read(name):
    return (VECTORS / name).read_bytes()


def killers(check, mutant, *only):
    """Ids of the cases, all or those named, that a mutant of one check answers wrongly; a crash is a wrong answer."""

    def answer(given, reader):
        try:
            return mutant(given, reader)
        except LedgerError:
            raise
        except Exception as error:  # noqa: BLE001  whatever a mutant does wrong
            return Answer(2, (repr(error),))

    cases = [case for case in CASES if case.check == check and (not only or case.id in only)]
    assert cases
    checks = {**CHECKS, check: answer}
    return {case.id for case in cases if not run_case(case, read=read, checks=checks).passed}


def refuse(code):
    return Answer(1, (code,))


# Canonical JSON: mutants of a decoder with the standard library's parser.


def decode(data, *, pairs=None, order=None, strict_numbers=True, names=True, depth=True, spaces=True):
    """A right decoder in a few lines, each rule of which can be left out."""

    def unique(found):
        if len({name for name, _ in found}) != len(found):
            raise ValueError("canonical.duplicate_name")
        if any("\ud800" <= char <= "\udfff" for name, _ in found for char in name):
            raise ValueError("canonical.not_json")
        if names and any(max(name, default="") > "\ud7ff" for name, _ in found):
            raise ValueError("canonical.name_range")
        return dict(found)

    def no_fraction(text):
        raise ValueError("canonical.fraction")

    def integer(text):
        if text == "-0":
            raise ValueError("canonical.not_canonical")
        if len(text) > 17 or abs(int(text)) >= 2**53:
            raise ValueError("canonical.integer_range")
        return int(text)

    def no_constant(text):
        raise ValueError("canonical.not_json")

    if depth and len(re.findall(rb"[\[{]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", data))) > 64:
        level = deepest = 0
        for bracket in re.findall(rb"[\[\]{}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", data)):
            level += 1 if bracket in b"[{" else -1
            deepest = max(deepest, level)
        if deepest > 64:
            return refuse("canonical.too_deep")
    hooks = {"object_pairs_hook": pairs or unique}
    if strict_numbers:
        hooks |= {"parse_float": no_fraction, "parse_int": integer, "parse_constant": no_constant}
    try:
        value = json.JSONDecoder(**hooks).decode(data.decode())
    except ValueError as error:
        code = str(error)
        return refuse(code if code.startswith("canonical.") else "canonical.not_json")
    if not isinstance(value, dict):
        return refuse("canonical.top_level")
    again = json.dumps(
        order(value) if order else value, ensure_ascii=False, sort_keys=order is None, separators=(",", ":")
    )
    try:
        same = again.encode() == data
    except UnicodeEncodeError:
        return refuse("canonical.not_json")
    if not same and not (not spaces and again.encode() == re.sub(rb"\s", b"", data)):
        return refuse("canonical.not_canonical")
    return accepted()


def sorted_by(key):
    def order(value):
        if isinstance(value, dict):
            return {name: order(value[name]) for name in sorted(value, key=key)}
        return [order(item) for item in value] if isinstance(value, list) else value

    return order


def unsorted(value):
    return value


def test_the_decoder_that_the_mutants_change_is_right():
    assert killers("canonical-json", lambda given, _: decode(given.data)) == set()


@pytest.mark.parametrize(
    ("says", "change", "killer"),
    [
        ("order is not looked at", {"order": unsorted}, "order-two-swapped"),
        ("names are sorted without regard to case", {"order": sorted_by(str.lower)}, "order-case-folded"),
        (
            "names are sorted by length first",
            {"order": sorted_by(lambda name: (len(name), name))},
            "order-length-first",
        ),
        ("names are sorted by their escaped text", {"order": sorted_by(json.dumps)}, "order-escaped-text"),
        ("the last of two equal names counts", {"pairs": dict}, "twice"),
        ("numbers are what the parser takes", {"strict_numbers": False}, "fraction-half"),
        ("names may hold anything", {"names": False}, "range-first-above"),
        ("depth is not looked at", {"depth": False}, "depth-65"),
        ("white space is not looked at", {"spaces": False}, "space-after-colon"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_a_lax_decoder_is_killed(says, change, killer):
    assert killers("canonical-json", lambda given, _: decode(given.data, **change), killer) == {killer}


def test_a_decoder_that_only_makes_the_round_trip_is_killed():
    def mutant(given, _):
        try:
            value = json.JSONDecoder().decode(given.data.decode())
            text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        except (ValueError, RecursionError):
            return refuse("canonical.not_json")
        return accepted() if text.encode("utf-8", "surrogatepass") == given.data else refuse("canonical.not_canonical")

    found = killers("canonical-json", mutant)
    flagged = {case.id for case in CASES if case.check == "canonical-json" and "round-trip-only" in case.flags}
    assert flagged <= found
    assert {"range-first-above", "integer-max-plus-1", "top-array"} <= found


def test_a_decoder_that_takes_byte_order_marks_is_killed():
    def mutant(given, _):
        canonical.decode(given.data.removeprefix(b"\xef\xbb\xbf"), max_depth=given.max_depth)
        return accepted()

    assert killers("canonical-json", mutant) >= {"bom"}


# Merkle: mutants of the recursive definitions.


def root_of(leaves, *, node=b"\x01", double=False):
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    if double:
        level = list(leaves)
        while len(level) > 1:
            level += level[-1:] if len(level) % 2 else []
            level = [sha256(node + level[at] + level[at + 1]).digest() for at in range(0, len(level), 2)]
        return level[0]
    k = 1 << (len(leaves) - 1).bit_length() - 1
    return sha256(node + root_of(leaves[:k], node=node) + root_of(leaves[k:], node=node)).digest()


@pytest.mark.parametrize(
    ("leaf", "options"),
    [
        (b"", {}),
        (b"\x00", {"node": b""}),
        (b"", {"node": b""}),
        (b"\x01", {"node": b"\x00"}),
        (b"\x00", {"double": True}),
    ],
    ids=["leaf prefix", "node prefix", "no prefixes", "prefixes swapped", "last leaf doubled"],
)
def test_a_root_with_wrong_prefixes_or_doubled_leaves_is_killed(leaf, options):
    def mutant(given, _):
        leaves = [sha256(leaf + bytes.fromhex(entry)).digest() for entry in given.entries]
        return accepted(root_of(leaves, **options).hex())

    assert killers("merkle.root", mutant)


def test_the_root_that_the_mutants_change_is_right():
    def right(given, _):
        return accepted(root_of([sha256(b"\x00" + bytes.fromhex(entry)).digest() for entry in given.entries]).hex())

    assert killers("merkle.root", right) == set()


def walk(given, *, leaf=b"\x00", node=b"\x01", length=True, ranges=True, sizes=True):
    """The inclusion check of the page, each part of which can be left out."""
    number, last = given.index, given.size - 1
    hashes = [bytes.fromhex(found) for found in (*given.proof, given.root)]
    if ranges and not 0 <= number <= last:
        raise ProofError("range")
    if sizes and any(len(found) != 32 for found in hashes):
        raise ProofError("size of a hash")
    inner = (number ^ last).bit_length()
    if length and len(given.proof) != inner + (number >> inner).bit_count():
        raise ProofError("length")
    running = sha256(leaf + bytes.fromhex(given.entry)).digest()
    for sibling in hashes[:-1]:
        if number & 1 or number == last:
            running = sha256(node + sibling + running).digest()
            while number and not number & 1:
                number, last = number >> 1, last >> 1
        else:
            running = sha256(node + running + sibling).digest()
        number, last = number >> 1, last >> 1
    if running != hashes[-1]:
        raise ProofError("root", code="proof.inclusion")
    return accepted()


def test_the_proof_check_that_the_mutants_change_is_right():
    assert killers("merkle.inclusion", lambda given, _: walk(given)) == set()


@pytest.mark.parametrize(
    "change",
    [{"leaf": b""}, {"node": b""}, {"leaf": b"", "node": b""}, {"length": False}, {"ranges": False}, {"sizes": False}],
    ids=["leaf prefix", "node prefix", "no prefixes", "length of a proof", "range of an index", "length of a hash"],
)
def test_a_lax_inclusion_check_is_killed(change):
    assert killers("merkle.inclusion", lambda given, _: walk(given, **change))


def test_a_consistency_check_that_forgets_something_is_killed():
    right = CHECKS["merkle.consistency"]

    def from_nothing(given, reader):
        return accepted() if given.old_size == 0 else right(given, reader)

    def same_size(given, reader):
        return accepted() if given.old_size == given.new_size else right(given, reader)

    def empty_proof(given, reader):
        return accepted() if not given.proof and given.old_root == given.new_root else right(given, reader)

    def old_root_not_compared(given, reader):
        try:
            return right(given, reader)
        except ProofError as error:
            return accepted() if error.code == "proof.consistency" else refused(error)

    assert killers("merkle.consistency", from_nothing) == {"consistency-from-0"}
    assert "consistency-same-size" in killers("merkle.consistency", same_size)
    assert "consistency-none-same-root" in killers("merkle.consistency", empty_proof)
    assert "consistency-rewritten" in killers("merkle.consistency", old_root_not_compared)


# Notes and heads.


def note_answer(given, choose):
    note = parse_note(given.data)
    keys = [parse_vkey(text) for text in given.keys]
    found = choose(note, keys)
    if not found:
        return refuse("note.unsigned")
    return accepted([f"{line.name}+{line.key_id.hex()}" for line in found])


def holds(note, line, key):
    try:
        VerifyKey(key.public).verify(note.text.encode(), line.signature)
    except (BadSignatureError, ValueError) as error:
        raise SignatureError("bad", code="note.bad_signature") from error


def test_a_reader_that_takes_the_first_signature_of_a_name_is_killed():
    def choose(note, keys):
        found = []
        for key in keys:
            first = next((line for line in note.signatures if line.name == key.name), None)
            if first is not None:
                holds(note, first, key)
                found.append(first)
        return found

    assert "note-same-name-first" in killers("note", lambda given, _: note_answer(given, choose))


def test_a_reader_that_takes_the_first_line_is_killed():
    def choose(note, keys):
        holds(note, note.signatures[0], keys[0])
        return note.signatures[:1]

    assert "note-stranger-first" in killers("note", lambda given, _: note_answer(given, choose))


def test_a_reader_that_ignores_bad_lines_of_known_keys_is_killed():
    def mutant(given, _):
        note = parse_note(given.data)
        keys = [parse_vkey(text) for text in given.keys]
        good = []
        for line in note.signatures:
            try:
                good += check_note(type(note)(note.text, (line,)), keys)
            except SignatureError:
                continue
        return (
            accepted([f"{line.name}+{line.key_id.hex()}" for line in dict.fromkeys(good)])
            if good
            else refuse("note.unsigned")
        )

    assert {"note-good-bad", "note-bad-good"} <= killers("note", mutant)


def test_a_reader_that_compares_key_ids_only_is_killed():
    def choose(note, keys):
        return [line for line in note.signatures for key in keys if line.key_id == key.key_id]

    assert "note-name" in killers("note", lambda given, _: note_answer(given, choose))


def test_a_reader_of_checkpoints_with_a_lax_size_is_killed():
    def mutant(given, _):
        origin, size, root, *more = given.text.split("\n")
        if more != [""]:
            parse_checkpoint(given.text)
        return accepted({"origin": origin, "size": int(size), "root": b64decode(root).hex()})

    assert {"size-leading-zero", "size-plus", "size-underscore", "size-arabic"} <= killers("checkpoint", mutant)


def test_a_reader_of_heads_that_does_not_compare_the_origin_is_killed():
    def mutant(given, _):
        note = parse_note(given.data)
        check_note(note, (parse_vkey(_vkey(given)),))
        head = parse_checkpoint(note.text)
        return accepted({"origin": head.origin, "size": head.size, "root": head.root.hex()})

    assert killers("head", mutant) == {"head-origin-in-text", "head-empty-root"}


def _vkey(given):
    raw = b"\x01" + bytes.fromhex(given.log_key.partition(":")[2])
    key_id = sha256(given.origin.encode() + b"\n" + raw).hexdigest()[:8]
    return f"{given.origin}+{key_id}+{b64encode(raw).decode()}"


# Seals.


def test_a_verifier_that_skips_seals_is_killed():
    assert "seal-payload-bit" in killers("seal", lambda given, _: accepted())


def test_a_verifier_of_the_bare_payload_is_killed():
    def mutant(given, _):
        envelope = parse_envelope(given.data)
        if envelope.seal is None:
            return refuse("seal.absent")
        try:
            VerifyKey(bytes.fromhex(envelope.seal.key[8:])).verify(envelope.payload, envelope.seal.signature)
        except (BadSignatureError, ValueError):
            return refuse("signature.invalid")
        return accepted()

    assert {"seal-holds", "seal-bare"} <= killers("seal", mutant)


def test_a_reader_that_takes_the_first_end_of_a_payload_is_killed():
    def mutant(given, reader):
        end = given.data.find(b',"payload_type":"')
        return (
            refuse("envelope.malformed")
            if end != given.data.rfind(b',"payload_type":"')
            else CHECKS["envelope"](given, reader)
        )

    assert killers("envelope", mutant) == {"nested"}


# Whole ledgers: the plain verifier with one rule left out.

# Each rule of the plain verifier, and a ledger that it answers wrongly without the rule.
RULES = {
    "after-close": "after-close",
    "borrowed": "borrowed",
    "calendar": "entry-time",
    "canonical": "receipt-twice",
    "child-missing": "missing",
    "continues": "root",
    "depth": "deep-65",
    "early-key": "issuer-new-key-before",
    "empty-commit": "empty-commit",
    "envelope": "two-seals",
    "envelope-digest": "entry-envelope",
    "extension": "head-extension",
    "first-entry": "no-header",
    "first-signature": "head-stranger-first",
    "foreign-ledger": "receipt-foreign",
    "forked": "forked-longer",
    "head-form": "head-no-note",
    "head-link": "previous-head",
    "head-missing": "no-head",
    "head-origin": "head-origin",
    "head-root": "head-root",
    "head-signature": "head-signature",
    "head-size": "head-size",
    "head-unsigned": "head-other-key",
    "header-pin": "trust-header-mismatch",
    "index": "removed",
    "issuer-key": "borrowed-key",
    "issuer-name": "borrowed-name",
    "issuer-pin": "trust-issuer-name",
    "key-commitment": "other-key",
    "key-from-index": "revoke-ahead",
    "key-issuer-name": "other-name",
    "key-retires": "retires-another",
    "key-returns": "returns",
    "key-sealed-by-next": "old-key-seals",
    "keyring": "keyring-behind",
    "keyring-followed": "issuer",
    "layout": "entry-space",
    "leaf-prefix": "good",
    "left-out": "uncommitted",
    "lines": "empty-line",
    "log-pin": "trust-log-mismatch",
    "memory": "memory-required",
    "memory-key": "remembered-by-another-key",
    "nearest": "nearest",
    "older": "older-altered",
    "open-run": "open-required",
    "order": "intent-left-out",
    "pae": "good",
    "previous": "entry-previous",
    "receipt-id": "entry-receipt",
    "repeated-child": "repeated",
    "reopened": "reopened",
    "repeated-id": "receipt-repeated",
    "retired": "issuer-old-key-after",
    "revoked": "revoked-from-3",
    "schema": "receipt-unknown-member",
    "seal": "seal-bit",
    "seal-absent": "opening-unsealed",
    "seal-issuer": "seal-by-another",
    "segments": "segment-missing",
    "shorter": "cut",
    "size-form": "head-leading-zero",
    "tail-head": "damage-head-signature",
    "time": "entry-clock-back",
    "torn": "damage-text",
    "torn-said": "torn-line",
    "unknown": "receipt-kind-later",
    "unknown-run": "unknown-opening",
}


def test_the_plain_verifier_answers_every_ledger_as_expected():
    # It replays no rule about what a run may do: those are killed by slow models of their own, in tests/property.
    ruled = {case.id for case in CASES if case.check == "ledger" and "rules" in case.flags}
    assert killers("ledger", lambda given, reader: Plain().answer(given, reader)) <= ruled


@pytest.mark.parametrize(("rule", "killer"), RULES.items(), ids=RULES)
def test_the_plain_verifier_without_one_rule_is_killed(rule, killer):
    assert killers("ledger", lambda given, reader: Plain(rule).answer(given, reader), killer) == {killer}


def test_every_rule_of_the_plain_verifier_is_among_the_mutants():
    text = (Path(__file__).parent / "plain.py").read_text()
    named = set(re.findall(r'(?:find\(|yield |^            (?="key-))"([a-z-]+)"[,:]', text, re.MULTILINE))
    named |= set(re.findall(r'"([a-z-]+)" (?:not )?in self\.off', text))
    conditional = {"canonical", "schema"}
    assert named | conditional == set(RULES)
