"""Templates of effect keys: `refund:{payment_id}` names an effect by what it is about, not by who asked when.

- A template is literal text and `{name}`, nothing else: no braces inside, no formats, no attributes.
- It is checked when it is declared: a name that is not a parameter of the tool is refused, and so is one without any name.
- A value is a text that is not empty, or an integer; `true`, a list and an absent argument are refused, never written out.
- `{resource}` stands for the act's resource.

Source: docs/spec/rules/effects.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Self

from ledger.canonical import JsonValue
from ledger.errors import clip
from ledger.rules.errors import TemplateError

__all__ = ["Template"]

_PART: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,99})\}|([^{}]+)")
_LONGEST: Final = 256
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_RESOURCE: Final = "resource"


@dataclass(frozen=True, slots=True)
class Template:
    """A template, read: literal texts and names in turn."""

    text: str
    parts: tuple[tuple[str, bool], ...]
    """Each a text, and whether it names an argument."""

    @classmethod
    def parse(cls, text: str, *, parameters: Collection[str] | None = None) -> Self:
        """Return the template that a text declares.

        Args:
            text: Such as `refund:{payment_id}`.
            parameters: The names that a call of the tool can carry; None where they are not known.

        Raises:
            TemplateError: braces that name nothing, no name at all, a name that is no parameter, control characters, too long.
        """
        parts: list[tuple[str, bool]] = []
        at = 0
        while at < len(text):
            match = _PART.match(text, at)
            if match is None:
                raise TemplateError(f"effect key {clip(text)}: got {clip(text[at:])}, expected text and {{name}} only")
            parts.append((match[1] or match[2], match[1] is not None))
            at = match.end()
        names = [name for name, named in parts if named]
        if not names:
            raise TemplateError(
                f"effect key {clip(text)}: got no {{name}}, expected at least one",
                hint="a key without one names the same effect for every call; pass a fixed key as effect_key instead",
            )
        for name in names:
            if parameters is not None and name not in parameters and name != _RESOURCE:
                raise TemplateError(
                    f"effect key {clip(text)}: got {clip(name)}, expected one of {', '.join(sorted(parameters))}"
                )
        if len(text) > _LONGEST or _CONTROL.search(text) is not None:
            raise TemplateError(
                f"effect key {clip(text)}: expected at most {_LONGEST} characters and no control characters"
            )
        return cls(text, tuple(parts))

    def key(self, arguments: Mapping[str, JsonValue], *, resource: str | None = None) -> str:
        """Return the effect key of a call.

        Raises:
            TemplateError: an argument absent, empty, or neither text nor integer; a key too long or with control characters.
        """
        found = "".join(self._value(part, arguments, resource) if named else part for part, named in self.parts)
        if len(found) > _LONGEST or _CONTROL.search(found) is not None:
            raise TemplateError(
                f"effect key {clip(self.text)}: got {clip(found)}, expected at most {_LONGEST} characters, none of control"
            )
        return found

    def _value(self, name: str, arguments: Mapping[str, JsonValue], resource: str | None) -> str:
        value = arguments.get(name)
        if value is None and name == _RESOURCE:
            value = resource
        if type(value) is int:
            return str(value)
        if type(value) is not str or not value:
            raise TemplateError(
                f"effect key {clip(self.text)}: {name}: got {clip(value)}, expected a text that is not empty or an integer"
            )
        return value
