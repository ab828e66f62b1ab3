"""Files about two signed heads of one origin: what the layouts of consistency and of equivocation files share.

One line of canonical JSON with a schema, two signed notes as text, and the keyring of a bundle; the other members are each
file's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ledger import canonical
from ledger.errors import FormatError, clip

__all__ = ["TwoHeads"]

_MAX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class TwoHeads:
    """The layout of one kind of file: its name in messages, its schema, all its members, and which two are the notes.

    `notes` are in the order of the letters, as canonical JSON has them; `code` is that of the errors.
    """

    what: str
    code: str
    schema: str
    members: tuple[str, ...]
    notes: tuple[str, str]

    def parse(self, data: bytes) -> tuple[canonical.JsonObject, bytes, bytes]:
        """Return the members of a file, and its two notes; the other members are not looked at.

        Raises:
            CanonicalError: not canonical JSON, or larger than 64 MiB.
            FormatError: other members, another schema, or a note that is no text.
        """
        value = canonical.decode(data, max_bytes=_MAX_BYTES)
        first, second = (value.get(name) for name in self.notes)
        if (
            value.keys() != set(self.members)
            or value["schema"] != self.schema
            or not isinstance(first, str)
            or not isinstance(second, str)
        ):
            *names, last = self.members
            raise self.malformed(f"members {clip(sorted(value))}, expected {', '.join(names)} and {last}")
        return value, first.encode("utf-8"), second.encode("utf-8")

    def print_notes(self, first: bytes, second: bytes) -> bytes:
        """Return the canonical text of the two notes as members, without braces.

        Raises:
            FormatError: a note that is not UTF-8.
        """
        try:
            texts = [note.decode("utf-8") for note in (first, second)]
        except UnicodeDecodeError as error:
            raise self.malformed("a note that is not UTF-8") from error
        return canonical.encode(dict(zip(self.notes, texts, strict=True)))[1:-1]

    def malformed(self, found: str) -> FormatError:
        """Return the error that says what was got instead of such a file."""
        return FormatError(f"{self.what}: got {found}", code=self.code)
