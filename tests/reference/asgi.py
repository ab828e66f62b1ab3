"""An application driven without a socket: one event loop in a thread of its own, for as long as a `with` lasts."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

import httpx


class Driven:
    """Requests to an ASGI application; an exception that leaves it fails the test."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._life = self.app.router.lifespan_context(self.app)
        self._run(self._life.__aenter__())
        transport = httpx.ASGITransport(self.app, client=("192.0.2.7", 1))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://notary.test")
        return self

    def __exit__(self, *found: object) -> None:
        self._run(self._client.aclose())
        self._run(self._life.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._run(self._client.request(method, path, **options))

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)
