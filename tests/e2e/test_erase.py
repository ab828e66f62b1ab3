"""`ledger erase` and `ledger hold` as a person uses them, and what every command says of an artifact that is not whole."""

from __future__ import annotations

import os

import pytest

from ledger.storage.erasure import erase, place_hold, plan_erasure
from ledger.words import Reason
from tests.reference.people import Person

SECRET = "a secret that has to go"


@pytest.fixture
def owner(tmp_path):
    return Person(tmp_path / "owner")


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    with owner.open(path) as ledger, ledger.run("work") as run, run.call("act", arguments={"to": "host"}) as call:
        call.artifact(SECRET, name="result")
        call.artifact("L" * 300_000, name="large")
    return path


def digest_of(owner, folder, name="result"):
    return owner("-L", folder, "artifact", f"latest/{name}", "--json").json["digest"]


def on_disk(folder):
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def erased(owner, folder, name="result"):
    done = owner("-L", folder, "erase", f"latest/{name}", "--reason", "request", "--json")
    assert done.exit == 0, done.err
    return done.json


def verdicts(owner, folder):
    """Return the verdicts on the ledger, on its run, on a range and on a bundle, with artifacts asked for."""
    targets = (("--all",), ("latest",), ("--range", "0:4"))
    found = [owner("-L", folder, "verify", "--json", "--require", "artifacts", *target) for target in targets]
    bundle = folder.parent / "bundle.json"
    assert owner("-L", folder, "prove", "latest", "--artifacts", "-o", bundle).exit == 0
    return [*found, owner("verify", "--json", "--require", "artifacts", bundle)]


def codes_of(done):
    return {check["code"] for check in done.json["checks"] if check["name"] == "artifacts" and "code" in check}


def test_whole_artifacts_are_counted_wherever_they_are_asked_for(owner, folder):
    for done in verdicts(owner, folder):
        assert (done.exit, codes_of(done)) == (0, set())
        assert done.check("artifacts")["count"] == 3


def test_an_erasure_breaks_no_proof_and_is_said_everywhere(owner, folder):
    digest = digest_of(owner, folder)
    bundle = folder.parent / "before.json"
    assert owner("-L", folder, "prove", "latest", "-o", bundle).exit == 0
    said = erased(owner, folder)
    assert (said["digest"], said["reason"], said["erased"]) == (digest, "erasure.request", True)
    assert [each["index"] for each in said["receipts"]] == [5, 6]
    assert on_disk(folder) == []
    assert owner("verify", bundle).exit == 0
    for done in verdicts(owner, folder):
        assert (done.exit, codes_of(done)) == (0, {"artifact.erased"})
    again = owner("-L", folder, "prove", "latest", "--artifacts", "-o", bundle)
    assert f"artifact {digest[7:19]} is not in the bundle: erased" in again.err
    for name in ("result", digest, digest[7:20]):
        reference = f"latest/{name}" if name == "result" else name
        shown = owner("-L", folder, "artifact", reference)
        assert shown.exit == 5
        assert "erased by receipt" in shown.err
        assert "erasure.request" in shown.err
    assert owner("-L", folder, "artifact", digest, "--json").json["condition"] == "erased"
    outcome = owner("-L", folder, "erase", digest, "--reason", "request", "--dry-run", "--json").json["referred_to_by"][
        0
    ]
    shown = owner("-L", folder, "show", outcome["receipt"], "--json").json["artifacts"]
    assert (shown[digest], sorted(shown.values())) == ("erased", ["erased", "whole"])
    assert "erased" in owner("-L", folder, "show", outcome["receipt"]).out
    again = owner("-L", folder, "erase", digest, "--reason", "request")
    assert (again.exit, "said it before" in again.out) == (0, True)


def test_absent_altered_and_unreadable_are_told_apart_from_erased(owner, folder):
    pack = folder / "artifacts" / "packs" / "00000000.pack"
    blob = folder / "artifacts" / "blobs" / digest_of(owner, folder, "large")[7:]
    whole, large = pack.read_bytes(), blob.read_bytes()
    cases = {
        "artifact.absent": (5, 5, blob.unlink),
        "artifact.altered": (1, 1, lambda: blob.write_bytes(large[:-1] + b"M")),
        "artifact.unreadable": (3, 2, lambda: (blob.unlink(), blob.mkdir())),
    }
    for code, (exit_, shown, damage) in cases.items():
        damage()
        for done in verdicts(owner, folder)[:3]:
            assert (done.exit, codes_of(done)) == (exit_, {code})
            status = next(check["status"] for check in done.json["checks"] if check.get("code") == code)
            assert status == {1: "failed", 3: "unreadable", 5: "absent"}[exit_]
        assert owner("-L", folder, "artifact", "latest/large").exit == shown
        assert owner("-L", folder, "artifact", "latest/large", "--json").json["condition"] == code.partition(".")[2]
        # Not asked for, they change nothing.
        assert owner("-L", folder, "verify").exit == 0
        os.rmdir(blob) if blob.is_dir() else blob.unlink(missing_ok=True)
        blob.write_bytes(large)
    assert pack.read_bytes() == whole
    assert verdicts(owner, folder)[0].exit == 0


def test_erased_bytes_that_came_back_are_not_said_to_be_erased(owner, folder):
    blob = folder / "artifacts" / "blobs" / digest_of(owner, folder, "large")[7:]
    large = blob.read_bytes()
    erased(owner, folder, "large")
    blob.write_bytes(large)
    for done in verdicts(owner, folder)[:3]:
        assert (done.exit, codes_of(done)) == (3, {"artifact.remains"})
    assert owner("-L", folder, "verify", "--require", "artifacts", "--accept", "artifact.remains").exit == 0
    assert owner("-L", folder, "erase", f"sha256:{blob.name}", "--reason", "request").exit == 0
    assert [codes_of(done) for done in verdicts(owner, folder)[:2]] == [{"artifact.erased"}] * 2


