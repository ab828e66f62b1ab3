"""Authority, runbooks and evaluations re-proved over a ledger: each dishonest recorder seals properly and breaks one rule."""

from __future__ import annotations

import io

import pytest

from ledger import canonical
from ledger.digest import digest
from ledger.facts import match_facts
from ledger.rules.assertion import parse_assertions
from ledger.rules.errors import RunbookError
from ledger.rules.evaluation import criteria_of
from ledger.rules.shape import Shape
from tests.reference.books import book
from tests.reference.build import Builder, party
from verify.bundle import verify_bundle
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.parallel import fold_part
from verify.resume import parse_state, print_state
from verify.rules import RuleSources, approvers_of
from verify.state import Binding

BOUND = Binding(None, digest(b"asked"), "1")
BOOK = book()
CRITERIA = criteria_of(
    parse_assertions(
        Shape("test", RunbookError), [{"id": "rows", "at": "/rows", "is": "at_least", "value": 1}], "assert"
    )
)
OBSERVED = canonical.encode({"rows": 1})
DOCUMENTS = {each.digest: each.data for each in (BOOK, CRITERIA)} | {digest(OBSERVED): OBSERVED}


class Recorder(Builder):
    """A recorder that says what it is told to say, and seals it."""

    def begin(self, **members):
        self.header()
        return self.opening(**members)

    def supervised(self, profile="R2", **members):
        return self.begin(
            actor={"agent": "bot", "user": "unknown", "model": "unknown"},
            adapter={"name": "hook", "version": "1", "coverage": "tool-call-hook"},
            document=BOOK.document,
            runbook={"envelope": BOOK.digest, "profile": profile, "ceiling": "irreversible"},
            **members,
        )

    def act(self, name, **members):
        return {
            "name": name,
            "tool": {"name": name, "version": "1", "digest": "unknown"},
            "access": "unknown",
            "arguments_digest": "unknown",
            "resource": "unknown",
            "environment": "unknown",
            **members,
        }

    def use(self, step, tool, **members):
        return self.outcome(self.intent(act=self.act(tool), **({"step": step} if step else {}), **members))

    def gate(self, step, tool, by="approver", name=None):
        """Ask at a gate and open it; return the approval."""
        asked = self.act_digest(self.act(tool))
        request = self.decision(act=self.act(tool), status="waiting", reason="approval.required", step=step)
        approval = self.approval(request=request, run=self.current, act_digest=asked, issuer=party(by, name))
        return {"approvals": [approval]}

    def count(self, *, evaluated=True, **evaluation):
        self.use("count", "db.read")
        if evaluated:
            answers = [{"criterion": "rows", "required": True, "answer": "met"}]
            evaluator = {"package": "receipt-ledger", "method": "assert", "run": self.current}
            given = {"run": self.current, "criteria": CRITERIA.digest, "evaluator": evaluator, "answers": answers}
            self.evaluation(digest(OBSERVED), **{**given, **evaluation})
        self.end("count")

    def drop(self, status="completed"):
        self.use("drop", "db.drop", **self.gate("drop", "db.drop"))
        self.end("drop", status)

    def end(self, name, status="completed"):
        pending = [each for each in self.uncommitted[self.current][1:] if self.kind(each) in {"outcome", "decision"}]
        return self.step(*pending, name=name, status=status)

    def kind(self, id_):
        return next(row.kind for row in self.rows if row.id == id_)

    def finish(self, **members):
        self.run(**members)
        self.commit()
        return self


def judge(ledger, **options):
    given = RuleSources(approvers_of(ledger.trust()), document_of=DOCUMENTS.get)
    return verify_ledger(
        ledger.segments(), trust=ledger.trust(), memory=ledger.notes[-1], sources=given, options=Options(**options)
    )


def codes(verdict):
    return [check.code for check in verdict.findings]


