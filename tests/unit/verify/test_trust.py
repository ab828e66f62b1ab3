"""Trust files: read strictly, pinned without losing what the user wrote."""

from __future__ import annotations

import hashlib

import pytest

from ledger.keys import PrivateKey
from ledger.testkeys import PUBLISHED_TEST_KEYS
from tests.reference.build import test_key
from verify.errors import TrustError
from verify.trust import ApproverPin, IssuerPin, NotaryPin, OriginPin, parse_trust, pin, unpin


def key(label):
    return PrivateKey.from_seed(hashlib.sha256(b"not published " + label.encode()).digest()).key


HEADER = "sha256:" + "ab" * 32
PEM = "-----BEGIN CERTIFICATE-----\\nTUlJ\\n-----END CERTIFICATE-----"
GOOD = f"""
quorum = 1
[[origin]]
name = "ledger.invalid/a"
log_key = "{key("log")}"
header = "{HEADER}"
[[issuer]]
name = "build"
key = "{key("issuer")}"
origin = ["ledger.invalid/a"]
[[approver]]
name = "ada"
key = "{key("ada")}"
roles = ["release"]
[[notary]]
name = "notary.example.org"
key = "{key("notary")}"
cosigner = "{key("cosigner")}"
[[timestamp]]
name = "tsa.example.org"
certificate = "{PEM}"
"""


def parse(text, **options):
    return parse_trust(text.encode(), source="test", **options)


def test_a_trust_file_is_read_whole():
    trust = parse(GOOD)
    assert trust.origins["ledger.invalid/a"] == OriginPin(name="ledger.invalid/a", log_key=key("log"), header=HEADER)
    assert trust.issuers["build"].origin == ("ledger.invalid/a",)
    assert trust.approvers["ada"].roles == ("release",)
    assert (trust.quorum, list(trust.notaries)) == (1, ["notary.example.org"])
    assert trust.notaries["notary.example.org"].cosigner == key("cosigner")
    assert trust.timestamps["tsa.example.org"].certificate.startswith("-----BEGIN CERTIFICATE-----\nTUlJ")
    assert trust.digest == "sha256:" + hashlib.sha256(GOOD.encode()).hexdigest()


def test_an_empty_file_pins_nobody():
    trust = parse("")
    assert (trust.origins, trust.judge_issuer("build", key("issuer"), "x")) == ({}, "trust.issuer_unpinned")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("quorum = 1", "quorums = 1"),
        ("quorum = 1", "quorum = -1"),
        ("quorum = 1", "quorum = 2"),
        ("quorum = 1", 'quorum = "1"'),
        ("quorum = 1", "quorum = 1.0"),
        ("quorum = 1", "quorum = true"),
        ("quorum = 1", "quorum = 1\nquorum = 1"),
        ('origin = ["ledger.invalid/a"]', 'origins = ["ledger.invalid/a"]'),
        ('origin = ["ledger.invalid/a"]', "origin = []"),
        ('origin = ["ledger.invalid/a"]', 'origin = "ledger.invalid/a"'),
        (f'header = "{HEADER}"', f'header = "{HEADER[:-1]}"'),
        (f'header = "{HEADER}"', 'header = ""'),
        (f'log_key = "{key("log")}"', ""),
        ("BEGIN CERTIFICATE", "BEGIN PUBLIC KEY"),
        (f'log_key = "{key("log")}"', f'log_key = "{key("log").upper()}"'),
        (f'log_key = "{key("log")}"', f'log_key = "ml-dsa:{key("log")[8:]}"'),
        ("[[approver]]", "[approver]"),
        ('name = "ada"', 'name = ""'),
        ('name = "ada"', 'name = "a\\nb"'),
        (key("ada"), "ed25519:" + "00" * 32),
        (key("ada"), "ed25519:01" + "00" * 31),
        (key("ada"), "ed25519:" + "ff" * 32),
        (key("ada"), key("issuer")),
        (key("ada"), key("log")),
        (key("cosigner"), key("notary")),
        (key("cosigner"), key("log")),
        (key("cosigner"), "ed25519:" + "00" * 32),
        (f'key = "{key("notary")}"\ncosigner = "{key("cosigner")}"\n', ""),
        ("[[timestamp]]", f'[[notary]]\nname = "notary.example.org"\ncosigner = "{key("more")}"\n[[timestamp]]'),
        ('name = "notary.example.org"', 'name = "a notary"'),
        ('name = "notary.example.org"', 'name = "notary+1"'),
        ("[[timestamp]]", f'[[notary]]\nname = "another"\nkey = "{key("notary")}"\n[[timestamp]]'),
        ("[[timestamp]]", f'[[notary]]\nname = "another"\nkey = "{key("cosigner")}"\n[[timestamp]]'),
        ("[[timestamp]]", f'[[notary]]\nname = "notary.example.org"\nkey = "{key("more")}"\n[[timestamp]]'),
        ("[[timestamp]]", f'[[timestamp]]\nname = "another"\ncertificate = "{PEM}"\n[[timestamp]]'),
        ("[[timestamp]]", f'[[timestamp]]\nname = "tsa.example.org"\ncertificate = "{PEM}"\n[[timestamp]]'),
        ("[[notary]]", f'[[issuer]]\nname = "build"\nkey = "{key("more")}"\n[[notary]]'),
        ("[[notary]]", f'[[origin]]\nname = "ledger.invalid/a"\nlog_key = "{key("more")}"\n[[notary]]'),
    ],
)
def test_each_departure_is_refused(old, new):
    assert old in GOOD
    with pytest.raises(TrustError):
        parse(GOOD.replace(old, new, 1))


