"""An import recorded: documents as artifacts, one `import` receipt each, and their facts as receipts with a `source`.

- A document that an `import` of this ledger names already is not imported again, and what only it says is not said again.
- The check and the receipts are one commit. What is too large for one goes on in the next ones; a crash between them leaves a run
  open, which `ledger close` ends.
- Trees are bounded: what is too much for one run goes on in a run that continues it.

Source: docs/spec/receipts.md, "import".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ledger import canonical
from ledger import receipt as kinds
from ledger.digest import digest
from ledger.envelope import Envelope, print_envelope
from ledger.errors import CanonicalError, LedgerError
from ledger.importing.facts import CallFact, Fact, Facts, RunFact, StepFact, name_of
from ledger.members import Act, Adapter, Artifact, Effect, Source, Tool
from ledger.receipt import MAX_CHILDREN, act_digest
from ledger.recorder import common_of
from ledger.storage.artifacts import SALTED_BELOW_BYTES, salted_bytes
from ledger.storage.clock import random_bytes
from ledger.storage.ledger import Ledger, Position
from ledger.storage.search import holding
from ledger.storage.writer import View
from ledger.words import OutcomeStatus, Reason

__all__ = ["Document", "Recorded", "find_imports", "record", "record_new"]

_COMMIT_ENTRIES: Final = 4_000
_COMMIT_BYTES: Final = 8 << 20
_TREE: Final = 30_002 - 16
"""Receipts that one run of an import may have, with room for what closes it."""
_LEVELS: Final = 56
"""Levels below a root down to which steps are kept apart; what is deeper stands in the deepest one."""
_OUTCOMES: Final = frozenset(OutcomeStatus)


@dataclass(frozen=True, slots=True)
class Document:
    """A document with its native verdict, and what came with it."""

    data: bytes
    name: str
    media_type: str
    format: str
    version: str
    native_status: str
    native_code: str
    mapping: str
    beside: tuple[tuple[str, str, bytes], ...] = ()
    """Name, media type and bytes of what came with it, such as the policy that it was checked under."""

    @property
    def digest(self) -> str:
        """Digest of the document's bytes."""
        return digest(self.data)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What an import came to: by digest of the document, where its receipt stands and whether it was there before."""

    imports: dict[str, Position]
    runs: tuple[str, ...] = ()
    receipts: int = 0
    """How many receipts were appended."""


def find_imports(ledger: Ledger, documents: Iterable[str], *, stop: int | None = None) -> dict[str, Position]:
    """Return where the imports of documents stand, by digest of the document; those never imported are not in it."""
    wanted = set(documents)
    found: dict[str, Position] = {}
    size = ledger.head().size if stop is None else stop
    for stored in holding(ledger.folder, b'"kind":"import"', stop=size) if wanted else ():
        try:
            receipt = kinds.parse_receipt(stored.envelope.payload)
        except LedgerError:
            continue  # the words stand in a receipt that is none
        if isinstance(receipt, kinds.Import) and receipt.document.digest in wanted:
            position = Position(stored.entry.receipt, stored.entry.index, already=True)
            found.setdefault(receipt.document.digest, position)
    return found


def record(ledger: Ledger, documents: Sequence[Document], facts: Facts) -> Recorded:
    """Import documents and record what they say; return when all of it is durable.

    Raises:
        AdmissionError, StorageError: as `Ledger.commit`; what is acknowledged is in the ledger.
    """
    by_digest = {document.digest: document for document in documents}
    known: dict[str, Position] = {}
    made: dict[str, str] = {}
    rest: list[Envelope] = []
    runs: list[str] = []

    def build(view: View) -> list[Envelope]:
        known.update(find_imports(ledger, by_digest, stop=view.size))
        new = {each: document for each, document in by_digest.items() if each not in known}
        builder = _Builder(ledger)
        for each, document in new.items():
            made[each] = builder.document(document)
        for run in facts.runs:
            earlier = run.continues
            for part in _parts(_only(run, new)):
                earlier = builder.run(replace(part, continues=earlier))
                runs.append(earlier)
        first, rest[:] = _cut(builder.envelopes)
        return first

    positions = ledger.commit(build)
    while rest:
        chunk, later = _cut(rest)
        positions += ledger.append_many(chunk)
        rest[:] = later
    places = {position.receipt: position for position in positions}
    imports = {**known, **{each: places[id_] for each, id_ in made.items()}}
    return Recorded(imports, tuple(runs), len(positions))


def record_new(ledger: Ledger, document: Document, run: RunFact | None) -> Position:
    """Record a document that no import names yet, with the one run that it says, as one commit; return where its import stands.

    Whoever calls knows that it is new: the journal is not looked through.

    Raises:
        AdmissionError, StorageError: as `Ledger.commit`.
    """
    builder = _Builder(ledger)
    builder.document(document)
    if run is not None:
        builder.run(run)
    return ledger.append_many(builder.envelopes)[0]


def _only(run: RunFact, new: Iterable[str]) -> RunFact | None:
    """Return a run without what documents say that are here already, None where nothing is left of it."""
    fresh = set(new)

    def kept(facts: Iterable[Fact]) -> tuple[Fact, ...]:
        found: list[Fact] = []
        for each in facts:
            if isinstance(each, CallFact):
                if each.document in fresh:
                    found.append(replace(each, inside=kept(each.inside)))
                continue
            members = kept(each.members)
            if each.document in fresh or members:
                found.append(replace(each, members=members))
        return tuple(found)

    members = kept(run.members)
    return replace(run, members=members) if run.document in fresh or members else None


def _parts(run: RunFact | None) -> list[RunFact]:
    """Return a run as one, or as several that continue each other where a tree cannot hold all of it."""
    if run is None:
        return []
    parts: list[RunFact] = []
    members: list[Fact] = []
    size = 2
    for member in run.members:
        count = _size(member)
        if members and size + count > _TREE:
            parts.append(replace(run, members=tuple(members), totals=()))
            members, size = [], 2
        members.append(member)
        size += count
    return [*parts, replace(run, members=tuple(members))]


def _size(fact: Fact) -> int:
    """Return about how many receipts a fact becomes."""
    if isinstance(fact, CallFact):
        return 2 + sum(_size(each) for each in fact.inside)
    return 3 + sum(_size(each) for each in fact.members)


def _cut(envelopes: Sequence[Envelope]) -> tuple[list[Envelope], list[Envelope]]:
    """Return what goes into the next commit, and the rest."""
    size = 0
    for place, envelope in enumerate(envelopes):
        size += len(print_envelope(envelope))
        if place and (place >= _COMMIT_ENTRIES or size > _COMMIT_BYTES):
            return list(envelopes[:place]), list(envelopes[place:])
    return list(envelopes), []


class _Builder:
    """Makes the receipts of one import, in the order in which they stand."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sources: dict[str, Source] = {}
        self._salt = b""
        self.envelopes: list[Envelope] = []

    def document(self, document: Document) -> str:
        """Return the id of the `import` of a document."""
        artifacts = self._ledger.artifacts
        kept = artifacts.stage_content(
            document.data, media_type=document.media_type, name=name_of(document.name, "document"), salted=False
        )
        beside = tuple(
            artifacts.stage_content(data, media_type=media_type, name=name, salted=False)
            for name, media_type, data in document.beside
        )
        receipt = kinds.Import.model_validate(
            {
                **common_of(self._ledger),
                "format": document.format,
                "version": name_of(document.version),
                "document": kept,
                "native_status": document.native_status,
                "native_code": name_of(document.native_code),
                "mapping": document.mapping,
                "artifacts": beside,
            }
        )
        id_ = self._add(receipt)
        self._sources[kept.digest] = Source.model_validate(
            {"document": kept.digest, "format": name_of(document.version, document.format), "import": id_}
        )
        return id_

    def run(self, run: RunFact) -> str:
        """Return the run id of a run, recorded whole."""
        self._salt = random_bytes(32)
        salt = Artifact(
            digest=self._ledger.artifacts.stage(self._salt),
            media_type="application/octet-stream",
            name="run-salt",
            size_bytes=len(self._salt),
            salted=False,
        )
        opening = kinds.Opening(
            **self._common(run),
            name=name_of(run.name),
            actor=run.actor,
            adapter=Adapter(name=run.adapter, version="1", coverage=run.coverage),
            correlation={_member(key): name_of(value) for key, value in run.correlation.items()} or None,
            artifacts=(salt,),
            continues=run.continues,
        )
        id_ = self._add(opening)
        children = self._members(run.members, id_, opening, 1)
        closing = kinds.Run(
            **self._common(run),
            run=id_,
            status=run.status,
            reason=run.reason,
            duration_ms="unknown" if run.duration_ms is None else run.duration_ms,
            totals=run.totals,
            children=(id_, *self._folded(children, id_, run, room=MAX_CHILDREN - 1)),
        )
        self._add(closing)
        return id_

    def _members(self, facts: Iterable[Fact], run: str, opening: kinds.Opening, level: int) -> list[str]:
        """Return the ids that the parent of some facts commits."""
        children: list[str] = []
        for fact in facts:
            if isinstance(fact, CallFact):
                children.append(self._call(fact, run, opening, level))
                continue
            below = self._members(fact.members, run, opening, level + 1)
            if level >= _LEVELS:
                children += below
            else:
                children.append(self._step(fact, run, self._folded(below, run, fact, room=MAX_CHILDREN)))
        return children

    def _step(self, fact: StepFact | RunFact, run: str, children: Sequence[str]) -> str:
        status = fact.status if isinstance(fact, StepFact) else _STEPS.get(fact.status, "failed")
        return self._add(
            kinds.Step.model_validate(
                {
                    **self._common(fact),
                    "run": run,
                    "name": name_of(fact.name),
                    "status": status,
                    "reason": fact.reason,
                    "duration_ms": fact.duration_ms,
                    "children": tuple(children),
                }
            )
        )

    def _call(self, fact: CallFact, run: str, opening: kinds.Opening, level: int) -> str:
        act, artifacts = self._act(fact)
        effect = Effect(key=name_of(fact.effect[0]), attempt=fact.effect[1]) if fact.effect is not None else None
        shared = {
            **self._common(fact),
            "run": run,
            "act": act,
            "act_digest": act_digest(
                act,
                ledger=self._ledger.origin,
                run=run,
                actor=opening.actor,
                effect_key=effect.key if effect is not None else None,
            ),
            "effect": effect,
            "rule": name_of(fact.rule) if fact.rule is not None else None,
            "artifacts": artifacts,
        }
        if fact.status not in _OUTCOMES:
            reason = fact.reason or Reason.NOT_EXECUTED
            return self._add(kinds.Decision.model_validate({**shared, "status": fact.status, "reason": reason}))
        intent = self._add(kinds.Intent(**shared))
        inside = self._members(fact.inside, run, opening, level + 1)
        return self._add(
            kinds.Outcome(
                **self._common(fact),
                run=run,
                intent=intent,
                status=OutcomeStatus(fact.status),
                reason=fact.reason,
                exit_code=fact.exit_code,
                duration_ms="unknown" if fact.duration_ms is None else fact.duration_ms,
                charges=fact.charges,
                usage=fact.usage,
                children=(intent, *self._folded(inside, run, fact, room=MAX_CHILDREN - 1)),
            )
        )

    def _act(self, fact: CallFact) -> tuple[Act, tuple[Artifact, ...]]:
        artifacts: tuple[Artifact, ...] = ()
        name = name_of(fact.name)
        act = Act(
            name=name,
            tool=Tool(name=name_of(fact.tool, name), version=name_of(fact.tool_version), digest="unknown"),
            access=fact.access,
            arguments=_inline(fact.inline),
            arguments_digest="unknown",
            resource=name_of(fact.resource),
            environment=name_of(fact.environment),
            amount=fact.amount,
        )
        if fact.arguments is not None:
            try:
                artifacts = (self._keep(canonical.encode(fact.arguments), "arguments"),)
            except CanonicalError:
                return act, ()  # outside our profile: they stand in the document as they are
            act = act.model_copy(update={"arguments_digest": artifacts[0].digest})
        return act, artifacts

    def _keep(self, content: bytes, name: str) -> Artifact:
        salted = len(content) < SALTED_BELOW_BYTES
        stored = salted_bytes(content, run_salt=self._salt) if salted else content
        return Artifact(
            digest=self._ledger.artifacts.stage(stored),
            media_type="application/json",
            name=name,
            size_bytes=len(content),
            salted=salted,
        )

    def _folded(self, children: list[str], run: str, fact: Fact, *, room: int) -> list[str]:
        """Return children that fit into one receipt; the first of too many stand in steps that fold."""
        steps: list[str] = []
        while len(steps) + len(children) > room:
            first, children = children[:MAX_CHILDREN], children[MAX_CHILDREN:]
            steps.append(
                self._add(
                    kinds.Step(**self._common(fact), run=run, name="folded", status="folded", children=tuple(first))
                )
            )
        return [*steps, *children]

    def _common(self, fact: Fact) -> dict[str, Any]:
        source = self._sources.get(fact.document)
        return {**common_of(self._ledger), "source": source or Source(document=fact.document, format="unknown")}

    def _add(self, receipt: kinds.Receipt) -> str:
        envelope = self._ledger.envelope(receipt)
        self.envelopes.append(envelope)
        return envelope.receipt_id


_STEPS: Final = {"completed": "completed", "blocked": "blocked", "declined": "blocked"}
"""How a run that stands as a step of another ended."""


def _member(text: str) -> str:
    """Return a text as the name of a member: what our canonical JSON does not take in one stands as a question mark."""
    return "".join("?" if each > "\ud7ff" else each for each in name_of(text))


def _inline(members: canonical.JsonObject) -> canonical.JsonObject | None:
    """Return members that a receipt can hold; what it cannot stays in the document."""
    try:
        canonical.encode(members, max_depth=8)
    except LedgerError:
        return None
    return members or None