def expect(ledger, code):
    verdict = judge(ledger)
    ruled = [each for each in codes(verdict) if not each.startswith("trust.")]
    assert (verdict.exit, ruled) == ((6, [code]) if code else (0, []))
    if code:
        assert verdict.findings[0].where.startswith("entry ")
    return verdict


def whole(ledger):
    ledger.count()
    ledger.drop()
    ledger.use("tell", "mail.send")
    ledger.end("tell")
    ledger.end("done")
    return ledger.finish()


def test_a_procedure_that_was_followed_to_its_terminal():
    ledger = Recorder()
    ledger.supervised()
    verdict = expect(whole(ledger), None)
    assert next(check for check in verdict.checks if check.name == "rules").count == len(ledger.rows)


# Authority.


@pytest.mark.parametrize(("acts", "code"), [(["deploy"], None), (["deploy", "shell"], "grant.widened")])
def test_a_widened_delegation(acts, code):
    ledger = Recorder()
    ledger.header()
    root = ledger.grant(acts=["deploy"])
    ledger.grant(action="narrowed", acts=acts, parent=root)
    ledger.commit()
    verdict = expect(ledger, code)
    assert not code or verdict.findings[0].where == "entry 2"


@pytest.mark.parametrize(("revoked", "code"), [("after", None), ("before", "grant.revoked")])
def test_a_revoked_grant_used_after_its_revocation(revoked, code):
    ledger = Recorder()
    ledger.header()
    root = ledger.grant(acts=["deploy"])
    ledger.opening(grant=root, actor={"agent": "bot", "user": "unknown", "model": "unknown"})
    for when in ("before", "after"):
        if when == revoked:
            ledger.grant(action="revoked", parent=root, drop=("acts",))
        if when == "before":
            ledger.outcome(ledger.intent(grant=root))
    expect(ledger.finish(), code)


def test_a_grant_that_only_an_intent_names_is_looked_at_too():
    for acts, code in ((["deploy"], None), (["pay"], "grant.not_covered")):
        ledger = Recorder()
        ledger.header()
        root = ledger.grant(grantee="builder", acts=acts)
        ledger.opening()
        ledger.outcome(ledger.intent(grant=root))
        expect(ledger.finish(), code)


@pytest.mark.parametrize(("limit", "code"), [(80, None), (79, "grant.period_overspent")])
def test_an_account_that_spent_more_in_a_day_than_it_may_across_runs(limit, code):
    ledger = Recorder()
    ledger.header()
    period = {"account": "acme", "meter": "usd_micro", "period": "day", "limit": limit}
    grants = [ledger.grant(grantee="builder", acts=["deploy"], periods=[period]) for _ in range(2)]
    for grant in grants:
        ledger.opening(grant=grant)
        reserved = [{"meter": "usd_micro", "reserved": 40, "basis": "quoted"}]
        ledger.outcome(ledger.intent(grant=grant, reserved=reserved))
        ledger.run()
    ledger.commit()
    expect(ledger, code)


def test_what_acts_under_a_grant_or_a_runbook_is_told_from_its_facts_alone():
    ledger = Recorder()
    ledger.header()
    root = ledger.grant()
    ledger.opening()
    ledger.intent()
    for members in ({"grant": root}, {"step": "count"}):
        ledger.intent(**members)
    ledger.opening(grant=root)
    ledger.opening(runbook={"envelope": BOOK.digest, "profile": "R2", "ceiling": "write"}, document=BOOK.document)
    ruled = [facts and facts.ruled for facts in (match_facts(ledger.payload(n)) for n in range(2, len(ledger.rows)))]
    assert ruled == [False, False, True, True, True, True]


# Runbooks.


@pytest.mark.parametrize(
    ("step", "tool", "code"),
    [
        ("count", "db.read", None),
        ("count", "mail.send", "runbook.out_of_scope_tool"),
        ("count", "shell", "runbook.undeclared_tool"),
        (None, "db.read", "runbook.out_of_scope_tool"),
    ],
)
def test_a_step_that_used_another_steps_tool(step, tool, code):
    ledger = Recorder()
    ledger.supervised()
    ledger.use(step, tool)
    expect(ledger.finish(status="incomplete", reason="run.terminal_not_reached"), code)


