"""The HTTP service: reads requests, hands them to the desk, writes answers.

Every request is bounded in size and time before anything is done for it. A refusal is a status and a code; an error of this
program is a 503 and a line in the log, which never holds what was sent, by whom, or a token.

Source: docs/spec/notary.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ledger import canonical
from ledger.errors import LedgerError
from ledger.keys import parse_key_id
from ledger.notarization import REQUEST_MAX_BYTES, parse_head_request, parse_request
from ledger.note import ED25519, NoteKey, print_vkey
from ledger.storage.clock import monotonic_ms
from notary.batches import Batches
from notary.desk import Ask, Desk, HeadAsk, MonitorAsk, ReceiptAsk
from notary.errors import RefusedError
from notary.evidence import judge
from notary.folder import print_pem
from notary.limits import Rate
from notary.metrics import Metrics
from notary.page import page
from notary.rules import read_shown
from notary.submission import SUBMISSION_MAX_BYTES, parse_submission
from notary.tokens import Grant, Scope, Tokens

__all__ = ["Limits", "build"]

Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

SMALL_MAX_BYTES: Final = 1 << 20
ERROR_SCHEMA: Final = "receipt-ledger.notary-error/v1"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_SIZE: Final = "text/x.tlog.size"
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_HASH = re.compile(r"[0-9a-f]{64}")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
}
_log = logging.getLogger("notary")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask of a service: requests a second on average and at once, and seconds for a body to arrive."""

    per_second: float = 1_000
    burst: int = 2_000
    anonymous_per_second: float = 50
    anonymous_burst: int = 200
    body_s: float = 20
    full_at_once: int = 1
    """How many bundles are verified at the same time."""
    large_at_once: int = 4
    """How many bodies over 1 MiB are held at the same time."""


def build(desk: Desk, tokens: Tokens, *, limits: Limits = Limits()) -> Starlette:
    """Return the application; it takes the desk over and stops it at its end."""
    service = _Service(desk, tokens, limits)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        await run_in_threadpool(service.stop)

    def route(path: str, endpoint: Endpoint, method: str, *, json: bool) -> Route:
        return Route(path, service.guarded(endpoint, path, json=json), methods=[method])

    return Starlette(
        lifespan=lifespan,
        routes=[
            route("/v1/receipts/notarize", service.notarize, "POST", json=True),
            route("/v1/heads", service.heads, "POST", json=True),
            route("/v1/receipts/notarizations/{digest}", service.notarizations, "GET", json=True),
            route("/add-checkpoint", service.add_checkpoint, "POST", json=False),
            route("/r/{digest}", service.public, "GET", json=False),
            route("/key", service.key, "GET", json=True),
            route("/health", service.health, "GET", json=True),
            route("/metrics", service.metrics_text, "GET", json=False),
            route("/{hash}/checkpoint", service.checkpoint, "GET", json=False),
            route("/{hash}/equivocation", service.equivocation, "GET", json=True),
        ],
    )


