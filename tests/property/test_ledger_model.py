"""Random work on one ledger folder against a model in memory: what was acknowledged is there, in order, once.

Two `Ledger` objects stand for two processes. In between the folder meets what it may meet: a torn tail (with the register of
the commit before, as a loss of power leaves them), a state or tiles that were removed or spoiled, a ledger that is closed.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from ledger import Ledger
from ledger.envelope import Envelope
from ledger.errors import SignatureError
from ledger.run import Call, Run
from tests.reference.check import check_folder, name_of
from tests.reference.ledgers import grant, last_segment, new_ledger, open_ledger, places_of, quick_folder, verdict

WRITERS = st.integers(0, 1)


class LedgerModel(RuleBasedStateMachine):
    """The model: ids in order, each with its envelope, open runs, and what was cut."""

    envelopes = Bundle("envelopes")
    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folder = self.stack.enter_context(quick_folder(Path(tempfile.mkdtemp())))
        self.ids: list[str] = []
        self.known: dict[str, Envelope] = {}
        self.runs: list[Run] = []
        self.cut: list[tuple[int, str]] = []

    @initialize(target=envelopes)
    def create(self) -> Envelope:
        self.writers = [new_ledger(self.folder), open_ledger(self.folder)]
        self.sync()
        first = grant(self.ledger)
        self.expect([first], 0)
        return first

    @property
    def ledger(self) -> Ledger:
        return self.writers[0]

    def sync(self) -> None:
        """Take over what the journal holds beyond the model; only for commits whose receipts are made inside."""
        journal = check_folder(self.ledger.folder, signatures=False)
        assert journal.ids[: len(self.ids)] == self.ids
        self.ids = journal.ids

    def expect(self, envelopes: list[Envelope], writer: int) -> None:
        """Append and compare every position with the model; a repair may come before them."""
        before = len(self.ids)
        positions = self.writers[writer].append_many(envelopes)
        fresh = [each for each in dict.fromkeys(envelopes) if each.receipt_id not in self.known]
        self.take_repairs()
        for envelope in fresh:
            self.known[envelope.receipt_id] = envelope
            self.ids.append(envelope.receipt_id)
        assert len(self.ids) >= before
        seen: set[str] = set()
        for envelope, position in zip(envelopes, positions, strict=True):
            assert position.receipt == envelope.receipt_id
            assert self.ids[position.index] == envelope.receipt_id
            assert position.already == (envelope not in fresh or envelope.receipt_id in seen)
            seen.add(envelope.receipt_id)

    def take_repairs(self) -> None:
        journal = check_folder(self.ledger.folder, signatures=False)
        for row in journal.rows[len(self.ids) :]:
            if row.receipt["kind"] != "repair":
                break
            self.ids.append(row.id)

    # Appending.

    @rule(target=envelopes, count=st.integers(1, 4), writer=WRITERS)
    def append_new(self, count: int, writer: int) -> object:
        fresh = [grant(self.ledger) for _ in range(count)]
        self.expect(fresh, writer)
        return multiple(*fresh)

    @rule(again=st.lists(envelopes, max_size=3), count=st.integers(0, 2), writer=WRITERS, twice=st.booleans())
    def append_mixed(self, again: list[Envelope], count: int, writer: int, *, twice: bool) -> None:
        fresh = [grant(self.ledger) for _ in range(count)]
        batch = [*again, *fresh, *(fresh if twice else [])]
        if batch:
            self.expect(batch, writer)

    @rule(writer=WRITERS)
    def refuse(self, writer: int) -> None:
        good = grant(self.ledger)
        with pytest.raises(SignatureError):
            self.writers[writer].append_many([good, Envelope(good.payload, seal=grant(self.ledger).seal)][::-1])
        self.take_repairs()

    # Runs.

    @rule(writer=WRITERS)
    def open_run(self, writer: int) -> None:
        if len(self.runs) < 3:
            self.runs.append(self.writers[writer].run("model"))
            self.sync()

    @rule(target=calls, writer=WRITERS, data=st.data())
    def enter_call(self, writer: int, data: st.DataObject) -> object:
        if not self.runs:
            return multiple()
        run = data.draw(st.sampled_from(self.runs))
        call = self.writers[writer].attach(run.id).call("act", arguments={"n": 1})
        call.__enter__()
        self.sync()
        assert call.intent in self.ids
        return call

    @rule(call=consumes(calls), fails=st.booleans())
    def leave_call(self, call: Call, *, fails: bool) -> None:
        if all(run.id != call._recorder.id for run in self.runs):
            return
        call.result = b"done"
        error = ValueError("x") if fails else None
        call.__exit__(type(error) if error else None, error, None)
        self.sync()
        assert call.outcome is not None
        assert call.outcome.receipt in self.ids

    @rule(writer=WRITERS)
    def close_run(self, writer: int) -> None:
        if self.runs:
            run = self.runs.pop(0)
            position = self.writers[writer].close_run(run.id)
            self.sync()
            assert self.ids[position.index] == position.receipt

    # What a folder meets.

    @rule(writer=WRITERS)
    def close(self, writer: int) -> None:
        self.writers[writer].close()

    @rule(writer=WRITERS)
    def reopen(self, writer: int) -> None:
        self.writers[writer] = open_ledger(self.folder)

    @rule(part=st.floats(0.01, 0.99), nuls=st.sampled_from([0, 0, 1, 600]), writer=WRITERS)
    def tear(self, part: float, nuls: int, writer: int) -> None:
        """Begin a commit and lose power: the beginning of its bytes is there, the register is the one before."""
        ledger = self.writers[writer]
        ledger.look(lambda view: None)
        self.take_repairs()
        self.expect([grant(ledger)], writer)
        path, note = last_segment(ledger), ledger.checkpoint()
        start = path.stat().st_size
        ledger.append_many([grant(ledger), grant(ledger)])
        assert last_segment(ledger) == path
        whole = path.read_bytes()
        end = min(len(whole) - 2, start + 1 + int(part * (len(whole) - start)))
        torn = whole[start:end] + b"\0" * nuls
        path.write_bytes(whole[:start] + torn)
        places_of(self.folder).register_file(ledger.origin).write_bytes(note)
        self.cut.append((len(torn), name_of(torn)))

    @rule()
    def remove_state(self) -> None:
        for path in self.ledger.folder.glob("state.sqlite*"):
            path.unlink()

    @rule()
    def spoil_state(self) -> None:
        path = self.ledger.folder / "state.sqlite"
        if path.exists():
            path.write_bytes(b"\xa5" * 5_000)

    @rule()
    def remove_tiles(self) -> None:
        shutil.rmtree(self.ledger.folder / "tiles", ignore_errors=True)

    @rule()
    def forget_register(self) -> None:
        places_of(self.folder).register_file(self.ledger.origin).unlink(missing_ok=True)

    # What must hold.

    @rule(id_=st.integers(0, 10_000), writer=WRITERS)
    def read(self, id_: int, writer: int) -> None:
        wanted = self.ids[id_ % len(self.ids)]
        stored = self.writers[writer].get(wanted)
        assert stored.entry.index == self.ids.index(wanted)
        assert self.writers[writer].find(wanted[7:23]) == [wanted]
        assert self.writers[writer].reader.at(stored.entry.index).entry_bytes == stored.entry_bytes

    @invariant()
    def reads_what_was_acknowledged(self) -> None:
        for writer in self.writers:
            assert writer.head().size == len(self.ids)
        assert [stored.entry.receipt for stored in self.ledger.entries()] == self.ids

    def teardown(self) -> None:
        try:
            self.ledger.append(grant(self.ledger))
            for run in self.runs:
                self.writers[1].close_run(run.id)
            journal = check_folder(self.ledger.folder)
            assert journal.ids[: len(self.ids)] == self.ids
            said = [(row.receipt["cut_bytes"], row.receipt["cut_digest"]) for row in journal.of("repair")]
            assert sorted(said) == sorted(self.cut)
            found = verdict(self.ledger)
            assert found.exit == 0, found.findings
        finally:
            for writer in self.writers:
                writer.close()
            self.stack.close()


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(
    settings.default, max_examples=max(25, settings.default.max_examples // 6), stateful_step_count=30
)
