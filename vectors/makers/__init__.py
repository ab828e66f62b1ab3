"""What writes the vectors: bytes by the pages of docs/spec alone, with the standard library and PyNaCl, none of our code."""

from vectors.makers import canonical_json, envelopes, formats, merkle, notes, receipts, trust

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
)
"""What makes each file, in the order of the README."""
