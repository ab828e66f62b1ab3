"""Loads verified lines of a journal into the tables of an index; DuckDB reads the JSON.

What is loaded is a copy in memory of bytes that were verified, so nothing that others do to the journal meanwhile is read. The
bytes are canonical JSON, so every reader of them sees one value.

Source: docs/explanation/index.md.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from ledger.index.acts import CHARGE, LIMIT
from ledger.index.columns import Shape, typed
from ledger.index.record import ARTIFACT
from ledger.index.schema import STORED
from ledger.line import ENTRY_PREFIX

__all__ = ["BATCH_BYTES", "Loader"]

BATCH_BYTES: Final = 32 << 20
"""Bytes of journal that are loaded together: enough for several threads, little enough for the memory."""

_LINES: Final = """
    read_json(?, format = 'newline_delimited', maximum_object_size = 4194304, columns = {
        entry: 'STRUCT(envelope VARCHAR, "index" BIGINT, keyring BIGINT, previous VARCHAR, receipt VARCHAR, recorded_at VARCHAR)',
        envelope: 'STRUCT(payload JSON, seals STRUCT("key" VARCHAR)[])', head: 'VARCHAR', previous_head: 'VARCHAR'})
"""
_COMMON: Final[Shape] = {
    "kind": "VARCHAR",
    "run": "VARCHAR",
    "issuer": {"name": "VARCHAR", "key": "VARCHAR"},
    "issued_at": "VARCHAR",
    "producer": {"name": "VARCHAR", "version": "VARCHAR"},
    "source": {"document": "VARCHAR", "format": "VARCHAR", "import": "VARCHAR"},
    "intent": "VARCHAR",
    "children": ["VARCHAR"],
    "artifacts": [ARTIFACT],
    "document": "JSON",
    "limits": [LIMIT],
    "charges": [CHARGE],
    "reserved": [CHARGE],
    "usage": [CHARGE],
}
"""What is read of every payload at once; a table reads more of the kinds that it takes."""
_STAGE: Final = f"""
    CREATE OR REPLACE TEMP TABLE staged_lines AS
    SELECT entry.*, envelope.payload AS payload, envelope.seals[1]."key" AS seal_key, head, previous_head,
           {typed("envelope.payload", _COMMON)} AS m
    FROM {_LINES}
"""
_STAGE_RECEIPTS: Final = """
    CREATE OR REPLACE TEMP VIEW staged AS
    SELECT "index", receipt, envelope, previous, keyring, recorded_at::TIMESTAMP AS recorded_at, payload,
           seal_key, m.kind AS kind, CASE m.kind WHEN 'opening' THEN receipt ELSE m.run END AS run, m.issuer.name AS issuer,
           m.issuer."key" AS issuer_key, m.issued_at::TIMESTAMP AS issued_at, m.producer.name AS producer,
           m.producer.version AS producer_version, CASE WHEN m.source IS NULL THEN 'live' ELSE 'imported' END AS source,
           m.source.document AS source_document, m.source.format AS source_format, m.source."import" AS source_import, m
    FROM staged_lines WHERE head IS NULL
"""
_STAGE_HEADS: Final = """
    CREATE OR REPLACE TEMP TABLE staged_heads AS
    SELECT size, root, size - coalesce(lag(size) OVER (ORDER BY size), ?) AS entries,
           e.recorded_at::TIMESTAMP AS recorded_at, h.previous_head, h.head AS note
    FROM (SELECT head, previous_head, split_part(head, chr(10), 2)::BIGINT AS size,
                 'sha256:' || lower(hex(from_base64(split_part(head, chr(10), 3)))) AS root
          FROM staged_lines WHERE head IS NOT NULL) AS h
    LEFT JOIN staged_lines AS e ON e."index" = h.size - 1
"""


class Loader:
    """Loads the commits of one ledger into an index that is open for writing."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def create(self) -> None:
        """Make the tables."""
        for table in STORED:
            self._connection.execute(table.create())

    def load(self, pieces: Iterable[bytes], *, start: int, leave_out: frozenset[int] = frozenset()) -> None:
        """Load whole commits.

        Args:
            pieces: bytes of the journal that follow each other, verified, each of whole lines.
            start: index of the first entry.
            leave_out: indices of entries that are not to be loaded, whatever they hold.
        """
        execute = self._connection.execute
        with _readable(_without(piece, leave_out) if leave_out else piece for piece in pieces) as path:
            execute(_STAGE, [path])
        execute(_STAGE_RECEIPTS)
        execute(_STAGE_HEADS, [start])
        kinds = {kind for (kind,) in execute("SELECT DISTINCT kind FROM staged").fetchall()}
        for table in STORED:
            if not table.kinds or kinds & set(table.kinds):
                execute(table.insert())
        execute("DROP VIEW staged")
        execute("DROP TABLE staged_lines")
        execute("DROP TABLE staged_heads")


def _without(piece: bytes, leave_out: frozenset[int]) -> bytes:
    """Return the lines of a piece but those of some entries."""
    return b"".join(line for line in piece.splitlines(keepends=True) if _index_of(line) not in leave_out)


def _index_of(line: bytes) -> int:
    if not line.startswith(ENTRY_PREFIX):
        return -1
    start = line.find(b',"index":') + len(b',"index":')
    digits = line[start : line.find(b",", start)]
    return int(digits) if digits.isdigit() else -1


@contextmanager
def _readable(pieces: Iterable[bytes]) -> Iterator[str]:
    """Give the path of a file that holds the pieces and that nobody else opens; it is gone afterwards."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):  # noqa: PTH112  a file of the system
        with open(os.memfd_create("ledger-index"), "w+b", buffering=0) as file:  # noqa: PTH123  a descriptor
            for piece in pieces:
                _write(file.fileno(), piece)
            yield f"/proc/self/fd/{file.fileno()}"
        return
    with tempfile.NamedTemporaryFile() as file:
        for piece in pieces:
            _write(file.fileno(), piece)
        yield file.name


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
