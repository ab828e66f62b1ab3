"""`ledger notarize --timestamp` against an authority of `openssl ts`: asked, checked, kept, carried, judged without a network."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ledger.bundle import parse_bundle, print_bundle
from tests.reference.authority import OPENSSL, Authority
from tests.reference.notaries import no_network
from tests.reference.people import Person

pytestmark = pytest.mark.skipif(OPENSSL is None, reason="openssl answers, and is not installed")


@contextmanager
def served(answer):
    """Serve what `answer` makes of each query."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = answer(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/timestamp-reply")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/tsa"
    finally:
        running.shutdown()
        thread.join()
        running.server_close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority.made(tmp_path_factory.mktemp("tsa") / "tsa")


@pytest.fixture
def owner(tmp_path, authority):
    person = Person(tmp_path / "owner")
    assert (
        person("trust", "add", "tsa", "--role", "timestamp", "--certificate", authority.folder / "root.pem").exit == 0
    )
    return person


@pytest.fixture
def folder(tmp_path, owner):
    path = tmp_path / "ledger"
    assert owner("init", path).exit == 0
    owner.record(path)
    return path


def test_a_head_is_timestamped_and_bounds_what_is_below_it(authority, owner, folder, tmp_path):
    receipt = owner("-L", folder, "log", "--json").json[0]["receipt"]
    with served(authority.reply) as url:
        done = owner("--json", "-L", folder, "notarize", "--timestamp", url)
    assert done.exit == 0, done.err
    stamped = done.json["timestamp"]
    assert stamped["by"] == "tsa"
    owner.record(folder)
    auditor = Person(tmp_path / "auditor").trusts(folder)
    assert owner("-L", folder, "prove", receipt, "-o", tmp_path / "bundle.json").exit == 0
    # Whoever pins no authority is told of a token that says nothing to him.
    done = auditor.verify(tmp_path / "bundle.json")
    assert (done.exit, "trust.timestamp_unpinned" in done.codes, "time" in done.json) == (0, True, False)
    assert auditor("trust", "add", "x", "--role", "timestamp", "--certificate", authority.folder / "root.pem").exit == 0
    with no_network():
        done = auditor.verify(tmp_path / "bundle.json")
    assert done.exit == 0, done.out
    assert done.json["time"] == {"not_after": {"time": stamped["time"], "by": "x", "kind": "timestamp"}}
    # A timestamp is no notary.
    assert auditor.verify("--require", "counter-seal=1", tmp_path / "bundle.json").exit == 4
    assert owner("-L", folder, "verify").exit == 0
    # What came after the head is not bounded by it.
    assert owner("-L", folder, "prove", "-o", tmp_path / "later.json").exit == 0
    done = auditor.verify(tmp_path / "later.json")
    assert (done.exit, "time" in done.json) == (0, False)


def test_a_token_over_another_head_does_not_hold(authority, owner, folder, tmp_path):
    with served(authority.reply) as url:
        assert owner("-L", folder, "notarize", "--timestamp", url).exit == 0
        receipt = owner("-L", folder, "log", "--json").json[0]["receipt"]
        owner.record(folder)
        assert owner("-L", folder, "notarize", "--timestamp", url).exit == 0
    tokens = sorted((folder / "notary/heads").glob("*.tsr"))
    assert len(tokens) == 2
    first, second = (each.read_bytes() for each in tokens)
    tokens[0].write_bytes(second)
    done = owner("-L", folder, "verify", "--json", receipt)
    assert (done.exit, "timestamp.invalid" in done.codes) == (1, True)
    tokens[0].write_bytes(first)
    assert owner("-L", folder, "verify", receipt).exit == 0
    path = tmp_path / "bundle.json"
    assert owner("-L", folder, "prove", receipt, "-o", path).exit == 0
    good = parse_bundle(path.read_bytes())
    for position in range(0, len(good.counter_seals[0].timestamp), 41):
        token = bytearray(good.counter_seals[0].timestamp)
        token[position] ^= 4
        from dataclasses import replace

        altered = replace(good.counter_seals[0], timestamp=bytes(token))
        path.write_bytes(print_bundle(replace(good, counter_seals=(altered, *good.counter_seals[1:]))))
        done = owner.verify(path)
        assert done.codes & {"timestamp.invalid", "trust.timestamp_unpinned"}, position


def test_an_answer_that_does_not_hold_is_not_kept(authority, owner, folder, tmp_path):
    other = Authority.made(tmp_path / "other", name="another")
    replayed: list[bytes] = []

    def again(query):
        if not replayed:
            replayed.append(authority.reply(query))
        return replayed[0]

    answers = {
        "a stranger": (other.reply, "not pinned"),
        "nonsense": (lambda _: b"\x30\x03nothing", "cannot be read"),
        "a refusal": (lambda _: bytes.fromhex("30053003020102"), "status 2"),
        "too much": (lambda query: authority.reply(query) + b"\0", "cannot be read"),
    }
    for name, (answer, said) in answers.items():
        with served(answer) as url:
            done = owner("-L", folder, "notarize", "--timestamp", url)
        assert (done.exit, said in done.err) == (2, True), (name, done.err)
    with served(again) as url:
        assert owner("-L", folder, "notarize", "--timestamp", url).exit == 0
        done = owner("-L", folder, "notarize", "--timestamp", url)
        assert (done.exit, "does not repeat the number" in done.err) == (2, True)
    assert len(list((folder / "notary/heads").glob("*.tsr"))) == 1
    stranger = Person(tmp_path / "stranger")
    with served(authority.reply) as url:
        done = stranger("-L", folder, "notarize", "--timestamp", url)
    assert (done.exit, "no authority is pinned" in done.err) == (2, True)
