"""Running the service: the socket, TLS, and an orderly end.

Plain HTTP is for loopback addresses, or for whoever says that a proxy brings TLS.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import uvicorn

from ledger.errors import LockError
from ledger.storage.lock import LedgerLock
from notary.desk import Desk
from notary.errors import NotaryError
from notary.folder import NotaryFolder
from notary.service import Limits, build

__all__ = ["Listening", "is_loopback", "serve"]

_GRACE_S: Final = 10
_KEEP_ALIVE_S: Final = 15
_CONNECTIONS: Final = 256
_HEADER_BYTES: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a service listens; port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 8470
    certificate: Path | None = None
    """PEM file; with it the service speaks TLS."""
    certificate_key: Path | None = None
    plain: bool = False
    """Whether plain HTTP is allowed off loopback, since a proxy brings TLS."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(
    folder: NotaryFolder,
    listening: Listening,
    *,
    limits: Limits = Limits(),  # noqa: B008  frozen
    started: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until a signal ends it; `started` is called with the address once requests are taken.

    Raises:
        NotaryError: plain HTTP off loopback, the port is taken, another service runs on the folder, or `Desk` refuses.
        LedgerError: the notary's ledger or its keys cannot be used.
    """
    if listening.certificate is None and not listening.plain and not is_loopback(listening.host):
        raise NotaryError(
            f"serve: plain HTTP on {listening.host} would show tokens to the network",
            code="notary.plain",
            hint="give --certificate and --certificate-key, or --plain-http where a proxy brings TLS",
        )
    # The socket first: what cannot be served is not opened.
    with _alone(folder.path / "serving"), _bind(listening) as bound:
        desk = Desk(folder)
        application = build(desk, folder.tokens(), limits=limits)
        config = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.certificate_key,
        )
        scheme = "http" if listening.certificate is None else "https"
        host = f"[{listening.host}]" if ":" in listening.host else listening.host
        _Server(config, lambda: started(f"{scheme}://{host}:{bound.getsockname()[1]}")).run(sockets=[bound])


class _Server(uvicorn.Server):
    """Says when it has started, and ends in good order on a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._say_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._say_started()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def _bind(listening: Listening) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise NotaryError(
            f"serve: {listening.host} port {listening.port}: {error.strerror or error}",
            code="notary.address",
            hint="choose another with --host and --port",
        ) from error
    bound.set_inheritable(False)
    return bound


@contextmanager
def _alone(path: Path) -> Generator[None, None, None]:
    """Hold the folder while a service runs."""
    lock = LedgerLock(path)
    try:
        held = lock.hold(timeout_s=0)
        held.__enter__()
    except LockError as error:
        raise NotaryError("serve: another service runs on this folder", code="notary.in_use") from error
    try:
        yield
    finally:
        held.__exit__(None, None, None)


def log_to_stderr(*, verbose: bool) -> None:
    """Write the service's log to standard error: with `verbose` one line for each request, without its content."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
