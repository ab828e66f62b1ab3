"""A published tree: what a good one shows from its files alone, and each fault as its own finding at its place."""

from __future__ import annotations

import base64
from functools import cache
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.checkpoint import Head, sign_head
from ledger.errors import FormatError
from ledger.tiles import Edge
from tests.reference.build import ORIGIN, Builder, party, small, test_key
from tests.reference.rfc9162 import mth
from verify.options import Options, parse_options
from verify.published import verify_published
from verify.trust import parse_trust


def files_of(ledger, *, note=None, entries=None):
    """Return the tree of a ledger, path -> bytes."""
    edge = Edge()
    chosen = [row.entry for row in ledger.rows] if entries is None else entries
    tiles = [*edge.extend(chosen), *edge.partial()]
    return {"checkpoint": note or ledger.notes[-1], **{tile.path: data for tile, data in tiles}}


def judge(files, trust, *, memory=None, **options):
    return verify_published(files.get, trust=trust, memory=memory, options=Options(**options))


def codes(verdict):
    return [check.code for check in verdict.findings]


def finding(verdict, code):
    return next(check for check in verdict.findings if check.code == code)


def with_rows(count, **options):
    """Return a ledger of a header and grants, in one commit."""
    ledger = Builder(**options)
    ledger.header()
    for _ in range(count - 1):
        ledger.grant()
    ledger.commit()
    return ledger


@cache
def large():
    """Return a ledger of 600 entries: two full tiles, and partial ones at two levels."""
    return with_rows(600)


def test_a_good_tree_is_ok_on_a_machine_that_pins_and_remembers_it():
    ledger = small()
    verdict = judge(files_of(ledger), ledger.trust(), memory=ledger.notes[-1])
    assert (verdict.exit, verdict.status, verdict.findings) == (0, "ok", ())
    assert (verdict.coverage.first, verdict.coverage.end, verdict.coverage.count) == (0, 14, 14)
    assert (verdict.head.origin, verdict.head.size) == (ORIGIN, 14)
    passed = {check.name for check in verdict.checks if check.status == "ok"}
    assert passed == {"checkpoint", "tiles", "chain", "ids", "keyring", "head signatures", "log key", "memory"}


def test_what_no_published_tree_holds_is_said_not_to_have_been_looked_at():
    ledger = small()
    verdict = judge(files_of(ledger), ledger.trust(), memory=ledger.notes[-1])
    not_here = {check.name: check for check in verdict.checks if check.status == "not_checked"}
    assert set(not_here) == {"receipts", "seals", "trees", "issuers"}
    assert all(check.code == "check.not_asked" and not check.asked for check in not_here.values())
    assert "were not looked at" in verdict.notes[0]
    assert (verdict.covered.own_seal, verdict.covered.sealed_root, verdict.covered.signed_head) == (0, 0, 0)


@pytest.mark.parametrize(
    ("require", "name"),
    [("closed", "runs"), ("every-head", "heads"), ("artifacts", "artifacts")],
)
def test_what_is_asked_for_and_is_not_in_a_tree_is_not_established(require, name):
    ledger = small()
    options = parse_options(require=(require,))
    verdict = verify_published(files_of(ledger).get, trust=ledger.trust(), memory=ledger.notes[-1], options=options)
    assert (verdict.exit, codes(verdict)) == (3, ["check.unsupported"])
    assert verdict.findings[0].name == name


def test_a_tree_of_several_levels_is_made_again_up_to_its_root():
    ledger = large()
    files = files_of(ledger)
    assert sorted(path for path in files if not path.startswith("tile/entries")) == [
        "checkpoint", "tile/0/000", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2",
    ]  # fmt: skip
    verdict = judge(files, ledger.trust())
    assert (verdict.exit, codes(verdict)) == (0, ["head.first_seen"])
    assert verdict.head.root == mth([row.entry for row in ledger.rows])
    assert next(check for check in verdict.checks if check.name == "tiles").count == 4


