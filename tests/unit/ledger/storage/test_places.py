"""Places: where things lie, by user and environment."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from ledger.storage.places import Places


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "LEDGER_KEYS", "LEDGER_TRUST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_default_places_lie_in_the_home_of_the_user_and_are_not_made(home: Path) -> None:
    places = Places.default()
    for path in (places.keys, places.state, places.config, places.trust_file):
        assert path.is_relative_to(home)
        assert "receipt-ledger" in path.parts
    assert list(home.iterdir()) == []


def test_the_three_folders_differ(home: Path) -> None:
    places = Places.default()
    assert len({places.key_folder("o"), places.register_file("o"), places.memory_file("o"), places.trust_file}) == 4


def test_the_environment_names_keys_and_trust(home: Path) -> None:
    places = Places.default({"LEDGER_KEYS": "/vault/keys", "LEDGER_TRUST": "~/t.toml"})
    assert places.keys == Path("/vault/keys")
    assert places.trust_file == home / "t.toml"


def test_an_empty_variable_counts_as_unset(home: Path) -> None:
    assert Places.default({"LEDGER_KEYS": "", "LEDGER_TRUST": ""}) == Places.default({})


def test_a_relative_path_in_the_environment_is_made_absolute(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    assert Places.default({"LEDGER_KEYS": "k"}).keys == home / "k"


def test_places_under_a_folder_ignore_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_KEYS", "/elsewhere")
    monkeypatch.setenv("LEDGER_TRUST", "/elsewhere.toml")
    places = Places.under(tmp_path)
    for path in (places.key_folder("o"), places.register_file("o"), places.memory_file("o"), places.trust_file):
        assert path.is_relative_to(tmp_path)


@pytest.mark.parametrize("origin", ["ledger.invalid/abc", "../../etc/passwd", "a\x00b", "é" * 300])
def test_an_origin_becomes_a_name_of_64_hex_digits(tmp_path: Path, origin: str) -> None:
    places = Places.under(tmp_path)
    expected = hashlib.sha256(origin.encode()).hexdigest()
    assert places.key_folder(origin) == tmp_path / "keys" / expected
    assert places.register_file(origin) == tmp_path / "state" / "heads" / expected
    assert places.memory_file(origin) == tmp_path / "state" / "memory" / expected


def test_the_name_is_what_sha256sum_says(tmp_path: Path) -> None:
    said = (
        subprocess.run(["sha256sum"], input=b"ledger.invalid/abc", capture_output=True, check=True).stdout[:64].decode()
    )
    assert Places.under(tmp_path).key_folder("ledger.invalid/abc").name == said
