"""The page of the SQL tables, from the declarations that make them."""

from __future__ import annotations

from ledger.index.columns import View
from ledger.index.questions import QUESTIONS
from ledger.index.schema import PUBLIC

__all__ = ["page"]

_INTRO = """# SQL tables

Generated from the declarations of the index by `docs/generate.py`. How to ask: [ask-with-sql.md](../how-to/ask-with-sql.md). How the
index is made, and why its rows can be believed: [index.md](../explanation/index.md).

- The dialect is that of [DuckDB](https://duckdb.org/docs/). `user`, `index`, `key` and the like need no quotes here, `check` does: `findings.\"check\"`. `PIVOT` needs its
  values: `PIVOT runs ON status IN ('completed', 'failed') USING count(*)`.
- Times are UTC, type TIMESTAMP; they are printed as `2026-11-30T09:15:00.123Z`. States such as `expired` are those at the time of asking,
  `asked_at()`.
- Ids and digests are `sha256:` and 64 hex digits, as `ledger show` takes them.
- An amount that is the word `unknown` is NULL here, and the column `…_unknown` beside it is true. It is never zero.
- `ledger` is the origin. With several `-L` every table holds the rows of all; join on `ledger` and the id.
- A column `receipt` names the receipt that proves the row: `ledger sql --prove DIR` writes its bundle.
- Only statements that read are taken: no files, no network, no settings, no extensions. `--unsafe` lifts that; the index stays as it is.
- Receipts that fail a check are not in any table but `findings`, and `ledger sql` exits 1.

| exit | means |
|---|---|
| 0 | the answer is over receipts of which everything asked for was established |
| 1 | the ledger does not hold; the answer is over the part that does |
| 2 | usage, or the query could not run |
| 3 | it holds as far as it goes: signer not pinned, an unknown format, or the time of the query ended |
| 4 | not trusted: the trust in use names another key |
| 5 | there is no ledger |
| 6 | `--fail-on-rows`, and there are rows |

A rule that was broken (`ledger verify` exits 6) is no reason to doubt an answer: it stands in `findings`, and alone the exit is 0.
When several apply, the first of 1, 5, 4, 6, 3 wins. `--accept CODE` takes a code out of what counts, such as `trust.log_key_unpinned`.
"""


def page() -> str:
    """Return the page."""
    parts = [
        _INTRO,
        "## Tables\n\n" + "\n".join(f"- `{each.name}`: {each.says}" for each in PUBLIC) + "\n",
    ]
    parts.extend(_table(each) for each in PUBLIC)
    parts.append("## Questions\n\n`ledger sql --question NAME` asks one; `ledger sql --questions` lists them.\n")
    for number, each in enumerate(QUESTIONS.values(), 1):
        note = f"\n{each.reads}\n" if each.reads else ""
        parts.append(f"### {number}. {each.asks}\n\n`{each.name}`\n{note}\n```sql\n{each.sql}\n```\n")
    return "\n".join(parts)


def _table(view: View) -> str:
    rows = [f"| `{each.name}` | {each.type} | {_cell(each.unit)} | {_cell(each.says)} |" for each in view.columns]
    head = "| column | type | unit or form | says |\n|---|---|---|---|"
    return f"### `{view.name}`\n\n{view.says}\n\n{head}\n" + "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
