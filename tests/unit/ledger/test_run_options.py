"""What a run is told in another type is refused by name, before anything is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger import Ledger
from ledger.errors import LedgerError
from ledger.run_options import RunOptions
from tests.reference.ledgers import new_ledger, quick_folder

WRONG = {
    "actor": [5, {"agent": "a"}, b"a"],
    "adapter": [5, "python", None],
    "allowlist": [5, "shell", b"shell"],
    "approvers": [5, "ann", ["ann"]],
    "budget": [5, "usd=1", ["usd=1"]],
    "continues": [5, b"sha256:", ["x"], "x", "sha256:" + "g" * 64],
    "correlation": [5, "ticket", ["ticket"], b"x"],
    "document": [5, b"x", {}],
    "grant": [5, b"x", ["x"]],
    "limits": [5, "usd=1", [5], {"usd": 1}],
    "policy": [5, "text", {"schema": "x"}, ["x"], object()],
    "program": [5, b"x", {}],
    "runbook": [5, "text", {"schema": "x"}, ["x"]],
    "secrets": [5, "text", ["text"], b"x"],
}


@pytest.mark.parametrize(("option", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_an_option_of_another_type_is_refused_by_name(tmp_path: Path, option: str, value: Any) -> None:
    with quick_folder(tmp_path) as folder:
        ledger: Ledger = new_ledger(folder)
        size = ledger.head().size
        with pytest.raises(LedgerError) as found:
            ledger.run("x", **{option: value})
        assert ledger.head().size == size
    assert ("receipt" if option == "continues" and isinstance(value, str) else option) in str(found.value)


def test_what_is_not_given_is_of_every_type(tmp_path: Path) -> None:
    with quick_folder(tmp_path) as folder:
        options = {
            name: None
            for name in RunOptions.__annotations__
            if name not in ("adapter", "limits", "profile", "risk_ceiling")
        }
        with new_ledger(folder).run("x", **options) as run:
            assert run.id
