"""Tools: rules over their names and arguments, and which of them read.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ledger import canonical
from ledger.canonical import JsonValue
from ledger.rules.glob import matcher, matches
from ledger.words import Access

__all__ = ["AXLR_READS", "ToolRule", "access_of", "is_document", "is_mcp_tool", "stricter", "text_of"]

AXLR_READS: Final = frozenset(
    {
        "local_read",
        "local_search",
        "local_list",
        "axlr_tools",
        "axlr_history",
        "axlr_skill",
        "axlr_session",
        "axlr_logs",
        "axlr_catalog",
        "axlr_repair_status",
        "axlr_recall",
        "axlr_judge",
    }
)
"""AXLR's own tools that read."""

_OF_AXLR: Final = ("local_", "axlr_")
_PROPOSING: Final = frozenset({"local_write", "local_edit"})
_DOCUMENTS: Final = (".md", ".mdx", ".txt", ".rst", ".diff", ".patch")
_STRICTNESS: Final = {Access.READ: 0, Access.PROPOSE: 1, Access.WRITE: 2}
_UP = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A pattern over the names of a tool, and patterns that named arguments must match, all of them."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    names: Callable[[str], object] = field(init=False, compare=False, repr=False)
    """The pattern over names, made ready."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", matcher(self.name))

    def covers(
        self, names: tuple[str, ...], arguments: Mapping[str, JsonValue], *, absent: bool, denies: bool = False
    ) -> bool:
        """Return whether the rule covers a call.

        Args:
            names: One or two that the tool is known by; either suffices.
            arguments: The call's.
            absent: Whether an argument that is not there counts as a match. A call must carry every named argument.
            denies: Whether the rule restricts. A path that climbs with `..` matches no pattern of a rule that allows and has a
                `/`; for a rule that restricts, the path that it comes to counts as well.
        """
        if not self.names(names[0]) and not (len(names) > 1 and self.names(names[1])):
            return False
        for name, pattern in self.arguments:
            if name not in arguments:
                if not absent:
                    return False
                continue
            text = text_of(arguments[name])
            climbs = not denies and "/" in pattern and _UP.search(text) is not None
            if climbs or not (matches(pattern, text) or (denies and _matches_plainly(pattern, text))):
                return False
        return True


def _matches_plainly(pattern: str, text: str) -> bool:
    """Return whether a pattern covers the path that a text comes to."""
    return "/" in text and matches(pattern, posixpath.normpath(text))


def text_of(value: JsonValue) -> str:
    """Return an argument's value as text: a text as it is, anything else as its canonical JSON."""
    if isinstance(value, str):
        return value
    # The writer takes objects only.
    return canonical.encode({"": value})[4:-1].decode()


def is_mcp_tool(tool: str) -> bool:
    """Return whether a tool is none of AXLR's own, so that nobody says what it does but the policy."""
    return not tool.startswith(_OF_AXLR)


def access_of(tool: str, reads: tuple[str, ...] | None = None, proposes: tuple[str, ...] = ()) -> Access:
    """Return what a tool does by the lists of a policy, or by AXLR's list without any; one in no list writes.

    A tool in both lists proposes.
    """
    if reads is None:
        return Access.READ if tool in AXLR_READS else Access.WRITE
    if any(matches(pattern, tool) for pattern in proposes):
        return Access.PROPOSE
    return Access.READ if any(matches(pattern, tool) for pattern in reads) else Access.WRITE


def stricter(access: Access, said: Access | str) -> Access:
    """Return the stricter of what a policy says and what a caller says; a caller that does not know changes nothing."""
    return said if isinstance(said, Access) and _STRICTNESS[said] > _STRICTNESS[access] else access


def is_document(tool: str, arguments: Mapping[str, JsonValue], *, absent: bool) -> bool:
    """Return whether a call writes a plan or a diff: AXLR's `local_write` or `local_edit` of a document.

    A document is a `.md`, `.mdx`, `.txt`, `.rst`, `.diff` or `.patch` file, or any file under `docs/`. A path that climbs with
    `..`, or holds a control character or a backslash, is none.
    """
    if tool not in _PROPOSING:
        return False
    if "path" not in arguments:
        return absent
    path = arguments["path"]
    if not isinstance(path, str) or "\\" in path or _UP.search(path) or _CONTROL.search(path):
        return False
    plain = path.removeprefix("./")
    return plain.endswith(_DOCUMENTS) or (plain.startswith("docs/") and not plain.endswith("/"))
