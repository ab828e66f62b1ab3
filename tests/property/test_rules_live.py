"""Four recorders of one run under any interleaving, against a model that adds up the whole history at each question."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger import Blocked, NotExecuted
from ledger.spending import budget_of
from tests.reference.ledgers import new_ledger, open_ledger
from verify.chain import Segment
from verify.ledger import verify_ledger

LIMIT = 1_000
KEYS = st.sampled_from([None, None, "a", "b"])


class Act:
    """What the model knows of one act: what it set aside, its effect key, and how it ended."""

    def __init__(self, key, price):
        self.key, self.price, self.cost, self.state = key, price, None, "running"


class Recorders(RuleBasedStateMachine):
    """Each recorder is a ledger of its own over one folder, as another process is."""

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        path = Path(self.folder.name)
        first = new_ledger(path)
        self.run = first.run("work", budget={"usd_micro": LIMIT})
        self.ledgers = [first, *(open_ledger(path) for _ in range(3))]
        self.runs = [self.run, *(each.attach(self.run.id) for each in self.ledgers[1:])]
        self.acts: list[Act] = []
        self.calls: dict[int, object] = {}
        self.overrun = False

    def teardown(self):
        if not hasattr(self, "folder"):
            return
        for number in list(self.calls):
            self.calls.pop(number).__exit__(None, None, None)
        self.run.close()
        verdict = verify_ledger([Segment(*each) for each in self.ledgers[0].journal()], trust=None)
        check = next(check for check in verdict.checks if check.name == "rules")
        # An act that cost more than it set aside may pass the limit: that is what the receipts then show.
        late = any((act.cost or 0) > act.price for act in self.acts)
        assert check.status == "ok" or (late and check.code == "budget.overspent")
        for each in self.ledgers:
            each.close()
        self.folder.cleanup()

    # The model: slow, and from the whole history.

    def held(self):
        total = 0
        for act in self.acts:
            if act.state in {"running", "ambiguous"}:
                total += max(act.price, act.cost or 0)
            elif act.state == "committed":
                total += act.price if act.cost is None else act.cost
        return total

    def admits(self, key, price):
        states = [act.state for act in self.acts if key is not None and act.key == key]
        if states and states[-1] in {"running", "ambiguous", "committed"}:
            return False
        return not self.overrun and self.held() + price <= LIMIT

    # What may happen.

    @rule(who=st.integers(0, 3), price=st.integers(0, 400), key=KEYS)
    def begin(self, who, price, key):
        expected = self.admits(key, price)
        call = self.runs[who].call("ask", reserve={"usd_micro": price}, effect_key=key)
        try:
            call.__enter__()
        except Blocked:
            assert not expected
            return
        assert expected
        self.calls[len(self.acts)] = call
        self.acts.append(Act(key, price))

    @precondition(lambda self: self.calls)
    @rule(
        data=st.data(), cost=st.none() | st.integers(0, 400), how=st.sampled_from(["committed", "failed", "ambiguous"])
    )
    def end(self, data, cost, how):
        number = data.draw(st.sampled_from(sorted(self.calls)))
        call, act = self.calls.pop(number), self.acts[number]
        if cost is not None and how == "committed":
            call.use("usd_micro", cost)
            act.cost = cost
        error = {"committed": None, "failed": NotExecuted, "ambiguous": OSError}[how]
        call.__exit__(error, None if error is None else error("x"), None)
        act.state = how
        self.overrun = self.overrun or (act.cost or 0) > act.price

    @precondition(lambda self: any(act.state == "ambiguous" and act.key for act in self.acts))
    @rule(data=st.data(), happened=st.booleans(), who=st.integers(0, 3))
    def resolve(self, data, happened, who):
        acts = [act for act in self.acts if act.state == "ambiguous" and act.key]
        act = data.draw(st.sampled_from(acts))
        self.ledgers[who].resolve(act.key, happened=happened, resolved_by="ann")
        act.state = "committed" if happened else "failed"

    @invariant()
    def it_shows_what_the_model_adds_up(self):
        if hasattr(self, "run"):
            line = budget_of(self.ledgers[0].reader, self.run.id).lines["usd_micro"]
            assert line.spent + line.reserved == self.held()


TestRecorders = Recorders.TestCase
# An example opens four ledgers and verifies: `dev` and `ci` try a few of them, `deep` some hundreds.
TestRecorders.settings = settings(max_examples=max(12, settings().max_examples // 20), stateful_step_count=25)
