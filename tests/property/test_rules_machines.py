"""Effects and approvals under any order of events, against models that read the whole history at each question."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ledger.rules.approval import Answer, ApprovalState, Ballot, Rejected, Request, check_answer, state_of, take, use
from ledger.rules.effect import Admitted, Already, Held, admit, begin, finish, idempotency_token, resolve, state_at
from ledger.rules.instant import ms_of
from ledger.words import OutcomeStatus
from tests.reference.rule_chain import Chain
from tests.reference.slow_rules import SlowEffect, SlowVotes

LEASE_MS = 120_000


class Effects(RuleBasedStateMachine):
    """Two processes attempt one effect; either dies at any point; somebody resolves. The replay sees every receipt."""

    @initialize()
    def open(self):
        self.chain = Chain()
        self.run = self.chain.opening()
        self.slow = SlowEffect()
        self.known = None
        self.intents = []
        self.running = []
        self.ran = 0

    @property
    def now_ms(self):
        return ms_of(self.chain.now)

    @rule(minutes=st.integers(0, 2))
    def wait(self, minutes):
        self.chain.minute += minutes

    @rule(act=st.sampled_from("ab"))
    def propose(self, act):
        found = admit(self.known, act_digest=act, binding="b", now_ms=self.now_ms)
        number = self.slow.may_run(self.now_ms)
        assert isinstance(found, Admitted) == (number is not None)
        if isinstance(found, Admitted):
            assert found.attempt == number
            intent = self.chain.intent(self.run, effect=("k", number), lease_ms=LEASE_MS)
            self.known = begin(
                attempt=number, intent=intent, act_digest=act, binding="b", now_ms=self.now_ms, lease_ms=LEASE_MS
            )
            self.slow.events.append(("intent", number, self.now_ms + LEASE_MS))
            self.intents.append(intent)
            self.running.append(intent)
        elif isinstance(found, Already):
            assert self.slow.state(self.now_ms) == "committed"
            assert found.same_act == (self.known.act_digest == act)
        else:
            assert isinstance(found, Held)
            assert found.reason == f"effect.{self.slow.state(self.now_ms)}"

    @precondition(lambda self: self.running and self.known.settled_by is None)
    @rule(status=st.sampled_from(OutcomeStatus))
    def end(self, status):
        intent = self.running.pop()
        if intent != self.known.intent:
            return
        reason = "act.not_executed" if status is OutcomeStatus.FAILED else None
        self.known = finish(
            self.known,
            status,
            intent=intent,
            outcome=self.chain.outcome(self.run, intent, status=status, reason=reason),
        )
        self.slow.events.append(("outcome", status.value))

    @precondition(lambda self: self.running)
    @rule()
    def die(self):
        self.running.pop()

    @precondition(lambda self: self.intents)
    @rule(happened=st.sampled_from(["happened", "did_not_happen"]))
    def resolve(self, happened):
        after = resolve(self.known, happened, resolution="r", now_ms=self.now_ms)
        assert (after is not None) == (self.slow.state(self.now_ms) == "ambiguous")
        if after is not None:
            self.chain.resolution(self.known.intent, happened)
            self.known = after
            self.slow.events.append(("resolution", happened))

    @invariant()
    def agrees_and_never_happens_twice(self):
        assert self.slow.happened() <= 1
        assert self.chain.findings == []
        if self.known is not None:
            assert state_at(self.known, self.now_ms) == self.slow.state(self.now_ms)
            replayed = self.chain.replay.effects.known("k")
            assert (replayed.state, replayed.attempt, replayed.intent) == (
                self.known.state,
                self.known.attempt,
                self.known.intent,
            )


TestEffects = Effects.TestCase
TestEffects.settings = settings(stateful_step_count=30, deadline=None)


def text(hour):
    return f"2026-11-30T{hour:02d}:00:00.000Z"


class Approvals(RuleBasedStateMachine):
    """Three keys answer one request, in any order and as often as they like, while time passes."""

    @initialize(needed=st.integers(1, 3), expires=st.integers(4, 12))
    def ask(self, needed, expires):
        self.now = 0
        request = Request(id="r", run="run", act_digest="act", expires_at=text(expires), needed=needed)
        self.ballot, self.slow = Ballot(request), SlowVotes(needed, expires)

    @rule(hours=st.integers(0, 3))
    def wait(self, hours):
        self.now = min(self.now + hours, 20)

    @rule(
        key=st.sampled_from("abc"),
        granted=st.booleans(),
        hours=st.integers(0, 6),
        digest=st.sampled_from(["act", "act", "x"]),
    )
    def answer(self, key, granted, hours, digest):
        until = min(self.now + hours, 23)
        answer = Answer(
            id=f"{len(self.slow.answers)}",
            name=key,
            key=key,
            role="ops",
            granted=granted,
            expires_at=text(until),
            request="r",
            run="run",
            act_digest=digest,
        )
        wrong = check_answer(self.ballot.request, answer, now=text(self.now))
        assert (wrong is None) == (digest == "act" and self.now < self.slow.expires and self.now < until)
        if wrong is not None:
            return
        before = self.slow.current().get(key)
        found = take(self.ballot, answer)
        if self.slow.used:
            same = before is not None and before[0] == granted
            assert isinstance(found, Rejected) != same
            assert isinstance(found, Rejected) or found is self.ballot
            return
        assert isinstance(found, Ballot)
        self.ballot = found
        if before is None or before[0] != granted or until > before[1]:
            self.slow.answers.append((key, granted, until))

    @precondition(lambda self: self.slow.state(self.now) == "granted")
    @rule()
    def consume(self):
        assert state_of(self.ballot, now=text(self.now)) is ApprovalState.GRANTED
        self.ballot, self.slow.used = use(self.ballot), True

    @invariant()
    def agrees(self):
        assert state_of(self.ballot, now=text(self.now)) == self.slow.state(self.now)


TestApprovals = Approvals.TestCase
TestApprovals.settings = settings(stateful_step_count=30, deadline=None)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40), st.integers(1, 2**40))
def test_tokens_agree_with_a_plain_reading_of_their_definition(key, attempt):
    import hashlib
    import json
    import uuid

    document = {"attempt": attempt, "effect_key": key, "schema": "ctrlrun.idempotency/v1"}
    found = hashlib.sha256(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()).digest()[:16]
    number = int.from_bytes(found, "big") & ~(0xF << 76) & ~(0x3 << 62) | 0x8 << 76 | 0x2 << 62
    assert idempotency_token(key, attempt) == str(uuid.UUID(int=number))


@given(st.datetimes().filter(lambda found: found.year >= 1000))
def test_times_are_milliseconds_since_1970(moment):
    from datetime import UTC, datetime, timedelta

    ms = moment.microsecond // 1_000
    written = moment.strftime("%m-%dT%H:%M:%S")
    elapsed = moment.replace(microsecond=0, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert ms_of(f"{moment.year:04d}-{written}.{ms:03d}Z") == elapsed // timedelta(milliseconds=1) + ms
