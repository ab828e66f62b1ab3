"""Vectors of rules: small ledgers that are whole and sealed, by recorders that kept a rule and by some that did not.

Each accept has a reject that differs in one amount, word, place or digest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import APPROVER, ISSUER, Book
from vectors.makers.shelf import Shelf

SPEC = (
    "docs/spec/rules/README.md",
    "docs/spec/rules/budgets.md",
    "docs/spec/rules/policy.md",
    "docs/spec/rules/approvals.md",
    "docs/spec/rules/effects.md",
)
USD = "usd_micro"
LATER, BEFORE = "2026-12-31T00:00:00.000Z", "2026-11-30T00:00:00.000Z"


def make() -> File:
    out = File(
        "rules", SPEC, "receipts that pass a limit, a policy, an approval or an effect, or contradict each other"
    )
    shelf = Shelf(out)

    def rule(id_: str, comment: str, build: Callable[[Book], Any], code: str | None = None, exit_: int | None = None, *,
             documents: tuple[str, ...] = ()) -> None:  # fmt: skip
        book = Book(label=f"rules {id_}")
        book.header()
        build(book)
        book.commit()
        if code is not None and exit_ is None:
            exit_ = 6
        shelf.case(id_, comment, book, code, "rules" if code else "", exit_, trust=book.trust(), documents=documents)

    _budgets(rule)
    _amounts_said(rule)
    _child_runs(rule)
    _policies(rule)
    _approvals(rule)
    _approvers(rule)
    _acts(rule)
    _standing(rule)
    _effects(rule)
    _settling(rule)
    _costs_said(rule)
    return out


def limit(meter: str, amount: int, **more: int) -> list[dict[str, Any]]:
    return [{"meter": meter, "limit": amount, **more}]


def reserved(amount: int | str, meter: str = USD) -> list[dict[str, Any]]:
    return [{"meter": meter, "reserved": amount, "basis": "unknown" if amount == "unknown" else "quoted"}]


def settled(amount: int | str, meter: str = USD) -> list[dict[str, Any]]:
    return [{"meter": meter, "settled": amount, "basis": "unknown" if amount == "unknown" else "reported"}]


def act(
    book: Book, cost: int | str, *, used: int | str | None = None, status: str = "committed", **members: Any
) -> str:
    intent = book.intent(reserved=reserved(cost), **members)
    charges = {} if used is None else {"charges": settled(used)}
    return book.outcome(intent, status=status, **charges)


def _budgets(rule) -> None:
    def spends(*costs: int, status: str = "committed") -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(limits=limit(USD, 100))
            book.close(*(act(book, cost, status=status) for cost in costs))

        return build

    rule("limit-reached", "Two acts of 50 under a limit of 100.", spends(50, 50))
    rule("limit-passed", "A millionth more than the limit.", spends(50, 51), "budget.overspent")
    rule("ambiguous-counts", "An act of which nobody knows the end keeps what it set aside.",
         lambda book: (book.opening(limits=limit(USD, 100)), book.close(act(book, 60, status="ambiguous"), act(book, 41))),
         "budget.overspent")  # fmt: skip
    rule("failed-goes-back", "What did not happen costs nothing.",
         lambda book: (book.opening(limits=limit(USD, 100)),
                       book.close(book.outcome(book.intent(reserved=reserved(60)), status="failed", reason="act.not_executed"), act(book, 100))))  # fmt: skip
    rule("zero-said", "Under a money limit zero is a price.", spends(0))
    rule("price-absent", "Under a money limit an act without a price.",
         lambda book: (book.opening(limits=limit(USD, 100)), book.close(book.outcome(book.intent()))), "budget.unknown_price")  # fmt: skip
    rule("price-unknown", "A price that is said to be unknown: nobody can tell.",
         lambda book: (book.opening(limits=limit(USD, 100)), book.close(book.outcome(book.intent(reserved=reserved("unknown"))))),
         "budget.basis_unknown", 3)  # fmt: skip
    rule("settled-unknown", "It set 50 aside, and what it cost is not known.",
         lambda book: (book.opening(limits=limit(USD, 100)), book.close(act(book, 50, used="unknown"))), "budget.basis_unknown", 3)  # fmt: skip
    for name, used, code in (("as-reserved", 50, None), ("overrun", 51, "budget.act_after_overrun")):
        rule(f"act-after-{name}", f"An act after one that set 50 aside and cost {used}.",
             lambda book, used=used: (book.opening(limits=limit(USD, 1000)), book.close(act(book, 50, used=used), act(book, 0))), code)  # fmt: skip
    for name, took, code in (("kept", 9, None), ("passed", 8, "budget.over_time")):
        rule(f"time-limit-{name}", f"A run of 9 ms under a limit of {took - 5} ms with a grace of 5.",
             lambda book, took=took: (book.opening(limits=limit("duration_ms", took - 5, grace=5)), book.close()), code)  # fmt: skip

    def open_ended(book: Book) -> None:
        book.opening(limits=limit("duration_ms", 1000))
        book.add(
            "run", {"run": book.run_id, "status": "completed", "duration_ms": "unknown", "children": [book.run_id]}
        )

    rule(
        "time-unknown",
        "A run with a time limit that does not say how long it took.",
        open_ended,
        "budget.time_unknown",
        3,
    )
    for name, count, code in (("kept", 2, None), ("passed", 3, "budget.attempts")):
        rule(f"edge-{name}", f"An edge taken {count} times under a limit of 2.",
             lambda book, count=count: (book.opening(limits=limit("plan->build", 2)),
                 book.close(*(book.outcome(book.intent(reserved=reserved(1, "plan->build"))) for _ in range(count)))), code)  # fmt: skip
    for name, count, code in (("kept", 4, None), ("passed", 3, "budget.structure")):
        rule(f"receipts-{name}", f"A run of four receipts under a limit of {count}.",
             lambda book, count=count: (book.opening(limits=limit("receipts", count)), book.close(book.outcome(book.intent()))), code)  # fmt: skip


def _amounts_said(rule) -> None:
    def refuses(spent: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(limits=limit(USD, 100))
            first = act(book, 60)
            refused = book.decision(
                status="blocked", reason="budget.limit", meter=USD, limit=100, spent=spent, reserved=0, asked=50
            )
            book.close(first, refused)

        return build

    rule("refusal-said-right", "A refusal with what was spent.", refuses(60))
    rule("refusal-said-wrong", "A refusal that says more was spent than was.", refuses(61), "budget.contradicted")

    def closes(total: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(limits=limit(USD, 100))
            outcome = act(book, 60)
            book.add("run", {"run": book.run_id, "status": "completed", "duration_ms": 9, "totals": [{"meter": USD, "value": total}],
                             "children": [book.run_id, outcome]})  # fmt: skip

        return build

    rule("total-said-right", "A close with what was spent.", closes(60))
    rule("total-said-wrong", "A close that says less was spent than was.", closes(59), "budget.contradicted")


def _child_runs(rule) -> None:
    def child(amount: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            parent = book.opening(limits=limit(USD, 100))
            book.opening(parent_opening=parent, limits=limit(USD, amount))
            root = book.close()
            book.close(root, run=parent)

        return build

    rule("child-narrows", "A child run with the limit of its parent.", child(100))
    rule("child-widens", "A child run with a wider limit than its parent.", child(101), "budget.widened")

    def draws(cost: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            parent = book.opening(limits=limit(USD, 100))
            first = act(book, 60)
            book.opening(parent_opening=parent)
            root = book.close(act(book, cost))
            book.close(first, root, run=parent)

        return build

    rule("child-draws", "A child run without limits spends what its parent has left.", draws(40))
    rule("child-overdraws", "A child run spends more than its parent has left.", draws(41), "budget.overspent")


def _policies(rule) -> None:
    def text(**policy: Any) -> str:
        return kit.canonical({"policy": policy}).decode()

    def under(document: str, *, named: str | None = None, **members: Any) -> Callable[[Book], None]:
        name = kit.digest(document.encode())

        def build(book: Book) -> None:
            book.opening(policy=name)
            book.close(book.outcome(book.intent(policy=named or name, **members)))

        return build

    free, observe = text(level="act-within-policy"), text(level="observe")
    rule("policy-allows", "A write under a policy that allows it.", under(free), documents=(free,))
    rule(
        "policy-forbids",
        "A write under a policy that only observes.",
        under(observe),
        "policy.breach",
        documents=(observe,),
    )
    rule("policy-absent", "The policy is not at hand.", under(free), "policy.absent", 3)
    broken = '{"policy":{"level":"act-within-policy","surprise":1}}'
    rule(
        "policy-unreadable",
        "A policy with a member that nobody knows.",
        under(broken),
        "policy.unreadable",
        3,
        documents=(broken,),
    )
    rule("policy-other", "An act decided under another policy than its run's.", under(free, named=kit.digest(observe.encode())),
         "policy.other", documents=(free, observe))  # fmt: skip
    deny = kit.canonical(
        {
            "policy": {
                "level": "act-within-policy",
                "tools": {"deny": [{"name": "shell", "arguments": {"command": "rm*"}}]},
            }
        }
    ).decode()

    def with_arguments(arguments: dict[str, Any]) -> tuple[Callable[[Book], None], str]:
        kept = kit.canonical(arguments).decode()

        def build(book: Book) -> None:
            book.opening(policy=kit.digest(deny.encode()))
            made = {**book.act(), "arguments_digest": kit.digest(kept.encode())}
            book.close(book.outcome(book.intent(policy=kit.digest(deny.encode()), act=made)))

        return build, kept

    good, kept_good = with_arguments({"command": "ls"})
    bad, kept_bad = with_arguments({"command": "rm -r /"})
    rule("arguments-allowed", "Arguments that no denied pattern matches.", good, documents=(deny, kept_good))
    rule(
        "arguments-forbidden",
        "Arguments that a denied pattern matches.",
        bad,
        "policy.breach",
        documents=(deny, kept_bad),
    )
    rule(
        "arguments-absent", "The same act, its arguments erased.", bad, "policy.arguments_absent", 3, documents=(deny,)
    )
    watched = kit.canonical({"schema": "receipt-ledger.policy/v1", "level": "observe", "mode": "observe"}).decode()
    said = {"status": "denied", "reason": "policy.level"}
    rule(
        "observed",
        "A policy that only records what it would have done.",
        under(watched, would_have=said),
        documents=(watched,),
    )
    rule(
        "observed-unrecorded",
        "The same, and nothing recorded.",
        under(watched),
        "policy.unrecorded",
        documents=(watched,),
    )

    def goes_on(again: str | None) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            first = book.opening(policy=kit.digest(observe.encode()))
            book.close()
            named = {} if again is None else {"policy": kit.digest(again.encode())}
            book.opening(continues=first, **named)
            book.close()

        return build

    rule(
        "continues-same-policy",
        "A run that goes on under the policy of the one before.",
        goes_on(observe),
        documents=(observe,),
    )
    rule(
        "continues-without-policy",
        "A run that goes on without it.",
        goes_on(None),
        "policy.widened",
        documents=(observe,),
    )
    rule(
        "continues-wider-policy",
        "A run that goes on under one that allows more.",
        goes_on(free),
        "policy.widened",
        documents=(observe, free),
    )


def request(book: Book, **members: Any) -> str:
    common = {"status": "waiting", "reason": "approval.required", "roles": ["release"], "needed": 1}
    return book.decision(**{**common, **members})


def answer(book: Book, to: str | None, *, by: kit.Key = APPROVER, name: str | None = None, **members: Any) -> str:
    common: dict[str, Any] = {"answer": "granted", "role": "release", "expires_at": LATER, "uses": 1}
    bound = {} if to is None else {"run": book.run_id, "request": to, "act_digest": book.act_digest()}
    return book.add("approval", {**common, **bound, **members}, issuer=by, name=name)


def _approvals(rule) -> None:
    def approved(**changed: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            waiting = request(book)
            given = answer(book, waiting, **changed)
            book.close(waiting, book.outcome(book.intent(approvals=[given])))

        return build

    rule("approved", "An act that waited and was approved.", approved())
    rule(
        "approved-other-act",
        "The approval is of another act.",
        approved(act_digest=kit.digest(b"other act")),
        "approval.mismatch",
    )
    rule(
        "approved-other-state",
        "The approval is of another state.",
        approved(precondition=kit.digest(b"state")),
        "approval.mismatch",
    )
    rule(
        "approved-other-role",
        "The approval is in a role that trust does not name.",
        approved(role="ops"),
        "approval.mismatch",
    )
    rule("approved-late", "The approval had expired.", approved(expires_at=BEFORE), "approval.expired")
    rule("denied-used", "The answer used is a denial.", approved(answer="denied"), "approval.replaced")

    def twice(*, again: bool) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            waiting = request(book)
            given = answer(book, waiting)
            acts = [book.outcome(book.intent(approvals=[given])) for _ in range(1 + again)]
            book.close(waiting, *acts)

        return build

    rule("approved-once", "One approval, one act.", twice(again=False))
    rule("approved-twice", "One approval, two acts.", twice(again=True), "approval.reused")

    def waits(*, approvals: bool, needed: int = 1) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            waiting = request(book, needed=needed)
            given = {"approvals": [answer(book, waiting)]} if approvals else {}
            book.close(waiting, book.outcome(book.intent(**given)))

        return build

    rule(
        "ran-while-waiting",
        "An act that waited and ran without an approval.",
        waits(approvals=False),
        "approval.missing",
    )
    rule("one-of-two", "One approval where two are needed.", waits(approvals=True, needed=2), "approval.missing")

    def taken_back(last: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            waiting = request(book)
            first = answer(book, waiting)
            answer(book, waiting, answer=last)
            book.close(waiting, book.outcome(book.intent(approvals=[first])))

        return build

    rule("said-twice", "The same approver says yes twice.", taken_back("granted"))
    rule("taken-back", "The approver had taken the approval back.", taken_back("denied"), "approval.replaced")

    def unknown(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent(approvals=[kit.digest(b"no approval")])))

    rule("approval-nowhere", "An approval that does not stand before the act.", unknown, "approval.unknown")

    def after(book: Book) -> None:
        book.opening()
        waiting = request(book)
        value = book.value("approval", {"answer": "granted", "role": "release", "expires_at": LATER, "uses": 1, "run": book.run_id,
                                        "request": waiting, "act_digest": book.act_digest()}, issuer=APPROVER)  # fmt: skip
        payload = kit.canonical(value)
        outcome = book.outcome(book.intent(approvals=[kit.digest(payload)]))
        book.add("approval", issuer=APPROVER, payload=payload)
        book.close(waiting, outcome)

    rule("approved-afterwards", "The approval stands after the act that uses it.", after, "approval.unknown")


def _approvers(rule) -> None:
    def by(key: kit.Key, name: str, agent: str = "ci") -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(actor={"agent": agent, "user": "unknown", "model": "unknown"})
            waiting = request(book)
            given = answer(book, waiting, by=key, name=name)
            book.close(waiting, book.outcome(book.intent(approvals=[given])))

        return build

    rule("approver-pinned", "An approver whom trust names.", by(APPROVER, "ada"))
    rule("approver-unpinned", "A name that trust does not know.", by(kit.NOTARY, "bob"), "approval.unpinned", 3)
    rule("approver-is-agent", "The agent of the run approves.", by(APPROVER, "ada", agent="ada"), "approval.self")
    rule("approver-is-issuer", "The key that seals the run approves.", by(ISSUER, "build"), "trust.issuer_mismatch", 4)

    def overruled(first: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            waiting = request(book)
            answer(book, waiting, answer=first)
            standing = answer(book, None, pattern="dep*")
            book.close(waiting, book.outcome(book.intent(approvals=[standing])))

        return build

    rule(
        "denied-elsewhere",
        "A standing approval is used although a request for the act is denied.",
        overruled("denied"),
        "approval.denied",
    )


def _acts(rule) -> None:
    def ran(key: str = "deploy:1", /, **changed: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            asked = {**book.act(), "amount": {"meter": "eur_cent", "value": 5}}
            effect = {"key": "deploy:1", "attempt": 1}
            named = book.act_digest(asked, effect=effect)
            waiting = request(book, act=asked, effect=effect)
            given = answer(book, waiting, act_digest=named)
            done = book.intent(
                act={**asked, **changed}, act_digest=named, approvals=[given], effect={"key": key, "attempt": 1}
            )
            book.close(waiting, book.outcome(done))

        return build

    rule("act-as-approved", "An act with an amount and an effect key that ran as it was approved.", ran())
    rule("act-access", "Access is not part of an act digest.", ran(access="read"))
    for name, comment, build in (
        ("name", "The digest of an approved act stands on an act of another name.", ran(name="destroy")),
        ("tool", "It stands on an act with another version of its tool.",
         ran(tool={"name": "shell", "version": "6", "digest": "unknown"})),
        ("arguments", "It stands on an act with other arguments.", ran(arguments_digest=kit.digest(b"other arguments"))),
        ("amount", "It stands on an act with a higher amount.", ran(amount={"meter": "eur_cent", "value": 6})),
        ("resource", "It stands on an act on another resource.", ran(resource="host/2")),
        ("state", "It stands on an act that looked at a state.", ran(precondition=kit.digest(b"state"))),
        ("effect", "It stands on an act with another effect key.", ran("deploy:2")),
    ):  # fmt: skip
        rule(f"act-another-{name}", comment, build, "act.digest")

    def asks(digest: str | None) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            book.close(request(book, **({} if digest is None else {"act_digest": digest})))

        return build

    rule("request-of-its-act", "A request under the digest of its act.", asks(None))
    rule("request-of-another", "A request under another digest.", asks(kit.digest(b"act")), "act.digest")

    def holds(inline: dict[str, Any], *, source: bool = False) -> tuple[Callable[[Book], None], str]:
        kept = kit.canonical({"amount": 1, "to": "a"}).decode()

        def build(book: Book) -> None:
            book.opening(limits=limit("receipts", 9))
            made = {**book.act(), "arguments_digest": kit.digest(kept.encode()), "arguments": inline}
            document = {"source": {"document": kit.digest(b"document"), "format": "axlr"}} if source else {}
            book.close(book.outcome(book.intent(act=made, **document)))

        return build, kept

    for name, comment, inline, source, code in (
        ("same", "An inline argument that the stored arguments have.", {"amount": 1}, False, None),
        ("other-value", "One that they have with another value.", {"amount": 2}, False, "act.arguments"),
        ("other-type", "One that they have with a value of another type.", {"amount": True}, False, "act.arguments"),
        ("added", "One that they do not have.", {"amount": 1, "by": "b"}, False, "act.arguments"),
        ("added-imported", "The same in a receipt that restates a document.", {"amount": 1, "by": "b"}, True, None),
        ("other-imported", "Another value in one.", {"amount": 2}, True, "act.arguments"),
    ):
        build, kept = holds(inline, source=source)
        rule(f"inline-{name}", comment, build, code, documents=(kept,))
    build, _ = holds({"amount": 2})
    rule("inline-alone", "The stored arguments are not at hand.", build)


def _standing(rule) -> None:
    def standing(acts: int, pattern: str = "dep*", uses: int = 2) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            given = answer(book, None, pattern=pattern, uses=uses)
            book.opening()
            book.close(*(book.outcome(book.intent(approvals=[given])) for _ in range(acts)))

        return build

    rule("standing", "A standing approval of two acts, for two.", standing(2))
    rule("standing-used-up", "The same for three.", standing(3), "approval.reused")
    rule(
        "standing-other-name",
        "A standing approval whose pattern does not cover the act.",
        standing(1, "des*"),
        "approval.mismatch",
    )


def attempt(book: Book, key: str, number: int = 1, **members: Any) -> str:
    return book.intent(effect={"key": key, "attempt": number}, **members)


def _effects(rule) -> None:
    def twice(status: str, number: int, **members: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            book.close(book.outcome(attempt(book, "refund:1"), status=status, **members))
            book.opening()
            book.close(book.outcome(attempt(book, "refund:1", number)))

        return build

    proof = {"reason": "act.not_executed"}
    rule("retried-after-proof", "A second attempt, after proof that nothing was done.", twice("failed", 2, **proof))
    rule(
        "attempt-not-counted",
        "The second attempt says that it is the first.",
        twice("failed", 1, **proof),
        "effect.attempt",
    )
    rule(
        "repeated", "An effect that was committed runs again, in another run.", twice("committed", 2), "effect.repeated"
    )
    rule(
        "retried-ambiguous",
        "An attempt after one of which nobody knows the end.",
        twice("ambiguous", 2),
        "effect.retried_ambiguous",
    )
    rule("failed-unproven", "An effect called failed because of an exception.",
         lambda book: (book.opening(), book.close(book.outcome(attempt(book, "refund:1"), status="failed", reason="act.exception"))),
         "effect.unproven_failure")  # fmt: skip

    def at_once(second: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            first, other = attempt(book, "refund:1"), attempt(book, second)
            book.close(book.outcome(first), book.outcome(other))

        return build

    rule("two-keys-at-once", "Two effects under way at once.", at_once("refund:2"))
    rule("one-key-at-once", "One effect attempted while it is under way.", at_once("refund:1"), "effect.repeated")

    def lease(ms: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            first = attempt(book, "refund:1", lease_ms=ms)
            book.close(book.outcome(attempt(book, "refund:1", 2)), book.outcome(first))

        return build

    rule("lease-ran-out", "A lease that ran out gives nothing back.", lease(1), "effect.retried_ambiguous")


def resolution(book: Book, intent: str, *, happened: bool, **members: Any) -> str:
    word = "happened" if happened else "did_not_happen"
    return book.add(
        "resolution", {"run": book.run_id, "intent": intent, "happened": word, "resolved_by": "ada", **members}
    )


def _settling(rule) -> None:
    def resolved(*, happened: bool) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            intent = attempt(book, "refund:1")
            book.close(book.outcome(intent, status="ambiguous"))
            resolution(book, intent, happened=happened)
            book.opening()
            book.close(book.outcome(attempt(book, "refund:1", 2)))

        return build

    rule("resolved-and-retried", "Resolved as not done, and tried again.", resolved(happened=False))
    rule("resolved-and-repeated", "Resolved as done, and done again.", resolved(happened=True), "effect.repeated")

    def early(status: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            intent = attempt(book, "refund:1")
            outcome = book.outcome(
                intent, status=status, **({"reason": "act.not_executed"} if status == "failed" else {})
            )
            resolution(book, intent, happened=True)
            book.close(outcome)

        return build

    rule("resolved-as-it-was", "A resolution that says what the outcome said.", early("committed"))
    rule(
        "resolved-otherwise", "A resolution that says what the outcome did not.", early("failed"), "effect.contradicted"
    )

    def under_way(book: Book) -> None:
        book.opening()
        intent = attempt(book, "refund:1", lease_ms=300_000)
        resolution(book, intent, happened=False)
        book.close(book.outcome(intent, status="ambiguous"))

    rule("resolved-under-way", "A resolution of an effect that is under way.", under_way, "effect.resolved_settled")


def _costs_said(rule) -> None:
    def costs(basis: str = "reported", **used: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(limits=limit(USD, 100))
            said = {name: [{"meter": each[0], "settled": each[1], "basis": basis}] for name, each in used.items()}
            book.close(book.outcome(book.intent(reserved=reserved(10)), status="committed", **said))

        return build

    foreign, unknown = "budget.unknown_price", "budget.basis_unknown"
    rule("basis-known", "It cost 5, as somebody reports.", costs(charges=(USD, 5)))
    rule(
        "basis-unknown", "It cost 5, and nobody says how that is known.", costs("unknown", charges=(USD, 5)), unknown, 3
    )
    rule("usage-unknown", "What was used of a limited meter is not known.", costs(usage=(USD, "unknown")), unknown, 3)
    rule("foreign-zero", "It cost nothing in another currency than the limit.", costs(charges=("eur_micro", 0)))
    rule("foreign-cost", "It cost a millionth in another currency.", costs(charges=("eur_micro", 1)), foreign)
    rule("foreign-usage", "A millionth in another currency was used.", costs(usage=("eur_micro", 1)), foreign)
    rule("usage-settled", "As much was used as is settled.", costs(charges=(USD, 5), usage=(USD, 5)))
    rule(
        "usage-beyond", "More was used than is settled.", costs(charges=(USD, 5), usage=(USD, 6)), "budget.contradicted"
    )

    def fails(edge_limit: int, reason: str, second: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening(limits=[*limit(USD, 100), *limit("plan->build", edge_limit)])
            ends = []
            for cost in (60, second):
                held = [*reserved(cost), *reserved(1, "plan->build")]
                ends.append(book.outcome(book.intent(reserved=held), status="failed", reason=reason))
            book.close(*ends)

        return build

    proof = "act.not_executed"
    rule("edge-failed-kept", "Two attempts that did nothing, of two.", fails(2, proof, 60))
    rule("edge-failed-passed", "Two attempts that did nothing, of one.", fails(1, proof, 60), "budget.attempts")
    rule("failed-unproven-kept", "What an exception left costs what was set aside.", fails(2, "act.exception", 40))
    rule(
        "failed-unproven-passed",
        "It is no proof that nothing was spent.",
        fails(2, "act.exception", 41),
        "budget.overspent",
    )