@pytest.mark.parametrize(("gated", "code"), [("approver", None), ("bot", "approval.self"), (None, "approval.missing")])
def test_a_destructive_tool_before_its_gate(gated, code):
    ledger = Recorder()
    ledger.supervised()
    ledger.count()
    ledger.use("drop", "db.drop", **(ledger.gate("drop", "db.drop", gated) if gated else {}))
    expect(ledger.finish(status="incomplete", reason="run.terminal_not_reached"), code)


@pytest.mark.parametrize(("retries", "code"), [(2, None), (3, "runbook.budget_exhausted")])
def test_a_retry_beyond_its_budget(retries, code):
    ledger = Recorder()
    ledger.supervised()
    ledger.count()
    for _ in range(retries):
        ledger.drop("failed")
        ledger.count()
    expect(ledger.finish(status="incomplete", reason="run.terminal_not_reached"), code)


@pytest.mark.parametrize(
    ("close", "code"),
    [
        ({"status": "incomplete", "reason": "run.terminal_not_reached"}, None),
        ({"status": "completed"}, "runbook.terminal_not_reached"),
    ],
)
def test_a_run_ended_off_a_terminal(close, code):
    ledger = Recorder()
    ledger.supervised()
    ledger.count()
    expect(ledger.finish(**close), code)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"status": "denied", "reason": "scope.undeclared_tool"}, None),
        (None, "runbook.unrecorded"),
    ],
)
def test_a_deviation_that_was_not_recorded(said, code):
    reading = book(
        {
            "schema": "receipt-ledger.runbook/v1",
            "mode": "human-with-agent",
            "capabilities": ["db.read"],
            "steps": [{"id": "look", "tool": "db.read", "risk": "read-only"}, {"id": "done", "terminal": True}],
        }
    )
    DOCUMENTS[reading.digest] = reading.data
    ledger = Recorder()
    runbook = {"envelope": reading.digest, "profile": "R0", "ceiling": "write"}
    ledger.begin(document=reading.document, runbook=runbook)
    ledger.use("look", "shell", **({"would_have": said} if said else {}))
    expect(ledger.finish(status="incomplete", reason="run.terminal_not_reached"), code)


def test_a_step_called_completed_that_nobody_evaluated_or_somebody_else_did():
    for members, code in (
        ({}, None),
        ({"evaluated": False}, "runbook.not_asserted"),
        ({"evaluator": {"package": "judge", "method": "model", "run": "unknown"}}, "runbook.not_asserted"),
        ({"verdict": "not_met"}, "evaluation.contradicted"),
    ):
        ledger = Recorder()
        ledger.supervised()
        ledger.count(**members)
        found = judge(ledger.finish(status="incomplete", reason="run.terminal_not_reached"))
        assert (found.exit, codes(found)[:1]) == ((6, [code]) if code else (0, []))


def test_a_runbook_that_had_to_be_refused_and_ran():
    for profile, code in (("R2", None), ("R1", "runbook.not_refused")):
        ledger = Recorder()
        ledger.supervised(profile)
        ledger.count()
        expect(ledger.finish(status="incomplete", reason="run.terminal_not_reached"), code)


def test_an_envelope_that_is_not_at_hand_is_exit_3():
    ledger = Recorder()
    ledger.supervised()
    whole(ledger)
    verdict = verify_ledger(ledger.segments(), trust=ledger.trust(), memory=ledger.notes[-1])
    assert (verdict.exit, set(codes(verdict))) == (3, {"runbook.absent", "evaluation.criteria_absent"})


# Bundles, stretches judged apart, and states to go on from.


