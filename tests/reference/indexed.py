"""Indices of ledgers built byte by byte: loaded as they are, without a folder, keys or a verdict."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

from ledger.index.build import Build
from ledger.index.session import Source, open_session

ASKED_AT = "2026-12-24 00:00:00.000"


def state_of(ledger, size):
    names = (
        "status", "exit", "head_size", "head_root", "first_index", "end_index", "left_out", "log_pinned", "issuers_pinned",
        "memory", "trust_source", "trust_digest", "verified_at", "folder", "schema_version", "program_version",
    )  # fmt: skip
    return {"ledger": ledger, **dict.fromkeys(names), "status": "ok", "exit": 0, "head_size": size, "end_index": size}


def commits_of(builder):
    """Return the index of the first entry of each commit and its lines, all whole."""
    pieces, start, lines = [], 0, []
    for line in builder.journal().splitlines(keepends=True):
        lines.append(line)
        if line.startswith(b'{"head"'):
            pieces.append((start, b"".join(lines)))
            start += len(lines) - 1
            lines = []
    return pieces


def make_index(path: Path, builder, *, leave_out=frozenset()) -> Path:
    """Write the index of a built ledger; all of it must be committed."""
    with Build(path, way="anew", threads=1) as build:
        build.load([builder.journal()], start=0, leave_out=frozenset(leave_out))
        build.put_state(state_of(builder.origin, len(builder.rows)), [])
        build.finish()
    return path


def add(path: Path, builder, pieces, way) -> int:
    """Add commits, as `commits_of` gives them, to the index of a built ledger; return how many receipts it holds."""
    with Build(path, way=way, threads=1) as build:
        for start, data in pieces:
            build.load([data], start=start, leave_out=frozenset())
        size = build.count()
        build.put_state(state_of(builder.origin, size), [])
        build.finish()
    return size


@contextmanager
def session_of(tmp_path: Path, *builders, asked_at=ASKED_AT, **options):
    sources = [
        Source(make_index(tmp_path / f"{number}.duckdb", each), each.origin, tmp_path)
        for number, each in enumerate(builders)
    ]
    connection = open_session(sources, asked_at=asked_at, threads=1, **options)
    try:
        yield connection
    finally:
        connection.close()
