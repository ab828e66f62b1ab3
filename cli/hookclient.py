"""The client of a hook that is resident: one event from standard input to its socket, the answer to standard output.

    python3 -m cli.hookclient SOCKET < event.json

It imports nothing of the rest, so that it starts in the time that Python takes. A hook that does not answer lets nothing run.

Source: docs/how-to/hook.md.
"""

from __future__ import annotations

import socket
import sys

__all__ = ["main"]

STOP = 2
"""Exit code that keeps an agent client from making the call."""
_TIMEOUT_S = 60


def main(arguments: list[str]) -> int:
    """Return the exit code: 0, or 2 where the call must not be made."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python3 -m cli.hookclient SOCKET < EVENT\n")
        return STOP
    try:
        event = sys.stdin.buffer.read()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_TIMEOUT_S)
            connection.connect(arguments[0])
            connection.sendall(event)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    except OSError as error:
        sys.stderr.write(f"hook: no answer from {arguments[0]}: {error}\n")
        return STOP
    sys.stdout.buffer.write(answer)
    # The answer begins with its decision: members are in canonical order.
    if answer.startswith(
        (b'{"decision":"allow"', b'{"decision":"recorded"', b'{"decision":"closed"', b'{"decision":"ignored"')
    ):
        return 0
    sys.stderr.buffer.write(answer)
    return STOP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