def test_bytes_that_are_no_text_or_too_many_are_refused():
    for data in (b"\xff", b"#" * ((1 << 20) + 1), b"x = " + b"[" * 5_000):
        with pytest.raises(TrustError):
            parse_trust(data, source="test")


def test_published_test_keys_are_refused_unless_a_test_says_otherwise():
    for published in sorted(PUBLISHED_TEST_KEYS):
        text = GOOD.replace(key("issuer"), published)
        with pytest.raises(TrustError, match="published"):
            parse(text)
        parse(text, allow_test_keys=True)
    assert test_key("issuer").key in PUBLISHED_TEST_KEYS


def test_a_pinned_key_speaks_only_under_its_name_in_its_role_and_for_its_origins():
    trust = parse(GOOD)
    judge = trust.judge_issuer
    assert judge("build", key("issuer"), "ledger.invalid/a") is None
    assert judge("build", key("issuer"), "ledger.invalid/b") == "trust.issuer_mismatch"
    assert judge("build", key("other"), "ledger.invalid/a") == "trust.issuer_mismatch"
    assert judge("another", key("issuer"), "ledger.invalid/a") == "trust.issuer_mismatch"
    assert judge("another", key("ada"), "ledger.invalid/a") == "trust.issuer_mismatch"
    assert judge("another", key("other"), "ledger.invalid/a") == "trust.issuer_unpinned"
    assert trust.judge_approver("ada", key("ada")) is None
    assert trust.judge_approver("ada", key("other")) == "trust.issuer_mismatch"
    assert trust.judge_approver("bob", key("ada")) == "trust.issuer_mismatch"
    assert trust.judge_approver("bob", key("other")) == "trust.approver_unpinned"


def test_a_notary_speaks_only_under_its_name_with_its_key():
    trust = parse(GOOD)
    assert trust.judge_notary("notary.example.org", key("notary")) is None
    assert trust.judge_notary("notary.example.org", key("other")) == "trust.notary_mismatch"
    assert trust.judge_notary("notary.example.org", key("cosigner")) == "trust.notary_mismatch"
    assert trust.judge_notary("another", key("notary")) == "trust.notary_mismatch"
    assert trust.judge_notary("another", key("other")) == "trust.notary_unpinned"


def test_a_witness_that_only_cosigns_needs_no_key_of_seals():
    trust = parse(GOOD.replace(f'key = "{key("notary")}"\n', ""))
    assert (trust.notaries["notary.example.org"].key, trust.quorum) == (None, 1)
    assert trust.judge_notary("notary.example.org", key("notary")) == "trust.notary_mismatch"


def test_pinning_keeps_what_the_user_wrote_and_pinning_again_changes_nothing():
    before = b"# mine\nquorum = 0 # later\n"
    origin = OriginPin(name="ledger.invalid/a", log_key=key("log"), header=HEADER)
    issuer = IssuerPin(name="build", key=key("issuer"), origin=("ledger.invalid/a",))
    approver = ApproverPin(name="ada", key=key("ada"), roles=("release",))
    notary = NotaryPin(name="n", key=key("notary"))
    after = pin(before, origin=origin, issuer=issuer, approver=approver, notary=notary)
    assert after.startswith(before)
    trust = parse_trust(after, source="test")
    assert (trust.origins[origin.name], trust.issuers[issuer.name]) == (origin, issuer)
    assert (trust.approvers["ada"], trust.notaries["n"]) == (approver, notary)
    assert pin(after, origin=origin, issuer=issuer, approver=approver, notary=notary) == after
    second = pin(after, origin=OriginPin(name="ledger.invalid/b", log_key=key("log b")))
    assert set(parse_trust(second, source="test").origins) == {"ledger.invalid/a", "ledger.invalid/b"}


def test_a_pin_that_contradicts_another_is_refused():
    before = pin(b"", origin=OriginPin(name="ledger.invalid/a", log_key=key("log")))
    with pytest.raises(TrustError) as caught:
        pin(before, origin=OriginPin(name="ledger.invalid/a", log_key=key("other")))
    assert caught.value.code == "trust.conflict"
    with pytest.raises(TrustError):
        pin(before, issuer=IssuerPin(name="x", key=key("log")))


def test_unpinning_takes_out_a_name_and_keeps_the_rest():
    text = b"# mine\n" + GOOD.encode()
    assert set(parse_trust(unpin(text, "build"), source="test").issuers) == set()
    gone = unpin(unpin(unpin(text, "build"), "ada"), "ledger.invalid/a")
    trust = parse_trust(gone, source="test")
    assert (trust.origins, trust.issuers, trust.approvers) == ({}, {}, {})
    assert gone.startswith(b"# mine\n")
    assert list(trust.notaries) == ["notary.example.org"]
    with pytest.raises(TrustError) as caught:
        unpin(text, "nobody")
    assert caught.value.code == "trust.absent"


@pytest.mark.parametrize("text", ["a." * 5000 + "a=1", "a=" + "[" * 50_000, "a=" + "{b=" * 5000 + "1" + "}" * 5000])
def test_a_file_that_nests_without_end_is_refused(text):
    with pytest.raises(TrustError):
        parse_trust(text.encode(), source="test")
