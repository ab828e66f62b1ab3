"""An application of the real ctrlrun: refunds that are protected, a denied act, an approval, a retry, and a crash.

app = App(folder)                     # policy, store and control in a folder
app.busy(20)                          # twenty refunds of every outcome
verdict_of_ctrlrun(folder / "state.db")
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ctrlrun
from ctrlrun.receipt import verify_chain

POLICY = """schema: ctrlrun.policy/v1
actions:
  customer.read:
    decision: allow
  stripe.refund:
    rules:
      - when: { amount_gte: 0, amount_lte: 50000 }
        decision: allow
      - when: { amount_gte: 0, amount_lte: 500000 }
        decision: approve
      - decision: deny
"""


class App:
    """A folder with a policy and a store, and a control over both."""

    def __init__(self, folder: Path, *, sinks=(), **options) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "state.db"
        policy = folder / "ctrlrun.yaml"
        policy.write_text(POLICY, encoding="utf-8")
        self.store = ctrlrun.SQLiteStateStore(self.path)
        self.control = ctrlrun.Control(ctrlrun.Policy.from_file(policy), self.store, sinks=list(sinks), **options)
        self.answer = None

        @ctrlrun.protect(
            "stripe.refund", effect="refund:{payment_id}", resource="payment:{payment_id}", control=self.control
        )
        def refund(payment_id: str, amount: int, note: str = "n"):
            if self.answer is not None:
                raise self.answer
            return {"status": "succeeded", "id": payment_id}

        @ctrlrun.protect("customer.read", control=self.control)
        def read(customer: str):
            return {"customer": customer}

        self._refund, self._read = refund, read

    def refund(self, payment: str, amount: int = 2000, *, fails_with: BaseException | None = None, **more):
        """Ask for a refund; return what it returned, or the error that ctrlrun raised."""
        self.answer = fails_with
        with ctrlrun.context("refund-agent", "ana@example.com"):
            try:
                return self._refund(payment_id=payment, amount=amount, **more)
            except (ctrlrun.CTRLRunError, TimeoutError) as error:
                return error

    def approved(self, payment: str, amount: int):
        """Ask for a refund that needs an approval, grant it, and ask again."""
        waiting = self.refund(payment, amount)
        assert isinstance(waiting, ctrlrun.ApprovalRequired)
        self.store.grant_approval(waiting.request_id, "mcp:alice")
        with ctrlrun.with_approval(waiting.request_id):
            return self.refund(payment, amount)

    def unknown(self):
        """Ask for what no policy names."""
        with ctrlrun.context("refund-agent"), contextlib.suppress(ctrlrun.CTRLRunError):
            self.control.execute(
                ctrlrun.Action("iam.grant_admin", {"user": "eve"}, ctrlrun.Principal("refund-agent")), lambda: None
            )

    def read(self, customer: str):
        """Read a customer, which has no effect key."""
        with ctrlrun.context("refund-agent"):
            return self._read(customer=customer)

    def everything(self) -> None:
        """Act in every way that leaves a receipt: thirteen of them."""
        self.refund("txn_1", note="café ☕ 😀 \u2028 \u0085")
        self.refund("txn_2", fails_with=TimeoutError("no response after 30s"))
        self.refund("txn_2")
        self.refund("txn_3", fails_with=ctrlrun.NotExecuted("422 before any side effect"))
        self.refund("txn_3")
        self.refund("txn_1")
        self.approved("txn_4", 200_000)
        self.refund("txn_5", 900_000)
        self.read("cus_1")
        self.unknown()

    def close(self) -> None:
        self.store.close()


def copied(path: Path, folder: Path) -> Path:
    """Return a copy of a store that nothing has open, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            shutil.copyfile(beside, folder / beside.name)
    return folder / path.name


def verdict_of_ctrlrun(path: Path):
    """Return the report of ctrlrun's own walk over a copy of a store; opening one may bring it to a newer form."""
    with tempfile.TemporaryDirectory() as folder:
        store = ctrlrun.SQLiteStateStore(copied(path, Path(folder) / "copy"))
        try:
            return verify_chain(store)
        finally:
            store.close()


def ctrlrun_command(*arguments: str, cwd: Path, env: dict[str, str] | None = None):
    """Run the command of ctrlrun, as an operator does."""
    program = Path(sys.executable).parent / "ctrlrun"
    return subprocess.run([program, *arguments], cwd=cwd, env=env, capture_output=True, text=True, check=False)
