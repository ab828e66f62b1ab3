"""The client against servers that answer as they like: what is sent where, what is tried again, what is believed."""

from __future__ import annotations

import pytest

from ledger.checkpoint import head_of
from ledger.errors import LedgerError
from ledger.note import sign_cosignature
from notary.client import AnswerError, NotaryClient, UnreachableError, check_url, post_timestamp
from notary.errors import RefusedError
from tests.reference.answering import server
from tests.reference.build import small, test_key

NOTE = small().notes[-1]
ORIGIN = head_of(NOTE).origin


class Pauses(list):
    """Waits for nothing, and keeps for how long."""

    __call__ = list.append


def add(seen, pauses=None, **options):
    with NotaryClient(seen.url, pause=pauses if pauses is not None else Pauses(), **options) as client:
        return client.add_checkpoint(NOTE, old=3, proof=[bytes(32), bytes([1] * 32)])


def line():
    text = NOTE[: NOTE.index(b"\n\n") + 1].decode()
    found = sign_cosignature(text, "w.example", test_key("witness"), time_s=1_796_030_100)
    from ledger.note import Note, print_note

    return print_note(Note(text, (found,)))[len(text) + 1 :], found


def test_a_checkpoint_is_sent_as_witnesses_take_it_and_its_lines_are_read():
    data, found = line()
    with server((200, {"Content-Type": "text/plain"}, data)) as seen:
        assert add(seen, token="secret") == (found,)
    ((method, path, headers, body),) = seen.requests
    assert (method, path) == ("POST", "/add-checkpoint")
    zeros, ones = "A" * 43 + "=", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
    assert body == f"old 3\n{zeros}\n{ones}\n\n".encode() + NOTE
    # A witness asks for no token, so it is shown none.
    assert "Authorization" not in headers


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 0])
def test_no_answer_and_an_error_of_the_server_are_tried_again_later_each_time(status):
    data, found = line()
    pauses = Pauses()
    with server((status, {}, b""), (status, {}, b""), (200, {}, data)) as seen:
        assert add(seen, pauses) == (found,)
        assert (len(seen.requests), pauses) == (3, [0.25, 0.5])
    with server((status, {}, b"")) as seen, pytest.raises(UnreachableError):
        add(seen)
    assert len(seen.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 415, 422, 429, 301, 307, 308])
def test_what_is_refused_is_not_sent_again(status):
    with server((status, {"Location": "http://127.0.0.1:1/"}, b"no")) as seen, pytest.raises(RefusedError) as caught:
        add(seen)
    assert (len(seen.requests), caught.value.status) == (1, status)


def test_a_redirect_is_not_followed_and_carries_no_token():
    with server((200, {}, b"")) as other, server((307, {"Location": other.url + "/v1/heads"}, b"")) as seen:
        with NotaryClient(seen.url, token="secret", pause=Pauses()) as client, pytest.raises(RefusedError) as caught:
            client._post("/v1/heads", b"{}", "application/json", token=True)
        assert caught.value.code == "notary.redirect"
        assert other.requests == []
    assert seen.requests[0][2]["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"])
