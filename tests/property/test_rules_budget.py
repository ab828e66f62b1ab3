"""Budgets under any interleaving, against a model that counts anew each time."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger.members import Limit
from ledger.rules.amounts import parse_budget, read_amounts
from ledger.rules.budget import Budget, Refused, reserve, settle
from ledger.rules.errors import BudgetError
from ledger.words import OutcomeStatus
from tests.reference.slow_rules import SlowBudget

METERS = ("usd_micro", "prompt_tokens", "tool_calls")
amounts = st.integers(0, 7)
draws = st.fixed_dictionaries(
    {"usd_micro": amounts}, optional={"prompt_tokens": amounts, "tool_calls": st.integers(1, 2)}
)
said = st.dictionaries(st.sampled_from(METERS), amounts, max_size=2)


class FourClients(RuleBasedStateMachine):
    """Four clients share a budget, two of them as a child run with a tighter one of its own."""

    @initialize(outer=st.integers(0, 40), inner=st.integers(0, 20), calls=st.integers(0, 12))
    def open(self, outer, inner, calls):
        limits = {"usd_micro": outer, "tool_calls": calls}, {"usd_micro": min(inner, outer), "prompt_tokens": 30}
        self.slow = [SlowBudget(dict(each)) for each in limits]
        self.outer, self.inner = (
            Budget.of([Limit(meter=meter, limit=limit) for meter, limit in each.items()]) for each in limits
        )
        self.open_acts = {client: [] for client in range(4)}

    def chain(self, client):
        return (self.inner, self.outer) if client >= 2 else (self.outer,)

    def models(self, client):
        return (self.slow[1], self.slow[0]) if client >= 2 else (self.slow[0],)

    def put(self, client, budgets):
        self.outer = budgets[-1]
        if client >= 2:
            self.inner = budgets[0]

    @rule(client=st.integers(0, 3), draw=draws)
    def reserve(self, client, draw):
        found = reserve(self.chain(client), draw)
        full = {"tool_calls": 1, **draw}
        models = self.models(client)
        admitted = all(
            not model.overrun
            and all(model.total(meter) + full.get(meter, 0) <= limit for meter, limit in model.limits.items())
            for model in models
        )
        assert isinstance(found, Refused) != admitted
        if admitted:
            numbers = [model.reserve(full) for model in models]
            assert None not in numbers
            self.put(client, found.budgets)
            self.open_acts[client].append((found.hold, numbers))

    @precondition(lambda self: any(self.open_acts.values()))
    @rule(data=st.data(), status=st.sampled_from(OutcomeStatus), settled=said)
    def end(self, data, status, settled):
        client = data.draw(st.sampled_from([each for each, acts in self.open_acts.items() if acts]))
        held, numbers = self.open_acts[client].pop(data.draw(st.integers(0, len(self.open_acts[client]) - 1)))
        budgets, kept = settle(self.chain(client), held, status, settled)
        self.put(client, budgets)
        for model, number in zip(self.models(client), numbers, strict=True):
            model.end(number, status, settled)
        if status is OutcomeStatus.AMBIGUOUS:
            self.open_acts[client].append((kept, numbers))

    @invariant()
    def agrees_with_the_model(self):
        for budget, model in zip((self.outer, self.inner), self.slow, strict=True):
            for meter, limit in model.limits.items():
                line = budget.lines[meter]
                assert line.spent + line.reserved == model.total(meter)
                assert line.spent >= 0
                assert line.reserved >= 0
                if not model.overrun:
                    assert line.spent + line.reserved <= limit
            assert (budget.overrun is not None) == model.overrun


FourClients.TestCase.settings = settings(stateful_step_count=40, deadline=None)
TestFourClients = FourClients.TestCase


@given(st.randoms(use_true_random=False))
def test_four_clients_of_fifty_calls_run_exactly_as_many_as_the_limit_pays(random):
    budget = Budget.of([Limit(meter="usd_micro", limit=100_000)])
    waiting = [client for client in range(4) for _ in range(50)]
    random.shuffle(waiting)
    open_, ran, refused = [], 0, 0
    while waiting or open_:
        if waiting and (not open_ or random.random() < 0.5):
            waiting.pop()
            found = reserve((budget,), {"usd_micro": 1_000})
            if isinstance(found, Refused):
                refused += 1
            else:
                (budget,) = found.budgets
                open_.append(found.hold)
        else:
            held = open_.pop(random.randrange(len(open_)))
            (budget,), _ = settle((budget,), held, OutcomeStatus.COMMITTED, {"usd_micro": 1_000})
            ran += 1
    assert (ran, refused) == (100, 100)


@given(st.integers(0, 2**53 - 1))
def test_decimal_text_of_money_is_read_back_exactly(micro):
    text = f"{micro // 1_000_000}.{micro % 1_000_000:06d}"
    assert parse_budget([f"usd={text}"])[0].limit == micro
    assert read_amounts({"usd": text}) == {"usd_micro": micro}


@given(st.text(max_size=12))
def test_any_text_is_an_exact_amount_or_refused(text):
    try:
        (limit,) = parse_budget([f"tool_calls={text}"])
    except BudgetError:
        return
    assert str(limit.limit) == text.partition(":")[0]
