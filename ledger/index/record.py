"""Stored tables of the record itself: receipts, entries, heads, who commits whom, artifacts."""

from __future__ import annotations

from typing import Final

from ledger.index.columns import Column, Shape, Stored, typed

__all__ = ["ARTIFACT", "DIGEST", "INDEX", "LEDGER", "RANDOM", "RECEIPT", "RECORDED_AT", "RUN", "TABLES", "UTC"]

DIGEST: Final = "`sha256:` and 64 hex digits"
UTC: Final = "UTC, ms"
RANDOM: Final = "uncompressed"
"""Digests that stand once do not get smaller; trying costs half of a build."""

LEDGER: Final = Column("ledger", "VARCHAR", "Origin of the ledger.", "origin", stored=False)
"""An index is of one ledger."""
INDEX: Final = Column("index", "BIGINT", "Position of the receipt's entry in the chain.", "from 0")
RECEIPT: Final = Column("receipt", "VARCHAR", "Receipt id.", DIGEST, compression=RANDOM)
RUN: Final = Column("run", "VARCHAR", "Run id; NULL outside any run.", DIGEST)
RECORDED_AT: Final = Column("recorded_at", "TIMESTAMP", "When the recorder wrote the entry, by its clock.", UTC)
ARTIFACT: Final[Shape] = {
    "digest": "VARCHAR",
    "name": "VARCHAR",
    "media_type": "VARCHAR",
    "size_bytes": "BIGINT",
    "salted": "BOOLEAN",
    "truncated_bytes": "BIGINT",
    "full_digest": "VARCHAR",
}

TABLES: Final = (
    Stored(
        "record",
        "Every entry of the chain with its receipt.",
        (
            LEDGER,
            INDEX,
            RECEIPT,
            Column("envelope", "VARCHAR", "Digest of the envelope's bytes.", DIGEST, compression=RANDOM),
            Column("previous", "VARCHAR", "Digest of the entry before; zeros at index 0.", DIGEST, compression=RANDOM),
            Column("keyring", "BIGINT", "Index of the newest header or key entry before this one.", "index"),
            Column("kind", "VARCHAR", "Kind of receipt.", "word"),
            RUN,
            Column("issuer", "VARCHAR", "Name of who says it.", "name"),
            Column("issuer_key", "VARCHAR", "Key that speaks for the issuer.", "key id"),
            Column("issued_at", "TIMESTAMP", "The issuer's clock; nothing is decided by it.", UTC),
            RECORDED_AT,
            Column("seal_key", "VARCHAR", "Key of the receipt's own seal; NULL where a sealed receipt above covers it.", "key id"),
            Column("producer", "VARCHAR", "Program that made the receipt.", "name"),
            Column("producer_version", "VARCHAR", "Its version.", "text"),
            Column("source", "VARCHAR", "`live`, or `imported` where it restates a foreign document.", "word"),
            Column("source_document", "VARCHAR", "Digest of that document.", DIGEST),
            Column("source_format", "VARCHAR", "Format of that document.", "name"),
            Column("source_import", "VARCHAR", "Receipt id of the `import` that brought it in.", DIGEST),
            Column("size_bytes", "BIGINT", "Size of the canonical payload.", "bytes", "strlen(payload)"),
            Column("payload", "JSON", "The receipt itself, its canonical bytes.", "JSON", compression="zstd"),
        ),
        public=False,
    ),
    Stored(
        "heads",
        "Every signed head in the journal, one for each commit.",
        (
            LEDGER,
            Column("size", "BIGINT", "Entries under the head.", "entries"),
            Column("root", "VARCHAR", "Merkle root over them.", DIGEST),
            Column("entries", "BIGINT", "Entries of its commit.", "entries"),
            Column("recorded_at", "TIMESTAMP", "When the last of them was recorded.", UTC),
            Column("previous_head", "VARCHAR", "Digest of the head line before; zeros on the first.", DIGEST),
            Column("note", "VARCHAR", "The signed note.", "text"),
        ),
        origin="staged_heads",
    ),
    Stored(
        "edges",
        "Who commits whom: the children of each receipt in order.",
        (
            LEDGER,
            Column("parent", "VARCHAR", "Receipt that commits.", DIGEST, "receipt"),
            Column("position", "BIGINT", "Place among its children.", "from 0", "position"),
            Column("child", "VARCHAR", "Receipt that is committed.", DIGEST, "item", RANDOM),
            Column("parent_index", "BIGINT", "Index of the parent's entry.", "index", "index"),
            RUN,
        ),
        kinds=("outcome", "step", "run"),
        holding=("children",),
        each="m.children",
    ),
    Stored(
        "artifacts",
        "Every mention of an artifact by a receipt.",
        (
            LEDGER,
            Column("digest", "VARCHAR", "Digest of the stored bytes.", DIGEST, "item.digest"),
            RECEIPT,
            INDEX,
            RUN,
            Column("name", "VARCHAR", "What it is called.", "name", "item.name"),
            Column("media_type", "VARCHAR", "Media type.", "type/subtype", "item.media_type"),
            Column("size_bytes", "BIGINT", "Size of the content, without the salt.", "bytes", "item.size_bytes"),
            Column("salted", "BOOLEAN", "Whether 32 bytes of salt stand before the content.", "", "item.salted"),
            Column("truncated_bytes", "BIGINT", "Bytes after the kept ones that were not kept.", "bytes", "item.truncated_bytes"),
            Column("full_digest", "VARCHAR", "Digest of all the content, where not all is kept.", DIGEST, "item.full_digest"),
            RECORDED_AT,
        ),
        kinds=("opening", "intent", "outcome", "decision", "step", "run", "resolution", "evaluation", "import"),
        holding=("artifacts", "document"),
        each=f"list_concat(m.artifacts, CASE WHEN kind = 'import' THEN [{typed('m.document', ARTIFACT)}] END)",
        public=False,
    ),
)  # fmt: skip
