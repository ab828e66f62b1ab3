"""Effects: admission, settling, tokens, templates."""

import json

import pytest

from ledger.members import Act, Tool
from ledger.rules.effect import (
    Admitted,
    Already,
    EffectState,
    Held,
    admit,
    begin,
    binding_of,
    finish,
    idempotency_token,
    resolve,
    state_at,
)
from ledger.rules.errors import TemplateError
from ledger.rules.template import Template
from ledger.words import OutcomeStatus, Reason

COMMITTED, FAILED, AMBIGUOUS = OutcomeStatus


def started(attempt=1, now_ms=0, lease_ms=100):
    return begin(attempt=attempt, intent="i1", act_digest="a", binding="b", now_ms=now_ms, lease_ms=lease_ms)


def ask(known, *, act="a", binding="b", now_ms=0):
    return admit(known, act_digest=act, binding=binding, now_ms=now_ms)


def test_a_new_key_runs_as_its_first_attempt():
    assert ask(None) == Admitted(1)


def test_a_key_in_progress_holds_every_act_until_its_lease_runs_out_and_then_too():
    for act in ("a", "other"):
        held = ask(started(), act=act, now_ms=99)
        assert (type(held), held.reason) == (Held, Reason.EFFECT_IN_PROGRESS)
        assert ask(started(), act=act, now_ms=100).reason is Reason.EFFECT_AMBIGUOUS
    assert ask(started(lease_ms=None), now_ms=10**15).reason is Reason.EFFECT_IN_PROGRESS


def test_a_committed_key_never_runs_again_and_gives_its_result_back():
    known = finish(started(), COMMITTED, intent="i1", outcome="o1")
    found = ask(known, now_ms=10**15)
    assert isinstance(found, Already)
    assert (found.known.settled_by, found.same_act) == ("o1", True)
    assert not ask(known, act="other").same_act


def test_a_result_of_another_tool_is_not_handed_out():
    found = ask(finish(started(), COMMITTED, intent="i1", outcome="o1"), binding="another")
    assert (type(found), found.reason) == (Held, Reason.EFFECT_COMMITTED)


def test_only_a_failed_key_is_attempted_again_under_the_next_number():
    assert ask(finish(started(attempt=3), FAILED, intent="i1", outcome="o")) == Admitted(4)
    assert ask(finish(started(attempt=3), FAILED, intent="i1", outcome="o"), act="other", binding="x") == Admitted(4)
    held = ask(finish(started(), AMBIGUOUS, intent="i1", outcome="o"))
    assert held.reason is Reason.EFFECT_AMBIGUOUS


def test_a_resolution_settles_what_is_ambiguous_and_nothing_else():
    ambiguous = finish(started(), AMBIGUOUS, intent="i1", outcome="o")
    happened = resolve(ambiguous, "happened", resolution="r", now_ms=0)
    assert (happened.state, happened.settled_by) == (EffectState.COMMITTED, "r")
    assert ask(resolve(ambiguous, "did_not_happen", resolution="r", now_ms=0)) == Admitted(2)
    for status in (COMMITTED, FAILED):
        assert (
            resolve(finish(started(), status, intent="i1", outcome="o"), "happened", resolution="r", now_ms=0) is None
        )
    assert resolve(started(), "happened", resolution="r", now_ms=99) is None
    assert resolve(started(), "happened", resolution="r", now_ms=100).state is EffectState.COMMITTED


def test_an_outcome_after_the_lease_says_how_it_really_ended():
    late = started()
    assert state_at(late, 500) is EffectState.AMBIGUOUS
    assert state_at(finish(late, COMMITTED, intent="i1", outcome="o"), 500) is EffectState.COMMITTED


def test_an_outcome_changes_nothing_after_a_resolution_or_a_later_attempt():
    resolved = resolve(finish(started(), AMBIGUOUS, intent="i1", outcome="o"), "happened", resolution="r", now_ms=0)
    assert finish(resolved, FAILED, intent="i1", outcome="late") == resolved
    assert finish(started(attempt=2), COMMITTED, intent="i0", outcome="late") == started(attempt=2)


def test_what_carries_an_act_out_is_its_name_tool_version_and_definition():
    act = Act(
        name="refund",
        tool=Tool(name="pay", version="1", digest="unknown"),
        access="unknown",
        arguments_digest="unknown",
        resource="unknown",
        environment="unknown",
    )
    other = act.model_copy(update={"tool": Tool(name="pay", version="2", digest="unknown")})
    assert binding_of(act) != binding_of(other)
    assert binding_of(act) == binding_of(act.model_copy(update={"resource": "x"}))


def test_tokens_are_those_of_ctrlrun(shared):
    vectors = json.loads((shared / "ctrlrun/idempotency_token_vectors.json").read_bytes())["vectors"]
    assert len(vectors) == 3
    for each in vectors:
        assert idempotency_token(each["effect_key"], each["attempt"]) == each["expected"]


def test_tokens_differ_by_key_and_attempt_and_refuse_what_is_no_count():
    found = {idempotency_token(key, attempt) for key in ("a", "b") for attempt in (1, 2)}
    assert len(found) == 4
    assert all(token[14] == "8" and token[19] in "89ab" for token in found)
    for key, attempt in (("", 1), ("a", 0), ("a", True), ("a", 1.0), ("a", "1"), (None, 1)):
        with pytest.raises(TemplateError):
            idempotency_token(key, attempt)


def test_a_template_names_an_effect_by_its_arguments():
    template = Template.parse("refund:{payment_id}:{n}", parameters=("payment_id", "n", "amount"))
    assert template.key({"payment_id": "p1", "n": -3, "amount": 9}) == "refund:p1:-3"
    assert Template.parse("{resource}").key({}, resource="r1") == "r1"
    assert Template.parse("{resource}").key({"resource": "mine"}, resource="r1") == "mine"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "refund",
        "refund:{}",
        "refund:{payment-id}",
        "refund:{payment_id!r}",
        "refund:{payment_id:>9}",
        "refund:{payment_id.x}",
        "refund:{payment_id[0]}",
        "refund:{{payment_id}}",
        "refund:{payment_id",
        "refund:payment_id}",
        "refund:{0}",
        "refund:{other}",
        "refund:\n{payment_id}",
        "x" * 300 + "{payment_id}",
        "{payment_id\u0660}",
    ],
)
def test_a_template_of_another_form_or_an_unknown_name_is_refused_when_it_is_declared(text):
    with pytest.raises(TemplateError):
        Template.parse(text, parameters=("payment_id",))


@pytest.mark.parametrize("value", ["", None, True, 1.5, [], {}, "a\nb", "x" * 300])
def test_a_value_that_names_nothing_refuses_the_call(value):
    template = Template.parse("refund:{payment_id}")
    with pytest.raises(TemplateError):
        template.key({"payment_id": value})
    with pytest.raises(TemplateError):
        template.key({}, resource="r1")
    assert template.key({"payment_id": "x"}) == "refund:x"
