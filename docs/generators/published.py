"""The example of docs/spec/published.md: the tree of the ledger of `generators.examples`."""

from __future__ import annotations

from generators.blocks import fenced, hexed
from generators.examples import example
from ledger.tiles import Edge


def tree() -> str:
    """Return the files of the example's tree, and what its tiles begin with."""
    made = example()
    edge = Edge()
    files = {tile.path: data for tile, data in [*edge.extend(made.entries), *edge.partial()]}
    bundle, hashes = files["tile/entries/000.p/6"], files["tile/0/000.p/6"]
    sizes = {"checkpoint": len(made.notes[-1].encode("utf-8")), **{path: len(data) for path, data in files.items()}}
    return "\n\n".join(
        (
            "The tree of the six entries:",
            fenced("\n".join(f"{path:<24}{size:>5} bytes" for path, size in sizes.items())),
            "The hash tile, 32 bytes a line:",
            fenced(hexed(hashes)),
            "The entry bundle begins with the length of entry 0, in hexadecimal, and its first bytes:",
            fenced(f"{bundle[:2].hex()} {bundle[2:40].decode('ascii')}..."),
        )
    )
