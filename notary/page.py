"""The public page of what was sealed and published: plain HTML, no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ledger.counterseal import CounterSeal, FullVerdict, open_counter_seal
from notary.folder import About
from notary.seals import Row

__all__ = ["page"]

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}"
    "h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:2rem}dt{font-weight:600;margin-top:.6rem}dd{margin:0}"
    "code,pre{font:14px/1.45 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}"
    "pre{background:#f4f4f4;padding:.8rem;border-radius:4px}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#111}pre{background:#222}a{color:#9cf}}"
)
_EXITS = {
    0: "everything that was asked for was established",
    1: "the evidence does not hold",
    3: "it holds as far as it goes; something could not be established",
    4: "not trusted",
    5: "something is absent",
    6: "authentic, and a rule was broken",
}


def page(about: About, receipt: str, rows: Sequence[Row]) -> str:
    """Return the page about a receipt: what was sealed, when, by whom, and how to check it."""
    parts = [_seal(about, open_counter_seal(row.document)[0]) for row in rows]
    title = f"Receipt {receipt[7:19]}… counter-sealed"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main><h1>{escape(title)}</h1>"
        f"<p>The notary <strong>{escape(about.name)}</strong> sealed where this receipt stands and when it saw it there. "
        f"It does not say that the receipt tells the truth, and it shows nothing of what the receipt holds.</p>"
        f"{''.join(parts)}{_how(about, receipt)}</main></body></html>\n"
    )


def _seal(about: About, seal: CounterSeal) -> str:
    if isinstance(seal.verdict, FullVerdict):
        mode = "full: the notary was sent the evidence and verified it"
        verdict = f"exit {seal.verdict.exit}: {_EXITS[seal.verdict.exit]}; verdict {seal.verdict.digest}"
    else:
        mode, verdict = "digest only: the notary saw digests", "not checked"
    rows = (
        ("Receipt", seal.receipt),
        ("Envelope", seal.envelope),
        ("Ledger", seal.origin),
        ("Place", f"entry {seal.entry_index} under the head of size {seal.size}, root {seal.root}"),
        ("Sealed at", f"{seal.issued_at}, by the notary's clock"),
        ("By", f"{about.name}, key {seal.key}"),
        ("Mode", mode),
        ("Evidence", verdict),
    )
    items = "".join(f"<dt>{escape(name)}</dt><dd><code>{escape(value)}</code></dd>" for name, value in rows)
    return f"<h2>Counter-seal</h2><dl>{items}</dl>"


def _how(about: About, receipt: str) -> str:
    return (
        "<h2>How to check it</h2><p>Get the counter-seal as the notary gave it: the member <code>counter_seal</code> of each item of "
        f'<a href="/v1/receipts/notarizations/{receipt}">this answer</a>, and the seal key, which is to be compared with one that you have '
        'from the notary itself, not from this page: <a href="/key">keys</a>. Then, without any network:</p>'
        "<pre>ledger verify --notary counter-seal.json --notary-key notary.pem</pre>"
        f"<p>The same counter-seal stands in the notary's own ledger, <code>{escape(about.origin)}</code>; the member "
        "<code>tlog_proof</code> proves that.</p>"
    )