def test_what_was_lost_is_not_recorded_as_erased(owner, folder):
    (folder / "artifacts" / "blobs" / digest_of(owner, folder, "large")[7:]).unlink()
    before = owner("-L", folder, "head", "--json").json
    done = owner("-L", folder, "erase", "latest/large", "--reason", "request")
    assert (done.exit, "what was lost is not said to be erased" in done.err) == (5, True)
    assert owner("-L", folder, "head", "--json").json == before


def test_receipts_that_share_the_bytes_are_named_before_anything_happens(owner, folder):
    for name in ("first", "second"):
        with owner.open(folder) as ledger, ledger.run(name) as run, run.call("act") as call:
            call.artifact("x" * 1_100_000, name="shared")
    before = owner("-L", folder, "head", "--json").json
    refused = owner("-L", folder, "erase", "latest/shared", "--reason", "legal")
    assert refused.exit == 2
    assert refused.out.count("refers ") == 2
    assert "2 receipts refer to these bytes; nothing was erased" in refused.err
    assert owner("-L", folder, "head", "--json").json == before
    assert owner("-L", folder, "artifact", "latest/shared", "--json").json["condition"] == "whole"
    done = owner("-L", folder, "erase", "latest/shared", "--reason", "legal", "--yes", "--json")
    assert (done.exit, len(done.json["referred_to_by"]), len(done.json["receipts"])) == (0, 2, 3)
    assert owner("-L", folder, "artifact", "latest/shared").exit == 5


def test_a_hold_forbids_the_erasure_and_its_release_allows_it(owner, folder):
    hold = owner("-L", folder, "hold", "add", "latest", "--matter", "case 17", "--json").json["hold"]
    assert [each["matter"] for each in owner("-L", folder, "hold", "list", "--json").json] == ["case 17"]
    done = owner("-L", folder, "erase", "latest/result", "--reason", "request")
    assert (done.exit, "held by" in done.err) == (2, True)
    assert on_disk(folder)
    planned = owner("-L", folder, "erase", "latest/result", "--reason", "request", "--dry-run", "--json")
    assert (planned.exit, planned.json["holds"]) == (0, [hold])
    assert owner("-L", folder, "hold", "release", hold[7:19]).exit == 0
    assert owner("-L", folder, "hold", "list", "--json").json == []
    assert len(owner("-L", folder, "hold", "list", "--all", "--json").json) == 1
    assert erased(owner, folder)
    assert owner("-L", folder, "verify", "--json").exit == 0


def test_bytes_that_were_recorded_again_after_they_were_erased_and_lost_are_absent_not_erased(owner, folder):
    with owner.open(folder) as ledger, ledger.run("again") as run:
        digests = set()
        for again in (False, True):
            with run.call("act") as call:
                digests.add(call.artifact("the same bytes", name="same").digest)
            if not again:
                erase(ledger, plan_erasure(ledger, *digests), reason=Reason.ERASURE_REQUEST)
        (digest,) = digests
        place_hold(ledger, digest=digest)
        ledger.artifacts.erase(digest)
    for done in verdicts(owner, folder):
        if done.json["subject"].endswith("0:4"):
            continue
        found = [each["code"] for each in done.json["checks"] if each.get("code", "").startswith("artifact.")]
        assert (done.exit, sorted(found)) == (5, ["artifact.absent", "artifact.erased"]), done.out
    query = "SELECT state FROM artifacts WHERE name = 'same' ORDER BY index"
    assert [row["state"] for row in owner("-L", folder, "sql", "--format", "json", query).json] == ["erased", "absent"]
    tree = owner("-L", folder, "tree").out
    assert (tree.count("[same erased]"), tree.count("[same absent]")) == (1, 1)


def test_a_receipt_is_not_erased_and_that_is_said(owner, folder):
    run = owner("-L", folder, "log", "--json").json[0]["receipt"]
    for yes in ((), ("--yes",)):
        done = owner("-L", folder, "erase", run, "--reason", "request", *yes)
        assert (done.exit, "is a receipt, which is never erased" in done.err) == (5, True), done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("erase", "latest/result", "--reason", "because"), "expected one of request, retention, secret, legal"),
        (("erase", "latest/nothing", "--reason", "legal"), "keeps none named"),
        (("erase", "zz", "--reason", "legal"), "expected a digest"),
        (("erase", "sha256:" + "0" * 64, "--reason", "legal"), "absent"),
        (("hold", "add", "sha256:" + "0" * 64), "no receipt refers"),
        (("hold", "add", "latest", "--matter", "a\x1bb"), "expected 1 to 256 printable characters"),
        (("hold", "release", "latest"), "no such hold"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(owner, folder, arguments, said):
    before = owner("-L", folder, "head", "--json").json
    done = owner("-L", folder, *arguments)
    assert done.exit in {2, 5}
    assert said in done.err
    assert owner("-L", folder, "head", "--json").json == before


def test_somebody_without_the_keys_erases_nothing(owner, folder, tmp_path):
    stranger = Person(tmp_path / "stranger")
    done = stranger("-L", folder, "erase", digest_of(owner, folder), "--reason", "request")
    assert (done.exit, "this user has none" in done.err) == (2, True)
    assert on_disk(folder)
    assert stranger("-L", folder, "hold", "list").exit == 0