class _Service:
    """The endpoints over one desk."""

    def __init__(self, desk: Desk, tokens: Tokens, limits: Limits) -> None:
        self._desk = desk
        self._tokens = tokens
        self._limits = limits
        self._rate = Rate(limits.per_second, limits.burst)
        self._anonymous = Rate(limits.anonymous_per_second, limits.anonymous_burst)
        self._judging = asyncio.Semaphore(limits.full_at_once)
        self._large = asyncio.Semaphore(limits.large_at_once)
        self._batches: Batches | None = None
        self._metrics = Metrics(
            waiting=lambda: 0 if self._batches is None else self._batches.waiting, sealed=desk.index.count
        )

    def start(self) -> None:
        """Begin to take submissions."""
        self._batches = Batches(self._desk)

    def stop(self) -> None:
        """End what is under way and close every file."""
        if self._batches is not None:
            self._batches.stop()
        self._desk.close()

    def guarded(self, endpoint: Endpoint, route: str, *, json: bool) -> Endpoint:
        """Return an endpoint whose refusals and faults are answers, and whose answers are counted."""

        async def serve(request: Request) -> Response:
            started = monotonic_ms()
            try:
                response = await endpoint(request)
            except RefusedError as refused:
                response = self._refusal(refused, json=json)
            except ClientDisconnect:
                response = Response(status_code=400)
            except LedgerError as error:
                _log.error("%s: %s", route, error.code)
                unavailable = RefusedError("notary: not available", status=503, code="notary.unavailable")
                response = self._refusal(unavailable, json=json)
            except Exception as error:  # noqa: BLE001  a fault of this program is told to nobody but the log
                _log.error("%s: %s", route, type(error).__name__)
                fault = RefusedError("notary: a fault of the program", status=503, code="notary.unavailable")
                response = self._refusal(fault, json=json)
            duration_ms = monotonic_ms() - started
            self._metrics.answered(route, response.status_code, duration_ms=duration_ms)
            _log.info("%s %s %d %d ms", request.method, route, response.status_code, duration_ms)
            response.headers.update(_HEADERS)
            return response

        return serve

    # Submitting.

    async def notarize(self, request: Request) -> Response:
        """Counter-seal a receipt."""
        grant = self._grant(request)
        self._allow(grant, Scope.NOTARIZE)
        async with self._body(request, _limit(grant), media_type=_JSON) as body:
            try:
                asked = parse_request(body)
            except LedgerError as error:
                raise RefusedError(str(error), status=400, code=error.code) from error
            shown = read_shown(asked.head.checkpoint, foreign=False)
            self._allow_origin(grant, shown.head.origin)
            if asked.mode == "full":
                self._allow(grant, Scope.FULL)
            if asked.publish:
                self._allow(grant, Scope.PUBLISH)
            verdict = None
            if asked.bundle is not None:
                async with self._judging:
                    judged = await run_in_threadpool(judge, asked.bundle)
                verdict = (judged.to_json(), judged.exit)
            ask = ReceiptAsk(asked, shown, admits=Scope.ADMIT in grant.scopes, verdict=verdict)
            return Response(await self._submit(ask), media_type=_JSON)

    async def heads(self, request: Request) -> Response:
        """Cosign a head that comes with its keys."""
        grant = self._grant(request)
        self._allow(grant, Scope.NOTARIZE)
        async with self._body(request, _limit(grant), media_type=_JSON) as body:
            try:
                asked = parse_head_request(body)
            except LedgerError as error:
                raise RefusedError(str(error), status=400, code=error.code) from error
        shown = read_shown(asked.checkpoint, foreign=False)
        self._allow_origin(grant, shown.head.origin)
        line = await self._submit(
            HeadAsk(
                shown,
                asked.old,
                asked.consistency,
                asked.log_key,
                asked.keyring,
                asked.last,
                admits=Scope.ADMIT in grant.scopes,
            )
        )
        return _json({"cosignature": line.decode("utf-8"), "schema": "receipt-ledger.cosignature/v1"})

    async def add_checkpoint(self, request: Request) -> Response:
        """Cosign a head, as a C2SP witness."""
        self._allow_rate(self._anonymous, _host(request))
        try:
            async with self._body(request, SUBMISSION_MAX_BYTES) as body:
                asked = parse_submission(body)
        except RefusedError as refused:
            # The protocol knows one status for whatever is not such a body.
            raise RefusedError(str(refused), status=400, code=refused.code) from refused
        line = await self._submit(HeadAsk(asked.shown, asked.old, asked.proof))
        return Response(line, media_type=_TEXT)

    # Looking up.

    async def notarizations(self, request: Request) -> Response:
        """Return the counter-seals of a receipt."""
        grant = self._grant(request) if "authorization" in request.headers else None
        if grant is None:
            self._allow_rate(self._anonymous, _host(request))
        receipt = _digest_of(request)
        public = self._desk.memory.published_in(receipt)
        found = await run_in_threadpool(self._desk.notarizations, receipt)
        shown = [
            answer
            for row, answer in found
            if row.origin in public
            or (grant is not None and Scope.NOTARIZE in grant.scopes and grant.covers(row.origin))
        ]
        if not shown:
            raise RefusedError("receipt: nothing is shown of it here", status=404, code="subject.absent")
        head, tail = b'{"notarizations":[', b'],"receipt":"%b","schema":"receipt-ledger.notarizations/v1"}'
        return Response(head + b",".join(shown) + tail % receipt.encode("ascii"), media_type=_JSON)

    async def public(self, request: Request) -> Response:
        """Show what was published of a receipt."""
        self._allow_rate(self._anonymous, _host(request))
        receipt = _digest_of(request)
        origins = self._desk.memory.published_in(receipt)
        rows = [row for row in self._desk.index.of_receipt(receipt) if row.origin in origins]
        if not rows:
            raise RefusedError("receipt: nothing is shown of it here", status=404, code="subject.absent")
        return Response(page(self._desk.about, receipt, rows), media_type="text/html; charset=utf-8")

    async def checkpoint(self, request: Request) -> Response:
        """Return the newest remembered head of an origin, cosigned."""
        self._allow_rate(self._anonymous, _host(request))
        note = await self._submit(MonitorAsk(_hash_of(request)))
        return Response(note, media_type=_TEXT, headers={"Cache-Control": "no-cache"})

    async def equivocation(self, request: Request) -> Response:
        """Return the proof that an origin signed two histories, where there is one."""
        self._allow_rate(self._anonymous, _host(request))
        document = self._desk.memory.equivocation(_hash_of(request))
        if document is None:
            raise RefusedError("origin: no proof against it is held", status=404, code="subject.absent")
        return Response(document, media_type=_JSON)

    async def key(self, request: Request) -> Response:
        """Return the notary's keys."""
        self._allow_rate(self._anonymous, _host(request))
        about = self._desk.about
        log_key = await run_in_threadpool(lambda: self._desk.log_key)
        log = NoteKey(about.origin, ED25519, parse_key_id(log_key))
        return _json(
            {
                "schema": "receipt-ledger.notary-key/v1",
                "name": about.name,
                "seal": {"key": about.seal_key, "pem": print_pem(about.seal_key)},
                "cosigner": {"key": about.cosigner_key, "vkey": about.cosigner_vkey},
                "log": {"key": log_key, "origin": about.origin, "vkey": print_vkey(log)},
            }
        )

    async def health(self, request: Request) -> Response:  # noqa: ARG002  the shape of an endpoint
        """Say whether submissions are taken."""
        alive = self._batches is not None and self._batches.alive
        return _json({"status": "ok" if alive else "stopping"}, status=200 if alive else 503)

    async def metrics_text(self, request: Request) -> Response:
        """Return the counts."""
        self._allow_rate(self._anonymous, _host(request))
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    # What all of them share.

    async def _submit(self, ask: Ask) -> bytes:
        if self._batches is None:
            raise RefusedError("notary: not started", status=503, code="notary.unavailable")
        return await self._batches.submit(ask)

    def _grant(self, request: Request) -> Grant:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            self._allow_rate(self._anonymous, _host(request))
            raise RefusedError("token: got none, expected Authorization: Bearer", status=401, code="token.absent")
        grant = self._tokens.check(token)
        if grant is None:
            self._allow_rate(self._anonymous, _host(request))
            raise RefusedError("token: not one of this notary's", status=401, code="token.unknown")
        self._allow_rate(self._rate, grant.id)
        return grant

    def _allow(self, grant: Grant, scope: Scope) -> None:
        if scope not in grant.scopes:
            raise RefusedError(f"token: it has not the scope {scope}", status=403, code="token.scope")

    def _allow_origin(self, grant: Grant, origin: str) -> None:
        if not grant.covers(origin):
            raise RefusedError("token: it is for other origins", status=403, code="token.origin")

    def _allow_rate(self, rate: Rate, name: str) -> None:
        wait_s = rate.take(name, at_ms=monotonic_ms())
        if wait_s:
            raise RefusedError("too many requests", status=429, code="request.rate", size=wait_s)

    @contextlib.asynccontextmanager
    async def _body(self, request: Request, limit: int, *, media_type: str | None = None) -> AsyncIterator[bytes]:
        """Give the body, read up to the limit and in time; few large ones are held at once."""
        if media_type is not None:
            found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if found != media_type:
                raise RefusedError(f"content type: expected {media_type}", status=415, code="request.media_type")
        too_large = RefusedError(f"body: expected at most {limit} bytes", status=413, code="request.too_large")
        stated = request.headers.get("content-length", "0")
        if stated.isascii() and stated.isdigit() and (len(stated) > 18 or int(stated) > limit):
            raise too_large
        body = bytearray()
        async with contextlib.AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._limits.body_s):
                    async for chunk in request.stream():
                        if len(body) + len(chunk) > limit:
                            raise too_large
                        if len(body) <= SMALL_MAX_BYTES < len(body) + len(chunk):
                            await held.enter_async_context(self._large)
                        body += chunk
            except TimeoutError as error:
                raise RefusedError("body: it did not arrive in time", status=408, code="request.timeout") from error
            yield bytes(body)

    def _refusal(self, refused: RefusedError, *, json: bool) -> Response:
        headers = {}
        if refused.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if refused.status == 429:
            headers["Retry-After"] = str(refused.size)
        # What cannot be text is shown as an escape: a refusal never fails.
        message = str(refused).encode("utf-8", "backslashreplace").decode("utf-8")
        if not json:
            if refused.status == 409:
                # As a header: a media type of text would get a charset, and the protocol names none.
                return Response(f"{refused.size}\n", 409, {**headers, "Content-Type": _SIZE})
            return Response(f"{refused.code}: {message}\n", refused.status, headers, media_type=_TEXT)
        value: canonical.JsonObject = {"schema": ERROR_SCHEMA, "code": refused.code, "message": message}
        if refused.status == 409:
            value["size"] = refused.size
        if refused.origin_hash is not None and self._desk.memory.equivocation(refused.origin_hash) is not None:
            value["equivocation"] = f"/{refused.origin_hash}/equivocation"
        return _json(value, status=refused.status, headers=headers)


def _limit(grant: Grant) -> int:
    """Return how large a body may be: only whoever may send evidence needs more than a small one."""
    return REQUEST_MAX_BYTES if Scope.FULL in grant.scopes else SMALL_MAX_BYTES


def _json(value: canonical.JsonObject, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(canonical.encode(value), status, headers, media_type=_JSON)


def _digest_of(request: Request) -> str:
    match = _DIGEST.fullmatch(request.path_params["digest"])
    if match is None:
        raise RefusedError("digest: expected sha256: and 64 hexadecimal digits", status=400, code="digest.malformed")
    return f"sha256:{match[1]}"


def _hash_of(request: Request) -> str:
    found: str = request.path_params["hash"]
    if _HASH.fullmatch(found) is None:
        raise RefusedError("no such page", status=404, code="subject.absent")
    return found


def _host(request: Request) -> str:
    return request.client.host if request.client is not None else ""
