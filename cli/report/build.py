"""From receipts to what a report shows: each run's tree, its budgets, approvals, and what stands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cli.report import model
from cli.report.approvals import approvals_of
from cli.report.collect import Collected
from cli.report.facts import act_facts, opening_facts, outcome_facts
from ledger.members import Artifact
from ledger.receipt import Decision, Import, Intent, Opening, Outcome, Receipt, Resolution, Run, Step, children_of
from ledger.rules.amounts import COUNTED_METERS
from ledger.rules.budget import Budget
from ledger.rules.instant import ms_of

__all__ = ["Builder", "tone_of"]

_LEVELS: Final = 60
"""Levels of the timeline that are shown; more than a lawful tree of calls needs."""
_TONES: Final[Mapping[str, model.Tone]] = {
    "completed": "good", "committed": "good", "folded": "plain", "open": "waiting", "waiting": "waiting", "failed": "bad",
    "killed": "bad", "interrupted": "bad", "incomplete": "bad", "ambiguous": "alarm", "denied": "refused",
    "blocked": "refused", "declined": "refused", "superseded": "plain", "needs_decision": "waiting", "under way": "waiting",
    "met": "good", "not_met": "bad", "inconclusive": "waiting",
}  # fmt: skip
_IN_TREE: Final = (Intent, Outcome, Decision, Step)


def tone_of(status: str) -> model.Tone:
    """Return how a status reads."""
    return _TONES.get(status, "plain")


@dataclass(slots=True)
class Builder:
    """Builds the runs of a page.

    Args:
        found: the receipts.
        condition: says of an artifact and the index of a receipt that refers to it what is there.
        text: gives the beginning of an artifact that is to be shown, None where it is not.
        budget: gives the budget of a run that has limits.
        counter_seals: gives what is said of notaries for a receipt.
        breaches: code of the finding at the index of an entry.
        room: how many nodes the page has room for.
    """

    found: Collected
    condition: Callable[[str, int], str]
    text: Callable[[Artifact], str | None]
    budget: Callable[[str], Budget | None]
    counter_seals: Callable[[str], tuple[str, ...]]
    breaches: Mapping[int, str]
    room: int
    _committed: set[str] = field(default_factory=set)
    _resolutions: dict[str, Resolution] = field(default_factory=dict)
    _shown: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for _, receipt in self.found.receipts.values():
            if receipt is not None:
                self._committed.update(children_of(receipt))
            if isinstance(receipt, Resolution):
                self._resolutions[receipt.intent] = receipt

    def run(self, id_: str) -> model.Run | None:
        """Return a run with its tree, None where its opening cannot be read or the page has no room left."""
        opening = self.found.get(id_)
        if not isinstance(opening, Opening) or self.room <= 0:
            return None
        before = self.room
        closing_id, closing = self._closing(id_)
        top = self._run_node(id_, opening, ms_of(opening.issued_at), 0)
        ids = [each for each in self.found.whole(id_) if isinstance(self.found.get(each), (Opening, Run, *_IN_TREE))]
        left_out = sum(each not in self._shown for each in ids)
        took, approvals = top.took_ms, approvals_of(self.found, id_, opening)
        return model.Run(
            id_,
            opening.name,
            top.status,
            top.tone,
            opening.issued_at,
            took,
            max(took or 0, *(_end_of(node) for node in _nodes(top)), 1),
            opening_facts(opening, closing, closing_id),
            () if closing is None else tuple((each.meter, each.value) for each in closing.totals),
            tuple(sorted(Counter(node.status for node in _nodes(top) if node.kind in {"call", "decision"}).items())),
            top,
            self._budgets(id_, opening, closing),
            approvals,
            (*_notes(top), *_notes_of_approvals(approvals)),
            tuple(each for part in (id_, closing_id) if part for each in self.counter_seals(part)),
            left_out if before else 0,
        )

    def _closing(self, run: str) -> tuple[str | None, Run | None]:
        for each in self.found.by_run.get(run, ()):
            receipt = self.found.get(each)
            if isinstance(receipt, Run):
                return each, receipt
        return None, None

    def _run_node(self, run: str, opening: Opening, zero_ms: int, level: int) -> model.Node:
        closing_id, closing = self._closing(run)
        id_ = closing_id or run
        self._shown.update({run, id_})
        began = ms_of(opening.issued_at) - zero_ms
        status = "open" if closing is None else str(closing.status)
        took = closing.duration_ms if closing is not None and isinstance(closing.duration_ms, int) else None
        if took is None and closing is not None:
            took = max(ms_of(closing.issued_at) - ms_of(opening.issued_at), 0)
        children = self._members_of_open(run) if closing is None else tuple(closing.children)
        facts = () if level == 0 else opening_facts(opening, closing, closing_id)
        holder: Receipt = opening if closing is None else closing
        return self._node(id_, "run", opening.name, status, began, took, facts, holder, children, zero_ms, level)

    def _members_of_open(self, run: str) -> tuple[str, ...]:
        """Return what an open run holds and nothing commits yet."""
        own = [each for each in self.found.by_run.get(run, ()) if isinstance(self.found.get(each), _IN_TREE)]
        started = [self._closing(child)[0] or child for child in self.found.below.get(run, ())]
        return tuple(each for each in (*own, *started) if each not in self._committed and not self._is_inside(each))

    def _is_inside(self, id_: str) -> bool:
        """Return whether a run was started by a call of the run above it, under which it is shown."""
        receipt = self.found.get(id_)
        opening = self.found.get(receipt.run) if isinstance(receipt, Run) else receipt
        return isinstance(opening, Opening) and opening.parent_intent in self.found.receipts

    def _started_by(self, run: str, intent: str) -> tuple[str, ...]:
        """Return the runs that a call started and that its outcome does not commit."""
        found = []
        for child in self.found.below.get(run, ()):
            opening = self.found.get(child)
            if isinstance(opening, Opening) and opening.parent_intent == intent:
                id_ = self._closing(child)[0] or child
                if id_ not in self._committed:
                    found.append(id_)
        return tuple(found)

    def _of(self, id_: str, zero_ms: int, level: int) -> model.Node | None:
        """Return the node of a receipt, None where it was shown or there is no room."""
        if id_ in self._shown or self.room <= 0 or level > _LEVELS:
            return None
        receipt = self.found.get(id_)
        self._shown.add(id_)
        match receipt:
            case Outcome():
                return self._call(id_, receipt, zero_ms, level)
            case Intent():
                status = "ambiguous" if self._closing(receipt.run)[1] is not None else "under way"
                began = ms_of(receipt.issued_at) - zero_ms
                children = self._started_by(receipt.run, id_)
                facts = (*act_facts(receipt), *self._resolved(id_))
                return self._node(
                    id_, "call", receipt.act.name, status, began, None, facts, receipt, children, zero_ms, level
                )
            case Decision():
                began = ms_of(receipt.issued_at) - zero_ms
                facts = act_facts(receipt)
                return self._node(
                    id_, "decision", receipt.act.name, receipt.status, began, 0, facts, receipt, (), zero_ms, level
                )
            case Step():
                return self._step(id_, receipt, zero_ms, level)
            case Run():
                opening = self.found.get(receipt.run)
                if isinstance(opening, Opening):
                    return self._run_node(receipt.run, opening, zero_ms, level)
            case Opening():
                return self._run_node(id_, receipt, zero_ms, level)
            case _:
                pass
        kind = "unknown" if receipt is None else str(receipt.kind)
        where = self.found.receipts.get(id_)
        index = -1 if where is None else where[0].entry.index
        status = "not in this ledger" if where is None else "cannot be read" if receipt is None else ""
        self.room -= 1
        return model.Node(id_, index, kind, kind, status, "alarm" if status else "plain", None, None, (), ())

    def _call(self, id_: str, outcome: Outcome, zero_ms: int, level: int) -> model.Node:
        intent = self.found.get(outcome.intent)
        self._shown.add(outcome.intent)
        began: int | None = None
        name = "outcome"
        facts: tuple[tuple[str, str], ...] = ()
        files: tuple[model.File, ...] = ()
        children = tuple(each for each in outcome.children if each != outcome.intent)
        if isinstance(intent, Intent):
            began, name, facts = ms_of(intent.issued_at) - zero_ms, intent.act.name, act_facts(intent)
            files = self._files(intent, self.found.receipts[outcome.intent][0].entry.index)
            children = (*children, *self._started_by(intent.run, outcome.intent))
        took = outcome.duration_ms if isinstance(outcome.duration_ms, int) else None
        facts = (*facts, *outcome_facts(outcome), *self._resolved(outcome.intent))
        return self._node(
            id_, "call", name, str(outcome.status), began, took, facts, outcome, children, zero_ms, level, files=files
        )

    def _step(self, id_: str, step: Step, zero_ms: int, level: int) -> model.Node:
        end = ms_of(step.issued_at) - zero_ms
        began = end if step.duration_ms is None else end - step.duration_ms
        reason = (("Reason", str(step.reason)),) if step.reason else ()
        return self._node(
            id_,
            "step",
            step.name,
            step.status,
            began,
            step.duration_ms,
            reason,
            step,
            tuple(step.children),
            zero_ms,
            level,
        )

    def _node(
        self, id_: str, kind: str, name: str, status: str, began: int | None, took: int | None,
        facts: tuple[tuple[str, str], ...], receipt: Receipt, children: tuple[str, ...], zero_ms: int, level: int,
        *, files: tuple[model.File, ...] = (),
    ) -> model.Node:  # fmt: skip
        self.room -= 1
        stored = self.found.receipts[id_][0]
        index = stored.entry.index
        made = [node for child in children if (node := self._of(child, zero_ms, level + 1)) is not None]
        return model.Node(
            id_,
            index,
            kind,
            name,
            status,
            tone_of(status),
            began,
            took,
            (
                *facts,
                (
                    "Entry",
                    f"{index:,}, {'under its own seal' if stored.envelope.seal else 'covered by what commits it'}",
                ),
            ),
            (*files, *self._files(receipt, index)),
            self.breaches.get(index, ""),
            tuple(made),
        )

    def _files(self, receipt: Receipt, index: int) -> tuple[model.File, ...]:
        artifacts = (*getattr(receipt, "artifacts", ()), *((receipt.document,) if isinstance(receipt, Import) else ()))
        return tuple(
            model.File(
                each.name,
                each.digest,
                each.media_type,
                each.size_bytes,
                self.condition(each.digest, index),
                self.text(each),
            )
            for each in artifacts
            if each.name != "run-salt"
        )

    def _resolved(self, intent: str) -> tuple[tuple[str, str], ...]:
        found = self._resolutions.get(intent)
        if found is None:
            return ()
        word = "it happened" if found.happened == "happened" else "it did not happen"
        return (("Resolved", f"{word}, found by {found.resolved_by} at {found.issued_at}"),)

    def _budgets(self, run: str, opening: Opening, closing: Run | None) -> tuple[model.Budget, ...]:
        if not opening.limits:
            return ()
        budget = self.budget(run)
        if budget is None:
            return ()
        took = closing.duration_ms if closing is not None and isinstance(closing.duration_ms, int) else 0
        return tuple(
            model.Budget(meter, line.limit, line.soft, took if meter == "duration_ms" else line.spent, line.reserved)
            for meter, line in sorted(budget.lines.items())
            if line.limit is not None or (meter not in COUNTED_METERS and (line.spent or line.reserved))
        )


def _nodes(top: model.Node) -> Iterator[model.Node]:
    waiting = [top]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def _end_of(node: model.Node) -> int:
    return max((node.began_ms or 0) + (node.took_ms or 0), 0)


def _notes_of_approvals(approvals: tuple[model.Approval, ...]) -> Iterator[model.Note]:
    for each in approvals:
        if each.by_actor:
            yield model.Note("alarm", f"{each.act}: {each.answer} by who also acted", each.requested, each.by)


def _notes(top: model.Node) -> Iterator[model.Note]:
    """Yield what stands out in a tree, in order."""
    for node in _nodes(top):
        facts = dict(node.facts)
        why = facts.get("Reason") or facts.get("Resolved") or ""
        if node.breach:
            yield model.Note("bad", f"{node.name}: a rule was broken", node.receipt, node.breach)
        if node.stands_out and node.kind != "run":
            yield model.Note(node.tone, f"{node.name}: {node.status}", node.receipt, why)
        elif "Would have been" in facts:
            yield model.Note("refused", f"{node.name}: only observed", node.receipt, facts["Would have been"])
