"""What writes the vectors: bytes by the pages of docs/spec alone, with the standard library and PyNaCl, none of our code."""

from vectors.makers import (
    bundles,
    canonical_json,
    carried,
    continues,
    envelopes,
    equivocations,
    formats,
    journals,
    merkle,
    notes,
    published,
    receipts,
    rotations,
    trees,
    trust,
)

FILES = (
    canonical_json.make,
    formats.digests,
    receipts.make,
    envelopes.make,
    formats.entries,
    formats.keys,
    merkle.make,
    notes.notes,
    notes.heads,
    trust.make,
    trees.make,
    journals.make,
    rotations.make,
    continues.make,
    bundles.make,
    carried.tlog_proofs,
    carried.envelopes,
    carried.heads,
    equivocations.make,
    carried.kinds,
    published.make,
)
"""What makes each file, in the order of the README."""