def test_over_plain_http_no_proxy_is_asked(monkeypatch, name):
    data, _ = line()
    with server((200, {}, data)) as seen, server((200, {}, data)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        add(seen, token="secret")
    assert (len(seen.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize(
    ("headers", "body", "size", "code"),
    [
        ({"Content-Type": "text/x.tlog.size"}, b"7\n", 7, "witness.size"),
        ({"Content-Type": "text/x.tlog.size"}, b"-7\n", None, "notary.refused"),
        ({"Content-Type": "text/x.tlog.size"}, b"7" * 30, None, "notary.refused"),
        ({"Content-Type": "text/plain"}, b"7\n", None, "notary.refused"),
        ({}, b'{"code":"witness.size","message":"no","schema":"x","size":9}', 9, "witness.size"),
        ({}, b'{"code":"witness.size","message":"no","schema":"x","size":-9}', None, "witness.size"),
        ({}, b'{"code":7,"message":"no"}', None, "notary.refused"),
        ({}, b"\xff" * 9000, None, "notary.refused"),
    ],
)
def test_the_size_that_a_notary_remembers_is_read_from_its_two_forms_and_no_other(headers, body, size, code):
    with server((409, headers, body)) as seen, pytest.raises(RefusedError) as caught:
        add(seen)
    assert (caught.value.size, caught.value.code) == (size, code)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("body", [b"", b"\n", b"x\n", b"\xff\n", b"\xe2\x80\x94 w.example AAAA\n", line()[0][:-1]])
def test_what_is_no_cosignature_is_no_answer(body):
    with server((200, {}, body)) as seen, pytest.raises(AnswerError):
        add(seen)
    assert len(seen.requests) == 1


def test_an_answer_without_end_is_cut_off():
    with server((200, {}, b"x" * ((16 << 20) + 1))) as seen, pytest.raises(AnswerError, match="over"):
        add(seen)


def test_what_was_compressed_is_not_unfolded():
    import gzip

    data, _ = line()
    with server((200, {"Content-Encoding": "gzip"}, gzip.compress(data))) as seen, pytest.raises(AnswerError):
        add(seen)
    assert seen.requests[0][2]["Accept-Encoding"] == "identity"


def test_nobody_who_listens_is_unreachable():
    with pytest.raises(UnreachableError), NotaryClient("http://127.0.0.1:1", pause=Pauses()) as client:
        client.checkpoint(ORIGIN)


@pytest.mark.parametrize(
    "url",
    [
        "https://notary.example.org",
        "https://notary.example.org:8443/notary/",
        "http://127.0.0.1:8470",
        "http://127.255.0.1",
        "http://[::1]:8470",
        "http://localhost:8470",
    ],
)
def test_https_and_this_machine_are_taken(url):
    assert check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://notary.example.org",
        "http://10.0.0.1",
        "http://0.0.0.0:8470",
        "http://[::]:8470",
        "http://[::ffff:127.0.0.1]",
        "http://127.0.0.1.nip.io",
        "http://2130706433",
        "http://0x7f.1",
        "http://localhost.example.org",
        "http://localhost@notary.example.org",
        "https://user:word@notary.example.org",
        "https://notary.example.org?x=1",
        "https://notary.example.org#x",
        "HTTP://notary.example.org",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "127.0.0.1:8470",
        "https://",
        "http://127.0.0.1:x",
        "",
    ],
)
def test_every_other_place_is_refused(url):
    with pytest.raises(LedgerError) as caught:
        check_url(url)
    assert caught.value.code == "notary.url"


@pytest.mark.parametrize("token", ["a b", "a\nb", "\u00e9", "", "x" * 513])
def test_a_token_that_no_header_holds_is_refused_before_anything_is_sent(token):
    with pytest.raises(LedgerError) as caught:
        NotaryClient("http://127.0.0.1:1", token=token)
    assert caught.value.code == "notary.token"
    if token:
        assert token not in str(caught.value)


def test_the_newest_head_is_asked_for_by_the_digest_of_its_origin():
    import hashlib

    with server((200, {}, NOTE)) as seen, NotaryClient(seen.url + "/") as client:
        assert client.checkpoint(ORIGIN) == NOTE
        client.equivocation(ORIGIN)
    digits = hashlib.sha256(ORIGIN.encode()).hexdigest()
    assert [each[1] for each in seen.requests] == [f"/{digits}/checkpoint", f"/{digits}/equivocation"]


def test_a_timestamp_query_goes_as_its_type_says():
    with server((200, {}, b"reply")) as seen:
        assert post_timestamp(seen.url + "/tsa", b"query", pause=Pauses()) == b"reply"
    ((method, path, headers, body),) = seen.requests
    assert (method, path, headers["Content-Type"], body) == ("POST", "/tsa", "application/timestamp-query", b"query")
    for bad in ("ftp://x", "https://user@x", "x", "http://[x"):
        with pytest.raises(LedgerError):
            post_timestamp(bad, b"query")
