"""The HTTP half of asking a notary, and a timestamp authority.

- HTTPS, or plain HTTP to a loopback address: nothing is sent elsewhere in the clear, a token least of all.
- No redirect is followed, and over plain HTTP no proxy is used: a token goes to the named place or nowhere.
- No answer, a 5xx and a 408 are tried again, later each time; what the other side refused (4xx) is not.
- What comes back is at most 16 MiB and read within a bounded time. Nothing in it is believed here.

Source: docs/spec/notary.md, C2SP tlog-witness v1.0.0, RFC 3161.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from types import TracebackType
from typing import Final, Self

import httpx

from ledger import canonical
from ledger.errors import LedgerError, clip
from ledger.keys import print_base64
from ledger.notarization import (
    HeadRequest,
    Notarization,
    Request,
    parse_notarization,
    print_head_request,
    print_request,
)
from ledger.note import NoteSignature, parse_note
from ledger.storage.clock import monotonic_ms
from ledger.version import VERSION
from notary.errors import RefusedError

__all__ = ["AnswerError", "NotaryClient", "UnreachableError", "check_url", "post_timestamp"]

_TOKEN = re.compile(r"[!-~]{1,512}")
_MAX_ANSWER_BYTES: Final = 16 << 20
_ATTEMPTS: Final = 3
_FIRST_PAUSE_S: Final = 0.25
_MAX_PAUSE_S: Final = 8.0
_ANSWER_WITHIN_MS: Final = 120_000
_TIMEOUT: Final = httpx.Timeout(30.0, connect=5.0)


class UnreachableError(LedgerError):
    """No answer came, or one that says to come again: nothing is known of the request but that it may be sent again."""

    code = "notary.unreachable"


class AnswerError(LedgerError):
    """An answer that is not what was asked for; nothing of it is kept."""

    code = "notary.answer"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    media_type: str


def check_url(text: str) -> httpx.URL:
    """Return the URL of a notary.

    Raises:
        LedgerError: `notary.url` for what is no URL, names a user, or would send in the clear beyond this machine.
    """
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise LedgerError(f"notary: got {clip(text)}, expected a URL: {error}", code="notary.url") from error
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise LedgerError(f"notary: got {clip(text)}, expected https://HOST[:PORT][/PATH]", code="notary.url")
    if url.scheme == "http" and not _is_loopback(url.host):
        raise LedgerError(
            f"notary: {clip(text)} is neither HTTPS nor on this machine, so nothing is sent to it",
            code="notary.url",
            hint="name it with https://",
        )
    return url


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its very name: nobody else's answer to a question decides it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class NotaryClient:
    """One notary, by its URL. Closing it closes its connections.

    `token` is sent where the protocol asks for one. `pause` waits so many seconds between attempts.
    """

    def __init__(self, url: str, *, token: str | None = None, pause: Callable[[float], None] = time.sleep) -> None:
        base = check_url(url)
        if token is not None and _TOKEN.fullmatch(token) is None:
            raise LedgerError("notary: the token holds characters that no token has", code="notary.token")
        self.url = str(base).rstrip("/")
        self._token = token
        self._pause = pause
        self._http = _http(base)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def notarize(self, request: Request) -> Notarization:
        """Return the answer to a request; nothing in it is verified.

        Raises:
            UnreachableError: no answer; the same request may be sent again.
            RefusedError: with the status, and the remembered size in a 409.
            AnswerError: no such document came back.
        """
        found = self._post("/v1/receipts/notarize", print_request(request), "application/json", token=True)
        try:
            return parse_notarization(found.body)
        except LedgerError as error:
            raise AnswerError(f"notary: {self.url}: {error}") from error

    def add_checkpoint(self, note: bytes, *, old: int, proof: Sequence[bytes]) -> tuple[NoteSignature, ...]:
        """Return the cosignature lines that a witness gives for a signed head; none of them is verified.

        Raises:
            UnreachableError, RefusedError, AnswerError: as `notarize`.
        """
        lines = "".join(f"{print_base64(each)}\n" for each in proof)
        body = f"old {old}\n{lines}\n".encode("ascii") + note
        return self._lines(note, self._post("/add-checkpoint", body, "text/plain", token=False).body)

    def send_head(self, request: HeadRequest) -> tuple[NoteSignature, ...]:
        """Return the cosignature lines for a head that is sent with its keys; none of them is verified.

        Raises:
            UnreachableError, RefusedError, AnswerError: as `notarize`.
        """
        found = self._post("/v1/heads", print_head_request(request), "application/json", token=True)
        try:
            line = canonical.decode(found.body).get("cosignature")
        except LedgerError as error:
            raise AnswerError(f"notary: {self.url}: {error}") from error
        return self._lines(request.checkpoint, line.encode("utf-8") if isinstance(line, str) else b"")

    def _lines(self, note: bytes, lines: bytes) -> tuple[NoteSignature, ...]:
        try:
            return parse_note(parse_note(note).text.encode("utf-8") + b"\n" + lines).signatures
        except LedgerError as error:
            raise AnswerError(f"notary: {self.url}: {error}") from error

    def checkpoint(self, origin: str) -> bytes:
        """Return the newest head that a notary remembers of an origin, as its note; nothing in it is verified.

        Raises:
            UnreachableError, RefusedError: as `notarize`.
        """
        return self._send("GET", f"/{_hex(origin)}/checkpoint", b"", {}).body

    def equivocation(self, origin: str) -> bytes:
        """Return the proof of equivocation that a notary holds of an origin; nothing in it is verified.

        Raises:
            UnreachableError, RefusedError: as `notarize`; status 404 where it holds none.
        """
        return self._send("GET", f"/{_hex(origin)}/equivocation", b"", {}).body

    @property
    def has_token(self) -> bool:
        """Whether there is a token to send."""
        return self._token is not None

    def _post(self, path: str, body: bytes, media_type: str, *, token: bool) -> _Answer:
        headers = {"Content-Type": media_type}
        if token and self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        return self._send("POST", path, body, headers)

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> _Answer:
        """Return the answer with status 200."""
        found = _tried(self._http, method, self.url + path, body, headers, self._pause)
        if found.status == httpx.codes.OK:
            return found
        if 300 <= found.status < 400:
            raise RefusedError(
                f"notary: {self.url} points elsewhere, which is not followed; name the notary where it is",
                status=found.status,
                code="notary.redirect",
            )
        raise _refusal(self.url, found)


def post_timestamp(url: str, query: bytes, *, pause: Callable[[float], None] = time.sleep) -> bytes:
    """Return what a timestamp authority answers to a query (RFC 3161), as DER; nothing in it is verified.

    The query holds a digest, a random number and nothing secret, so plain HTTP is taken, which most authorities speak.

    Raises:
        UnreachableError, RefusedError: as `NotaryClient.notarize`.
    """
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise LedgerError(f"timestamp: got {clip(url)}, expected a URL: {error}", code="notary.url") from error
    if base.scheme not in ("http", "https") or not base.host or base.userinfo:
        raise LedgerError(f"timestamp: got {clip(url)}, expected a URL", code="notary.url")
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    with _http(base) as http:
        found = _tried(http, "POST", str(base), query, headers, pause)
    if found.status != httpx.codes.OK:
        raise _refusal(url, found)
    return found.body


def _http(base: httpx.URL) -> httpx.Client:
    return httpx.Client(
        timeout=_TIMEOUT,
        follow_redirects=False,
        trust_env=base.scheme == "https",  # else a proxy would carry what is meant for this machine
        # What comes back is counted as it comes: nothing small may unfold into something large.
        headers={"User-Agent": f"receipt-ledger/{VERSION}", "Accept-Encoding": "identity"},
    )


def _tried(
    http: httpx.Client, method: str, url: str, body: bytes, headers: dict[str, str], pause: Callable[[float], None]
) -> _Answer:
    """Return the first answer that says something; raise after the last attempt."""
    said = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            pause(min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _MAX_PAUSE_S))
        try:
            found = _once(http, method, url, body, headers)
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            continue
        if found.status < 500 and found.status != httpx.codes.REQUEST_TIMEOUT:
            return found
        said = f"status {found.status}"
    raise UnreachableError(f"notary: {url}: {clip(said)}, {_ATTEMPTS} times")


def _once(http: httpx.Client, method: str, url: str, body: bytes, headers: dict[str, str]) -> _Answer:
    until = monotonic_ms() + _ANSWER_WITHIN_MS
    with http.stream(method, url, content=body or None, headers=headers) as answer:
        data = bytearray()
        for part in answer.iter_raw():
            data += part
            if len(data) > _MAX_ANSWER_BYTES:
                raise AnswerError(f"notary: {url}: the answer is over {_MAX_ANSWER_BYTES} bytes")
            if monotonic_ms() > until:
                raise httpx.ReadTimeout(f"no whole answer in {_ANSWER_WITHIN_MS // 1000} s")
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip()
        return _Answer(answer.status_code, bytes(data), media_type)


def _refusal(url: str, found: _Answer) -> RefusedError:
    """Return what a status other than 200 says."""
    text = found.body[:4096].decode("utf-8", "replace").strip()
    code, message, size = "notary.refused", text, None
    if found.media_type == "text/x.tlog.size" and text.isascii() and text.isdigit() and len(text) < 19:
        code, size = "witness.size", int(text)
    try:
        value = canonical.decode(found.body)
    except LedgerError:
        value = {}
    if isinstance(value.get("code"), str) and isinstance(value.get("message"), str):
        code, message = value["code"], value["message"]
        if type(value.get("size")) is int and value["size"] >= 0:
            size = value["size"]
    return RefusedError(f"notary: {url}: {found.status} {clip(message)}", status=found.status, code=code, size=size)


def _hex(origin: str) -> str:
    return sha256(origin.encode("utf-8")).hexdigest()