@pytest.mark.parametrize(("tool", "exit_", "code"), [("db.read", 0, None), ("shell", 6, "runbook.undeclared_tool")])
def test_the_bundle_of_a_whole_run_shows_that_it_left_its_runbook_where_its_envelope_is_at_hand(tool, exit_, code):
    ledger = Recorder()
    ledger.supervised()
    ledger.use("count", tool)
    ledger.finish(status="incomplete", reason="run.terminal_not_reached")
    bundle = ledger.bundle(ledger.rows[-1].id)
    given = {"trust": ledger.trust(), "memory": ledger.notes[-1]}
    verdict = verify_bundle(bundle, document_of=DOCUMENTS.get, **given)
    assert (verdict.exit, codes(verdict)) == (exit_, [code] if code else [])
    alone = verify_bundle(bundle, **given)
    assert (alone.exit, codes(alone)) == (3, ["runbook.absent"])
    lying = verify_bundle(bundle, document_of=lambda _: b"{}", **given)
    assert (lying.exit, codes(lying)) == (3, ["runbook.absent"])


def recorded(tool):
    """A ledger of a grant, a run that rules bear on, and one that none does, in commits of one entry."""
    ledger = Recorder()
    ledger.header()
    ledger.commit()
    root = ledger.grant(acts=["db.*", "mail.send"])
    ledger.commit()
    ledger.header = lambda: None
    ledger.supervised(grant=root)
    ledger.commit()
    intent = ledger.intent(act=ledger.act("db.read"), step="count", grant=root)
    ledger.commit()
    ledger.outcome(intent)
    ledger.commit()
    ledger.outcome(ledger.intent(act=ledger.act(tool), step="count", grant=root))
    ledger.commit()
    ledger.run(status="incomplete", reason="run.terminal_not_reached")
    ledger.commit()
    ledger.opening()
    ledger.commit()
    ledger.outcome(ledger.intent())
    ledger.run()
    ledger.commit()
    return ledger


def split(data, cut):
    from verify.chain import Segment

    lines, at, index = data.split(b"\n")[:-1], 0, 0
    for number, line in enumerate(lines):
        if line.startswith(b'{"entry":'):
            index += 1
        elif index == cut:
            at = number + 1
    first = b"".join(each + b"\n" for each in lines[:at])
    second = b"".join(each + b"\n" for each in lines[at:])
    return [Segment("journal/0000000000000000.jsonl", 0, first), Segment(f"journal/{cut:016d}.jsonl", cut, second)]


@pytest.mark.parametrize("tool", ["db.read", "mail.send", "db.shell"])
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 7, 8])
def test_a_ledger_judged_apart_or_in_two_runs_gives_the_same_verdict_wherever_the_cut_is(tool, cut):
    ledger = recorded(tool)
    expected = judge(ledger)
    assert (
        codes(expected)
        == {
            "db.read": [],
            "mail.send": ["runbook.out_of_scope_tool"],
            "db.shell": ["runbook.undeclared_tool"],
        }[tool]
    )
    segments = split(ledger.journal(), cut)
    sources = RuleSources(approvers_of(ledger.trust()), document_of=DOCUMENTS.get)
    fold = LedgerFold(Options(), memory=ledger.notes[-1], sources=sources)
    fold.feed(segments[0])
    start = fold.chain.point()
    part = fold_part(segments[1], start, origin=fold.origin, watch=fold.watch, options=Options())
    if part is None or not fold.join(part, cut):
        fold.feed(segments[1])
    apart = fold.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1])
    assert apart.findings == expected.findings
    first = LedgerFold(Options(), memory=ledger.notes[-1], sources=sources)
    first.feed(segments[0])
    state, _ = parse_state(io.BytesIO(b"".join(print_state(first.state(good=False), BOUND))))
    again = LedgerFold(Options(), memory=ledger.notes[-1], start=state, sources=sources)
    again.feed(segments[1])
    gone_on = again.judge(segments, trust=ledger.trust(), memory=ledger.notes[-1])
    assert gone_on.findings == expected.findings
