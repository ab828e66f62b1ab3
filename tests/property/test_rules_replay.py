"""A recorder that admits everything is found at the entry where a model that counts anew says so, and at no other."""

from hypothesis import given
from hypothesis import strategies as st

from tests.reference.rule_chain import Chain
from tests.reference.slow_rules import SlowBudget

amounts = st.integers(0, 6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("act"), st.integers(0, 1), amounts),
        st.tuples(
            st.just("end"),
            st.integers(0, 9),
            st.sampled_from(["committed", "failed", "unproven", "ambiguous"]),
            amounts,
        ),
        st.tuples(st.just("resolve"), st.integers(0, 9), st.sampled_from(["happened", "did_not_happen"]), amounts),
    ),
    max_size=25,
)


def allowed(model, draw):
    """Whether a model admits a draw; it is taken in any case."""
    lawful = not model.overrun and all(
        model.total(meter) + draw.get(meter, 0) <= limit for meter, limit in model.limits.items()
    )
    model.acts.append(["reserved", dict(draw), {}])
    return lawful


def passed(model, act, status, said):
    """Whether settling an act raises a meter to above its limit."""
    before = {meter: model.total(meter) for meter in model.limits}
    model.end(act, status, said)
    return any(model.total(meter) > max(limit, before[meter]) for meter, limit in model.limits.items())


@given(st.integers(0, 25), st.integers(0, 15), st.integers(0, 8), steps)
def test_the_first_breach_is_where_the_model_says(limit, inner, calls, plan):
    chain = Chain()
    outer = chain.opening({"usd_micro": limit, "tool_calls": calls})
    child = chain.opening({"usd_micro": min(inner, limit)}, parent_opening=outer)
    models = SlowBudget({"usd_micro": limit, "tool_calls": calls}), SlowBudget({"usd_micro": min(inner, limit)})
    acts, expected = [], []
    for step in plan:
        index = len(chain.receipts)
        if step[0] == "act":
            _, which, amount = step
            run, drawn = (outer, models[:1]) if which == 0 else (child, models)
            draw = {"usd_micro": amount, "tool_calls": 1}
            verdicts = [allowed(model, draw) for model in drawn]
            expected += [index] * (not all(verdicts))
            acts.append(
                [chain.intent(run, {"usd_micro": amount}), run, drawn, [len(model.acts) - 1 for model in drawn], "open"]
            )
            continue
        wanted = "open" if step[0] == "end" else "ambiguous"
        found = [act for act in acts if act[4] == wanted]
        if not found:
            continue
        act = found[step[1] % len(found)]
        intent, run, drawn, numbers, _ = act
        amount = {"usd_micro": step[3]}
        if step[0] == "end":
            # What is called failed without proof settles as if it had been done.
            act[4] = "committed" if step[2] == "unproven" else step[2]
            reason = {"failed": "act.not_executed", "unproven": "act.exception"}.get(step[2])
            chain.outcome(run, intent, amount, "failed" if step[2] == "unproven" else step[2], reason=reason)
        else:
            act[4] = "committed" if step[2] == "happened" else "failed"
            chain.resolution(intent, step[2], amount)
        verdicts = [passed(model, number, act[4], amount) for model, number in zip(drawn, numbers, strict=True)]
        expected += [index] * any(verdicts)
    assert sorted({each.index for each in chain.findings}) == expected
    assert (chain.replay.breach.index if chain.replay.breach else None) == (expected[0] if expected else None)
    for run, model in ((outer, models[0]), (child, models[1])):
        budget = chain.replay.budgets.budget_of(run)
        for meter in model.limits:
            assert budget.lines[meter].spent + budget.lines[meter].reserved == model.total(meter)
