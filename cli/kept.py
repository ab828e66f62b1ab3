"""The condition of artifacts, as every command says it: whole, erased, remains, absent, altered or unreadable."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

from ledger.receipt import Erasure
from ledger.storage.artifacts import ArtifactStore
from ledger.storage.erasure import erasures_of
from ledger.storage.journal import Stored

__all__ = ["Kept"]


class Kept:
    """The artifacts of one ledger folder, with the erasures that its chain records."""

    def __init__(self, folder: Path, *, store: ArtifactStore | None = None) -> None:
        self._folder: Final = folder
        self._store: Final = store or ArtifactStore(folder)

    @cached_property
    def erasures(self) -> dict[str, tuple[Stored, Erasure]]:
        """The newest `erasure` of each artifact that was erased, by digest; looked for when it is first asked for."""
        return erasures_of(self._folder)

    def condition(self, digest: str, *, index: int = 0) -> str:
        """Return one word for what is there under a digest that a receipt at an index refers to.

        `erased` means that they are not, and an `erasure` after that receipt names them, `remains` that they are although it does.
        """
        found, _ = self._store.inspect(digest)
        if found == "whole":
            return "remains" if self._is_erased(digest, index) else "whole"
        return "erased" if found == "absent" and self._is_erased(digest, index) else found

    def _is_erased(self, digest: str, index: int) -> bool:
        erased = self.erasures.get(digest)
        return erased is not None and erased[0].entry.index > index

    def quick(self, digest: str, index: Callable[[], int]) -> str:
        """Return the same without reading the bytes: empty where some are stored, whatever they are; `index` is asked where none are."""
        if self._store.exists(digest):
            return ""
        return "erased" if digest in self.erasures and self._is_erased(digest, index()) else "absent"

    def why(self, digest: str) -> str:
        """Return who erased it and for what, empty where nobody did."""
        erased = self.erasures.get(digest)
        if erased is None:
            return ""
        stored, receipt = erased
        return f"erased by receipt {stored.entry.receipt[7:19]} ({receipt.reason})"
