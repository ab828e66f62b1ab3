"""Shapes of documents: objects, lists and texts taken from a value that was read, each refused with its place.

Source: docs/spec/rules/policy.md, "Documents".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from ledger import canonical
from ledger.canonical import JsonObject
from ledger.errors import CanonicalError, LedgerError, clip

__all__ = ["LONGEST", "Shape"]

LONGEST: Final = 1_000
"""Entries of a list, and characters of a pattern."""
_NAME_LENGTH: Final = 200
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Shape:
    """What a document is called in messages, and the error that refuses it."""

    what: str
    error: type[LedgerError]

    def canonical(self, data: bytes) -> JsonObject:
        """Return the object whose canonical bytes are `data`: a document that was kept, at most 1 MiB."""
        try:
            return canonical.decode(data, max_bytes=1 << 20)
        except CanonicalError as error:
            raise self.error(f"{self.what}: {error}", code=error.code) from error

    def refuse(self, where: str, got: object, expected: str, *, code: str | None = None) -> LedgerError:
        """Return the error that says what stands at a place and what should."""
        return self.error(f"{self._place(where)}: got {clip(got)}, expected {expected}", code=code)

    def _place(self, where: str) -> str:
        """Return the document and a place in it; the document itself is named once."""
        return self.what if where == self.what else f"{self.what}: {where}"

    def members(
        self,
        value: object,
        where: str,
        *,
        required: Collection[str] = (),
        optional: Collection[str] = (),
        any_value: Collection[str] = (),
    ) -> JsonObject:
        """Return an object that has all required members, no unknown one, and null in none but those of any value."""
        found = self.mapping(value, where)
        for name in found:
            if name not in required and name not in optional and name not in any_value:
                expected = f"only {', '.join((*required, *optional, *any_value))}"
                code = f"{self.error.code.partition('.')[0]}.unknown_member"
                raise self.error(f"{self._place(where)}: got member {clip(name)}, expected {expected}", code=code)
            if found[name] is None and name not in any_value:
                at = name if where == self.what else f"{where}.{name}"
                raise self.error(f"{self._place(at)}: got null, expected a value, or no such member")
        for name in required:
            if name not in found:
                raise self.error(f"{self._place(where)}: got no member {name}")
        return found

    def mapping(self, value: object, where: str) -> dict[str, Any]:
        """Return an object."""
        if type(value) is not dict:
            raise self.refuse(where if where == self.what else clip(where), value, "an object")
        return value

    def items(self, value: object, where: str) -> list[Any]:
        """Return a list that is not too long."""
        if type(value) is not list or len(value) > LONGEST:
            raise self.refuse(where, value, f"a list of at most {LONGEST} items")
        return value

    def text(self, value: object, where: str, *, empty: bool = False, longest: int = _NAME_LENGTH) -> str:
        """Return a text; it may be empty only where that is said."""
        if type(value) is not str or (not value and not empty) or len(value) > longest:
            raise self.refuse(where, value, f"a text of {'at most' if empty else '1 to'} {longest} characters")
        return value

    def texts(self, value: object, where: str) -> tuple[str, ...]:
        """Return a list of texts, each once."""
        found = tuple(self.text(each, where) for each in self.items(value, where))
        if len(set(found)) != len(found):
            raise self.error(f"{self.what}: {where}: got one twice")
        return found

    def count(self, value: object, where: str, most: int, *, least: int = 1) -> int:
        """Return an integer within bounds."""
        if type(value) is not int or not least <= value <= most:
            raise self.refuse(where, value, f"an integer from {least} to {most}")
        return value

    def flag(self, value: object, where: str) -> bool:
        """Return true or false."""
        if type(value) is not bool:
            raise self.refuse(where, value, "true or false")
        return value

    def word(self, value: object, where: str, words: type[_Word]) -> _Word:
        """Return one word of a closed list."""
        if type(value) is not str or value not in set(words):
            raise self.refuse(where, value, f"one of {', '.join(words)}")
        return words(value)
