"""What a ledger lets in: the rules of receipt trees, each with what is refused one step away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger import Ledger
from ledger.digest import digest
from ledger.envelope import Envelope, seal
from ledger.errors import AdmissionError
from ledger.keys import PrivateKey
from ledger.receipt import Outcome, Step, print_receipt
from tests.reference.check import check_folder
from tests.reference.ledgers import (
    bytes_of,
    closing,
    common,
    grant,
    intent,
    new_ledger,
    open_ledger,
    opening,
    outcome,
    quick_folder,
    step,
    verdict,
)

OTHER = PrivateKey.from_seed(bytes.fromhex(digest(b"other issuer")[7:]))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with quick_folder(tmp_path) as folder:
        yield new_ledger(folder)


def put(ledger: Ledger, *envelopes: Envelope) -> str:
    return ledger.append_many(envelopes)[-1].receipt


def refused(ledger: Ledger, code: str, *envelopes: Envelope) -> None:
    """Check a refusal by the open ledger and by one that knows only what was saved."""
    before = bytes_of(ledger.folder)
    for each in (ledger, open_ledger(ledger.folder.parent)):
        with pytest.raises(AdmissionError) as caught:
            each.append_many(envelopes)
        assert caught.value.code == code
    assert bytes_of(ledger.folder) == before


def close(ledger: Ledger, run: str, *children: str, strangers: bool = False) -> None:
    put(ledger, closing(ledger, run, *children))
    check_folder(ledger.folder)
    found = verdict(ledger)
    # The other issuer is pinned by nobody: all that can be said of its receipts is said.
    assert found.exit == (3 if strangers else 0), found.findings
    assert {check.code for check in found.findings} - {"head.first_seen"} == (
        {"trust.issuer_unpinned"} if strangers else set()
    )


def foreign(ledger: Ledger, make: Callable[..., Envelope], *arguments: str, sealed: bool = False) -> Envelope:
    """Return a receipt of another issuer in this ledger."""
    issuer = {"issuer": {"name": "other", "key": OTHER.key}}
    envelope = make(ledger, *arguments, **issuer)
    return seal(envelope.payload, OTHER) if sealed else Envelope(envelope.payload)


def test_a_receipt_of_a_run_follows_its_opening(ledger: Ledger) -> None:
    start = opening(ledger)
    early = intent(ledger, start.receipt_id)
    refused(ledger, "run.unknown_opening", early)
    refused(ledger, "run.unknown_opening", early, start)
    put(ledger, start, early)
    close(ledger, start.receipt_id, early.receipt_id)


def test_a_receipt_that_is_no_opening_is_no_run(ledger: Ledger) -> None:
    refused(ledger, "run.unknown_opening", intent(ledger, put(ledger, grant(ledger))))


def test_an_outcome_commits_its_intent_first(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    one, other = put(ledger, intent(ledger, run)), put(ledger, intent(ledger, run))
    refused(ledger, "tree.order", outcome(ledger, run, one, children=(other, one)))
    refused(ledger, "tree.order", outcome(ledger, run, one, children=(other,)))
    settled = put(ledger, outcome(ledger, run, one, other))
    close(ledger, run, settled)


def test_an_outcome_settles_an_intent_and_nothing_else(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    group = put(ledger, step(ledger, run))
    refused(ledger, "tree.order", outcome(ledger, run, group))
    refused(ledger, "tree.order", outcome(ledger, run, run))
    close(ledger, run, group)


def test_a_child_is_committed_once(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    one = put(ledger, intent(ledger, run))
    refused(ledger, "tree.repeated", step(ledger, run, one, one))
    settled = put(ledger, outcome(ledger, run, one))
    refused(ledger, "tree.missing", outcome(ledger, run, one))
    refused(ledger, "tree.missing", step(ledger, run, one))
    refused(ledger, "tree.missing", closing(ledger, run, one, settled))
    two = [outcome(ledger, run, one), outcome(ledger, run, one)]
    refused(ledger, "tree.missing", *two)
    close(ledger, run, settled)


def test_a_child_is_of_the_same_run(ledger: Ledger) -> None:
    run, other = put(ledger, opening(ledger)), put(ledger, opening(ledger))
    theirs = put(ledger, intent(ledger, other))
    mine = put(ledger, intent(ledger, run))
    refused(ledger, "tree.missing", outcome(ledger, run, mine, theirs))
    refused(ledger, "tree.missing", step(ledger, run, theirs))
    refused(ledger, "tree.missing", step(ledger, run, put(ledger, grant(ledger))))
    refused(ledger, "tree.missing", step(ledger, run, "sha256:" + "0" * 64))
    close(ledger, run, mine)
    close(ledger, other, theirs)


def test_only_a_run_commits_its_opening_and_first_of_all(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    one = put(ledger, intent(ledger, run))
    refused(ledger, "tree.order", step(ledger, run, run))
    refused(ledger, "tree.order", outcome(ledger, run, one, run))
    refused(ledger, "tree.order", closing(ledger, run, children=(one, run)))
    refused(ledger, "tree.order", closing(ledger, run, children=(one,)))
    close(ledger, run, one)


def test_a_run_commits_everything_that_is_left(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    one, other = put(ledger, intent(ledger, run)), put(ledger, step(ledger, run))
    refused(ledger, "tree.uncommitted", closing(ledger, run))
    refused(ledger, "tree.uncommitted", closing(ledger, run, one))
    refused(ledger, "tree.uncommitted", closing(ledger, run, other))
    close(ledger, run, one, other)


def test_what_a_batch_holds_counts_for_the_rest_of_it(ledger: Ledger) -> None:
    start = opening(ledger)
    run = start.receipt_id
    one = intent(ledger, run)
    settled = outcome(ledger, run, one.receipt_id)
    end = closing(ledger, run, settled.receipt_id)
    refused(ledger, "tree.missing", start, one, end, settled)
    refused(ledger, "run.closed", start, one, settled, end, intent(ledger, run))
    put(ledger, start, one, settled, end)
    assert verdict(ledger).exit == 0


def test_an_unsealed_receipt_has_the_issuer_of_its_run(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    refused(ledger, "receipt.borrowed_issuer", foreign(ledger, intent, run))
    theirs = put(ledger, foreign(ledger, intent, run, sealed=True))
    close(ledger, run, theirs, strangers=True)


def test_a_seal_of_another_issuer_covers_nothing_of_the_runs_own(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    mine = put(ledger, intent(ledger, run))
    refused(ledger, "receipt.borrowed_issuer", foreign(ledger, outcome, run, mine, sealed=True))
    refused(ledger, "receipt.borrowed_issuer", foreign(ledger, step, run, mine, sealed=True))
    theirs = put(ledger, foreign(ledger, intent, run, sealed=True))
    settled = put(ledger, foreign(ledger, outcome, run, theirs, sealed=True))
    close(ledger, run, mine, settled, strangers=True)


def test_a_tree_has_64_levels_and_no_more(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    top = put(ledger, step(ledger, run))
    levels = 0
    while True:
        above = step(ledger, run, top)
        try:
            top = put(ledger, above)
        except AdmissionError as error:
            code = error.code
            break
        levels += 1
    assert (code, levels) == ("tree.too_deep", 62)
    close(ledger, run, top)


def test_a_child_run_names_a_run_that_is_open(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    refused(ledger, "run.unknown_opening", opening(ledger, parent_opening="sha256:" + "0" * 64))
    child = put(ledger, opening(ledger, parent_opening=run))
    put(ledger, closing(ledger, child))
    refused(ledger, "tree.uncommitted", closing(ledger, run))
    root = open_ledger(ledger.folder.parent).entries()
    last = list(root)[-1].entry.receipt
    close(ledger, run, last)
    refused(ledger, "run.closed", opening(ledger, parent_opening=run))


def test_models_refuse_what_the_rules_never_see(ledger: Ledger) -> None:
    run = put(ledger, opening(ledger))
    with pytest.raises(ValueError, match="children"):
        Outcome(**common(ledger, run=run, intent=run, status="committed", duration_ms=1, children=()))
    assert print_receipt(Step(**common(ledger, run=run, name="s", status="completed"))).count(b"children") == 0
