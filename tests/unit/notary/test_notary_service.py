"""The endpoints: whatever is sent, an exact status; nothing remembered of what is refused; nothing of this program in any answer."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import canonical
from ledger.counterseal import open_counter_seal
from ledger.keys import parse_key_id
from ledger.notarization import parse_notarization, print_head_request, print_request
from ledger.note import check_note, parse_note, parse_vkey
from notary.desk import Desk
from notary.folder import create
from notary.service import Limits, build
from notary.submission import parse_submission
from notary.tokens import Scope
from tests.reference.asgi import Driven
from tests.reference.ledgers import grant, new_ledger, places_of, quick_folder
from tests.reference.submissions import (
    JSON,
    bearer,
    body,
    checkpoint_body,
    head_request,
    request,
    witnessed_body,
)

PLENTY = Limits(per_second=1e9, burst=10**9, anonymous_per_second=1e9, anonymous_burst=10**9)
COMMON = settings(
    suppress_health_check=list(HealthCheck), deadline=None, max_examples=max(50, settings.default.max_examples // 3)
)


class Notary:
    """A notary's application, driven without a socket."""

    def __init__(self, folder, limits=PLENTY):
        self.folder = create(folder / "notary", name="notary.example", places=places_of(folder / "notary-home"))
        self.tokens = self.folder.tokens()
        self.desk = Desk(self.folder)
        self.client = Driven(build(self.desk, self.tokens, limits=limits))

    def __enter__(self):
        self.client.__enter__()
        return self

    def __exit__(self, *found):
        self.client.__exit__(*found)

    def state(self):
        return (self.desk.memory.origins(), self.desk.index.count(), self.desk._own.tail.size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with quick_folder(tmp_path_factory.mktemp("service")) as made:
        yield made


@pytest.fixture(scope="module")
def notary(folder):
    with Notary(folder) as made:
        yield made


@pytest.fixture(scope="module")
def token(notary):
    return notary.tokens.issue()


@pytest.fixture(scope="module")
def ledger(folder):
    made = new_ledger(folder)
    made.append_many([grant(made) for _ in range(6)])
    return made


@pytest.fixture(scope="module")
def never_seen(folder):
    """Return a ledger that no test ever submits successfully."""
    made = new_ledger(folder / "never")
    made.append_many([grant(made) for _ in range(3)])
    return made


def ids(ledger):
    return [stored.entry.receipt for stored in ledger.entries(1)]


def notarize(notary, token, data, **headers):
    return notary.client.post("/v1/receipts/notarize", content=data, headers=bearer(token) | headers)


def error(answer):
    value = canonical.decode(answer.content)
    assert value["schema"] == "receipt-ledger.notary-error/v1"
    assert "Traceback" not in answer.text
    return answer.status_code, value["code"]


def test_a_receipt_is_sealed_and_found_again(notary, token, ledger):
    one = ids(ledger)[0]
    answer = notarize(notary, token, body(ledger, one))
    assert (answer.status_code, answer.headers["content-type"]) == (200, JSON)
    found = parse_notarization(answer.content)
    assert open_counter_seal(found.counter_seal)[0].receipt == one
    assert not found.published
    path = f"/v1/receipts/notarizations/{one}"
    assert error(notary.client.get(path)) == (404, "subject.absent")
    assert notary.client.get(f"/r/{one}").status_code == 404
    shown = canonical.decode(notary.client.get(path, headers=bearer(token)).content)
    assert [canonical.encode_part(each["counter_seal"]) for each in shown["notarizations"]] == [found.counter_seal]
    elsewhere = notary.tokens.issue(origins=["example.org/other"])
    assert error(notary.client.get(path, headers=bearer(elsewhere))) == (404, "subject.absent")
    full_only = notary.tokens.issue(scopes=[Scope.FULL])
    assert error(notary.client.get(path, headers=bearer(full_only))) == (404, "subject.absent")


def test_what_was_published_has_a_page_that_says_what_when_by_whom_and_how(notary, token, ledger):
    one = ids(ledger)[1]
    answer = notarize(notary, token, body(ledger, one, old=ledger.head().size, publish=True))
    seal, _ = open_counter_seal(parse_notarization(answer.content).counter_seal)
    assert parse_notarization(answer.content).published
    for name in (one, one.removeprefix("sha256:")):
        page = notary.client.get(f"/r/{name}")
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for told in (
            one,
            ledger.origin.replace("'", "&#x27;"),
            seal.issued_at,
            "notary.example",
            seal.key,
            "ledger verify --notary",
        ):
            assert told in page.text
        assert "<script" not in page.text
        assert "default-src 'none'" in page.headers["content-security-policy"]
        shown = canonical.decode(notary.client.get(f"/v1/receipts/notarizations/{name}").content)
        assert shown["receipt"] == one
        assert len(shown["notarizations"]) == 1


def test_a_seal_that_exists_is_published_when_that_is_asked(notary, token, ledger):
    three = ids(ledger)[3]
    size = ledger.head().size
    first = parse_notarization(notarize(notary, token, body(ledger, three, old=size)).content)
    second = parse_notarization(notarize(notary, token, body(ledger, three, old=size, publish=True)).content)
    assert (first.counter_seal, first.published, second.published) == (second.counter_seal, False, True)
    assert notary.client.get(f"/r/{three}").status_code == 200


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, "token.absent"),
        ("", "token.absent"),
        ("Basic abc", "token.absent"),
        ("Bearer", "token.absent"),
        ("Bearer ", "token.absent"),
        ("Bearer abc", "token.unknown"),
        ("Bearer rln_0123456789abcdef_" + "A" * 43, "token.unknown"),
    ],
)
def test_without_a_token_that_is_known_nothing_is_done(notary, never_seen, header, expected):
    before = notary.state()
    data = body(never_seen, ids(never_seen)[0])
    for path in ("/v1/receipts/notarize", "/v1/heads"):
        headers = {"Content-Type": JSON} | ({} if header is None else {"Authorization": header})
        answer = notary.client.post(path, content=data, headers=headers)
        assert error(answer) == (401, expected)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert notary.state() == before


