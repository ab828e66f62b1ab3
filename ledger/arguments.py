"""Arguments of an act: what is kept outside the chain, what stands inline, what is cut out.

By default all arguments are one artifact. Members named inline also stand in the receipt, for SQL and rules. Secrets that are
handed over by name are cut from arguments, results and errors before anything is hashed, so no digest depends on them.

Source: docs/spec/receipts.md, "Arguments".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger import canonical
from ledger.canonical import JsonObject, JsonValue
from ledger.errors import CanonicalError, LedgerError, clip

__all__ = ["ArgumentsError", "Secrets", "content_of", "inline_members"]

_LIKE_A_SECRET = re.compile(
    r"pass(word|wd|phrase)|secret|token|api[_-]?key|private[_-]?key|authorization|cookie|credential", re.IGNORECASE
)
_SHORTEST_SECRET = 4
"""A shorter value stands in too many places that are not it."""


class ArgumentsError(LedgerError):
    """Arguments that cannot be recorded as asked; nothing was recorded and nothing ran."""

    code = "arguments.refused"


@dataclass(frozen=True, slots=True)
class Secrets:
    """Named secret texts, cut wherever they are met; each leaves `[secret:NAME]`."""

    values: Mapping[str, str] = field(default_factory=dict)

    def with_members(self, names: Iterable[str], arguments: Mapping[str, Any] | None) -> Secrets:
        """Return these secrets and the text values of the named argument members.

        Raises:
            ArgumentsError: a named member is not there.
        """
        values = dict(self.values)
        for name in names:
            if arguments is None or name not in arguments:
                raise ArgumentsError(f"secrets: {clip(name)} is not a member of the arguments")
            if isinstance(arguments[name], str):
                values[name] = arguments[name]
        return Secrets(values)

    def cut_text(self, text: str) -> str:
        """Return the text with every secret replaced by its name."""
        for name, value in self._long_first():
            text = text.replace(value, f"[secret:{name}]")
        return text

    def cut_bytes(self, data: bytes) -> bytes:
        """Return the bytes with every secret, in UTF-8, replaced by its name."""
        for name, value in self._long_first():
            data = data.replace(value.encode("utf-8", "surrogateescape"), f"[secret:{name}]".encode())
        return data

    def cut_value(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with secrets cut from every text inside it."""
        if isinstance(value, str):
            return self.cut_text(value)
        if isinstance(value, list):
            return [self.cut_value(item) for item in value]
        if isinstance(value, dict):
            return {name: self.cut_value(item) for name, item in value.items()}
        return value

    def cut_arguments(self, arguments: JsonObject, names: Iterable[str]) -> JsonObject:
        """Return arguments in which the named members are replaced whole, and secrets cut everywhere else."""
        hidden = set(names)
        return {
            name: f"[secret:{name}]" if name in hidden else self.cut_value(value) for name, value in arguments.items()
        }

    def _long_first(self) -> list[tuple[str, str]]:
        usable = [(name, value) for name, value in self.values.items() if len(value) >= _SHORTEST_SECRET]
        return sorted(usable, key=lambda pair: -len(pair[1]))


def inline_members(arguments: JsonObject | None, names: Iterable[str]) -> JsonObject | None:
    """Return the members that stand in the receipt itself, None where none was named.

    Raises:
        ArgumentsError: a named member is not there, or is called like a secret, at any depth.
    """
    chosen: JsonObject = {}
    for name in names:
        if arguments is None or name not in arguments:
            raise ArgumentsError(f"inline: {clip(name)} is not a member of the arguments")
        _refuse_secret_names(name, arguments[name], name)
        chosen[name] = arguments[name]
    return chosen or None


def _refuse_secret_names(name: str, value: JsonValue, path: str) -> None:
    if _LIKE_A_SECRET.search(name):
        raise ArgumentsError(
            f"inline: member {clip(path)} is called like a secret, and receipts are for ever",
            code="arguments.secret_inline",
            hint="leave it out of inline=(...), and name it in secrets=(...)",
        )
    if isinstance(value, dict):
        for member, item in value.items():
            _refuse_secret_names(member, item, f"{path}.{member}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _refuse_secret_names("", item, f"{path}[{position}]")


def content_of(value: object, what: str) -> tuple[bytes, str]:
    """Return the bytes and media type of something to keep: bytes, a text, or a JSON object.

    Raises:
        ArgumentsError: another type, or an object outside the canonical profile, with its path.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), "application/octet-stream"
    if isinstance(value, str):
        try:
            return value.encode("utf-8"), "text/plain"
        except UnicodeEncodeError as error:
            raise ArgumentsError(f"{what}: got a lone surrogate in {clip(value)}") from error
    if isinstance(value, dict):
        try:
            return canonical.encode(value), "application/json"
        except CanonicalError as error:
            raise ArgumentsError(
                f"{what}: {error}", where=error.where, hint="pass bytes to keep something as it is"
            ) from error
    raise ArgumentsError(
        f"{what}: got {type(value).__name__}, expected bytes, str or a dict of JSON values",
        hint="a list or a number goes into a dict; anything else into bytes of your choice",
    )