@pytest.mark.parametrize("size", [1, 2, 3, 255, 256, 257, 512])
def test_a_tree_of_every_shape_is_ok_and_not_so_with_one_file_less(size):
    ledger = large()
    entries = [row.entry for row in ledger.rows[:size]]
    note = sign_head(Head(ORIGIN, size, mth(entries)), ledger.log)
    files = files_of(ledger, note=note, entries=entries)
    assert judge(files, ledger.trust()).exit == 0
    for path in files:
        verdict = judge({name: data for name, data in files.items() if name != path}, ledger.trust())
        code = "head.missing" if path == "checkpoint" else "tile.missing"
        assert verdict.exit == 1
        assert finding(verdict, code).where == path
        assert verdict.remember is None


# Trust.


def test_a_stranger_s_tree_is_not_established_and_not_remembered():
    verdict = judge(files_of(small()), None)
    assert verdict.exit == 3
    assert "trust.log_key_unpinned" in codes(verdict)
    assert "ask the ledger's owner" in finding(verdict, "trust.log_key_unpinned").message
    assert verdict.remember is None


def test_a_tree_signed_by_another_key_under_a_pinned_origin_is_not_trusted():
    ledger = small()
    files = files_of(
        ledger, note=sign_head(Head(ORIGIN, 14, mth([row.entry for row in ledger.rows])), test_key("other"))
    )
    verdict = judge(files, ledger.trust())
    assert (verdict.exit, finding(verdict, "trust.log_key_mismatch").name) == (4, "log key")
    assert verdict.remember is None


def test_a_log_key_that_is_pinned_for_somebody_else_does_not_speak_here():
    ledger = small()
    other = f'[[notary]]\nname = "notary"\nkey = "{ledger.log.key}"\n'.encode()
    verdict = judge(files_of(ledger), parse_trust(other, source="test", allow_test_keys=True))
    assert verdict.exit == 4
    assert "pinned for notary notary" in finding(verdict, "trust.log_key_mismatch").message


def test_the_pinned_header_is_the_receipt_of_entry_0():
    ledger = small()
    text = ledger.trust_file().replace(ledger.rows[0].id.encode(), ledger.rows[1].id.encode())
    verdict = judge(files_of(ledger), parse_trust(text, source="test", allow_test_keys=True))
    assert verdict.exit == 4
    assert "trust.header_mismatch" in codes(verdict)


def test_a_signature_of_the_pinned_key_that_does_not_verify_is_a_failure():
    ledger = small()
    text, line = ledger.notes[-1].split(b"\n\n")
    start, _, signature = line.rstrip(b"\n").rpartition(b" ")
    raw = bytearray(base64.b64decode(signature))
    raw[-1] ^= 1
    note = text + b"\n\n" + start + b" " + base64.b64encode(raw) + b"\n"
    verdict = judge(files_of(ledger, note=note), ledger.trust())
    assert (verdict.exit, "head.signature" in codes(verdict)) == (1, True)


def test_a_checkpoint_without_any_line_of_its_origin_is_unsigned():
    ledger = small()
    text, _ = ledger.notes[-1].split(b"\n\n")
    signature = base64.b64encode(bytes(68))
    verdict = judge(files_of(ledger, note=text + b"\n\n\xe2\x80\x94 witness " + signature + b"\n"), ledger.trust())
    assert (verdict.exit, "head.unsigned" in codes(verdict)) == (1, True)


def test_a_cosigned_checkpoint_is_ok_and_its_other_lines_are_not_looked_at():
    ledger = small()
    note = ledger.notes[-1] + b"\xe2\x80\x94 witness " + base64.b64encode(bytes(80)) + b"\n"
    assert judge(files_of(ledger, note=note), ledger.trust(), memory=ledger.notes[-1]).exit == 0


def test_whether_a_key_entry_replaced_the_log_key_cannot_be_seen_from_a_tree():
    ledger = Builder()
    ledger.header()
    ledger.key(party("issuer-2", "issuer"), ledger.issuer.key, next_=test_key("issuer-3").key)
    ledger.grant()
    ledger.commit()
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 3
    assert [check.name for check in verdict.findings] == ["keyring"]
    assert "entry 1" in verdict.findings[0].message
    assert verdict.remember is None


