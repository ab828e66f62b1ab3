"""Patterns over names, paths and texts: `*` within a segment, `**` across segments, `?` one character.

Segments are parted by `/`. `*` and `?` stand for characters other than `/`, `**` for any. Every other character stands for
itself, and a pattern covers the whole text. Matching takes time linear in the text, whoever wrote it.

Source: docs/spec/rules/policy.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

__all__ = ["is_literal", "matcher", "matches"]

_TOKENS: Final = re.compile(r"\*\*+|\*|\?|[^*?]+", re.DOTALL)


def is_literal(pattern: str) -> bool:
    """Return whether a pattern stands for one text alone."""
    return "*" not in pattern and "?" not in pattern


def matches(pattern: str, text: str) -> bool:
    """Return whether the pattern covers the whole text."""
    return bool(matcher(pattern)(text))


@lru_cache(maxsize=1_024)
def matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that is given a text and returns something true if the pattern covers the whole of it."""
    if is_literal(pattern):
        return pattern.__eq__
    tokens = _TOKENS.findall(pattern)
    stars = {token[:2] for token in tokens if token.startswith("*")}
    if len(stars) > 1:
        return _Automaton(tokens).covers
    return re.compile(_expression(tokens, stars), re.DOTALL).fullmatch


class _Automaton:
    """All positions of a pattern at once, one bit each: for patterns that mix both kinds of star."""

    def __init__(self, tokens: list[str]) -> None:
        self._literal: dict[str, int] = {}
        self._within = self._across = self._one = 0
        at = 0
        for token in tokens:
            if token == "*":  # noqa: S105  a star
                self._within |= 1 << at
            elif token.startswith("**"):
                self._across |= 1 << at
            elif token == "?":  # noqa: S105  a question mark
                self._one |= 1 << at
                at += 1
            else:
                for character in token:
                    self._literal[character] = self._literal.get(character, 0) | 1 << at
                    at += 1
        self._end = 1 << at

    def covers(self, text: str) -> bool:
        """Return whether the pattern covers the whole text."""
        state, literal = 1, self._literal
        for character in text:
            if character == "/":
                state = (state & self._across) | (state & literal.get("/", 0)) << 1
            else:
                stays = state & (self._within | self._across)
                state = stays | (state & (literal.get(character, 0) | self._one)) << 1
            if not state:
                return False
        return state & self._end != 0


def _expression(tokens: list[str], stars: set[str]) -> str:
    """Return the regular expression of a pattern with one kind of star at most."""
    any_ = r"." if stars == {"**"} else r"[^/]"
    parts: list[str] = []
    chunk = ""
    for token in tokens:
        if not token.startswith("*"):
            chunk += r"[^/]" if token == "?" else re.escape(token)  # noqa: S105  a question mark
        elif parts:
            # With one kind of star the first place where the text between two of them fits is as good as any later one.
            parts.append(f"(?>{any_}*?{chunk})")
            chunk = ""
        else:
            parts.append(chunk)
            chunk = ""
    tail = f"{any_}*{chunk}" if stars else chunk
    return "".join(parts) + tail
