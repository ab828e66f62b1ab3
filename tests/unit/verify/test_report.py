"""Verdicts: only what ran and found nothing reads as passed, and the exit code follows from the checks alone."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import canonical
from ledger.errors import LedgerError
from tests.reference.build import small
from verify.codes import CODES, PRECEDENCE, worst
from verify.ledger import verify_ledger
from verify.options import REQUIREMENTS, parse_options
from verify.report import ACCEPTABLE, MAX_FINDINGS, Check, Coverage, Report, Verdict, accept_codes


def test_a_name_that_ran_without_a_finding_passes_and_counts():
    report = Report()
    report.ran("chain", 3)
    report.ran("chain", 2)
    assert report.checks() == (Check("chain", "ok", count=5),)


def test_a_name_with_a_finding_has_no_item_that_passes():
    report = Report()
    report.ran("chain", 3)
    report.find("chain", "chain.index", where="entry 2")
    assert [(check.status, check.code) for check in report.checks()] == [("failed", "chain.index")]
    assert report.exits() == 1


def test_a_name_that_was_expected_and_did_not_run_is_not_established():
    report = Report()
    report.expect("chain")
    assert [(check.status, check.exit) for check in report.checks()] == [("not_checked", 3)]


def test_a_name_that_ran_over_nothing_does_not_read_as_passed():
    report = Report()
    report.ran("trees", 0)
    assert [check.status for check in report.checks()] == ["not_checked"]


def test_a_skipped_check_counts_only_where_it_was_asked_for():
    for asked, exit_ in ((True, 3), (False, 0)):
        report = Report()
        report.ran("memory")
        report.skip("memory", "check.unreachable", asked=asked)
        assert ([check.status for check in report.checks()], report.exits()) == (["not_checked"], exit_)


def test_an_observation_leaves_a_check_passed_and_a_fault_cannot_be_an_observation():
    report = Report()
    report.ran("journal")
    report.inform("journal", "journal.torn_tail")
    assert [check.status for check in report.checks()] == ["ok", "ok"]
    with pytest.raises(LedgerError):
        report.inform("journal", "journal.damaged")


@given(st.lists(st.sampled_from(sorted(CODES)), max_size=300))
def test_findings_beyond_the_bound_keep_their_count_and_their_exit(found):
    report = Report()
    for code in found:
        report.find("x", code)
    checks = [check for check in report.checks() if check.code in set(found)]
    assert sum(check.count for check in checks) == len(found)
    assert len(checks) <= MAX_FINDINGS + len(CODES)
    assert report.exits() == worst(CODES[code].exit for code in found) or not found


def test_the_first_of_1_5_4_6_3_wins():
    order = (1, 5, 4, 6, 3)
    assert (*order, 0) == PRECEDENCE
    for size in range(len(order) + 1):
        for some in itertools.permutations(order, size):
            expected = min(some, key=order.index) if some else 0
            assert worst(some) == expected
    assert {row.exit for row in CODES.values()} <= set(PRECEDENCE)


def verdict(*checks, accepted=()):
    return Verdict("s", checks, Coverage(0, 1, 1), accepted=accepted)


def test_text_and_json_show_the_same_exit_and_one_status_each():
    for code, row in CODES.items():
        found = verdict(Check("x", "failed", code))
        value = canonical.decode(found.to_json())
        assert value["exit"] == found.exit == row.exit
        assert (value["status"] == "ok") is (row.exit == 0)
    assert not verdict(Check("x", "failed", "chain.index", asked=False)).exit


def test_accepting_never_reaches_what_does_not_hold_or_is_not_trusted():
    assert {CODES[code].exit for code in ACCEPTABLE} == {3, 5}
    assert accept_codes(["run.open", "run.open", "head.unseen"]) == ("head.unseen", "run.open")
    for word in ("chain.index", "trust.log_key_mismatch", "coverage.empty", "subject.absent", "nonsense", ""):
        with pytest.raises(LedgerError) as caught:
            accept_codes([word])
        assert caught.value.code == "usage.accept"
    found = verdict(Check("x", "not_checked", "run.open"), accepted=("run.open",))
    assert (found.exit, len(found.findings)) == (0, 1)


def test_requirements_are_the_words_listed_and_no_others():
    for word in REQUIREMENTS[:-1]:
        parse_options(require=(word,))
    assert parse_options(require=("counter-seal=2", "counter-seal=1")).counter_seals == 2
    for word in ("counter-seal", "counter-seal=0", "counter-seal=01", "close", "memory ", "counter-seal=N"):
        with pytest.raises(LedgerError) as caught:
            parse_options(require=(word,))
        assert caught.value.code == "usage.require"


def test_the_json_of_a_verdict_has_the_members_of_its_shape():
    ledger = small()
    value = canonical.decode(verify_ledger(ledger.segments(), trust=ledger.trust()).to_json())
    assert set(value) == {
        "schema", "subject", "status", "exit", "coverage", "covered", "verifier", "checks", "accepted", "notes", "head",
        "trust",
    }  # fmt: skip
    assert value["schema"] == "receipt-ledger.verdict/v1"
    assert value["head"]["origin"] == ledger.origin
    for check in value["checks"]:
        assert set(check) <= {"name", "status", "count", "asked", "code", "where", "message"}
        assert check["status"] in {"ok", "failed", "not_checked", "absent", "unreadable"}
