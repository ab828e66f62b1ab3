"""Vectors of receipt trees and attribution, each a small ledger of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File
from vectors.makers.kit import ISSUER, OTHER_ISSUER, Book
from vectors.makers.shelf import Shelf

SPEC = ("docs/spec/trees.md", "docs/spec/envelopes.md", "docs/spec/receipts.md")
BORROWED = "receipt.borrowed_issuer"


def make() -> File:
    out = File(
        "trees",
        SPEC,
        "children missing, repeated, left out or added later; borrowed issuers; missing and foreign seals; depth",
    )
    shelf = Shelf(out)

    def tree(id_: str, comment: str, build: Callable[[Book], Any], code: str | None = None, flags: str = "", exit_: int | None = None,
             require: tuple[str, ...] = ()) -> None:  # fmt: skip
        book = Book(label=f"trees {id_}")
        book.header()
        build(book)
        book.commit()
        shelf.case(id_, comment, book, code, flags, exit_, trust=book.trust(), require=require)

    _children(tree)
    _order(tree)
    _close(tree)
    _child_runs(tree)
    _attribution(tree)
    _seals(tree)
    _depth(tree)
    return out


def _children(tree) -> None:
    def good(book: Book) -> None:
        book.opening()
        book.close(book.step(book.outcome(book.intent()), book.decision()), book.intent())

    tree("good", "A step with an outcome and a decision, and an intent that never got an outcome.", good)

    def smallest(book: Book) -> None:
        book.opening()
        book.close()

    tree("smallest", "A run that did nothing.", smallest)

    def missing(book: Book) -> None:
        book.opening()
        outcome = book.outcome(book.intent())
        book.close(outcome, kit.digest(b"no receipt"))

    tree("missing", "A child that is nowhere.", missing, "tree.missing", "missing-child")

    def missing_in_outcome(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent(), kit.digest(b"no receipt")))

    tree("missing-below", "A child that is nowhere, further down.", missing_in_outcome, "tree.missing", "missing-child")

    def twice_in_list(book: Book) -> None:
        book.opening()
        outcome = book.outcome(book.intent())
        book.close(outcome, outcome)

    tree("repeated-in-list", "A child twice in one list.", twice_in_list, "tree.repeated", "repeated-child")

    def twice(book: Book) -> None:
        book.opening()
        outcome = book.outcome(book.intent())
        book.close(book.step(outcome), outcome)

    tree("repeated", "A child of two parents.", twice, "tree.repeated", "repeated-child")

    def settled_twice(book: Book) -> None:
        book.opening()
        intent = book.intent()
        book.close(book.outcome(intent), book.outcome(intent, status="failed"))

    tree("settled-twice", "An intent with two outcomes.", settled_twice, "tree.repeated", "repeated-child")

    _left_out(tree)
    _others(tree)


def _left_out(tree) -> None:
    def left_out(book: Book) -> None:
        book.opening()
        outcome = book.outcome(book.intent())
        book.decision()
        book.close(outcome)

    tree("uncommitted", "A decision that the run leaves out.", left_out, "tree.uncommitted", "left-out")

    def outcome_left_out(book: Book) -> None:
        book.opening()
        intent = book.intent()
        book.outcome(intent)
        book.close(intent)

    tree("uncommitted-outcome", "A run that commits an intent and leaves out its outcome, which commits it too.", outcome_left_out, "tree.uncommitted", "left-out hidden-outcome")  # fmt: skip


def _others(tree) -> None:
    def linked(book: Book) -> None:
        book.opening()
        grant = book.add("grant", {"action": "given", "grantee": "ci"})
        book.close(grant)

    tree("linked-committed", "A grant, which stands alone, as a child.", linked, "tree.missing", "linked-kind")

    def linked_alone(book: Book) -> None:
        book.opening()
        book.add("grant", {"action": "given", "grantee": "ci"})
        book.close()

    tree("linked-alone", "A grant beside the tree.", linked_alone)

    def other_run(book: Book) -> None:
        book.opening()
        first = book.run_id
        step = book.step()
        book.opening()
        book.close(step)
        book.close(run=first)

    tree("other-run", "A child of another run.", other_run, "tree.missing", "foreign-child")

    def digest_of_artifact(book: Book) -> None:
        artifact = {
            "digest": kit.digest(b"stored"),
            "media_type": "text/plain",
            "name": "log",
            "size_bytes": 3,
            "salted": False,
        }
        book.opening(artifacts=[artifact])
        book.close(artifact["digest"])

    tree(
        "artifact-as-child",
        "An artifact's digest for a child.",
        digest_of_artifact,
        "tree.missing",
        "artifact-for-receipt",
    )


def _order(tree) -> None:
    def opening_second(book: Book) -> None:
        opening = book.opening()
        book.close(book.outcome(book.intent()), opening, opening=False)

    tree("opening-second", "The opening is not the first child.", opening_second, "tree.order", "order")

    def opening_left_out(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent()), opening=False)

    tree("opening-left-out", "The opening is left out.", opening_left_out, "tree.uncommitted", "left-out order")

    def other_opening(book: Book) -> None:
        book.opening()
        first = book.run_id
        book.opening()
        book.close(first, opening=False)

    tree(
        "opening-of-another",
        "The opening of another run as the first child.",
        other_opening,
        "tree.order",
        "foreign-child order",
    )

    def step_commits_opening(book: Book) -> None:
        opening = book.opening()
        book.close(book.step(opening), opening=False)

    tree("step-commits-opening", "A step that commits the opening.", step_commits_opening, "tree.order", "order")

    def intent_second(book: Book) -> None:
        book.opening()
        decision, intent = book.decision(), book.intent()
        book.close(book.outcome(intent, children=[decision, intent]))

    tree("intent-second", "The intent is not the first child of its outcome.", intent_second, "tree.order", "order")

    def intent_left_out(book: Book) -> None:
        book.opening()
        decision, intent = book.decision(), book.intent()
        book.close(book.outcome(intent, children=[decision]), intent)

    tree("intent-left-out", "An outcome that does not commit its intent.", intent_left_out, "tree.order", "order")

    def other_intent(book: Book) -> None:
        book.opening()
        first, second = book.intent(), book.intent()
        book.close(book.outcome(first, children=[second]), first)

    tree(
        "intent-of-another",
        "An outcome that commits another intent than it settles.",
        other_intent,
        "tree.order",
        "order",
    )

    def settles_decision(book: Book) -> None:
        book.opening()
        decision = book.decision()
        book.close(book.outcome(decision))

    tree("settles-a-decision", "An outcome that settles a decision.", settles_decision, "tree.order", "kind-confusion")


def _close(tree) -> None:
    def intent_after(book: Book) -> None:
        book.opening()
        book.close()
        book.intent()

    tree("after-close", "An intent after the close of its run.", intent_after, "tree.after_close", "after-close")

    def step_after(book: Book) -> None:
        book.opening()
        book.close()
        book.step()

    tree("after-close-step", "A step after it.", step_after, "tree.after_close", "after-close")

    def closed_twice(book: Book) -> None:
        book.opening()
        book.close()
        book.close()

    tree("closed-twice", "A second close.", closed_twice, "tree.after_close", "after-close")

    def reopened(book: Book) -> None:
        book.opening()
        row = book.rows[-1]
        book.append("opening", row.payload, row.envelope)
        book.close()

    tree("reopened", "Its opening again, before the close.", reopened, "run.reopened", "replay")

    def resolution_after(book: Book) -> None:
        book.opening()
        intent = book.intent()
        book.close(book.outcome(intent, status="ambiguous"))
        book.add("resolution", {"run": book.run_id, "intent": intent, "happened": "happened", "resolved_by": "ada"})

    tree("resolution-after-close", "A resolution may follow the close.", resolution_after)

    def unknown(book: Book) -> None:
        book.run_id = kit.digest(b"no opening")
        book.intent()

    tree("unknown-opening", "A receipt of a run that was never opened.", unknown, "run.unknown_opening", "unknown-run")

    def before(book: Book) -> None:
        outline = Book(label=book.label, rows=list(book.rows), clock_ms=book.clock_ms + 2)
        outline.rows.append(outline.rows[0])
        later = outline.opening()
        book.intent(run=later)
        made = book.opening()
        assert made == later
        book.close()

    tree(
        "before-opening", "A receipt before the opening of its run.", before, "run.unknown_opening", "unknown-run order"
    )

    def open_run(book: Book) -> None:
        book.opening()
        book.intent()

    tree("open", "An open run is listed, and is no failure.", open_run, "run.listed_open", exit_=0)
    tree(
        "open-required",
        "Where every run has to be closed it is one.",
        open_run,
        "run.open",
        "open-run",
        3,
        require=("closed",),
    )


def _child_runs(tree) -> None:
    def child(book: Book) -> tuple[str, str, str]:
        """Open a run, start a call, and run a child inside it; return the outer run, the intent and the child's root."""
        outer = book.opening()
        intent = book.intent()
        book.opening(parent_opening=outer, parent_intent=intent)
        root = book.close(book.outcome(book.intent()))
        return outer, intent, root

    def good(book: Book) -> None:
        outer, intent, root = child(book)
        book.close(book.outcome(intent, root, run=outer), run=outer)

    tree("child-run", "The root of a child run is committed by the call that started it.", good)

    def left_out(book: Book) -> None:
        outer, intent, _ = child(book)
        book.close(book.outcome(intent, run=outer), run=outer)

    tree("child-run-left-out", "The root of a child run that nobody commits.", left_out, "tree.uncommitted", "left-out")

    def twice(book: Book) -> None:
        outer, intent, root = child(book)
        book.close(book.outcome(intent, root, run=outer), root, run=outer)

    tree("child-run-twice", "The root of a child run committed twice.", twice, "tree.repeated", "repeated-child")

    def inner(book: Book) -> None:
        outer = book.opening()
        intent = book.intent()
        book.opening(parent_opening=outer, parent_intent=intent)
        inside = book.outcome(book.intent())
        book.close(inside)
        book.close(book.outcome(intent, inside, run=outer), run=outer)

    tree(
        "child-run-inside",
        "A receipt of a child run committed past its root.",
        inner,
        "tree.missing",
        "foreign-child repeated-child",
    )

    def stranger(book: Book) -> None:
        outer = book.opening()
        intent = book.intent()
        book.opening()
        root = book.close()
        book.close(book.outcome(intent, root, run=outer), run=outer)

    tree("stranger-run", "The root of a run that names no parent.", stranger, "tree.missing", "foreign-child")


