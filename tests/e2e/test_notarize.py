"""`ledger notarize` against a notary that runs: asked, kept, shown, carried away, judged by somebody else without a network."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.bundle import CarriedHead, CarriedSeal, parse_bundle, print_bundle
from ledger.checkpoint import head_of
from ledger.counterseal import FullVerdict, open_counter_seal, seal_counter_seal
from ledger.digest import digest
from ledger.keys import PrivateKey
from ledger.notarization import print_notarization
from ledger.note import parse_note
from notary.client import NotaryClient
from tests.reference.answering import server
from tests.reference.authority import OPENSSL
from tests.reference.notaries import Notary, no_network, with_environment
from tests.reference.people import Person, copy, cut
from tests.reference.submissions import request
from verify.sealed import verify_sealed


@pytest.fixture(scope="module")
def notary(tmp_path_factory) -> Notary:
    return Notary.made(tmp_path_factory.mktemp("notary"))


@pytest.fixture(scope="module")
def url(notary):
    service = notary.served()
    yield service.url
    if service.process.poll() is None:
        service.stop()


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def auditor(tmp_path):
    return Person(tmp_path / "auditor")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path)
    return path


def sealed(folder: Path) -> Path:
    """Return the only sealed document beside a ledger."""
    (path,) = (
        each for each in (folder / "notary/seals").iterdir() if each.name.count(".") == 1 and each.suffix == ".json"
    )
    return path


def test_a_run_is_counter_sealed_and_judged_offline_in_another_home(notary, url, folder, owner, auditor, tmp_path):
    done = notary.asked_by(owner, url, "--json", "-L", folder, "notarize")
    assert done.exit == 0, (done.out, done.err)
    (result,) = done.json["results"]
    assert (result["by"], result["key"], result["mode"], result["pinned"]) == (
        notary.name, notary.seal_key, "digest_only", False,
    )  # fmt: skip
    assert done.json["pending"] == []
    assert "counter-seal by notary.example.org" in owner("-L", folder, "show", "latest").out
    assert owner("-L", folder, "prove", "-o", tmp_path / "bundle.json").exit == 0
    notary.pinned_by(auditor.trusts(folder))
    with no_network():
        for command in (
            ["verify", "--notary", sealed(folder), "--notary-key", notary.pem],
            ["verify", "--notary", sealed(folder)],
            ["verify", sealed(folder)],
            ["verify", "--require", "counter-seal=1", tmp_path / "bundle.json"],
        ):
            done = auditor(*command)
            assert done.exit == 0, (command, done.out)
    verdict = auditor.verify(tmp_path / "bundle.json").json
    assert verdict["time"]["not_after"] == {"time": result["issued_at"], "by": notary.name, "kind": "counter-seal"}
    # Two notaries were not asked, and one does not count twice.
    assert auditor.verify("--require", "counter-seal=2", tmp_path / "bundle.json").exit == 4


def test_no_bit_of_the_sealed_document_can_change(notary, url, folder, owner):
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    data = sealed(folder).read_bytes()
    assert verify_sealed(data, subject="x", trust=None, keys=[notary.seal_key]).exit == 0
    for position in range(len(data)):
        for bit in (1, 8, 64):
            changed = data[:position] + bytes([data[position] ^ bit]) + data[position + 1 :]
            assert verify_sealed(changed, subject="x", trust=None, keys=[notary.seal_key]).exit in {1, 3, 4, 5}, (
                position
            )
    for changed in (data + b"\n", data[:-1], b" " + data):
        assert verify_sealed(changed, subject="x", trust=None, keys=[notary.seal_key]).exit in {1, 5}


def test_a_notary_that_nobody_pinned_is_noted_and_counts_for_nothing(notary, url, folder, owner):
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    done = owner("-L", folder, "verify", "--json", "latest")
    assert (done.exit, done.check("counter-seals")["code"]) == (0, "trust.notary_unpinned")
    assert done.check("counter-seals")["status"] == "not_checked"
    done = owner("-L", folder, "verify", "--json", "--require", "counter-seal=1", "latest")
    assert (done.exit, "trust.quorum" in done.codes) == (4, True)
    done = owner("verify", "--json", "--notary", sealed(folder))
    assert (done.exit, done.codes & {"trust.notary_unpinned"}) == (3, {"trust.notary_unpinned"})


def test_another_key_under_a_pinned_name_is_not_trusted(notary, url, folder, owner, auditor, tmp_path):
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    assert owner("-L", folder, "prove", "-o", tmp_path / "bundle.json").exit == 0
    other = Notary.made(tmp_path / "other")
    assert other.name == notary.name
    other.pinned_by(auditor.trusts(folder))
    for command in ([tmp_path / "bundle.json"], ["--notary", sealed(folder)]):
        done = auditor.verify(*command)
        assert (done.exit, "trust.notary_mismatch" in done.codes) == (4, True)
    assert auditor("verify", "--notary", sealed(folder), "--notary-key", other.pem).exit == 4
    # Nor is such an answer kept.
    other.pinned_by(owner)
    done = notary.asked_by(owner, url, "-L", folder, "notarize", folder_receipt(folder, owner, 0))
    assert (done.exit, "not what is pinned" in done.err) == (4, True)


def folder_receipt(folder: Path, owner: Person, index: int) -> str:
    return owner.open(folder).reader.at(index).entry.receipt


def test_the_same_submission_gives_the_same_seal_and_one_file(notary, url, folder, owner):
    for _ in range(2):
        assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    first = sealed(folder).read_bytes()
    owner.record(folder)
    receipt = "sha256:" + sealed(folder).name[:64]
    assert notary.asked_by(owner, url, "-L", folder, "notarize", receipt).exit == 0
    assert sealed(folder).read_bytes() == first


def test_a_head_is_cosigned_and_counts_for_everything_below_it(notary, url, folder, owner, auditor, tmp_path):
    notary.pinned_by(owner)
    first = owner.open(folder).reader.head()
    done = notary.asked_by(owner, url, "--json", "-L", folder, "notarize", "--head")
    assert done.exit == 0, done.err
    (result,) = done.json["results"]
    assert (result["size"], result["by"], result["pinned"]) == (first.size, [notary.name], [notary.name])
    note = Path(result["file"]).read_bytes()
    assert [line.name for line in parse_note(note).signatures] == [first.origin, notary.name]
    early = owner("-L", folder, "log", "--json").json[0]["receipt"]
    assert owner("-L", folder, "verify", "--require", "counter-seal=1").exit == 0
    owner.record(folder)
    # The second time it is asked from what it remembers, with a consistency proof.
    done = owner("-L", folder, "verify", "--json", "--require", "counter-seal=1")
    assert (done.exit, done.codes & {"trust.quorum"}) == (4, {"trust.quorum"})
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 0
    owner.record(folder)
    late = owner("-L", folder, "log", "--json").json[0]["receipt"]
    notary.pinned_by(auditor.trusts(folder))
    for name, receipt, expected in (("early", early, 0), ("late", late, 4)):
        path = tmp_path / f"{name}.json"
        assert owner("-L", folder, "prove", receipt, "-o", path).exit == 0
        done = auditor.verify("--require", "counter-seal=1", path)
        assert done.exit == expected, done.out
        bounds = done.json["time"]
        assert set(bounds) == ({"not_after"} if name == "early" else {"not_before"})
        assert all(each["kind"] == "cosignature" for each in bounds.values())
    assert all(
        isinstance(each, CarriedHead) for each in parse_bundle((tmp_path / "early.json").read_bytes()).counter_seals
    )


def test_a_cosigned_head_and_a_tlog_proof_show_their_cosigners(notary, url, folder, owner, auditor, tmp_path):
    notary.pinned_by(owner)
    notary.pinned_by(auditor.trusts(folder))
    done = notary.asked_by(owner, url, "--json", "-L", folder, "notarize", "--head")
    note = Path(done.json["results"][0]["file"])
    assert auditor.verify("--require", "counter-seal=1", note).exit == 0
    data = note.read_bytes()
    line = data.rindex(b" ") + 20
    (tmp_path / "altered").write_bytes(
        data[:line] + (b"A" if data[line : line + 1] != b"A" else b"B") + data[line + 1 :]
    )
    done = auditor.verify("--require", "counter-seal=1", tmp_path / "altered")
    assert (done.exit, "cosignature.invalid" in done.codes) == (1, True)
    # A witness that only cosigns is pinned with that key alone.
    other = Person(tmp_path / "other").trusts(folder)
    assert other("trust", "add", notary.name, "--role", "notary", "--cosigner", notary.cosigner).exit == 0
    assert "cosigner" in other("trust", "list").out
    assert other.verify("--require", "counter-seal=1", note).exit == 0
    (tmp_path / "bare").write_bytes(data[: data.rindex(b"\xe2\x80\x94")])
    assert auditor.verify("--require", "counter-seal=1", tmp_path / "bare").exit == 4
    assert auditor.verify(tmp_path / "bare").exit == 0


def test_in_full_the_notary_verifies_the_run_itself(notary, url, folder, owner, auditor, tmp_path):
    done = notary.asked_by(
        owner, url, "-L", folder, "notarize", "--full", "--publish", "-o", tmp_path / "document.json"
    )
    assert done.exit == 0, done.err
    assert "verdict       exit 0" in done.out
    assert "published     yes" in done.out
    assert (tmp_path / "document.json").read_bytes() == sealed(folder).read_bytes()
    assert auditor("verify", "--notary", tmp_path / "document.json", "--notary-key", notary.pem).exit == 0
    # The proof of the notary's own record verifies under the log key of the notary's own ledger.
    auditor.trusts(notary.folder / "ledger")
    assert auditor("verify", tmp_path / "document.json.tlog-proof").exit == 0


def test_without_an_answer_the_request_waits_and_is_drained_later(tmp_path, folder, owner):
    notary = Notary.made(tmp_path / "late", "late.example.org")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    done = notary.asked_by(owner, url, "-L", folder, "notarize")
    assert (done.exit, "pending" in done.out) == (3, True)
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 3
    listed = owner("--json", "-L", folder, "notarize", "--list").json["pending"]
    assert [(each["notary"], each["attempts"], each["last"]) for each in listed] == [(url, 1, "notary.unreachable")] * 2
    assert all(each["waiting_s"] < 60 for each in listed)
    shown = owner("-L", folder, "show", "latest").out
    assert "counter-seal pending for" in shown
    assert owner("-L", folder, "verify", "latest").exit == 0
    # Asking again does not make another line, and what is asked stays through it all.
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 3
    assert len(owner("--json", "-L", folder, "notarize", "--list").json["pending"]) == 2
    for path in owner.home.rglob("*"):
        assert not path.is_file() or notary.token.encode() not in path.read_bytes()
    # It runs now, on the port that was asked.
    import tests.reference.submissions as submissions

    service = submissions.Service(notary.folder, notary.operator.home, "--port", str(port))
    try:
        done = with_environment(
            owner, {"LEDGER_NOTARY_TOKEN": notary.token}, "--json", "-L", folder, "notarize", "--pending"
        )
        assert (done.exit, done.json["pending"]) == (0, []), done.err
        assert len(done.json["results"]) == 2
    finally:
        service.stop()
    assert owner("--json", "-L", folder, "notarize", "--list").json == {"pending": []}
    assert "counter-seal by late.example.org" in owner("-L", folder, "show", "latest").out


def test_a_refusal_says_what_helps_and_is_not_sent_again(notary, url, folder, owner):
    done = notary.asked_by(owner, url, "-L", folder, "notarize", token="rln_0000000000000000_" + "A" * 43)
    assert (done.exit, "401" in done.err, "LEDGER_NOTARY_TOKEN" in done.err) == (2, True, True)
    listed = owner("--json", "-L", folder, "notarize", "--list").json["pending"]
    assert [(each["attempts"], each["last"]) for each in listed] == [(1, "token.unknown")]
    done = notary.asked_by(owner, url, "-L", folder, "notarize", "--pending")
    assert (done.exit, "counter-seal" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["--notary", "http://notary.example.org"], {}, "neither HTTPS nor on this machine"),
        (["--notary", "http://127.0.0.1.example.org"], {}, "neither HTTPS"),
        (["--notary", "ftp://127.0.0.1"], {}, "expected https"),
        (["--notary", "http://user@127.0.0.1"], {}, "expected https"),
        ([], {}, "no notary is named"),
        (["--head", "--pending"], {}, "do not go together"),
        (["--head", "--full"], {}, "goes without"),
        (
            ["--notary", "http://127.0.0.1:1", "--notary", "http://127.0.0.1:2"],
            {"LEDGER_NOTARY_TOKEN": "x"},
            "one token for 2 notaries",
        ),
        (["--notary", "http://127.0.0.1:1"], {"LEDGER_NOTARY_TOKEN": "a b"}, "characters that no token has"),
    ],
)
def test_what_must_not_be_asked_is_refused(folder, owner, arguments, environment, said):
    done = with_environment(owner, environment, "-L", folder, "notarize", *arguments)
    assert (done.exit, said in done.err) == (2, True), done.err


def test_an_owner_whose_ledger_was_cut_or_rewritten_is_told_what_the_notary_remembers(
    notary, url, folder, owner, tmp_path
):
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 0
    cut(backup, lines=2)
    done = notary.asked_by(owner, url, "-L", backup, "notarize", "--head")
    assert (done.exit, "head.shorter" in done.err) == (1, True), done.err
    second = copy(folder, tmp_path / "second")
    cut(second, lines=4)
    owner.forget()
    for _ in range(3):
        owner.record(second, "another")
    for what in (["--head"], []):
        done = notary.asked_by(owner, url, "-L", second, "notarize", *what)
        assert (done.exit, "head.forked" in done.err) == (1, True), done.err
    # The two signed histories are kept as a proof for anybody.
    proofs = list((owner.places.state / "equivocations").iterdir())
    assert proofs
    assert all(Person(tmp_path / "other").trusts(folder).verify(proof).exit == 1 for proof in proofs[:1])


def test_a_bundle_carries_the_seal_of_its_subject_and_the_proof_from_the_head_it_names(
    notary, url, folder, owner, tmp_path
):
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    receipt = "sha256:" + sealed(folder).name[:64]
    owner.record(folder)
    owner.record(folder)
    assert owner("-L", folder, "prove", receipt, "-o", tmp_path / "bundle.json").exit == 0
    data = (tmp_path / "bundle.json").read_bytes()
    (carried,) = parse_bundle(data).counter_seals
    assert isinstance(carried, CarriedSeal)
    assert carried.document == sealed(folder).read_bytes()
    assert carried.consistency
    size = json.loads(carried.document)["payload"]["size"]
    assert size < head_of(parse_bundle(data).checkpoint).size
    # Made again, it is the same file.
    assert owner("-L", folder, "prove", receipt, "-o", tmp_path / "again.json").exit == 0
    assert (tmp_path / "again.json").read_bytes() == data


def answered(notary, url, folder, owner, **options):
    """Return what the notary truly answers about the latest run."""
    with NotaryClient(url, token=notary.token) as client, owner.open(folder) as ledger:
        receipt = owner("-L", folder, "log", "--json").json[0]["receipt"]
        return client.notarize(request(ledger, receipt, **options))


def test_an_answer_that_does_not_hold_is_not_kept_and_the_request_waits(notary, url, folder, owner, tmp_path):
    true = answered(notary, url, folder, owner)
    owner.record(folder)
    newer = answered(notary, url, folder, owner, old=5)
    owner.record(folder, "third")
    latest = answered(notary, url, folder, owner, old=9)
    seal, _ = open_counter_seal(latest.counter_seal)
    mine = PrivateKey.from_seed(bytes(range(32)))
    other_root = seal.model_copy(update={"key": mine.key, "root": "sha256:" + "0" * 64})
    verdict = b'{"exit":0}'
    full = seal.model_copy(
        update={"key": mine.key, "mode": "full", "verdict": FullVerdict(digest=digest(verdict), exit=0)}
    )
    cases = {
        "of another receipt": replace(latest, counter_seal=newer.counter_seal),
        "with another's record": replace(latest, record=true.record),
        "with another's proof": replace(latest, tlog_proof=newer.tlog_proof),
        "altered": replace(latest, counter_seal=latest.counter_seal.replace(b'"size":13', b'"size":12')),
        "of another head": replace(latest, counter_seal=seal_counter_seal(other_root, mine)),
        "of another mode": replace(latest, counter_seal=seal_counter_seal(full, mine), verdict=verdict),
        "without its record": replace(latest, record=b"{}"),
    }
    for name, answer in cases.items():
        with server((200, {"Content-Type": "application/json"}, print_notarization(answer))) as seen:
            done = notary.asked_by(owner, seen.url, "-L", folder, "notarize")
        assert (done.exit, len(seen.requests)) == (1, 1), (name, done.err)
        assert not (folder / "notary").exists(), name
    waiting = owner("--json", "-L", folder, "notarize", "--list").json["pending"]
    assert len(waiting) == len(cases)
    for body in (b"", b"{}", b"[" * 1000, b"\xff", print_notarization(latest)[:-1]):
        with server((200, {}, body)) as seen:
            assert notary.asked_by(owner, seen.url, "-L", folder, "notarize").exit == 1
    with server((200, {}, print_notarization(latest))) as seen:
        assert notary.asked_by(owner, seen.url, "-L", folder, "notarize").exit == 0


def test_what_a_notary_says_it_remembers_is_not_believed_without_its_note(notary, folder, owner):
    """Somebody in the place of a notary says that the ledger was cut: that accuses nobody."""
    with server((409, {"Content-Type": "text/x.tlog.size"}, b"1000000\n"), (404, {}, b"")) as seen:
        done = notary.asked_by(owner, seen.url, "-L", folder, "notarize", "--head")
    assert (done.exit, "could not be judged" in done.err) == (3, True), done.err
    with server((422, {}, b"no"), (200, {}, b"x")) as seen:
        done = notary.asked_by(owner, seen.url, "-L", folder, "notarize", "--head")
    assert (done.exit, "shows no cut and no fork" in done.err) == (3, True), done.err
    # Nor a note of its own making.
    note = owner.open(folder).checkpoint().replace(b"\n5\n", b"\n9\n")
    with server((422, {}, b"no"), (200, {}, note)) as seen:
        done = notary.asked_by(owner, seen.url, "-L", folder, "notarize", "--head")
    assert (done.exit, "shows no cut and no fork" in done.err) == (3, True), done.err


def test_a_size_that_is_asked_for_again_and_again_ends(notary, folder, owner):
    answers = [(409, {"Content-Type": "text/x.tlog.size"}, f"{size}\n".encode()) for size in (1, 2, 3, 4, 5, 1, 2, 3)]
    with server(*answers) as seen:
        done = notary.asked_by(owner, seen.url, "-L", folder, "notarize", "--head")
    assert (done.exit, "another beginning each time" in done.err) == (1, True), done.err
    assert len(seen.requests) == 6


def test_after_a_rotation_of_the_log_key_the_notary_follows_and_old_seals_still_count(
    notary, url, folder, owner, auditor, tmp_path
):
    notary.pinned_by(owner)
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    receipt = "sha256:" + sealed(folder).name[:64]
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 0
    assert owner("-L", folder, "keys", "rotate", "--log").exit == 0
    owner.record(folder)
    for what in (["--head"], ["latest"]):
        done = notary.asked_by(owner, url, "-L", folder, "notarize", *what)
        assert done.exit == 0, done.err
    notary.pinned_by(auditor.trusts(folder))
    for which in (receipt, "latest"):
        assert owner("-L", folder, "prove", which, "-o", tmp_path / "bundle.json").exit == 0
        done = auditor.verify("--require", "counter-seal=1", tmp_path / "bundle.json")
        assert done.exit == 0, done.out
    assert owner("-L", folder, "verify", "--require", "counter-seal=1").exit == 0


def test_the_cosignatures_of_the_newest_head_are_lines_of_it(notary, url, folder, owner, auditor, tmp_path):
    plain = owner("-L", folder, "head").out
    notary.pinned_by(owner)
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 0
    cosigned = owner("-L", folder, "head").out
    assert cosigned.startswith(plain)
    assert cosigned[len(plain) :].startswith(f"\u2014 {notary.name} ")
    assert owner("-L", folder, "prove", "--format", "tlog-proof", "-o", tmp_path / "proof").exit == 0
    assert owner("-L", folder, "prove", "--range", "0:5", "-o", tmp_path / "range.json").exit == 0
    (tmp_path / "head").write_text(cosigned)
    notary.pinned_by(auditor.trusts(folder))
    for name in ("proof", "head", "range.json"):
        assert auditor.verify("--require", "counter-seal=1", tmp_path / name).exit == 0, name
    assert owner("-L", folder, "verify", "--range", "0:5", "--require", "counter-seal=1").exit == 0
    owner.record(folder)
    assert len(owner("-L", folder, "head").out) == len(plain)


def test_whatever_lies_in_the_folder_of_a_notary_stops_nobody(notary, url, folder, owner, tmp_path):
    notary.pinned_by(owner)
    assert notary.asked_by(owner, url, "-L", folder, "notarize").exit == 0
    assert notary.asked_by(owner, url, "-L", folder, "notarize", "--head").exit == 0
    good = sealed(folder)
    receipt = good.name[:64]
    strange = good.with_name(f"{receipt}-{'0' * 16}.json")
    note = next((folder / "notary/heads").glob("*.note"))
    for make in (
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.write_bytes(b"x" * (9 << 10)),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"\xff"),
        lambda path: path.symlink_to("/dev/zero"),
    ):
        make(strange)
        done = owner("-L", folder, "verify", "--json", receipt)
        assert (done.exit, "counterseal.malformed" in done.codes) == (1, True), done.err
        assert owner("-L", folder, "verify", "--json").exit in {0, 1}
        assert owner("-L", folder, "show", receipt).exit == 0
        done = owner("-L", folder, "prove", receipt, "-o", tmp_path / "bundle.json")
        assert done.exit == 0, done.err
        assert len(parse_bundle((tmp_path / "bundle.json").read_bytes()).counter_seals) <= 2
        strange.rmdir() if strange.is_dir() else strange.unlink()
    for name in (
        "0" * 16 + "-" + "0" * 16 + ".note",
        note.name.replace(".note", "." + "0" * 16 + ".tsr"),
        "x",
        ".hidden",
    ):
        (folder / "notary/heads" / name).mkdir()
    assert owner("-L", folder, "head").exit == 0
    assert owner("-L", folder, "verify", "--require", "counter-seal=1", receipt).exit in {0, 1}
    shutil.rmtree(folder / "notary")
    (folder / "notary").write_bytes(b"a file")
    assert owner("-L", folder, "verify", receipt).exit == 0


def test_one_line_that_cannot_be_sent_stops_no_other(notary, url, folder, owner, tmp_path):
    backup = copy(folder, tmp_path / "backup")
    owner.record(folder)
    wrong = "rln_0000000000000000_" + "A" * 43
    assert notary.asked_by(owner, url, "-L", folder, "notarize", token=wrong).exit == 2
    first = owner("-L", backup, "log", "--json").json[0]["receipt"]
    assert notary.asked_by(owner, url, "-L", folder, "notarize", first, token=wrong).exit == 2
    copy(backup, folder)
    done = notary.asked_by(owner, url, "--json", "-L", folder, "notarize", "--pending")
    assert sorted(each["exit"] for each in done.json["results"]) == [0, 5]
    assert (done.exit, len(done.json["pending"])) == (5, 1)


def test_of_an_open_run_the_opening_is_sealed_and_that_is_said(notary, url, folder, owner):
    with owner.open(folder) as ledger:
        run = ledger.run("open")
        done = notary.asked_by(owner, url, "-L", folder, "notarize", run.id)
        assert (done.exit, "its opening is sealed" in done.err) == (0, True)
        assert owner("-L", folder, "notarize", "0" * 12).exit == 5


def test_each_of_several_notaries_gets_its_own_token_and_they_make_a_quorum(
    notary, url, folder, owner, auditor, tmp_path
):
    other = Notary.made(tmp_path / "other", "other.example.org")
    service = other.served()
    try:
        tokens = f"{url}={notary.token} {service.url}={other.token}"
        done = with_environment(
            owner,
            {"LEDGER_NOTARY_TOKEN": tokens},
            *("--json", "-L", folder, "notarize", "--notary", url, "--notary", service.url),
        )
        assert (done.exit, [each["by"] for each in done.json["results"]]) == (0, [notary.name, other.name])
    finally:
        service.stop()
    assert owner("-L", folder, "prove", "-o", tmp_path / "bundle.json").exit == 0
    other.pinned_by(notary.pinned_by(auditor.trusts(folder)))
    trust = auditor.places.trust_file
    trust.write_bytes(b"quorum = 2\n" + trust.read_bytes())
    assert auditor.verify(tmp_path / "bundle.json").exit == 0
    bundle = parse_bundle((tmp_path / "bundle.json").read_bytes())
    for each in bundle.counter_seals:
        (tmp_path / "one.json").write_bytes(print_bundle(replace(bundle, counter_seals=(each, each))))
        done = auditor.verify(tmp_path / "one.json")
        assert (done.exit, "trust.quorum" in done.codes) == (4, True)


def test_the_documents_of_the_hosted_runx_notary_end_as_published(owner, shared):
    documents = shared / "runx/notary"
    for name, case in json.loads((documents / "EXPECTED.json").read_bytes()).items():
        key = documents / case["trusted_key_file"]
        done = owner("verify", "--json", "--notary", documents / f"{name}.json", "--notary-key", key)
        wanted = case["expected"]
        assert (done.exit == 0) is wanted["valid"], name
        native = done.json["native"]
        assert [each["name"] for each in native["findings"]] == wanted["finding_codes"], name
        assert native["code"] == ("valid" if wanted["valid"] else "invalid")
    assert owner("verify", "--notary", documents / "05-no-notary-verification.json", "--notary-key", key).exit == 5
    assert owner("verify", "--notary", documents / "01-valid-direct.json").exit == 1


def test_what_waits_can_be_forgotten_and_nothing_else_is(notary, url, folder, owner):
    wrong = "rln_0000000000000000_" + "A" * 43
    first = owner.open(folder).reader.at(0).entry.receipt
    for what in ([first], ["latest"], ["--head"]):
        done = notary.asked_by(
            owner, "http://127.0.0.1:1" if what == ["--head"] else url, "-L", folder, "notarize", *what, token=wrong
        )
        assert done.exit in {2, 3}
    waiting = ("--json", "-L", folder, "notarize", "--list")
    assert len(owner(*waiting).json["pending"]) == 3
    done = owner("--json", "-L", folder, "notarize", first, "--forget")
    assert [each["receipt"] for each in done.json["forgotten"]] == [first]
    assert owner("-L", folder, "notarize", "--forget", "--notary", "http://127.0.0.1:1").exit == 0
    (left,) = owner(*waiting).json["pending"]
    assert left["notary"] == url
    assert owner("-L", folder, "notarize", "--forget", "--head").exit == 2
    assert "forgotten" in owner("-L", folder, "notarize", "--forget").out
    assert owner(*waiting).json["pending"] == []


@pytest.mark.skipif(OPENSSL is None, reason="openssl makes the certificate, and is not installed")
def test_over_https_the_certificate_is_verified(notary, folder, owner, tmp_path):
    subprocess.run(
        [OPENSSL, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", tmp_path / "tls.key", "-out", tmp_path / "tls.pem", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    other = Notary.made(tmp_path / "tls", "tls.example.org")
    service = other.served("--certificate", str(tmp_path / "tls.pem"), "--certificate-key", str(tmp_path / "tls.key"))
    try:
        assert service.url.startswith("https://")
        done = other.asked_by(owner, service.url, "-L", folder, "notarize")
        assert (done.exit, "CERTIFICATE_VERIFY_FAILED" in done.err) == (3, True)
        token = {"LEDGER_NOTARY_TOKEN": other.token, "SSL_CERT_FILE": str(tmp_path / "tls.pem")}
        assert with_environment(owner, token, "-L", folder, "notarize", "--pending").exit == 0
    finally:
        service.stop()
