"""Segments judged apart and joined make the same verdict as segments folded in order, byte for byte, whatever was done to them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.digest import digest
from ledger.line import HEAD_PREFIX
from ledger.note import Note, parse_note, print_note
from tests.reference.build import Builder, party
from verify.chain import Segment
from verify.ledger import LedgerFold, verify_ledger
from verify.options import Options
from verify.parallel import assume, fold_part, outline
from verify.proof import RootFold

LAWFUL = [
    "opening", "child", "call", "call", "intent", "decision", "step", "seal step", "close", "close", "commit", "commit", "commit",
    "grant", "approve", "switch",
]  # fmt: skip
ROTATIONS = ["rotate issuer", "rotate log"]
UNLAWFUL = [
    "stray", "close again", "unsealed grant", "missing child", "twice", "borrowed", "foreign", "back", "replay", "early child",
    "late parent", "unknown kind", "wrong seal", "resolution", "wrong head", "wrong root",
]  # fmt: skip
HONEST = st.lists(st.sampled_from(LAWFUL), max_size=40)
ACTS = st.lists(st.sampled_from(LAWFUL * 5 + ROTATIONS + UNLAWFUL), max_size=40)
IN_RUN = {"call", "intent", "decision", "step", "seal_step", "child", "missing_child", "twice", "borrowed"}


class Author:
    """Writes a ledger by a list of acts."""

    def __init__(self, acts, seed=0):
        self.ledger = ledger = Builder(seed=seed)
        ledger.header()
        ledger.commit()
        self.open: list[str] = []
        self.closed: list[str] = []
        self.done = 1
        self.turns = {"issuer": 1, "log": 1}
        for act in acts:
            self.take(act.replace(" ", "_"))
        self.commit()

    def take(self, act):
        ledger = self.ledger
        if (
            act in {"call", "intent", "decision", "step", "seal_step", "child", "missing_child", "twice", "borrowed"}
            and not self.open
        ):
            self.opening()
        ledger.current = self.open[-1] if self.open else ""
        if len(ledger.rows) > 1 or act != "commit":
            getattr(self, act)()

    def opening(self):
        self.open.append(self.ledger.opening())

    def child(self):
        self.open.append(self.ledger.opening("child", parent=self.open[-1]))

    def call(self):
        self.ledger.call()

    def intent(self):
        self.ledger.intent()

    def decision(self):
        self.ledger.decision()

    def loose(self):
        return [id_ for id_ in self.ledger.uncommitted[self.open[-1]] if id_ != self.open[-1]]

    def step(self):
        self.ledger.step(*self.loose()[-3:])

    def seal_step(self):
        self.ledger.step(*self.loose()[-2:], seal=True)

    def close(self):
        if self.open:
            self.closed.append(self.open.pop())
            self.ledger.run(self.closed[-1])

    def switch(self):
        self.open[:] = self.open[1:] + self.open[:1]

    def commit(self, **changed):
        if len(self.ledger.rows) > self.done:
            self.ledger.commit(**changed)
            self.done = len(self.ledger.rows)

    def grant(self):
        self.ledger.grant()

    def approve(self):
        self.ledger.approval()

    def rotate_issuer(self):
        self.rotate("issuer")

    def rotate_log(self):
        self.commit()
        old = self.ledger.log
        self.rotate("log")
        self.ledger.commit(also=(old,))
        self.done = len(self.ledger.rows)

    def rotate(self, role):
        self.turns[role] += 1
        turn = self.turns[role]
        new, after = party(f"{role}-{turn}", "issuer"), party(f"{role}-{turn + 1}", "issuer")
        retired = self.ledger.issuer.key if role == "issuer" else self.ledger.log.key
        self.ledger.key(new, retired, role=role, next_=after.key)

    def stray(self):
        self.ledger.decision(run=self.closed[-1] if self.closed else digest(b"nowhere"))

    def close_again(self):
        if self.closed:
            self.ledger.run(self.closed[-1], children=[self.closed[-1]])

    def unsealed_grant(self):
        self.ledger.grant(seal=False)

    def missing_child(self):
        self.ledger.step(digest(b"missing"))

    def twice(self):
        first = self.ledger.step()
        self.ledger.step(first)
        self.ledger.step(first)

    def borrowed(self):
        self.ledger.decision(issuer=party("other"))

    def foreign(self):
        self.ledger.grant(ledger="ledger.invalid/other")

    def back(self):
        self.ledger.grant(entry={"recorded_at": "2026-11-30T08:00:00.000Z"})

    def replay(self):
        payloads = [row for row in self.ledger.rows if row.kind in {"opening", "run", "intent"}]
        if payloads:
            row = payloads[len(self.ledger.rows) % len(payloads)]
            self.ledger.add(row.kind, payload=self.ledger.payload(row.index))

    def early_child(self):
        """Open a child of a run that is not there."""
        self.open.append(self.ledger.opening("early", parent=digest(b"later")))

    def late_parent(self):
        """Open a run whose child was opened before it, by writing both receipts and turning them around."""
        ledger = self.ledger
        twin = Builder(seed=ledger.seed + 1)
        parent = twin.opening("late")
        child = twin.opening("early", parent=parent)
        if any(row.id == parent for row in ledger.rows):
            return
        ledger.add("opening", payload=twin.payload(1))
        ledger.uncommitted[child], ledger.parents[child] = [child], None
        self.commit()
        ledger.add("opening", payload=twin.payload(0))
        ledger.uncommitted[parent], ledger.parents[parent] = [parent], None
        ledger.run(child)
        self.closed.append(child)
        self.open.append(parent)

    def unknown_kind(self):
        self.ledger.add("later")

    def wrong_seal(self):
        self.ledger.grant(seal=party("other").private)

    def resolution(self):
        self.ledger.resolution(digest(b"intent"))

    def wrong_head(self):
        if len(self.ledger.rows) > self.done:
            self.commit(key=party("other").private)

    def wrong_root(self):
        if len(self.ledger.rows) > self.done:
            self.commit(root=b"r" * 32)


def cut(lines, every):
    """Return the lines as segments, a new one after every so many heads."""
    segments, block, heads, first, index = [], [], 0, 0, 0
    for line in lines:
        block.append(line)
        if line.startswith(HEAD_PREFIX):
            heads += 1
            if heads % every == 0:
                segments.append(Segment(f"journal/{first:016d}.jsonl", first, b"".join(each + b"\n" for each in block)))
                block, first = [], index
        else:
            index += 1
    if block:
        segments.append(Segment(f"journal/{first:016d}.jsonl", first, b"".join(each + b"\n" for each in block)))
    return segments


def in_order(segments, ledger, options, memory):
    return verify_ledger(segments, trust=ledger.trust(), memory=memory, options=options)


def apart(segments, ledger, options, memory, window):
    """Return the verdict where segments are judged apart, up to so many ahead of those that are joined; and how many were."""
    fold = LedgerFold(options, memory=memory)
    parts, joined = {}, 0
    for number, segment in enumerate(segments):
        point = fold.chain.point()
        if number and number not in parts and point is not None:
            parts.update(ahead(segments, number, point, fold, options, window))
        part = parts.pop(number, None)
        if part is not None and fold.join(part, segment.first_index):
            joined += 1
        else:
            fold.feed(segment)
    return fold.judge(segments, trust=ledger.trust(), memory=memory), joined


def ahead(segments, number, point, fold, options, window):
    """Return parts of the next segments, each from the point that follows from the outlines before it."""
    leaves, parts = RootFold.resume(point.head.fold), {}
    for ahead_ in range(number, min(number + window, len(segments))):
        parts[ahead_] = fold_part(segments[ahead_], point, origin=fold.origin, watch=fold.watch, options=options)
        found = outline(segments[ahead_])
        if found is None or found.leaves.start != leaves.size:
            break
        leaves.join(RootFold.resume(found.leaves))
        point = assume(point, leaves, found)
    return parts


OPTIONS = st.builds(Options, bytes_only=st.booleans(), every_head=st.booleans(), closed=st.booleans())


@given(ACTS, OPTIONS, st.integers(1, 3), st.integers(1, 4), st.integers(0, 30))
@example(["opening", "late parent", "commit", "close"], Options(), 1, 2, 0)
@example(["opening", "commit", "replay"], Options(), 1, 2, 0)
@example(["commit", "opening", "call", "close"], Options(), 1, 2, 0)
@example(["commit", "opening", "close", "commit", "stray"], Options(), 1, 2, 0)
@example(["opening", "commit", "child", "close", "commit", "close"], Options(), 1, 3, 0)
@example(["approve", "commit", "approve", "opening", "decision", "commit", "close"], Options(), 1, 3, 0)
@example(["opening", "close", "stray", "commit", "replay"], Options(), 1, 3, 0)
@example(
    ["opening", "call", "commit", "child", "commit", "close", "commit", "close"], Options(every_head=True), 1, 3, 2
)
@example(["opening", "commit", "close", "commit", "replay", "commit", "replay"], Options(), 1, 3, 0)
def test_whatever_is_written_segments_judged_apart_give_the_same_verdict(acts, options, every, window, seen):
    ledger = Author(acts).ledger
    segments = cut(ledger.lines, every)
    memory = ledger.notes[min(seen, len(ledger.notes) - 1)]
    expected = in_order(segments, ledger, options, memory)
    found, _ = apart(segments, ledger, options, memory, window)
    assert found.to_json() == expected.to_json()
    assert found.remember == expected.remember


def test_a_last_head_whose_signature_does_not_verify_is_said_in_the_same_words():
    ledger = Author(["call"]).ledger
    lines = list(ledger.lines)
    lines[-1] = lines[-1][:110] + bytes([lines[-1][110] ^ 1]) + lines[-1][111:]
    segments = cut(lines, 1)
    expected = in_order(segments, ledger, Options(), ledger.notes[-1])
    assert expected.exit == 1
    assert apart(segments, ledger, Options(), ledger.notes[-1], 1)[0].to_json() == expected.to_json()


@given(ACTS, OPTIONS, st.integers(1, 2), st.integers(1, 4), st.data())
def test_whatever_is_done_to_the_lines_segments_judged_apart_give_the_same_verdict(acts, options, every, window, data):
    ledger = Author(acts).ledger
    lines = list(ledger.lines)
    first, other = data.draw(st.integers(0, len(lines) - 1)), data.draw(st.integers(0, len(lines) - 1))
    match data.draw(st.sampled_from(["remove", "repeat", "swap", "flip", "cut", "tear"])):
        case "remove":
            del lines[first]
        case "repeat":
            lines.insert(other, lines[first])
        case "swap":
            lines[first], lines[other] = lines[other], lines[first]
        case "flip":
            at = data.draw(st.integers(0, len(lines[first]) - 1))
            lines[first] = lines[first][:at] + bytes([lines[first][at] ^ 1]) + lines[first][at + 1 :]
        case "cut":
            del lines[first + 1 :]
        case "tear":
            lines[first] = lines[first][: len(lines[first]) // 2]
    segments = cut(lines, every)
    expected = in_order(segments, ledger, options, ledger.notes[-1])
    found, _ = apart(segments, ledger, options, ledger.notes[-1], window)
    assert found.to_json() == expected.to_json()


@given(HONEST, st.integers(1, 4))
def test_a_part_is_refused_from_any_other_point_than_the_one_it_was_judged_from(acts, window):
    ledger = Author(acts).ledger
    segments = cut(ledger.lines, 1)
    fold = LedgerFold(Options())
    fold.feed(segments[0])
    point = fold.chain.point()
    assert point is not None
    for number, part in ahead(segments, 1, point, fold, Options(), window).items():
        assert part is not None
        for wrong in (
            replace(part.start, previous="0" * 64),
            replace(part.start, time=b"2026-11-30T09:00:09.999"),
            replace(part.start, keyring=part.start.keyring + 1),
            replace(part.start, head=replace(part.start.head, line=part.start.head.line + b" ")),
            replace(part.start, head=replace(part.start.head, keys=())),
        ):
            assert not fold.join(replace(part, start=wrong), segments[number].first_index)
        assert part.receipts is not None
        other = replace(part.receipts, origin="ledger.invalid/other")
        assert not fold.join(replace(part, receipts=other), segments[number].first_index)
        hashes = part.start.head.fold.hashes
        state = replace(part.start.head.fold, hashes=(bytes(32), *hashes[1:]))
        assert not fold.join(
            replace(part, start=replace(part.start, head=replace(part.start.head, fold=state))),
            segments[number].first_index,
        )
        assert fold.join(part, segments[number].first_index)


def test_an_honest_ledger_is_joined_from_parts_alone():
    acts = ["opening", "call", "commit", "child", "call", "commit", "close", "commit", "close", "commit"] * 5
    ledger = Author(acts).ledger
    segments = cut(ledger.lines, 1)
    for options in (Options(), Options(every_head=True), Options(bytes_only=True)):
        found, joined = apart(segments, ledger, options, None, 4)
        assert found.exit == 0
        assert joined == len(segments) - 1


def test_a_rotated_key_stops_what_was_judged_ahead_under_the_old_one_and_no_more():
    acts = ["grant", "commit", "grant", "commit", "rotate log", "grant", "commit", "grant", "commit", "grant", "commit"]
    ledger = Author(acts).ledger
    segments = cut(ledger.lines, 1)
    found, joined = apart(segments, ledger, Options(), None, 4)
    assert found.exit == 0
    assert 0 < joined < len(segments) - 1


@pytest.mark.parametrize("wrong", ["signature", "other line"])
def test_a_head_that_is_not_signed_by_the_key_in_force_is_found_in_a_part_too(wrong):
    ledger = Author(["grant", "commit"] * 3).ledger
    segments = cut(ledger.lines, 1)
    data = segments[2].data
    note = parse_note(ledger.notes[2])
    line = note.signatures[0]
    if wrong == "signature":
        changed = replace(line, signature=bytes([line.signature[0] ^ 1]) + line.signature[1:])
    else:
        changed = replace(line, key_id=bytes([line.key_id[0] ^ 1]) + line.key_id[1:])
    escaped = [print_note(Note(note.text, (each,))).decode().replace("\n", "\\n").encode() for each in (line, changed)]
    segments[2] = replace(segments[2], data=data.replace(*escaped))
    assert segments[2].data != data
    for options in (Options(every_head=True), Options()):
        found, _ = apart(segments, ledger, options, None, 4)
        assert found.exit == 1
        assert found.to_json() == in_order(segments, ledger, options, None).to_json()
