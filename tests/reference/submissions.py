"""What an honest ledger sends to a notary, and what a dishonest one may: requests as bytes, a service as a process."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from ledger import Ledger
from ledger.checkpoint import head_of
from ledger.merkle import consistency_proof, inclusion_proof
from ledger.notarization import HeadRequest, Request, print_request
from ledger.storage import evidence
from ledger.storage.keyfile import read_ledger_keys

LEDGER = str(Path(sys.executable).with_name("ledger"))
JSON = "application/json"


def head_request(ledger: Ledger, *, old: int = 0, keys: bool = False, **changes: Any) -> HeadRequest:
    """Return the newest head of a ledger as it is sent to a notary that remembers `old` entries."""
    note = ledger.checkpoint()
    head = head_of(note)
    proof = () if old in (0, head.size) else consistency_proof(old, head.size, ledger.reader.hash_reader(head))
    bundle = evidence.gather(ledger.reader, ledger.reader.at(0).entry.receipt) if keys else None
    made = HeadRequest(
        note,
        read_ledger_keys(ledger.places.key_folder(ledger.origin)).log.key,
        old,
        proof,
        () if bundle is None else bundle.keyring,
        None if bundle is None else bundle.last,
    )
    return _changed(made, changes)


def request(ledger: Ledger, receipt: str, *, old: int = 0, keys: bool = False, **changes: Any) -> Request:
    """Return the submission of a receipt under the newest head."""
    stored = ledger.get(receipt)
    head = ledger.head()
    proof = inclusion_proof(stored.entry.index, head.size, ledger.reader.hash_reader(head))
    bundle = evidence.gather(ledger.reader, receipt) if changes.get("mode") == "full" else None
    made = Request(head_request(ledger, old=old, keys=keys), stored.entry_bytes, proof, bundle=bundle)
    return _changed(made, changes)


def body(ledger: Ledger, receipt: str, **options: Any) -> bytes:
    return print_request(request(ledger, receipt, **options))


def checkpoint_body(note: bytes, *, old: int = 0, proof: tuple[bytes, ...] = ()) -> bytes:
    """Return the body of `add-checkpoint`."""
    lines = "".join(f"{base64.b64encode(each).decode()}\n" for each in proof)
    return f"old {old}\n{lines}\n".encode() + note


def witnessed_body(ledger: Ledger, *, old: int = 0) -> bytes:
    asked = head_request(ledger, old=old)
    return checkpoint_body(asked.checkpoint, old=old, proof=asked.consistency)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": JSON}


def _changed(made: Any, changes: dict[str, Any]) -> Any:
    return replace(made, **changes)


class Service:
    """A running `ledger notary serve`."""

    def __init__(self, folder: Path, home: Path, *options: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEDGER_", "XDG_"))}
        self.environment = {**kept, "HOME": str(home), "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            [LEDGER, "notary", "serve", str(folder), "--port", "0", *options],
            env=self.environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        assert self.process.stderr is not None
        said = b""
        while b"listens on" not in said:
            line = self.process.stderr.readline()
            assert line, f"the service did not start: {said.decode()}"
            said += line
        found = re.search(rb"https?://\S+", said)
        assert found is not None
        self.url = found[0].decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._close()

    def stop(self) -> str:
        """End it in good order; return what else it said."""
        assert self.process.stderr is not None
        self.process.terminate()
        said = self.process.stderr.read().decode()
        assert self.process.wait(timeout=20) == 0, said
        self._close()
        return said

    def _close(self) -> None:
        assert self.process.stderr is not None
        self.process.stderr.close()

    def client(self) -> httpx.Client:
        # Reading the certificates of the system costs more than most of what is asked.
        return httpx.Client(base_url=self.url, timeout=30, verify=False)


@contextmanager
def serving(folder: Path, home: Path, *options: str) -> Iterator[Service]:
    service = Service(folder, home, *options)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()
