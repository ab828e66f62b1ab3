"""Renders a report as one HTML file: styles and script inside, nothing fetched, every value escaped.

The template escapes by itself; `say` cuts long values, and writes control and bidi characters as escapes. A content security policy
inside the page allows the one script that is in it, by its digest, and forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from cli.amounts import amount
from cli.report.model import Node, Page
from cli.text import escape as visible
from cli.text import short
from verify.codes import CODES

__all__ = ["SHOWN", "render_page", "say"]

SHOWN: Final = 2_000
"""Characters of one value that are shown."""
_HERE: Final = Path(__file__).parent
_WORDS: Final = {
    0: ("Established", "good", "Everything asked for was established."),
    1: (
        "Does not hold",
        "bad",
        "The evidence does not hold: something was altered, is missing, or contradicts itself.",
    ),
    3: ("Not established", "waiting", "It holds as far as it goes, but something asked for could not be established."),
    4: ("Not trusted", "bad", "The trust in use names another key."),
    5: ("Absent", "alarm", "What was asked for is not there."),
    6: ("Rule broken", "refused", "Authentic, and the receipts show that a rule was broken."),
}


def render_page(page: Page) -> bytes:
    """Return the bytes of the file."""
    environment = _environment()
    script, style = (_HERE / "page.js").read_text("utf-8"), (_HERE / "page.css").read_text("utf-8")
    word, tone, meaning = _WORDS[page.verdict.exit]
    text = environment.get_template("page.html").render(
        page=page,
        verdict=page.verdict,
        word=word,
        tone=tone,
        meaning=meaning,
        head=page.verdict.head,
        script=Markup(script),  # noqa: S704  ours
        style=Markup(style),  # noqa: S704  ours
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    return text.encode("utf-8")


def say(value: object, limit: int = SHOWN) -> Markup:
    """Return a value as HTML text: cut with a note where it is long, control and bidi characters written as escapes."""
    text = str(value)
    shown = escape(visible(text[:limit]))
    if len(text) <= limit:
        return shown
    return shown + Markup(' <span class="cut">… {} more characters are not shown</span>').format(
        f"{len(text) - limit:,}"
    )


def _lines(value: str, limit: int = 2 * SHOWN) -> Markup:
    """Return a text of several lines as HTML text; line feeds and tabs stay."""
    return escape(visible(value[:limit], keep="\n\t"))


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(_HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "say": say,
        "lines": _lines,
        "short": short,
        "took": _took,
        "when": lambda text: text.replace("T", " ").replace("Z", " UTC"),
        "amount": lambda value, meter: amount(meter, value),
        "plain": lambda value, meter: amount(meter, value).removesuffix(f" {meter}"),
        "share": lambda part, whole: f"{100 * min(max(part, 0), whole) / whole:.3f}" if whole else "0",
        "remarkable": _holds_remarkable,
        "meaning": lambda code: CODES[code].meaning if code in CODES else "",
        "size": _size,
    }
    environment.filters.update(filters)
    return environment


def _holds_remarkable(node: Node) -> bool:
    """Return whether something below a node stands out, so that it is shown open."""
    waiting = list(node.children)
    while waiting:
        each = waiting.pop()
        if each.stands_out:
            return True
        waiting.extend(each.children)
    return False


def _took(duration_ms: int | None) -> str:
    """Return a duration as people write it, short enough for a column; empty for None."""
    if duration_ms is None:
        return ""
    if duration_ms < 10_000:
        return f"{duration_ms:,} ms"
    if duration_ms < 120_000:
        return f"{duration_ms / 1000:.1f} s"
    minutes, hours = duration_ms // 60_000, duration_ms // 3_600_000
    if hours < 2:
        return f"{minutes} min"
    return f"{hours} h {minutes % 60} min" if hours < 48 else f"{hours // 24:,} d {hours % 24} h"


def _size(size_bytes: int) -> str:
    """Return a size as people write it."""
    for unit, factor in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:,.1f} {unit}"
    return f"{size_bytes:,} bytes"
