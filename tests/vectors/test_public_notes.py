"""Public signed notes: Go's cases, keys and mangling rule; the examples of the C2SP documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.checkpoint import Head, parse_checkpoint, print_checkpoint
from ledger.errors import LedgerError
from ledger.keys import PrivateKey, parse_base64
from ledger.note import (
    ED25519,
    Note,
    NoteKey,
    check_note,
    cosignature_time,
    cosigned_message,
    parse_note,
    parse_vkey,
    print_note,
    print_vkey,
    sign_note,
)
from tests.reference import signed_note

SHARED = Path(__file__).resolve().parents[3] / "shared" / "vectors"


def load(name, default):
    path = SHARED / "notes" / name
    return json.loads(path.read_bytes()) if path.exists() else default


GO = load("go-sumdb-note.json", {"open_cases": []})


@pytest.fixture(scope="module")
def go(shared):
    return GO


@pytest.fixture(scope="module")
def spec(shared):
    return load("c2sp-spec-examples.json", None)


def message(case):
    return bytes.fromhex(case["msg_hex"]) if "msg_hex" in case else case["msg"].encode()


def test_every_case_is_there(go):
    assert len(go["open_cases"]) == 12
    assert sum(case["ok"] for case in go["open_cases"]) == 2
    assert len(go["vkeys"]) == len(go["bad_vkeys"]) == 2


CODES = {
    "note has no verifiable signatures": {"note.unsigned"},
    "malformed note": {"note.malformed", "note.too_large"},
}


@pytest.mark.parametrize("case", GO["open_cases"], ids=lambda case: case["desc"])
def test_note_is_judged_as_published(go, case):
    keys = [parse_vkey(go["vkeys"][name]) for name in case["keys"]]
    data = message(case)
    if not case["ok"]:
        with pytest.raises(LedgerError) as refused:
            check_note(parse_note(data), keys)
        assert refused.value.code in CODES.get(case["err"], {"note.bad_signature"})
        return
    note = parse_note(data)
    verified = check_note(note, keys)
    names = {name: parse_vkey(text).name for name, text in go["vkeys"].items()}
    assert [line.name for line in verified] == [names[name] for name in case["verified"]]
    unknown = [line.name for line in note.signatures if line not in verified]
    assert unknown == [names[name] for name in case["unverified"]]
    assert print_note(note) == data


@pytest.mark.parametrize("name", ["peter", "enoch"])
def test_signing_with_the_published_keys_gives_the_published_lines(go, name):
    if name == "peter":
        signer, seed = signed_note.read_skey(go["skeys"]["peter"])
    else:
        signer, seed = "EnochRoot", bytes.fromhex(go["skeys"]["enoch_seed_hex"])
    key = PrivateKey.from_seed(seed)
    assert print_vkey(NoteKey(signer, ED25519, key.public)) == go["vkeys"][name]
    line = sign_note(go["text"], signer, key)
    assert print_note(Note(go["text"], (line,))).decode() == go["text"] + "\n" + go["sig_lines"][name]


def refused(parse, text):
    try:
        parse(text)
    except (LedgerError, signed_note.RefusedError):
        return True
    return False


def manglings(text):
    """Every proper substring, and every byte one higher."""
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if end - start < len(text):
                yield text[start:end]
    for at in range(len(text)):
        yield text[:at] + chr(ord(text[at]) + 1) + text[at + 1 :]


@pytest.mark.parametrize("name", ["peter", "enoch"])
def test_no_mangled_public_key_is_accepted(go, name):
    text = go["vkeys"][name]
    assert print_vkey(parse_vkey(text)) == text
    tried = list(manglings(text))
    assert len(tried) == len(text) * (len(text) + 1) // 2 - 1 + len(text)
    assert all(refused(parse_vkey, bad) for bad in tried)


def test_no_mangled_private_key_is_accepted(go):
    text = go["skeys"]["peter"]
    assert not refused(signed_note.read_skey, text)
    assert all(refused(signed_note.read_skey, bad) for bad in manglings(text))


# The ids of both fit. The published key of a wrong length also has spare bits in its base64.
@pytest.mark.parametrize(
    ("name", "code"),
    [("wrong_length_key_adjusted_hash", "base64.malformed"), ("unknown_algorithm_adjusted_hash", "note.unknown_type")],
)
def test_no_bad_public_key_with_a_fitting_id_is_accepted(go, name, code):
    with pytest.raises(LedgerError) as error:
        parse_vkey(go["bad_vkeys"][name])
    assert error.value.code == code


def test_the_example_of_the_signed_note_document_verifies(spec):
    example = spec["signed_note"]
    note = parse_note(example["note"].encode())
    key = parse_vkey(example["vkey"])
    assert check_note(note, [key]) == note.signatures
    with pytest.raises(LedgerError):
        check_note(Note(note.text.replace("example", "Example"), note.signatures), [key])


@pytest.mark.parametrize("name", ["note_with_unicode_text_format_only", "checkpoint_with_cosignature_format_only"])
def test_examples_of_the_documents_print_as_themselves(spec, name):
    data = spec[name].encode()
    note = parse_note(data)
    assert print_note(note) == data
    assert signed_note.read_note(data) == (note.text, [(s.name, s.key_id, s.signature) for s in note.signatures])


def test_the_cosignature_example_is_over_the_published_message(spec):
    note = parse_note(spec["checkpoint_with_cosignature_format_only"].encode())
    time_s = cosignature_time(note.signatures[1])
    assert time_s == spec["cosignature_timestamp_in_that_note"]
    assert cosigned_message(note.text, time_s=time_s).decode() == spec["cosigned_message"]
    root = parse_base64("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")
    assert parse_checkpoint(note.text) == Head("example.com/behind-the-sofa", 20852163, root)
    assert print_checkpoint(parse_checkpoint(note.text)) == note.text