def test_a_token_allows_what_it_says_and_no_more(notary, never_seen):
    before = notary.state()
    one = ids(never_seen)[0]
    plain = body(never_seen, one)
    tokens = notary.tokens
    for scopes, origins, data, expected in (
        ([Scope.ADMIT], [], plain, "token.scope"),
        ([Scope.NOTARIZE, Scope.ADMIT], [], body(never_seen, one, publish=True), "token.scope"),
        ([Scope.NOTARIZE, Scope.ADMIT], [], body(never_seen, one, mode="full"), "token.scope"),
        ([], ["example.org/other"], plain, "token.origin"),
        ([], ["example.org/other"], body(never_seen, one, mode="full"), "token.origin"),
    ):
        assert error(notarize(notary, tokens.issue(scopes=scopes, origins=origins), data)) == (403, expected)
    assert error(notarize(notary, tokens.issue(scopes=[Scope.NOTARIZE]), plain)) == (404, "origin.unknown")
    assert notary.state() == before


def test_a_revoked_token_is_unknown(notary, never_seen):
    token = notary.tokens.issue()
    notary.tokens.revoke(token[4:20])
    assert error(notarize(notary, token, body(never_seen, ids(never_seen)[0]))) == (401, "token.unknown")


def test_bodies_of_another_type_or_size_are_refused_unread(notary, token, never_seen):
    before = notary.state()
    data = body(never_seen, ids(never_seen)[0])
    assert error(notarize(notary, token, data, **{"Content-Type": "text/plain"})) == (415, "request.media_type")
    assert error(notarize(notary, token, b" " * ((16 << 20) + 1))) == (413, "request.too_large")
    small = notary.tokens.issue(scopes=[Scope.NOTARIZE])
    assert error(notarize(notary, small, b" " * ((1 << 20) + 1))) == (413, "request.too_large")
    assert error(notarize(notary, small, b" " * (1 << 20)))[0] == 400

    async def chunks():
        for _ in range(17):
            yield b" " * (1 << 20)

    streamed = notary.client.post("/v1/receipts/notarize", content=chunks(), headers=bearer(token))
    assert error(streamed) == (413, "request.too_large")
    assert error(notarize(notary, token, b"{}", **{"Content-Length": "9" * 5_000}))[0] == 413
    answer = notary.client.post("/add-checkpoint", content=b"old 0\n" + b"x" * 100_000)
    assert answer.status_code == 400
    assert notary.state() == before


