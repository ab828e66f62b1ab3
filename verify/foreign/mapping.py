"""The seam for mappings: what a foreign document says, in our words, as `ledger import` records it.

A format that has a mapping gives a module `verify.foreign.<format>.mapping` with

    MAPPING = "axlr/1"                          which version of the mapping this is: it stands in the `import` receipt
    def facts(given, earlier) -> Facts          a pure function of the documents that came together, and of earlier ones

`earlier(name, value)` gives the newest run that an import recorded with this correlation, and the bytes of its document: a
document that repeats what an earlier one said can so be told from it.

Source: docs/spec/words.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeAlias, cast

from ledger.importing.facts import Facts
from verify.foreign import Recognised

__all__ = ["Earlier", "EarlierOf", "Given", "Maps", "mapping_of"]


@dataclass(frozen=True, slots=True)
class Given:
    """A document that is imported: digest of its bytes, the bytes, and what they were recognised as."""

    digest: str
    data: bytes
    found: Recognised


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run that an earlier import recorded, and the bytes of the document that it restates."""

    run: str
    data: bytes


EarlierOf: TypeAlias = Callable[[str, str], Earlier | None]
"""Name and value of a correlation -> the newest run recorded with it, None where there is none or its document is gone."""


class Maps(Protocol):
    """A mapping. A module fits it."""

    MAPPING: str

    def facts(self, given: Sequence[Given], earlier: EarlierOf) -> Facts:
        """Return what the documents say. Never raises over what they hold."""


def mapping_of(format_: str) -> Maps:
    """Return the mapping of a format of `verify.foreign.FORMATS`."""
    return cast("Maps", import_module(f"verify.foreign.{format_}.mapping"))
