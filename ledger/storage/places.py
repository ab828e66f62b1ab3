"""Where a person's keys, memory and trust lie: with the user, never in a ledger's folder.

    <data>/keys/<sha256 of the origin>/          private keys (`LEDGER_KEYS` overrides `<data>/keys`)
    <state>/heads/<sha256 of the origin>         register: the newest head this machine wrote
    <state>/memory/<sha256 of the origin>        the newest head this machine verified under a pinned key
    <config>/trust.toml                          whom the user believes (`LEDGER_TRUST` overrides)
    <cache>/index/                               indices of ledgers that are read-only or somebody else's

Origins are hashed because they hold slashes and whatever else their owner liked.

Source: docs/spec/trust.md.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Places"]

_NAME = "receipt-ledger"


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one user; nothing is made before something is written."""

    keys: Path
    """Holds a folder of private keys for each origin."""
    state: Path
    """Holds what this machine remembers."""
    config: Path
    """Holds `trust.toml`."""
    trust: Path | None = None
    """The trust file where it is not the one in `config`."""
    cache: Path | None = None
    """Holds what can be made again; None for the state folder."""

    @classmethod
    def default(cls, environment: Mapping[str, str] | None = None) -> Places:
        """Return the places of this user on this system; `environment` (os.environ) may name other ones.

        `LEDGER_KEYS` and `LEDGER_TRUST` that are empty count as unset.
        """
        import platformdirs  # noqa: PLC0415  its import costs more than reading the folders

        given = os.environ if environment is None else environment
        keys, trust = given.get("LEDGER_KEYS"), given.get("LEDGER_TRUST")
        return cls(
            keys=_absolute(keys) if keys else platformdirs.user_data_path(_NAME, appauthor=False) / "keys",
            state=platformdirs.user_state_path(_NAME, appauthor=False),
            config=platformdirs.user_config_path(_NAME, appauthor=False),
            trust=_absolute(trust) if trust else None,
            cache=platformdirs.user_cache_path(_NAME, appauthor=False),
        )

    @classmethod
    def under(cls, folder: Path) -> Places:
        """Return places that all lie in one folder and look at no environment: for a demonstration or a test."""
        return cls(keys=folder / "keys", state=folder / "state", config=folder / "config", cache=folder / "cache")

    @property
    def trust_file(self) -> Path:
        """The file that says whom the user believes; it may be absent."""
        return self.trust if self.trust is not None else self.config / "trust.toml"

    @property
    def cache_folder(self) -> Path:
        """The folder of what can be made again."""
        return self.cache if self.cache is not None else self.state

    def key_folder(self, origin: str) -> Path:
        """Return the folder of the private keys of `origin`."""
        return self.keys / _file_name(origin)

    def register_file(self, origin: str) -> Path:
        """Return the writer's memory of `origin`."""
        return self.state / "heads" / _file_name(origin)

    def memory_file(self, origin: str) -> Path:
        """Return the verifier's memory of `origin`."""
        return self.state / "memory" / _file_name(origin)


def _file_name(origin: str) -> str:
    return hashlib.sha256(origin.encode("utf-8")).hexdigest()


def _absolute(text: str) -> Path:
    return Path(text).expanduser().absolute()
