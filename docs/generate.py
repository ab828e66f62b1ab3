"""Write the generated pages and blocks of docs/ anew; with `--check`, say what is stale and exit 1.

A page is a file made whole; a block stands between two markers of a page written by hand. To add one, write a function that
returns its text and a line in `PAGES` or `BLOCKS`.
"""  # noqa: INP001  a script, not a package

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from generators import blocks, commands, notaries, proofs, published, schemas, sql, tables

DOCS = Path(__file__).resolve().parent

PAGES: dict[str, Callable[[], str]] = {
    **{
        f"spec/schemas/{kind}.json": partial(lambda kind: schemas.text_of(schemas.receipt_schema(kind)), kind)
        for kind in schemas.KINDS
    },
    "reference/cli.md": commands.page,
    "reference/sql.md": sql.page,
    "spec/schemas/entry.json": lambda: schemas.text_of(schemas.entry_schema()),
    "spec/schemas/envelope.json": lambda: schemas.text_of(schemas.envelope_schema()),
    "spec/schemas/head-line.json": lambda: schemas.text_of(schemas.head_line_schema()),
    "spec/schemas/bundle.json": lambda: schemas.text_of(proofs.bundle_schema()),
    "spec/schemas/consistency.json": lambda: schemas.text_of(proofs.consistency_schema()),
    "spec/schemas/verdict.json": lambda: schemas.text_of(schemas.verdict_schema()),
}

BLOCKS: dict[tuple[str, str], Callable[[], str]] = {
    ("spec/canonical-json.md", "example"): blocks.canonical_example,
    ("spec/digests.md", "example"): blocks.digests,
    ("spec/receipts.md", "example"): blocks.receipt,
    ("spec/receipts.md", "act"): blocks.act,
    ("spec/receipts.md", "common"): tables.common_table,
    ("spec/receipts.md", "kinds"): tables.kind_tables,
    ("spec/receipts.md", "objects"): tables.object_tables,
    ("spec/envelopes.md", "example"): blocks.envelope,
    ("spec/entries.md", "example"): blocks.entry,
    ("spec/heads.md", "example"): blocks.head,
    ("spec/merkle.md", "example"): blocks.merkle,
    ("spec/journal.md", "example"): blocks.journal,
    ("spec/trees.md", "example"): blocks.tree,
    ("spec/artifacts.md", "example"): blocks.artifact,
    ("spec/bundles.md", "bundle"): proofs.bundle_example,
    ("spec/bundles.md", "tlog-proof"): proofs.tlog_proof_example,
    ("spec/bundles.md", "dsse"): proofs.dsse_example,
    ("spec/bundles.md", "consistency"): proofs.consistency_example,
    ("spec/keys.md", "example"): blocks.rotation,
    ("spec/keys.md", "published"): blocks.published_keys,
    ("spec/notary.md", "counter-seal"): notaries.counter_seal,
    ("spec/published.md", "example"): published.tree,
    ("spec/words.md", "reasons"): blocks.reasons,
    ("reference/verdicts.md", "codes"): blocks.codes,
}


def filled(text: str, name: str, inner: str) -> str:
    """Return a page with what stands between the markers of one block replaced."""
    start, end = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
    if text.count(start) != 1 or text.count(end) != 1:
        raise SystemExit(f"block {name!r}: expected its two markers once each")
    head, _, rest = text.partition(start)
    return head + start + inner + end + rest.partition(end)[2]


def rendered() -> dict[Path, str]:
    """Return the text that every page with something generated should have."""
    texts = {DOCS / path: make() for path, make in PAGES.items()}
    for (path, name), make in BLOCKS.items():
        page = DOCS / path
        texts[page] = filled(texts[page] if page in texts else page.read_text(encoding="utf-8"), name, make())
    return texts


def main(arguments: list[str]) -> int:
    """Return 0 if everything is up to date or was written, 1 if `--check` found something stale."""
    texts = rendered()
    stale = [page for page, text in texts.items() if not page.is_file() or page.read_bytes() != text.encode("utf-8")]
    extra = [page for page in (DOCS / "spec/schemas").glob("*.json") if page not in texts]
    check = "--check" in arguments
    for page in (*stale, *extra):
        sys.stderr.write(f"{'stale' if check else 'written'}: {page.relative_to(DOCS)}\n")
    if check:
        return 1 if stale or extra else 0
    for page in stale:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(texts[page].encode("utf-8"))
    for page in extra:
        page.unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