def test_a_tree_after_a_rotation_of_the_log_key_is_not_established():
    ledger = Builder()
    ledger.header()
    ledger.key(party("log-2", "issuer"), ledger.log.key, role="log", next_=test_key("log-3").key)
    ledger.grant()
    ledger.commit()
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 3
    assert [check.name for check in verdict.findings] == ["keyring", "head signatures"]


# Memory.


def test_first_sight_of_a_pinned_tree_is_ok_says_so_and_remembers_the_head():
    ledger = small()
    verdict = judge(files_of(ledger), ledger.trust())
    assert (verdict.exit, codes(verdict), verdict.remember) == (0, ["head.first_seen"], ledger.notes[-1])


def test_first_sight_where_memory_is_asked_for_is_not_established():
    ledger = small()
    verdict = verify_published(files_of(ledger).get, trust=ledger.trust(), options=parse_options(require=("memory",)))
    assert (verdict.exit, codes(verdict)) == (3, ["head.unseen"])


def prefix(ledger, size):
    """Return the signed head of the first entries of a ledger."""
    return sign_head(Head(ORIGIN, size, mth([row.entry for row in ledger.rows[:size]])), ledger.log)


@pytest.mark.parametrize("size", [1, 3, 128, 255, 256, 257, 300, 511, 512, 513, 599])
def test_a_tree_that_extends_what_is_remembered_is_ok_and_remembered(size):
    ledger = large()
    verdict = judge(files_of(ledger), ledger.trust(), memory=prefix(ledger, size))
    assert (verdict.exit, verdict.findings, verdict.remember) == (0, (), ledger.notes[-1])


@pytest.mark.parametrize("size", [1, 255, 256, 300, 512, 600])
def test_a_tree_that_does_not_extend_what_is_remembered_is_forked(size):
    ledger = large()
    memory = sign_head(Head(ORIGIN, size, sha256(b"another history").digest()), ledger.log)
    verdict = judge(files_of(ledger), ledger.trust(), memory=memory)
    assert (verdict.exit, codes(verdict), verdict.remember) == (1, ["head.forked"], None)


def test_a_tree_shorter_than_what_is_remembered_does_not_hold():
    ledger = large()
    entries = [row.entry for row in ledger.rows[:300]]
    files = files_of(ledger, note=prefix(ledger, 300), entries=entries)
    verdict = judge(files, ledger.trust(), memory=ledger.notes[-1])
    assert (verdict.exit, codes(verdict), verdict.remember) == (1, ["head.shorter"], None)


def test_memory_that_the_pinned_key_did_not_sign_accuses_nobody():
    ledger = small()
    memory = sign_head(Head(ORIGIN, 5, bytes(32)), test_key("other"))
    verdict = judge(files_of(ledger), ledger.trust(), memory=memory)
    assert (verdict.exit, codes(verdict), verdict.remember) == (3, ["head.unreconciled"], None)


# The files.


def changed(files, path, data):
    return {**files, path: data}


@pytest.mark.parametrize("path", ["tile/0/000", "tile/0/001", "tile/0/002.p/88", "tile/1/000.p/2"])
def test_a_hash_tile_that_is_short_long_or_wrong_fails_at_its_place(path):
    ledger = large()
    files = files_of(ledger)
    data = files[path]
    wrong = bytearray(data)
    wrong[-1] ^= 1
    for bad, code in (
        (data[:-1], "tile.malformed"),
        (data[:-32], "tile.malformed"),
        (data + b"\0", "tile.malformed"),
        (data + bytes(32), "tile.malformed"),
        (b"", "tile.malformed"),
        (bytes(wrong), "tile.hash"),
        (bytes(len(data)), "tile.hash"),
    ):
        verdict = judge(changed(files, path, bad), ledger.trust())
        assert verdict.exit == 1
        assert finding(verdict, code).where == path
        assert verdict.remember is None