def test_a_request_that_is_stale_is_told_the_size(notary, token, folder):
    ledger = new_ledger(folder / "stale")
    ledger.append(grant(ledger))
    early = body(ledger, ids(ledger)[0])
    early_head = witnessed_body(ledger)
    assert notarize(notary, token, early).status_code == 200
    ledger.append(grant(ledger))
    later = body(ledger, ids(ledger)[1], old=2)
    assert notarize(notary, token, later).status_code == 200
    before = notary.state()
    # The very submission again is what it was; a new one under the old head is stale.
    assert notarize(notary, token, early).status_code == 200
    answer = notary.client.post("/add-checkpoint", content=early_head)
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (409, "3\n", "text/x.tlog.size")
    stale = replace(request(ledger, ids(ledger)[1], old=2), mode="digest_only")
    stale = replace(stale, head=replace(stale.head, old=1))
    # Under the head that is remembered `old` does not matter.
    assert notarize(notary, token, print_request(stale)).status_code == 200
    ledger.append(grant(ledger))
    answer = notarize(notary, token, body(ledger, ids(ledger)[2], old=2))
    assert error(answer) == (409, "witness.size")
    assert canonical.decode(answer.content)["size"] == 3
    assert notary.state() == before


def test_a_head_comes_with_its_keys(notary, token, folder):
    ledger = new_ledger(folder / "heads")
    ledger.append(grant(ledger))
    path, asked = "/v1/heads", head_request(ledger, keys=True)
    assert notary.client.post("/add-checkpoint", content=witnessed_body(ledger)).status_code == 404
    answer = notary.client.post(path, content=print_head_request(asked), headers=bearer(token))
    assert answer.status_code == 200
    line = canonical.decode(answer.content)["cosignature"]
    text = parse_note(ledger.checkpoint()).text
    check_note(parse_note(f"{text}\n{line}".encode()), (parse_vkey(notary.folder.about.cosigner_vkey),))
    again = notary.client.post("/add-checkpoint", content=witnessed_body(ledger, old=ledger.head().size))
    assert (again.status_code, again.text) == (200, line)
    monitored = notary.client.get(f"/{hashlib.sha256(ledger.origin.encode()).hexdigest()}/checkpoint")
    assert monitored.status_code == 200
    assert monitored.text.endswith(line)
    assert monitored.text.startswith(text)
    wrong = replace(asked, old=2, log_key=notary.folder.about.seal_key)
    assert error(notary.client.post(path, content=print_head_request(wrong), headers=bearer(token)))[0] == 403
    bare = replace(wrong, keyring=(), last=None)
    assert error(notary.client.post(path, content=print_head_request(bare), headers=bearer(token)))[0] == 403


def test_keys_are_each_named(notary):
    value = canonical.decode(notary.client.get("/key").content)
    about = notary.folder.about
    assert value["name"] == "notary.example"
    assert value["seal"]["key"] == about.seal_key
    assert parse_vkey(value["cosigner"]["vkey"]).public == parse_key_id(about.cosigner_key)
    own = notary.folder.open_ledger()
    assert value["log"] == {
        "key": own.header.log_key,
        "origin": own.origin,
        "vkey": value["log"]["vkey"],
    }
    assert parse_vkey(value["log"]["vkey"]).name == own.origin
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    public = load_pem_public_key(value["seal"]["pem"].encode())
    assert public.public_bytes_raw() == parse_key_id(about.seal_key)
    assert len({about.seal_key, about.cosigner_key, own.header.log_key, own.header.issuer.key}) == 4


