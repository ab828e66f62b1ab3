"""A server that answers as it is told, and keeps what it was sent."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Seen:
    """What a server was sent, and the statuses, headers and bodies that it answers with, the last one for ever."""

    answers: list[tuple[int, dict[str, str], bytes]]
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""


@contextmanager
def server(*answers):
    seen = Seen([(status, dict(headers), body) for status, headers, body in answers])

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            length = int(self.headers.get("content-length", 0))
            seen.requests.append((self.command, self.path, dict(self.headers.items()), self.rfile.read(length)))
            status, headers, body = seen.answers[min(len(seen.requests), len(seen.answers)) - 1]
            if status == 0:
                return  # no answer at all
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815  names of the library

        def log_message(self, *_):
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    seen.url = f"http://127.0.0.1:{running.server_port}"
    try:
        yield seen
    finally:
        running.shutdown()
        thread.join()
        running.server_close()