def _attribution(tree) -> None:
    def good(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent()))

    tree("attributed", "Receipts without seal under the sealed root of their own issuer.", good)

    def borrowed(book: Book) -> None:
        book.opening()
        intent = book.intent(issuer=OTHER_ISSUER, seal=True)
        book.close(book.outcome(intent, issuer=OTHER_ISSUER))

    tree(
        "borrowed",
        "A receipt without seal, under the sealed root of another issuer.",
        borrowed,
        BORROWED,
        "borrowed-issuer",
    )

    def own_seal(book: Book) -> None:
        book.opening()
        intent = book.intent(issuer=OTHER_ISSUER, seal=True)
        book.close(book.outcome(intent, issuer=OTHER_ISSUER, seal=True))

    tree("borrowed-not", "The same with its own seal.", own_seal)

    def name(book: Book) -> None:
        book.opening()
        members = {"run": book.run_id, "act": book.act(), "act_digest": book.act_digest()}
        book.close(book.add("intent", members, name="deploy"))

    tree(
        "borrowed-name",
        "The key of the root and another name: the issuer is both.",
        name,
        BORROWED,
        "borrowed-issuer issuer-name",
    )

    def key(book: Book) -> None:
        book.opening()
        members = {"run": book.run_id, "act": book.act(), "act_digest": book.act_digest()}
        book.close(book.add("intent", members, issuer=OTHER_ISSUER, name="build"))

    tree("borrowed-key", "The name of the root and another key.", key, BORROWED, "borrowed-issuer issuer-key")

    def nearest(book: Book) -> None:
        book.opening()
        book.close(book.step(book.outcome(book.intent()), issuer=OTHER_ISSUER, seal=True))

    tree(
        "nearest",
        "The nearest sealed receipt counts, though the root farther up is of the right issuer.",
        nearest,
        BORROWED,
        "borrowed-issuer nearest",
    )

    def nearest_own(book: Book) -> None:
        book.opening()
        book.close(book.step(book.outcome(book.intent()), issuer=ISSUER, seal=True))

    tree("nearest-not", "A sealed step of the right issuer.", nearest_own)

    def other_root(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent(seal=True), seal=True), issuer=OTHER_ISSUER)

    tree("other-root", "Nothing borrows where everything below bears its own seal.", other_root)

    def root_of_another(book: Book) -> None:
        book.opening()
        book.close(book.outcome(book.intent()), issuer=OTHER_ISSUER)

    tree(
        "root-of-another",
        "A whole tree under the root of another issuer.",
        root_of_another,
        BORROWED,
        "borrowed-issuer",
    )

    def child_root(book: Book) -> None:
        outer = book.opening()
        intent = book.intent(seal=True)
        book.opening(parent_opening=outer, parent_intent=intent, issuer=OTHER_ISSUER)
        inner = book.outcome(book.intent())
        root = book.close(inner, issuer=OTHER_ISSUER)
        book.close(book.outcome(intent, root, run=outer), run=outer)

    tree(
        "child-run-borrowed",
        "In a child run the child's root counts, not the outer one.",
        child_root,
        BORROWED,
        "borrowed-issuer nearest",
    )


