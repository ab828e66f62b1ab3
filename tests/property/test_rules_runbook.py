"""Runbooks: the fold says what a plain reading of the history says, and a recorder that asks it first is never found at fault."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ledger.rules.deviation import Deviates
from ledger.rules.runbook_report import free_text, report_of
from tests.reference.books import ELEMENTS, BookChain

STEPS = ["count", "drop", "tell", "done", "stop", "nowhere"]
TOOLS = ["db.read", "db.drop", "mail.send", "shell"]
ENDS = ["completed", "failed", "blocked"]
plans = st.lists(
    st.one_of(
        st.tuples(st.just("act"), st.sampled_from([*STEPS, None]), st.sampled_from(TOOLS), st.booleans()),
        st.tuples(st.just("end"), st.sampled_from(STEPS), st.sampled_from(ENDS), st.booleans()),
    ),
    max_size=14,
)
LIKELY = {"count": "db.read", "drop": "db.drop", "tell": "mail.send"}


DECLARED = {each["id"]: [each["tool"]] if "tool" in each else [] for each in ELEMENTS["steps"]}
FAIL = {each["id"]: each.get("on_fail") for each in ELEMENTS["steps"]}
RETRY = {(each["id"], to): times for each in ELEMENTS["steps"] for to, times in each.get("retry", {}).items()}
TERMINALS = [each["id"] for each in ELEMENTS["steps"] if each.get("terminal")]


class Reading:
    """The rules of docs/spec/rules/runbooks.md, 12 to 19, told from the whole history each time."""

    ORDER = tuple(each["id"] for each in ELEMENTS["steps"])

    def __init__(self):
        self.history = []
        """Steps in the order in which they began, each with how it ended, None while it is current."""

    def may_begin(self, step):
        if step not in self.ORDER or (self.history and self.history[-1][1] is None):
            return False
        if not self.history:
            return step == self.ORDER[0]
        last, ended = self.history[-1]
        if (last, step) in RETRY:
            before = [a[0] for a in self.history]
            return list(pairwise(before)).count((last, step)) < RETRY[last, step]
        if ended == "completed" and last in self.ORDER and last not in TERMINALS:
            return step == self.ORDER[self.ORDER.index(last) + 1]
        return ended == "failed" and step == FAIL.get(last)

    def begin(self, step):
        """Take a step as begun; return whether it may."""
        fine = self.may_begin(step)
        self.history.append([step, None])
        return fine

    def act(self, step, tool):
        current = self.history[-1][0] if self.history and self.history[-1][1] is None else None
        fine = True
        if step is not None and step != current:
            fine = self.begin(step)
        elif step is None and current is not None:
            fine = False
        now = self.history[-1][0] if self.history and self.history[-1][1] is None else None
        return fine and tool in DECLARED.get(now, [])

    def end(self, step, ended, observed):
        current = self.history[-1][0] if self.history and self.history[-1][1] is None else None
        fine = True if step == current else self.begin(step)
        self.history[-1][1] = ended
        return fine and not (ended == "completed" and step == "count" and not observed)


@given(plans)
def test_what_a_dishonest_recorder_does_is_found_where_a_plain_reading_says(plan):
    made, reading = BookChain(), Reading()
    expected, asked = [], set()
    for step in plan:
        before = len(made.findings)
        if step[0] == "act":
            _, name, tool, approved = step
            approvals = ()
            if approved:
                approvals = (made.approval(made.waiting(made.run, act={"name": tool}, step=name)),)
            made.call(name, tool, approvals=approvals)
            lawful = reading.act(name, tool)
            current = reading.history[-1][0] if reading.history and reading.history[-1][1] is None else None
            if current == "drop":
                lawful = lawful and approved
            elif not approved and asked & {tool}:
                continue  # a request of this act waits, which alone makes it a fault
            asked |= {tool} if approved else set()
        else:
            _, name, ended, observed = step
            if observed:
                made.observed("count", {"rows": 1})
            made.end(name, ended)
            lawful = reading.end(name, ended, observed)
        expected.append((len(made.findings) > before, not lawful))
    assert all(found is wrong for found, wrong in expected), (made.codes(), expected)


@given(plans, st.sampled_from(["completed", "incomplete"]))
def test_a_recorder_that_asks_first_is_never_found_at_fault(plan, close):
    made = BookChain()
    books = made.replay.runbooks
    for step in plan:
        own = books.runs[made.run]
        if step[0] == "act":
            _, name, tool, _ = step
            name = own.cursor.step or name
            tool = LIKELY.get(name or "", tool) if len(plan) % 2 else tool
            late = books.entry(made.run, name) if name is not None and name != own.cursor.step else None
            if isinstance(late, Deviates):
                amounts = {"meter": late.edge, "limit": late.limit, "spent": late.taken} if late.edge else {}
                made.deny_step(name, late.reason, status=late.status, **amounts)
                continue
            found = books.scope(made.run, made.act(made.run, name=tool)["act"], name)
            if found is not None:
                made.deny(name, tool, found[0].reason)
            elif books.gate(made.run, name) is not None:
                made.approved(name, tool)
            else:
                made.call(name, tool)
        else:
            _, name, ended, observed = step
            name = own.cursor.step or name
            if name != own.cursor.step and isinstance(books.entry(made.run, name), Deviates):
                continue
            if observed and name == "count":
                made.observed("count", {"rows": 1})
            if ended == "completed" and own.unproved(name) is not None:
                ended = "blocked"
            made.end(name, ended)
    report = report_of(made.run, made.receipts, made.envelope)
    assert (report["status"], free_text(report, made.envelope)) == ("open", ())
    ended = BookChain.finish(made, close, **({} if close == "completed" else {"reason": "run.terminal_not_reached"}))
    assert ended
    report = report_of(made.run, made.receipts, made.envelope)
    off = close == "completed" and report["incomplete"]
    assert made.codes() == (["runbook.terminal_not_reached"] if off else [])
    assert json.loads(json.dumps(report)) == report