@pytest.mark.parametrize("path", ["tile/entries/000", "tile/entries/001", "tile/entries/002.p/88"])
def test_an_entry_bundle_that_is_short_long_or_wrong_fails_at_its_place(path):
    ledger = large()
    files = files_of(ledger)
    data = files[path]
    last = int.from_bytes(data[:2], "big") + 2
    for bad in (data[:-1], data + b"\0", data + b"\0\0", data + data[:last], data[last:], b"", b"\xff" + data[1:]):
        verdict = judge(changed(files, path, bad), ledger.trust())
        assert verdict.exit == 1
        assert finding(verdict, "tile.malformed").where == path
        assert verdict.remember is None
    at = data.index(b'"receipt":"sha256:') + 18
    verdict = judge(changed(files, path, data[:at] + b"0" * 64 + data[at + 64 :]), ledger.trust())
    assert verdict.exit == 1
    assert {"tile.hash", "head.root"} <= set(codes(verdict))


def test_a_tile_of_another_width_does_not_stand_in_for_the_one_asked_for():
    ledger = large()
    files = files_of(ledger)
    longer = files.pop("tile/0/002.p/88")
    verdict = judge({**files, "tile/0/002.p/87": longer[:-32], "tile/0/002.p/89": longer + bytes(32)}, ledger.trust())
    assert verdict.exit == 1
    assert finding(verdict, "tile.missing").where == "tile/0/002.p/88"


def test_a_full_tile_stands_in_for_a_partial_one_that_was_collected():
    ledger = large()
    now, then = (
        files_of(ledger),
        files_of(ledger, note=prefix(ledger, 300), entries=[r.entry for r in ledger.rows[:300]]),
    )
    files = {**now, "checkpoint": then["checkpoint"], "tile/1/000.p/1": then["tile/1/000.p/1"]}
    assert "tile/0/001.p/44" not in files
    verdict = judge(files, ledger.trust())
    assert (verdict.exit, verdict.coverage.end) == (0, 300)
    for path in ("tile/0/001", "tile/entries/001"):
        bad = judge(changed(files, path, files[path][: 44 * 32]), ledger.trust())
        assert bad.exit == 1
        assert finding(bad, "tile.malformed").where == path


def test_a_file_that_is_no_plain_file_fails_at_its_place():
    ledger = small()
    files = files_of(ledger)

    def read(path):
        if path == link:
            raise FormatError(f"{path}: a link", code="tile.file")
        return files.get(path)

    for link in files:
        verdict = verify_published(read, trust=ledger.trust())
        assert verdict.exit == 1
        assert finding(verdict, "head.malformed" if link == "checkpoint" else "tile.malformed").where == link


def test_only_the_paths_of_tiles_are_ever_asked_for():
    ledger = large()
    files = files_of(ledger)
    asked = []

    def read(path):
        asked.append(path)
        return files.get(path)

    assert verify_published(read, trust=ledger.trust()).exit == 0
    assert sorted(set(asked)) == sorted(files)
    assert all(asked.count(path) == 1 for path in files)


def test_files_that_no_checkpoint_asks_for_are_not_looked_at():
    ledger = small()
    files = {**files_of(ledger), "tile/0/000.p/3": b"of an older checkpoint", "index.html": b"hello"}
    assert judge(files, ledger.trust()).exit == 0


@pytest.mark.parametrize("note", [b"", b"\n\n", b"checkpoint", b"\xff\xfe", b"a\n1\nAAAA\n\n", b"x" * 100_000])
def test_a_checkpoint_that_states_no_head_does_not_hold(note):
    verdict = judge({"checkpoint": note}, small().trust())
    assert verdict.exit == 1
    assert {"head.malformed", "coverage.empty"} <= set(codes(verdict))


def test_nothing_is_never_ok():
    ledger = small()
    assert judge({}, ledger.trust()).exit == 1
    empty = sign_head(Head(ORIGIN, 0, sha256(b"").digest()), ledger.log)
    verdict = judge({"checkpoint": empty}, ledger.trust())
    assert (verdict.exit, "coverage.empty" in codes(verdict)) == (5, True)
    assert judge({"checkpoint": sign_head(Head(ORIGIN, 0, bytes(32)), ledger.log)}, ledger.trust()).exit == 1


