"""Vectors of authority, runbooks and evaluations: small ledgers by recorders that kept a rule and by some that did not.

Each accept has a reject that differs in one amount, word, place or digest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import Book
from vectors.makers.rules import answer, request
from vectors.makers.shelf import Shelf

SPEC = (
    "docs/spec/rules/authority.md",
    "docs/spec/rules/runbooks.md",
    "docs/spec/rules/assertions.md",
    "docs/spec/rules/evaluations.md",
)
USD = "usd_micro"
LATER, BEFORE = "2026-12-31T00:00:00.000Z", "2026-11-30T00:00:00.000Z"
NOWHERE = kit.digest(b"nowhere")
DOCUMENT = kit.digest(b"runbook")


def make() -> File:
    out = File("authority", SPEC, "acts, grants, steps and verdicts that nothing covers, or that say what is not so")
    shelf = Shelf(out)

    def rule(id_: str, comment: str, build: Callable[[Book], Any], code: str | None = None, exit_: int | None = None, *,
             documents: tuple[str, ...] = (), pins: str = "") -> None:  # fmt: skip
        book = Book(label=f"authority {id_}")
        book.header()
        build(book)
        book.commit()
        if code is not None and exit_ is None:
            exit_ = 6
        shelf.case(
            id_, comment, book, code, "rules" if code else "", exit_, trust=book.trust() + pins, documents=documents
        )

    _grants(rule)
    _lines(rule)
    _limits(rule)
    _terms(rule)
    _duties(rule)
    _steps(rule)
    _ends(rule)
    _starts(rule)
    _evaluations(rule)
    return out


def grant(book: Book, action: str = "given", **members: Any) -> str:
    return book.add("grant", {"action": action, "grantee": "ci", **members})


def acts(book: Book, *intents: str) -> None:
    book.close(*(book.outcome(each) for each in intents))


def _grants(rule) -> None:
    def covers(pattern: str, grantee: str = "ci", *, named: bool = True, **members: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            root = grant(book, acts=[pattern], grantee=grantee, **members)
            book.opening(**({"grant": root} if grantee == "ci" and members.get("expires_at") != BEFORE else {}))
            acts(book, book.intent(**({"grant": root} if named else {})))

        return build

    rule("grant-covers", "An act that a pattern of its grant covers.", covers("dep*"))
    rule("grant-does-not", "An act that no pattern of its grant covers.", covers("dep"), "grant.not_covered")
    rule(
        "grant-unnamed", "An act in a run under a grant that names none.", covers("dep*", named=False), "grant.missing"
    )
    rule("grant-of-another", "An act under the grant of another actor.", covers("dep*", "cd"), "grant.other")
    rule("grant-in-time", "An act before its grant ends.", covers("dep*", expires_at=LATER))
    rule("grant-too-late", "An act after its grant ended.", covers("dep*", expires_at=BEFORE), "grant.expired")

    def revoked(*, first: bool) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            root = grant(book, acts=["deploy"])
            book.opening(grant=root)
            if first:
                grant(book, "revoked", parent=root)
            intent = book.intent(grant=root)
            if not first:
                grant(book, "revoked", parent=root)
            acts(book, intent)

        return build

    rule("revoked-afterwards", "A grant that is revoked after the act.", revoked(first=False))
    rule("revoked-before", "A grant that was revoked before the act.", revoked(first=True), "grant.revoked")


def _lines(rule) -> None:
    def narrowed(**members: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            root = grant(book, acts=["deploy", "db.*"], limits=[{"meter": USD, "limit": 10}], expires_at=LATER)
            grant(book, "narrowed", **{"parent": root, **members})

        return build

    rule("narrows-acts", "A grant with fewer acts than its parent.", narrowed(acts=["db.read"]))
    rule("widens-acts", "A grant with an act that its parent has not.", narrowed(acts=["shell"]), "grant.widened")
    rule("narrows-limit", "A grant with its parent's limit.", narrowed(limits=[{"meter": USD, "limit": 10}]))
    rule("widens-limit", "A grant with a wider limit.", narrowed(limits=[{"meter": USD, "limit": 11}]), "grant.widened")
    rule("narrows-end", "A grant that ends with its parent.", narrowed(expires_at=LATER))
    rule(
        "widens-end",
        "A grant that outlives its parent.",
        narrowed(expires_at="2027-01-01T00:00:00.000Z"),
        "grant.widened",
    )
    rule("hands-over", "A grant for another actor, under a mandate.", narrowed(grantee="cd", mandate="release manager"))
    rule("hands-over-alone", "A grant for another actor without a mandate.", narrowed(grantee="cd"), "grant.unmandated")
    rule("narrows-nothing", "A grant narrowed from one that is not there.", narrowed(parent=NOWHERE), "grant.missing")


def _limits(rule) -> None:
    def spends(second: int, **limit: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            grants = [grant(book, acts=["deploy"], **limit) for _ in range(2)]
            for named, cost in ((grants[0], 60), (grants[0] if "limits" in limit else grants[1], second)):
                book.opening(grant=named)
                acts(book, book.intent(grant=named, reserved=[{"meter": USD, "reserved": cost, "basis": "quoted"}]))

        return build

    own = {"limits": [{"meter": USD, "limit": 100}]}
    day = {"periods": [{"account": "acme", "meter": USD, "period": "day", "limit": 100}]}
    rule("grant-spent", "Two runs spend what their grant allows.", spends(40, **own))
    rule("grant-overspent", "Two runs spend more than their grant allows.", spends(41, **own), "grant.overspent")
    rule("account-spent", "Two grants of one account spend what it may in a day.", spends(40, **day))
    rule("account-overspent", "Two grants of one account spend more.", spends(41, **day), "grant.period_overspent")

    def costs(limits: dict[str, Any], basis: str = "reported", **used: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            named = grant(book, acts=["deploy"], **limits)
            book.opening(grant=named)
            intent = book.intent(grant=named, reserved=[{"meter": USD, "reserved": 10, "basis": "quoted"}])
            said = {name: [{"meter": each[0], "settled": each[1], "basis": basis}] for name, each in used.items()}
            book.close(book.outcome(intent, status="committed", **said))

        return build

    foreign, unknown, beyond = "budget.unknown_price", "budget.basis_unknown", "grant.contradicted"
    for word, limits in (("grant", own), ("account", day)):
        rule(f"{word}-basis-known", "It cost 5, as somebody reports.", costs(limits, charges=(USD, 5)))
        rule(
            f"{word}-basis-unknown",
            "It cost 5, and nobody says how that is known.",
            costs(limits, "unknown", charges=(USD, 5)),
            unknown,
            3,
        )
        rule(f"{word}-foreign-zero", "It cost nothing in another currency.", costs(limits, charges=("eur_micro", 0)))
        rule(
            f"{word}-foreign-cost",
            "It cost a millionth in another currency.",
            costs(limits, charges=("eur_micro", 1)),
            foreign,
        )
        rule(
            f"{word}-usage-settled",
            "As much was used as is settled.",
            costs(limits, charges=(USD, 5), usage=(USD, 5)),
        )
        rule(
            f"{word}-usage-beyond",
            "More was used than is settled.",
            costs(limits, charges=(USD, 5), usage=(USD, 6)),
            beyond,
        )

    def refused(spent: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            named = grant(book, acts=["deploy"], **own)
            book.opening(grant=named)
            said = {"meter": USD, "limit": 100, "spent": spent, "reserved": 0, "asked": 101, "grant": named}
            book.close(book.decision(status="blocked", reason="grant.limit", **said))

        return build

    rule("refused-rightly", "A refusal with the amounts of its grant.", refused(0))
    rule("refused-wrongly", "A refusal with amounts that its grant has not.", refused(1), "grant.contradicted")


def _terms(rule) -> None:
    def under(document: str, amount: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            root = grant(book, acts=["deploy"], conditions=kit.digest(document.encode()))
            book.opening(grant=root)
            acts(book, book.intent(grant=root, act={**book.act(), "arguments": {"amount": amount}}))

        return build

    small = kit.canonical({"schema": "receipt-ledger.terms/v1", "when": {"amount": {"le": 5}}}).decode()
    broken = kit.canonical({"schema": "receipt-ledger.terms/v1", "when": {"amount": {"likes": 5}}}).decode()
    rule("terms-hold", "An act within the terms of its grant.", under(small, 5), documents=(small,))
    rule("terms-do-not", "An act beyond them.", under(small, 6), "grant.not_covered", documents=(small,))
    rule("terms-absent", "The terms are not at hand.", under(small, 5), "grant.terms_absent", 3)
    rule("terms-unreadable", "Terms with a comparison that nobody knows.", under(broken, 5), "grant.terms_unreadable", 3,
         documents=(broken,))  # fmt: skip


def _duties(rule) -> None:
    """Two approvers, one of whom may stand for either duty; every approval is fine by itself."""
    terms = {"schema": "receipt-ledger.terms/v1", "approvals": [{"role": "release"}, {"role": "finance"}]}
    document = kit.canonical(terms).decode()
    approvers = {"ada": kit.APPROVER, "bob": kit.NOTARY}
    bob = f'\n[[approver]]\nname = "bob"\nkey = "{kit.NOTARY.id}"\nroles = ["release", "finance"]\n'

    def by(*answers: tuple[str, str]) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            root = grant(book, acts=["deploy"], conditions=kit.digest(document.encode()))
            book.opening(grant=root)
            waiting = request(book, grant=root, roles=["release", "finance"], needed=2)
            given = [answer(book, waiting, by=approvers[name], name=name, role=role) for name, role in answers]
            book.close(waiting, book.outcome(book.intent(grant=root, approvals=given)))

        return build

    def case(id_: str, comment: str, *answers: tuple[str, str], code: str | None = None) -> None:
        rule(id_, comment, by(*answers), code, documents=(document,), pins=bob)

    case("duties-filled", "One approval in each role that the terms ask for.", ("ada", "release"), ("bob", "finance"))
    case(
        "duties-unfilled",
        "Both approvals are in one role.",
        ("ada", "release"),
        ("bob", "release"),
        code="grant.duties",
    )


def _book(**members: Any) -> str:
    quiet = {"gated": False, "risk": "read-only"}
    value = {
        "schema": "receipt-ledger.runbook-envelope/v1", "document": DOCUMENT, "mode": "human-with-agent",
        "allowlist": ["shell", "mail"], "start": "look", "terminals": ["done"], "undeclared": [],
        "budgets": {"tell->look": 1},
        "steps": {
            "look": {"tools": ["shell"], **quiet, "next": "tell"},
            "tell": {"tools": ["mail"], **quiet, "next": "done"},
            "done": {"tools": [], **quiet},
        },
    }  # fmt: skip
    return kit.canonical({**value, **members}).decode()


def open_book(book: Book, text: str, profile: str = "R1", **members: Any) -> str:
    said = {"envelope": kit.digest(text.encode()), "profile": profile, "ceiling": "write"}
    return book.opening(**{"runbook": said, "document": DOCUMENT, **members})


def use(book: Book, step: str, tool: str, **members: Any) -> str:
    act = {**book.act(), "tool": {"name": tool, "version": "1", "digest": "unknown"}}
    return book.outcome(book.intent(act=act, step=step, **members))


def end(book: Book, name: str, *children: str, status: str = "completed") -> str:
    return book.add("step", {"run": book.run_id, "name": name, "status": status, "children": list(children)})


def leave(book: Book, *children: str, status: str = "incomplete") -> None:
    reason = {"reason": "run.terminal_not_reached"} if status == "incomplete" else {}
    members = {"run": book.run_id, "status": status, "duration_ms": 9, "children": [book.run_id, *children], **reason}
    book.add("run", members)


def _steps(rule) -> None:
    text = _book()

    def looks(tool: str, step: str = "look", profile: str = "R1", **members: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, text, profile)
            leave(book, use(book, step, tool, **members))

        return build

    said = {"would_have": {"status": "denied", "reason": "scope.undeclared_tool"}}
    given = {"documents": (text,)}
    rule("step-uses-its-tool", "A step uses its tool.", looks("shell"), **given)
    rule("step-uses-another", "A step uses another step's tool.", looks("mail"), "runbook.out_of_scope_tool", **given)
    rule("step-uses-none", "A step uses a tool that is not declared.", looks("ssh"), "runbook.undeclared_tool", **given)
    rule("step-out-of-order", "A run begins with its second step.", looks("mail", "tell"), "runbook.out_of_order_step",
         **given)  # fmt: skip
    rule("advice-deviated", "Under R0 an act deviates and says so.", looks("ssh", profile="R0", **said), **given)
    rule(
        "advice-unsaid",
        "Under R0 an act deviates in silence.",
        looks("ssh", profile="R0"),
        "runbook.unrecorded",
        **given,
    )

    def retries(times: int, *, spent: int | None = None) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, text)
            done = [
                end(book, "look", use(book, "look", "shell")),
                end(book, "tell", use(book, "tell", "mail"), status="failed"),
            ]
            for _ in range(times):
                done += [
                    end(book, "look", use(book, "look", "shell")),
                    end(book, "tell", use(book, "tell", "mail"), status="failed"),
                ]
            if spent is not None:
                amounts = {"meter": "tell->look", "limit": 1, "spent": spent, "reserved": 0, "asked": 1, "step": "look"}
                done.append(book.decision(status="blocked", reason="budget.limit", **amounts))
            leave(book, *done)

        return build

    rule("retried", "A step is retried as often as its budget allows.", retries(1), **given)
    rule("retried-again", "A step is retried once more.", retries(2), "runbook.budget_exhausted", **given)
    rule("exhausted", "A refusal by a budget that ran out.", retries(1, spent=1), **given)
    rule("not-exhausted", "A refusal by a budget that did not.", retries(0, spent=1), "runbook.contradicted", **given)

    gated = _book(steps={
        "look": {"tools": ["shell"], "gated": True, "risk": "write", "next": "done"},
        "done": {"tools": [], "gated": False, "risk": "read-only"},
    }, budgets={})  # fmt: skip

    def before_gate(book: Book) -> None:
        open_book(book, gated)
        leave(book, use(book, "look", "shell"))

    rule("before-its-gate", "A gated step's tool without an approval.", before_gate, "approval.missing",
         documents=(gated,))  # fmt: skip


def _ends(rule) -> None:
    text = _book()

    def closes(status: str, *, whole: bool = False) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, text)
            done = [end(book, "look", use(book, "look", "shell"))]
            if whole:
                done += [end(book, "tell", use(book, "tell", "mail")), book.add(
                    "step", {"run": book.run_id, "name": "done", "status": "completed"})]  # fmt: skip
            leave(book, *done, status=status)

        return build

    given = {"documents": (text,)}
    rule("terminal-reached", "A run that is completed at a terminal.", closes("completed", whole=True), **given)
    rule("terminal-not-reached", "A run that is called completed elsewhere.", closes("completed"),
         "runbook.terminal_not_reached", **given)  # fmt: skip
    rule("incomplete", "A run that ended elsewhere and says so.", closes("incomplete"), **given)

    prose = _book(steps={
        "look": {"tools": ["shell"], "gated": False, "risk": "read-only", "expect": True, "next": "done"},
        "done": {"tools": [], "gated": False, "risk": "read-only"},
    }, budgets={})  # fmt: skip

    def looked(status: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, prose, "R2")
            leave(book, end(book, "look", use(book, "look", "shell"), status=status))

        return build

    rule("unevaluable-halts", "A step with prose alone halts.", looked("blocked"), documents=(prose,))
    rule("unevaluable-completed", "A step with prose alone is called completed.", looked("completed"),
         "runbook.not_asserted", documents=(prose,))  # fmt: skip


def _starts(rule) -> None:
    text = _book()

    def starts(profile: str = "R1", **members: Any) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, members.pop("text", text), profile, **members)
            leave(book, use(book, "look", "shell"))

        return build

    autonomous = _book(mode="agent-autonomous")

    def alone(profile: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            open_book(book, autonomous, profile)
            leave(book, use(book, "look", "shell"))

        return build

    rule("autonomous-enforced", "An autonomous agent under R1.", alone("R1"), documents=(autonomous,))
    rule("autonomous-advised", "An autonomous agent under R0.", alone("R0"), "runbook.not_refused",
         documents=(autonomous,))  # fmt: skip
    rule("another-document", "A run that follows another document.", starts(document=NOWHERE), "runbook.other",
         documents=(text,))  # fmt: skip
    rule("envelope-absent", "The envelope is not at hand.", starts(), "runbook.absent", 3)
    broken = _book(surprise=1)

    def unread(book: Book) -> None:
        open_book(book, broken)
        leave(book, use(book, "look", "shell"))

    rule("envelope-unreadable", "An envelope with a member that nobody knows.", unread, "runbook.unreadable", 3,
         documents=(broken,))  # fmt: skip


def _evaluations(rule) -> None:
    checks = [{"id": "tests", "required": True}, {"id": "style", "required": False}]
    text = kit.canonical({"schema": "receipt-ledger.criteria/v1", "checks": checks}).decode()

    def judged(verdict: str, tests: str) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            members = {
                "subject": kit.digest(b"subject"), "criteria": kit.digest(text.encode()), "verdict": verdict,
                "evaluator": {"package": "review", "method": "by-hand", "run": "unknown"},
                "answers": [{"criterion": "tests", "required": True, "answer": tests}],
            }  # fmt: skip
            book.add("evaluation", members)

        return build

    given = {"documents": (text,)}
    rule("verdict-met", "A verdict that its answers come to.", judged("met", "met"), **given)
    rule(
        "verdict-not-met",
        "A verdict better than its answers.",
        judged("met", "not_met"),
        "evaluation.contradicted",
        **given,
    )
    rule("criteria-absent", "The criteria are not at hand.", judged("met", "met"), "evaluation.criteria_absent", 3)