def _seals(tree) -> None:
    def opening_unsealed(book: Book) -> None:
        book.opening(seal=False)
        book.close(book.outcome(book.intent()))

    tree(
        "opening-unsealed",
        "An opening without its seal, under a sealed root: always sealed means always.",
        opening_unsealed,
        "seal.absent",
        "skipped-seal",
    )

    def run_unsealed(book: Book) -> None:
        book.opening()
        book.close(seal=False)

    tree("run-unsealed", "A root without its seal.", run_unsealed, "seal.absent", "skipped-seal")

    for kind, members in (
        ("grant", {"action": "given", "grantee": "ci"}),
        ("import", {
            "format": "axlr", "version": "1", "native_status": "holds", "native_code": "ok", "mapping": "1",
            "document": {"digest": kit.digest(b"d"), "media_type": "text/plain", "name": "d", "size_bytes": 1, "salted": False},
        }),
        ("evaluation", {
            "subject": kit.digest(b"s"), "criteria": kit.digest(b"c"), "verdict": "met",
            "evaluator": {"package": "p", "method": "m", "run": "unknown"},
        }),
        ("erasure", {"digest": kit.digest(b"stored"), "reason": "erasure.request", "receipts": []}),
        ("hold", {"action": "placed", "digest": kit.digest(b"stored")}),
        ("repair", {"reason": "repair.torn_tail", "segment": 0, "offset_bytes": 1, "cut_bytes": 1, "cut_digest": kit.digest(b"x")}),
        ("resolution", {"intent": kit.digest(b"intent"), "happened": "happened", "resolved_by": "ada"}),
    ):  # fmt: skip
        tree(
            f"{kind}-sealed",
            f"The seal of the {kind}.",
            lambda book, kind=kind, members=members: book.add(kind, members),
        )
        tree(
            f"{kind}-unsealed",
            f"The {kind} without it.",
            lambda book, kind=kind, members=members: book.add(kind, members, seal=False),
            "seal.absent",
            "skipped-seal",
        )

    def approval(book: Book, *, key: kit.Key = kit.APPROVER, seal: bool | kit.Key = True) -> None:
        members = {
            "answer": "granted",
            "role": "release",
            "expires_at": "2027-01-01T00:00:00.000Z",
            "uses": 1,
            "act_digest": kit.digest(b"act"),
        }
        book.add("approval", members, issuer=key, name="ada", seal=seal)

    tree("approval-sealed", "An approval sealed by the approver.", approval)
    tree(
        "approval-unsealed", "Without its seal.", lambda book: approval(book, seal=False), "seal.absent", "skipped-seal"
    )
    tree(
        "approval-by-issuer",
        "Sealed by the issuer of the ledger in the approver's name.",
        lambda book: approval(book, seal=ISSUER),
        "seal.issuer",
        "seal-by-another",
    )

    def other_seal(book: Book) -> None:
        book.opening(seal=OTHER_ISSUER)
        book.close()

    tree(
        "seal-by-another",
        "A seal that holds, by another key than the receipt's issuer.",
        other_seal,
        "seal.issuer",
        "seal-by-another",
    )

    def wrong_seal(book: Book) -> None:
        book.opening()
        payload = kit.canonical(
            book.value("run", {"run": book.run_id, "status": "completed", "duration_ms": 1, "children": [book.run_id]})
        )
        book.append("run", payload, kit.envelope(payload, ISSUER.id, kit.flip(ISSUER.sign(kit.pae(payload)), 40)))

    tree("seal-bit", "One bit of the seal of a root.", wrong_seal, "seal.invalid", "bit-flip skipped-seal")

    def optional_wrong(book: Book) -> None:
        book.opening()
        payload = kit.canonical(book.value("step", {"run": book.run_id, "name": "build", "status": "completed"}))
        book.close(
            book.append("step", payload, kit.envelope(payload, ISSUER.id, kit.flip(ISSUER.sign(kit.pae(payload)), 40)))
        )

    tree(
        "optional-seal-bit",
        "A seal that need not be there is checked where it is.",
        optional_wrong,
        "seal.invalid",
        "bit-flip optional-seal",
    )

    def bare(book: Book) -> None:
        book.opening()
        payload = kit.canonical(
            book.value("run", {"run": book.run_id, "status": "completed", "duration_ms": 1, "children": [book.run_id]})
        )
        book.append("run", payload, kit.envelope(payload, ISSUER.id, ISSUER.sign(payload)))

    tree("seal-bare", "A seal over the payload alone.", bare, "seal.invalid", "no-pae")


def _depth(tree) -> None:
    def nested(levels: int) -> Callable[[Book], None]:
        def build(book: Book) -> None:
            book.opening()
            child = book.step()
            for _ in range(levels - 2):
                child = book.step(child)
            book.close(child)

        return build

    tree("deep-64", "64 levels below the root.", nested(65))
    tree("deep-65", "65.", nested(66), "tree.too_deep", "depth")