def test_health_and_counts_name_nobody(notary, token, ledger):
    notarize(notary, token, body(ledger, ids(ledger)[0]))
    assert canonical.decode(notary.client.get("/health").content) == {"status": "ok"}
    text = notary.client.get("/metrics").text
    assert 'notary_requests_total{route="/v1/receipts/notarize",status="200"}' in text
    for secret in (token, token[4:20], ledger.origin, ids(ledger)[0][7:], "192.0.2.7"):
        assert secret not in text


def test_the_log_holds_nothing_of_what_was_sent(notary, token, ledger, caplog):
    with caplog.at_level(logging.DEBUG, logger="notary"):
        notarize(notary, token, body(ledger, ids(ledger)[0]))
        notarize(notary, token, b'{"secret-content":1}')
        notary.client.get(f"/r/{ids(ledger)[0]}")
        notary.client.get("/v1/receipts/notarizations/secret-path", headers=bearer("secret-token"))
    assert [record.args[1:3] for record in caplog.records if record.name == "notary"] == [
        ("/v1/receipts/notarize", 200),
        ("/v1/receipts/notarize", 400),
        ("/r/{digest}", 404),
        ("/v1/receipts/notarizations/{digest}", 401),
    ]
    for secret in (token[4:20], ledger.origin, ids(ledger)[0][7:], "secret"):
        assert secret not in caplog.text


def test_who_asks_too_often_is_told_when_to_come_back(folder):
    limits = replace(PLENTY, per_second=0.01, burst=2, anonymous_per_second=0.01, anonymous_burst=2)
    with Notary(folder / "limited", limits) as notary:
        one, two = notary.tokens.issue(), notary.tokens.issue()
        statuses = [notarize(notary, one, b"{}").status_code for _ in range(4)]
        assert statuses == [400, 400, 429, 429]
        answer = notarize(notary, one, b"{}")
        assert error(answer) == (429, "request.rate")
        assert 1 <= int(answer.headers["retry-after"]) <= 101
        assert notarize(notary, two, b"{}").status_code == 400
        assert [notary.client.get("/key").status_code for _ in range(3)] == [200, 200, 429]
        assert notary.client.post("/add-checkpoint", content=b"").status_code == 429
        assert notary.client.get("/health").status_code == 200


def test_a_body_that_does_not_come_in_time_is_given_up(folder):
    with Notary(folder / "slow", replace(PLENTY, body_s=0.05)) as notary:
        token = notary.tokens.issue()

        async def endless():
            yield b"{"
            await asyncio.Event().wait()

        answer = notary.client.post("/v1/receipts/notarize", content=endless(), headers=bearer(token))
        assert error(answer) == (408, "request.timeout")
        assert notary.client.post("/add-checkpoint", content=endless()).status_code == 400


# Whatever is sent.

anything = st.binary(max_size=300) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace"))


def mutated(data):
    """Return bytes with a few of them changed, left out or doubled."""
    change = st.tuples(st.integers(0, len(data) - 1), st.sampled_from(["flip", "drop", "double"]), st.integers(0, 255))

    def apply(changes):
        made = bytearray(data)
        for at, how, value in changes:
            if at < len(made):
                if how == "flip":
                    made[at] = value
                elif how == "drop":
                    del made[at]
                else:
                    made[at:at] = made[at : at + 1 + value % 7]
        return bytes(made)

    return st.lists(change, min_size=1, max_size=4).map(apply)


REFUSED = {400, 403, 404, 409, 413, 422}


@COMMON
@given(st.data())
def test_a_submission_that_was_changed_is_refused_with_an_exact_status_or_is_what_it_was(
    notary, token, never_seen, data
):
    original = body(never_seen, ids(never_seen)[1], keys=data.draw(st.booleans()))
    changed = data.draw(mutated(original) | anything)
    without_admission = notary.tokens.issue(scopes=[Scope.NOTARIZE, Scope.FULL, Scope.PUBLISH])
    before = notary.state()
    answer = notarize(notary, without_admission, changed)
    assert answer.status_code in REFUSED
    assert error(answer)[1]
    assert notary.state() == before
    answer = notary.client.post("/v1/heads", content=changed, headers=bearer(without_admission))
    assert answer.status_code in REFUSED
    assert notary.state() == before


