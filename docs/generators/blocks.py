"""The examples in docs/spec/, each a part of the ledger of `generators.examples`."""

from __future__ import annotations

import base64
import json
from typing import Any

from generators import examples
from generators.examples import NAMES, ORIGIN, example, private_key
from ledger import canonical
from ledger.digest import digest
from ledger.words import CALL_REASONS, Reason
from verify.codes import CODES


def fenced(text: str, kind: str = "text") -> str:
    """Return text as a fenced block."""
    return f"```{kind}\n{text.rstrip(chr(10))}\n```"


def pretty(value: dict[str, Any]) -> str:
    """Return an object for reading: the same members, with white space that the canonical text does not have."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def hexed(data: bytes) -> str:
    """Return hexadecimal digits, 32 bytes a line."""
    return "\n".join(data[start : start + 32].hex() for start in range(0, len(data), 32))


def _value() -> dict[str, Any]:
    """Return a value that uses every rule of the profile that has a choice."""
    return {
        "b": [1, -20, 9_007_199_254_740_991, True, None],
        "a": {},
        "\u20ac": 'tab\t quote" slash/ \U0001f600',
    }


def canonical_example() -> str:
    """Return the example of canonical-json.md."""
    data = canonical.encode(_value())
    loose = json.dumps(_value(), ensure_ascii=True)
    return "\n\n".join(
        (
            "This text, which is JSON but not canonical:",
            fenced(loose, "json"),
            f"has these {len(data)} canonical bytes (shown as UTF-8 text, then in hexadecimal):",
            fenced(data.decode("utf-8"), "json"),
            fenced(hexed(data)),
            "and this digest:",
            fenced(digest(data)),
        )
    )


def digests() -> str:
    """Return the example of digests.md."""
    payload = example().payloads[0]
    pinned = example().envelopes[0]
    return fenced(
        "\n".join(
            (
                f"receipt  {len(payload):5} bytes  {digest(payload)}",
                f"envelope {len(pinned):5} bytes  {digest(pinned)}",
                f"nothing      0 bytes  {digest(b'')}",
            )
        )
    )


def receipt() -> str:
    """Return the example of receipts.md."""
    payload = example().payloads[NAMES.index("outcome")]
    return "\n\n".join(
        (
            f"An outcome, {len(payload)} bytes in one line:",
            fenced(payload.decode("utf-8"), "json"),
            "The same, indented for reading:",
            fenced(pretty(example().receipts[NAMES.index("outcome")]), "json"),
            "Its receipt id:",
            fenced(digest(payload)),
        )
    )


def act() -> str:
    """Return the example of an act digest."""
    document = canonical.encode(examples.act_document(example().id_of("opening")))
    return "\n\n".join((fenced(document.decode("utf-8"), "json"), fenced(digest(document))))


def envelope() -> str:
    """Return the example of envelopes.md."""
    index = NAMES.index("opening")
    payload = example().payloads[index]
    signed = examples.pre_authentication(payload)
    cut = len(signed) - len(payload)
    sealed = example().envelopes[index].decode("utf-8")
    bare = example().envelopes[NAMES.index("intent")].decode("utf-8")
    return "\n\n".join(
        (
            f"A sealed envelope, {len(sealed.encode('utf-8'))} bytes in one line:",
            fenced(sealed, "json"),
            f"Its seal signs {len(signed)} bytes: these {cut}, then the {len(payload)} bytes of the payload:",
            fenced(signed[:cut].decode("ascii") + "|"),
            "(without the bar). An envelope without a seal ends like this:",
            fenced("{...}" + bare[bare.rindex(',"payload_type"') :]),
        )
    )


def entry() -> str:
    """Return the example of entries.md."""
    index = NAMES.index("outcome")
    data = example().entries[index]
    return "\n\n".join(
        (
            f"Entry {index}, {len(data)} bytes in one line:",
            fenced(data.decode("ascii"), "json"),
            "Its digest, which is the `previous` of entry 4, and its merkle leaf hash:",
            fenced(f"{digest(data)}\nleaf   {examples.leaf_hash(data).hex()}"),
        )
    )


def head() -> str:
    """Return the example of heads.md."""
    key = private_key("log")
    short = examples.note_key_id(ORIGIN, key)
    text = example().notes[-1].rpartition("\n\n")[0] + "\n"
    verifier = f"{ORIGIN}+{short.hex()}+{base64.b64encode(bytes([1]) + key.public).decode('ascii')}"
    return "\n\n".join(
        (
            "A head of six entries, every line ended by a line feed:",
            fenced(example().notes[-1]),
            f"The signature covers the first {len(text.encode('utf-8'))} bytes, three lines. Its key as a key id, and as text:",
            fenced(f"{key.key}\n{verifier}"),
        )
    )


def merkle() -> str:
    """Return the example of merkle.md."""
    leaves = example().leaves
    lines = [f"leaf {index}  {leaf.hex()}" for index, leaf in enumerate(leaves)]
    lines += [f"root of {size}  {examples.root_hash(leaves[:size]).hex()}" for size in (0, 1, 4, 6)]
    lines += [f"inclusion of 3 in 6, {i}  {node.hex()}" for i, node in enumerate(examples.inclusion(leaves, 3))]
    lines += [f"consistency 4 to 6, {i}  {node.hex()}" for i, node in enumerate(examples.consistency(leaves, 4))]
    width = max(len(line.partition("  ")[0]) for line in lines)
    return fenced("\n".join(f"{a:{width}}  {b}" for a, _, b in (line.partition("  ") for line in lines)))


def journal() -> str:
    """Return the example of journal.md."""
    made = example()
    lines = []
    for index in (0, 1):
        line = made.lines[index].decode("utf-8")
        start = line.index('{"payload":') + len('{"payload":')
        stop = line.rindex(',"payload_type"')
        lines += [line[:start] + "{...}" + line[stop:], made.head_lines[index].decode("utf-8")]
    return "\n\n".join(
        (
            "The first two commits, four lines (payloads shortened here to `{...}`):",
            fenced("\n".join(lines), "json"),
            "The second head line names the first by its digest:",
            fenced(digest(made.head_lines[0])),
        )
    )


def tree() -> str:
    """Return the example of trees.md."""
    made = example()

    def line(depth: int, name: str, note: str) -> str:
        return f"{'  ' * depth + name:12}  {made.id_of(name)}  {note}"

    return fenced(
        "\n".join(
            (
                line(0, "run", "index 4, sealed, root"),
                line(1, "opening", "index 1, sealed; its receipt id is the run id"),
                line(1, "outcome", "index 3, covered by the root's seal"),
                line(2, "intent", "index 2, covered by the root's seal"),
            )
        )
    )


def artifact() -> str:
    """Return the example of artifacts.md."""
    content = examples.arguments()
    salt = examples.salt_of(content)
    stored = salt + content
    return fenced(
        "\n".join(
            (
                f"content       {content.decode('utf-8')}",
                f"its SHA-256   {digest(content)[7:]}   (stands nowhere)",
                f"run salt      {examples.secret('run salt').hex()}",
                f"salt          {salt.hex()}   HMAC-SHA256(run salt, SHA-256 of content)",
                f"stored bytes  {len(salt)} + {len(content)} = {len(stored)} bytes, salt first",
                f"digest        {digest(stored)}",
            )
        )
    )


def rotation() -> str:
    """Return the example of keys.md."""
    made = example()
    return "\n\n".join(
        (
            "What the header commits:",
            fenced(pretty({"next": made.receipts[0]["next"]}), "json"),
            "The rotation of the issuer key that follows, at index 5, sealed by the key that it puts in force:",
            fenced(pretty(made.receipts[NAMES.index("key")]), "json"),
        )
    )


def published_keys() -> str:
    """Return the table of key ids whose private halves these pages publish."""
    rows = [f"| {name} | `{private_key(name).key}` |" for name in examples.KEY_NAMES]
    return "\n".join(("| name | key id |", "|---|---|", *rows))


def reasons() -> str:
    """Return the table of reasons."""
    rows = [f"| `{reason}` | {'yes' if reason in CALL_REASONS else ''} |" for reason in Reason]
    return "\n".join(("| reason | an outcome may give it |", "|---|---|", *rows))


def codes() -> str:
    """Return the table of codes of checks."""
    rows = [f"| `{row.code}` | {row.exit} | {row.meaning} |" for row in CODES.values()]
    return "\n".join(("| code | exit | meaning |", "|---|---|---|", *rows))
