"""Tables of the index that say what it is: which verified head it stands for, and what did not hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ledger.index.columns import Column, Table
from ledger.index.record import DIGEST, LEDGER, UTC

__all__ = ["TABLES"]

TABLES: Final = (
    Table(
        "index_state",
        "One row for each ledger: what its rows were verified against. Read this first.",
        (
            replace(LEDGER, stored=True),
            Column("status", "VARCHAR", "The verdict in one word, such as `ok`, `failed` or `not_established`.", "word"),
            Column("exit", "INTEGER", "Exit code of that verdict, as `ledger verify` gives it.", "0 to 6"),
            Column("head_size", "BIGINT", "Entries under the newest head that was verified.", "entries"),
            Column("head_root", "VARCHAR", "Its merkle root.", DIGEST),
            Column("first_index", "BIGINT", "First entry that is indexed.", "index"),
            Column("end_index", "BIGINT", "First entry that is not; below `head_size` where something does not hold.", "index"),
            Column("left_out", "BIGINT", "Entries between them that failed a check and are not indexed.", "count"),
            Column("log_pinned", "BOOLEAN", "Whether the trust in use names the key that signed that head, for this origin."),
            Column("issuers_pinned", "BOOLEAN", "Whether it names every issuer."),
            Column("memory", "VARCHAR", "How the head agrees with what this machine remembers: `ok` or a code.", "word"),
            Column("trust_source", "VARCHAR", "Trust file that was used; NULL for none.", "path"),
            Column("trust_digest", "VARCHAR", "Its digest.", DIGEST),
            Column("verified_at", "TIMESTAMP", "When this machine last verified, by its clock.", UTC),
            Column("folder", "VARCHAR", "Folder of the ledger.", "path"),
            Column("schema_version", "INTEGER", "Version of these tables.", "number"),
            Column("program_version", "VARCHAR", "Version of receipt-ledger that verified.", "text"),
        ),
    ),
    Table(
        "checks",
        "Every check of the verdict: what was looked at, and what was not.",
        (
            replace(LEDGER, stored=True),
            Column("check", "VARCHAR", "Name of the check.", "word"),
            Column("status", "VARCHAR", "`ok`, `failed`, `not_checked`, `absent` or `unreadable`.", "word"),
            Column("code", "VARCHAR", "What was found, a code of docs/reference/verdicts.md.", "word"),
            Column("place", "VARCHAR", "Where.", "text"),
            Column("message", "VARCHAR", "What was found, for a person.", "text"),
            Column("count", "BIGINT", "Things looked at, or behind the finding.", "count"),
            Column("asked", "BOOLEAN", "Whether the exit code depends on it."),
            Column("exit", "INTEGER", "Exit code that it alone causes.", "0 to 6"),
        ),
    ),
)  # fmt: skip