@COMMON
@given(st.data())
def test_an_admitted_ledger_s_submission_that_was_changed_seals_nothing_else(notary, token, ledger, data):
    size = ledger.head().size
    wanted = ids(ledger)[2]
    original = body(ledger, wanted, old=size)
    sealed = notarize(notary, token, original)
    assert sealed.status_code == 200
    before = notary.state()
    answer = notarize(notary, token, data.draw(mutated(original)))
    assert answer.status_code in REFUSED | {200}
    if answer.status_code == 200:
        # The head itself is joined whatever the request says beside it; the seal is the one that was.
        assert parse_notarization(answer.content).counter_seal == parse_notarization(sealed.content).counter_seal
    assert notary.state() == before


@COMMON
@given(st.data())
def test_a_checkpoint_that_was_changed_is_refused_with_a_status_of_the_protocol(notary, token, ledger, data):
    notarize(notary, token, body(ledger, ids(ledger)[0]))
    size = ledger.head().size
    original = witnessed_body(ledger, old=size)
    assert notary.client.post("/add-checkpoint", content=original).status_code == 200
    before = notary.state()
    changed = data.draw(mutated(original) | anything)
    answer = notary.client.post("/add-checkpoint", content=changed)
    assert answer.status_code in {200, 400, 403, 404, 409, 422}
    if answer.status_code == 200:
        # Only lines of unknown keys are covered by nothing.
        assert parse_submission(changed).shown.head == parse_submission(original).shown.head
    if answer.status_code == 409:
        assert answer.text == f"{size}\n"
    assert "Traceback" not in answer.text
    assert notary.state() == before


@COMMON
@given(
    st.sampled_from(["/r/{}", "/v1/receipts/notarizations/{}", "/{}/checkpoint", "/{}/equivocation", "/{}"]),
    st.text(max_size=80) | st.from_regex(r"(sha256:)?[0-9a-fA-F]{60,66}", fullmatch=True),
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"]),
    st.none() | st.text(max_size=60),
)
def test_every_path_has_an_exact_status(notary, path, name, method, header):
    from urllib.parse import quote

    before = notary.state()
    headers = {} if header is None else {"Authorization": header.encode("utf-8")}
    answer = notary.client.request(method, path.format(quote(name, safe="")), headers=headers, content=b"")
    assert answer.status_code in {400, 401, 404, 405}, answer.text
    assert "Traceback" not in answer.text
    assert notary.state() == before


def test_paths_that_are_nearly_right(notary):
    zeros = "0" * 64
    for path, status in (
        (f"/r/{zeros}", 404),
        (f"/r/sha256:{zeros}", 404),
        (f"/r/sha256:{zeros}0", 400),
        (f"/r/{'A' * 64}", 400),
        (f"/{zeros}/checkpoint", 404),
        (f"/{zeros}/equivocation", 404),
        ("/nothing", 404),
    ):
        assert notary.client.get(path).status_code == status, path


def test_an_origin_that_no_ledger_has_is_refused_before_anything_is_remembered(notary, token):
    """A head of another kind of log may have any origin; what is sealed as a receipt's may not."""
    from ledger.checkpoint import Head, sign_head
    from ledger.keys import PrivateKey

    before = notary.state()
    key = PrivateKey.from_seed(hashlib.sha256(b"foreign").digest())
    note = sign_head(Head("ex\u00e4mple.org/log", 1, b"\1" * 32), key)
    ledger_request = canonical.encode(
        {
            "checkpoint": note.decode(), "consistency": [], "log_key": key.key, "old": 0,
            "schema": "receipt-ledger.notarize-head/v1",
        }
    )  # fmt: skip
    answer = notary.client.post("/v1/heads", content=ledger_request, headers=bearer(token))
    assert error(answer) == (400, "head.origin")
    assert notary.client.post("/add-checkpoint", content=checkpoint_body(note)).status_code == 404
    assert notary.state() == before