def test_a_checkpoint_of_a_size_beyond_all_files_ends_at_the_first_that_is_missing():
    ledger = large()
    note = sign_head(Head(ORIGIN, 2**63 - 1, bytes(32)), ledger.log)
    verdict = judge(files_of(ledger, note=note), ledger.trust())
    assert verdict.exit == 1
    assert finding(verdict, "tile.missing").where == "tile/entries/002"
    assert verdict.coverage.count == 512


# The entries.


def dishonest(**change):
    """Return a ledger whose own log signs a head over a changed entry 2."""
    ledger = Builder()
    ledger.header()
    ledger.grant()
    ledger.grant(entry={name: value(ledger) if callable(value) else value for name, value in change.items()})
    ledger.grant()
    ledger.commit()
    return ledger


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"index": 3}, "chain.index"),
        ({"index": 2**53 - 1}, "chain.index"),
        ({"previous": "sha256:" + "1" * 64}, "chain.previous"),
        ({"keyring": 2}, "chain.keyring"),
        ({"keyring": 3}, "chain.keyring"),
        ({"recorded_at": "2026-11-31T09:15:00.123Z"}, "entry.malformed"),
        ({"receipt": "sha256:" + "A" * 64}, "entry.malformed"),
        ({"envelope": "sha256:" + "a" * 63}, "entry.malformed"),
        ({"receipt": lambda ledger: ledger.rows[1].id}, "receipt.repeated"),
    ],
)
def test_a_signed_entry_that_is_no_link_of_the_chain_fails_at_its_place(change, code):
    assert judge(files_of(dishonest()), dishonest().trust()).exit == 0
    ledger = dishonest(**change)
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 1
    assert finding(verdict, code).where == "entry 2"
    assert verdict.remember is None


def test_a_keyring_that_goes_back_is_no_keyring():
    ledger = Builder()
    ledger.header()
    ledger.key(party("issuer-2", "issuer"), ledger.issuer.key, next_=test_key("issuer-3").key)
    ledger.grant()
    ledger.grant(entry={"keyring": 0})
    ledger.commit()
    verdict = judge(files_of(ledger), ledger.trust())
    assert (verdict.exit, finding(verdict, "chain.keyring").where) == (1, "entry 3")


def test_an_entry_of_a_later_version_is_unknown_and_still_a_leaf_and_a_link():
    ledger = dishonest(schema="receipt-ledger.entry/v2")
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 3
    assert finding(verdict, "format.unknown").where == "entry 2"


def test_a_clock_that_went_back_is_said_and_nothing_more():
    ledger = dishonest(recorded_at="2026-11-29T00:00:00.000Z")
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 0
    assert noted(verdict, "time.step_back").where == "entry 2"


def noted(verdict, code):
    return next(check for check in verdict.checks if check.code == code)


def test_a_receipt_that_stands_twice_far_apart_is_found():
    ledger = with_rows(520)
    ledger.grant(entry={"receipt": ledger.rows[7].id})
    ledger.commit()
    verdict = judge(files_of(ledger), ledger.trust())
    assert verdict.exit == 1
    assert finding(verdict, "receipt.repeated").where == "entry 520"
    assert "entry 7 already" in finding(verdict, "receipt.repeated").message


# Sweeps.


def test_no_byte_of_any_file_can_be_changed_and_the_tree_still_hold():
    ledger = with_rows(3)
    files = files_of(ledger)
    trust = ledger.trust()
    assert judge(files, trust, memory=ledger.notes[-1]).exit == 0
    for path, data in files.items():
        for at in range(len(data)):
            for bit in (1, 0x20, 0x80):
                bad = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
                verdict = judge(changed(files, path, bad), trust, memory=ledger.notes[-1])
                assert verdict.exit not in {0, 3}, (path, at, bit)
                assert verdict.remember is None


@given(st.dictionaries(st.sampled_from(sorted(files_of(small()))), st.binary(max_size=200), min_size=1))
def test_whatever_the_files_hold_there_is_a_verdict(garbage):
    ledger = small()
    assert judge({**files_of(ledger), **garbage}, ledger.trust()).exit == 1
