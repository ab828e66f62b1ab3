"""The example of docs/spec/notary.md: the run of the example ledger, counter-sealed by a notary whose key is published."""

from __future__ import annotations

from generators.blocks import fenced
from generators.examples import NAMES, ORIGIN, example, private_key, root_hash
from ledger.counterseal import COUNTER_SEAL_TYPE, CounterSeal, print_counter_seal, print_root, seal_counter_seal
from ledger.digest import digest
from ledger.envelope import pae


def counter_seal() -> str:
    """Return the example of a counter-seal, and what its seal signs."""
    made, index, key = example(), NAMES.index("run"), private_key("notary")
    found = CounterSeal(
        notary="notary.example.org",
        key=key.key,
        receipt=made.id_of("run"),
        envelope=digest(made.envelopes[index]),
        origin=ORIGIN,
        entry_index=index,
        size=len(made.entries),
        root=print_root(root_hash(made.leaves)),
        mode="digest_only",
        verdict="not_checked",
        issued_at="2026-11-30T09:15:09.000Z",
    )
    document, payload = seal_counter_seal(found, key), print_counter_seal(found)
    signed = pae(COUNTER_SEAL_TYPE, payload)
    cut = len(signed) - len(payload)
    return "\n\n".join(
        (
            f"The run of the example ledger, sealed: {len(document)} bytes in one line.",
            fenced(document.decode("utf-8"), "json"),
            f"Its seal signs {len(signed)} bytes: these {cut}, then the {len(payload)} bytes of the payload:",
            fenced(signed[:cut].decode("ascii") + "|"),
            "(without the bar). The digest of the sealed document:",
            fenced(digest(document)),
        )
    )
