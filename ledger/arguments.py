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

__all__ = ["ArgumentsError", "Secrets", "content_of", "inline_members", "text_of"]

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

    @classmethod
    def of(cls, values: Mapping[str, Any] | None) -> Secrets:
        """Return secrets by name.

        Raises:
            ArgumentsError: one that is no text, or too short to be cut wherever it stands.
        """
        for name, value in (values or {}).items():
            if not isinstance(value, str) or len(value) < _SHORTEST_SECRET:
                raise ArgumentsError(
                    f"secrets: {clip(name)}: expected a text of at least {_SHORTEST_SECRET} characters",
                    hint="a shorter one stands in too many places that are not it; keep it out of what is recorded",
                )
        return cls(dict(values or {}))

    def and_those_of(self, other: Secrets) -> Secrets:
        """Return both."""
        return Secrets({**self.values, **other.values})

    def with_members(self, names: Iterable[str], arguments: Mapping[str, Any] | None) -> Secrets:
        """Return these secrets and the texts and numbers in the named argument members, at any depth.

        Raises:
            ArgumentsError: a named member is not there.
        """
        values = dict(self.values)
        for name in names:
            if arguments is None or name not in arguments:
                raise ArgumentsError(f"secrets: {clip(name)} is not a member of the arguments")
            for number, text in enumerate(_texts(arguments[name])):
                values[name if number == 0 else f"{name}.{number}"] = text
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
        """Return a JSON value with secrets cut from every text inside it, names of members too.

        Raises:
            ArgumentsError: two members of an object have one name without their secrets.
        """
        if not self.values:
            return value
        if isinstance(value, str):
            return self.cut_text(value)
        if isinstance(value, list):
            return [self.cut_value(item) for item in value]
        if isinstance(value, dict):
            cut = {self.cut_text(name): self.cut_value(item) for name, item in value.items()}
            if len(cut) != len(value):
                raise ArgumentsError("secrets: two members have one name once the secrets in them are cut")
            return cut
        return value

    def content_of(self, value: object, what: str) -> tuple[bytes, str]:
        """Return the bytes and media type of something to keep, secrets cut; see the function `content_of`."""
        data, media_type = content_of(value, what)
        if isinstance(value, dict):
            data, media_type = content_of(self.cut_value(value), what)
        return self.cut_bytes(data), media_type

    def cut_arguments(self, arguments: JsonObject, names: Iterable[str]) -> JsonObject:
        """Return arguments in which the named members are replaced whole, and secrets cut everywhere else."""
        hidden = set(names)
        shown = self.cut_value({name: value for name, value in arguments.items() if name not in hidden})
        assert isinstance(shown, dict)  # noqa: S101  as it went in
        return {**shown, **{name: f"[secret:{name}]" for name in hidden}}

    def _long_first(self) -> list[tuple[str, str]]:
        usable = [(name, value) for name, value in self.values.items() if len(value) >= _SHORTEST_SECRET]
        return sorted(usable, key=lambda pair: -len(pair[1]))


def _texts(value: JsonValue) -> list[str]:
    """Return the texts of a value that is a secret: itself, or what is in it; numbers as they are printed."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, str):
        return [value]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def text_of(value: BaseException | None) -> str:
    """Return what an exception says; one that cannot say it says nothing."""
    try:
        return "" if value is None else str(value)
    except Exception:  # noqa: BLE001  whatever it is, the outcome must be recorded
        return ""


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
