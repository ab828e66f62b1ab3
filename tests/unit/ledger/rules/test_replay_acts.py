"""Acts under digests, of approved acts among them, that are not theirs; inline arguments against all of them."""

import pytest

from ledger import receipt as kinds
from ledger.digest import digest
from ledger.members import Act, Effect, Source, Tool
from ledger.rules.act_replay import read_once
from ledger.rules.replay import Replay
from tests.reference.rule_chain import Chain, approver

STATE = digest(b"state")
ASKED = {"amount": {"meter": "eur_cent", "value": 5}}
TOOL = Tool(name="refund", version="2", digest="unknown")


def chain(arguments=None):
    made = Chain(Replay(dict([approver("ada", "ops")]), arguments_of=lambda _: arguments))
    made.header()
    return made


def approved(key="refund:1", **changed):
    """Approve an act and run one that may be another, under the digest of the first; return the codes."""
    made = chain()
    run = made.opening()
    asked = made.act(run, effect=("refund:1", 1), **ASKED)
    request = made.add(kinds.Decision, **asked, status="waiting", reason="approval.required", roles=("ops",), needed=1)
    approval = made.approval(request)
    act = Act(**{**dict(asked["act"]), **changed})
    effect = None if key is None else Effect(key=key, attempt=1)
    made.add(
        kinds.Intent,
        run=run,
        act=act,
        act_digest=asked["act_digest"],
        effect=effect,
        approvals=(approval,),
        reserved=(),
    )
    return made.codes()


def test_an_act_that_ran_as_it_was_approved():
    assert approved() == []
    assert approved(access="read") == []


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "drop"},
        {"tool": TOOL},
        {"arguments_digest": digest(b"other")},
        {"resource": "other"},
        {"environment": "production"},
        {"amount": {"meter": "eur_cent", "value": 6}},
        {"amount": {"meter": "usd_cent", "value": 5}},
        {"amount": None},
        {"precondition": STATE},
        {"key": "refund:2"},
        {"key": None},
    ],
)
def test_another_act_under_the_digest_of_an_approved_one(changed):
    assert approved(**changed)[0] == "act.digest"


def test_a_digest_made_for_another_run_or_another_actor():
    made = chain()
    one, other = made.opening(), made.opening()
    asked = made.act(one)
    made.add(kinds.Intent, **asked, reserved=())
    assert made.codes() == []
    made.add(kinds.Intent, **{**asked, "run": other}, reserved=())
    assert made.codes() == ["act.digest"]


@pytest.mark.parametrize("source", [None, Source(document=digest(b"document"), format="axlr")])
def test_a_receipt_that_restates_a_document_is_no_exception(source):
    made = chain()
    run = made.opening()
    asked = made.act(run)
    made.add(kinds.Intent, **asked, source=source)
    assert made.codes() == []
    made.add(kinds.Intent, **{**asked, "act_digest": digest(b"another")}, source=source)
    assert made.codes() == ["act.digest"]


def test_a_refusal_under_the_digest_of_another_act():
    made = chain()
    run = made.opening()
    asked = made.act(run)
    made.add(kinds.Decision, **asked, status="denied", reason="policy.denied")
    assert made.codes() == []
    made.add(kinds.Decision, **{**asked, "act_digest": digest(b"another")}, status="denied", reason="policy.denied")
    assert made.codes() == ["act.digest"]


@pytest.mark.parametrize(
    ("inline", "codes"),
    [
        ({"amount": 1}, []),
        ({"to": {"list": [1, True, None, "a"]}}, []),
        ({"amount": 1, "to": {"list": [1, True, None, "a"]}}, []),
        ({"amount": 2}, ["act.arguments"]),
        ({"amount": True}, ["act.arguments"]),
        ({"amount": "1"}, ["act.arguments"]),
        ({"amount": None}, ["act.arguments"]),
        ({"to": {"list": [1, 1, None, "a"]}}, ["act.arguments"]),
        ({"to": {"list": [1, True, None]}}, ["act.arguments"]),
        ({"to": {"list": [1, True, None, "a"], "more": 1}}, ["act.arguments"]),
        ({"to": {}}, ["act.arguments"]),
        ({"by": 1}, ["act.arguments"]),
        ({"amount": 1, "by": None}, ["act.arguments"]),
    ],
)
def test_inline_arguments_are_those_of_all_arguments(inline, codes):
    made = chain({"amount": 1, "to": {"list": [1, True, None, "a"]}})
    made.intent(made.opening(), act={"arguments": inline})
    assert made.codes() == codes
    made = chain(None)
    made.intent(made.opening(), act={"arguments": inline})
    assert made.codes() == []


def test_an_import_may_add_members_of_its_document_and_not_change_those_of_the_arguments():
    source = Source(document=digest(b"document"), format="axlr")
    for inline, codes in (({"amount": 1, "seq": 3}, []), ({"amount": 2, "seq": 3}, ["act.arguments"])):
        made = chain({"amount": 1})
        made.intent(made.opening(), act={"arguments": inline}, source=source)
        assert made.codes() == codes


def test_what_was_at_rest_is_gone_on_from_and_a_closed_run_is_forgotten():
    made = chain()
    run = made.opening()
    asked = made.act(run)
    later = Replay()
    later.resume(made.replay.state())
    made.replay = later
    made.add(kinds.Intent, **asked)
    assert made.codes() == []
    made.add(kinds.Intent, **{**asked, "act_digest": digest(b"another")})
    assert made.codes() == ["act.digest"]
    assert set(made.replay.state().actors) == {run}
    made.close(run)
    assert made.replay.state().actors == {}


def test_the_arguments_of_one_intent_are_read_once():
    asked = []

    def arguments_of(intent):
        asked.append(intent)
        return {"intent": len(asked)}

    once, made = read_once(arguments_of), chain()
    run = made.opening()
    made.intent(run)
    made.intent(run)
    first, second = (receipt for _, receipt in made.receipts[-2:])
    assert [once(each) for each in (first, first, second, second, first)] == [{"intent": n} for n in (1, 1, 2, 2, 3)]
