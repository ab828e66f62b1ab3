"""A notary that is killed under load: what a client received is in its ledger, and no two heads that it signed disagree.

Lanes submit the receipts and heads of their ledgers as fast as they are answered, fifty at once, and one origin has two histories
under one key. The service is killed without warning again and again, and started again as it lies, by nobody's hand.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections import defaultdict

import httpx
import pytest

from ledger.checkpoint import head_of, parse_checkpoint
from ledger.counterseal import open_counter_seal
from ledger.digest import digest
from ledger.envelope import parse_envelope
from ledger.notarization import parse_notarization
from ledger.note import check_note, parse_note, parse_vkey
from ledger.receipt import Evaluation, parse_receipt
from ledger.tlogproof import parse_tlog_proof
from notary.folder import create
from tests.reference.ledgers import grant, new_ledger, open_ledger, quick_folder, verdict
from tests.reference.people import at_home
from tests.reference.submissions import Service, bearer, body, checkpoint_body, head_request

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
KILLS = 20 if DEEP else 3
LANES = 48 if DEEP else 12
STEPS = 12 if DEEP else 4


class Lane:
    """One client: for each commit of its ledger a submission of the newest receipt, then one of the head."""

    def __init__(self, ledger, steps):
        self.origin = ledger.origin
        self.bodies, self.heads = [], []
        old = 0
        for _ in range(steps):
            place = ledger.append(grant(ledger))
            self.bodies.append(body(ledger, place.receipt, old=old))
            asked = head_request(ledger, old=old)
            self.heads.append((asked.checkpoint, old, asked.consistency))
            old = ledger.head().size
        self.seals = []
        self.cosigned = []
        self.client = httpx.Client(timeout=20, verify=False)

    def run(self, url, token, stopped):
        with self.client:
            self.submit(url, token, stopped)

    def submit(self, url, token, stopped):
        for data, (checkpoint, old, proof) in zip(self.bodies, self.heads, strict=True):
            for _ in range(2):  # each submission is made twice: it has one seal
                answer = self.post(url, "/v1/receipts/notarize", data, stopped, headers=bearer(token))
                if answer is None or answer.status_code in (409, 422):
                    return  # the other history was seen first
                assert answer.status_code == 200, answer.text
                self.seals.append((data, answer.content))
            answer = self.post(url, "/add-checkpoint", checkpoint_body(checkpoint, old=old, proof=proof), stopped)
            if answer is not None and answer.status_code == 409:
                size = int(answer.text)
                again = checkpoint_body(checkpoint, old=size)
                answer = self.post(url, "/add-checkpoint", again, stopped)
            if answer is None or answer.status_code in (400, 409, 422):
                return
            assert answer.status_code == 200, answer.text
            self.cosigned.append((checkpoint, answer.text))

    def post(self, url, path, data, stopped, **options):
        """Ask until there is an answer, whatever becomes of the service between."""
        while not stopped.is_set():
            try:
                answer = self.client.post(url() + path, content=data, **options)
            except httpx.TransportError:
                stopped.wait(0.02)
                continue
            if answer.status_code != 503:
                return answer
        return None


@pytest.fixture
def tmp_path(tmp_path):
    with quick_folder(tmp_path) as folder:
        yield folder


def two_histories(folder):
    """Return two ledgers of one origin and one key that part after their second entry."""
    first = new_ledger(folder / "first")
    first.append(grant(first))
    first.close()
    shutil.copytree(folder / "first", folder / "second")
    for each in (folder / "second/home/state/heads").iterdir():
        each.unlink()
    return first, open_ledger(folder / "second")


def test_what_was_received_is_in_its_ledger_whenever_it_is_killed(tmp_path):
    home = tmp_path / "operator"
    lanes = [Lane(new_ledger(tmp_path / f"lane-{number}"), STEPS) for number in range(LANES)]
    lanes += [Lane(each, STEPS) for each in two_histories(tmp_path)]
    folder, token = made_notary(tmp_path, home)
    service = Service(folder.path, home)
    running = [service]
    stopped = threading.Event()
    threads = [
        threading.Thread(target=lane.run, args=(lambda: running[0].url, token, stopped), daemon=True) for lane in lanes
    ]
    for thread in threads:
        thread.start()
    chance = random.Random(7)
    for _ in range(KILLS):
        threads[0].join(timeout=chance.uniform(0.05, 0.6))
        running[0].kill()
        # Nobody mends anything between.
        running[0] = Service(folder.path, home)
    for thread in threads:
        thread.join(timeout=120)
    unfinished = [thread for thread in threads if thread.is_alive()]
    stopped.set()
    said = running[0].stop()
    assert not unfinished
    assert "Traceback" not in said
    judge(lanes, folder)


def made_notary(tmp_path, home):
    """Return a notary of a user with a home of his own, and a token."""
    home.mkdir()
    with at_home(home, home):
        folder = create(tmp_path / "notary", name="notary.example")
        return folder, folder.tokens().issue()


def judge(lanes, folder):
    own = folder.open_ledger()
    assert verdict(own).exit == 0
    recorded = {}
    for stored in own.entries():
        receipt = parse_receipt(stored.envelope.payload)
        if isinstance(receipt, Evaluation):
            kept = receipt.artifacts[0]
            recorded[kept.digest] = (stored, receipt.subject)
            assert digest(own.artifact(kept)) == kept.digest
    # Every seal that was received.
    seals = defaultdict(set)
    for lane in lanes:
        for data, answer in lane.seals:
            found = parse_notarization(answer)
            seal, _ = open_counter_seal(found.counter_seal)
            stored, subject = recorded[digest(found.counter_seal)]
            assert subject == seal.receipt
            assert stored.envelope_bytes == found.record
            assert parse_tlog_proof(found.tlog_proof).index == stored.entry.index
            assert parse_envelope(found.record).receipt_id == stored.entry.receipt
            assert head_of(parse_tlog_proof(found.tlog_proof).checkpoint).size <= own.head().size
            seals[data].add(found.counter_seal)
    assert all(len(each) == 1 for each in seals.values())
    whole = [lane for lane in lanes[:-2] if len(lane.seals) == 2 * STEPS and len(lane.cosigned) == STEPS]
    assert len(whole) == len(lanes) - 2
    # Every head that it signed, received or not: of one origin and size there is one root, and one history holds them all.
    cosigner = parse_vkey(folder.about.cosigner_vkey)
    signed = defaultdict(dict)
    for kept in recorded:
        document = own.artifacts.get(kept)
        if document.startswith(b"{"):
            seal, _ = open_counter_seal(document)
            head = (seal.origin, seal.size, seal.root)
        else:
            note = parse_note(document)
            assert check_note(note, (cosigner,))
            stated = parse_checkpoint(note.text)
            head = (stated.origin, stated.size, "sha256:" + stated.root.hex())
        assert signed[head[0]].setdefault(head[1], head[2]) == head[2]
    received = 0
    for lane in lanes:
        for checkpoint, line in lane.cosigned:
            text = parse_note(checkpoint).text
            check_note(parse_note(f"{text}\n{line}".encode()), (cosigner,))
            stated = parse_checkpoint(text)
            assert signed[stated.origin][stated.size] == "sha256:" + stated.root.hex()
            received += 1
    assert received >= STEPS * LANES
    first, second = lanes[-2:]
    assert first.origin == second.origin
    roots = [
        {size: head_of(checkpoint) for checkpoint, *_ in lane.heads for size in [head_of(checkpoint).size]}
        for lane in (first, second)
    ]
    parted = [size for size in signed[first.origin] if size > 2]
    followed = [
        all(signed[first.origin][size] == "sha256:" + heads[size].root.hex() for size in parted) for heads in roots
    ]
    assert sum(followed) == 1, "heads of both histories were signed"
