"""The examples of docs/spec/bundles.md, each about the example ledger at its newest head."""

from __future__ import annotations

import base64
import json
from typing import Any

from generators import schemas
from generators.blocks import fenced
from generators.examples import NAMES, consistency, example, inclusion
from ledger import canonical
from ledger.bundle import BUNDLE_SCHEMA, Bundle, Item, LastEntry, print_bundle
from ledger.consistency import CONSISTENCY_SCHEMA, ConsistencyFile, print_consistency
from ledger.digest import digest
from ledger.dsse import print_dsse
from ledger.envelope import parse_envelope
from ledger.tlogproof import TlogProof, print_tlog_proof

_KEYRING = ("header", "key")
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_BASE64 = {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"}
_NOTE = {"type": "string", "$comment": "a signed note, docs/spec/heads.md"}
_PROOF = {"type": "array", "maxItems": 64, "items": {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"}}


def _closed(properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": sorted(properties) if required is None else required,
    }


_ITEM = {"$ref": "#/$defs/Item"}
_LAST = _closed({"entry": {"$ref": "#/$defs/Entry"}, "proof": _PROOF})
_SEALED = _closed(
    {"consistency": _PROOF, "seal": {"type": "object", "$comment": "a sealed document, docs/spec/notary.md"}}
)
_HEADED = _closed({"consistency": _PROOF, "note": _NOTE, "timestamp": _BASE64}, required=["consistency", "note"])


def _document(schema: str, title: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with what it refers to beside it."""
    parts = {"Entry": schemas.entry_schema(), "Envelope": schemas.envelope_schema()}
    defs = {
        name: {key: value for key, value in part.items() if not key.startswith("$")} for name, part in parts.items()
    }
    item = {"entry": {"$ref": "#/$defs/Entry"}, "envelope": {"$ref": "#/$defs/Envelope"}, "proof": _PROOF}
    return {"$schema": _DRAFT, "$id": schema, "title": title} | body | {"$defs": defs | {"Item": _closed(item)}}


def item(name: str) -> Item:
    """Return an entry of the example ledger with its proof into the newest head."""
    made, index = example(), NAMES.index(name)
    return Item(made.entries[index], made.envelopes[index], tuple(inclusion(made.leaves, index)))


def last() -> LastEntry:
    """Return the last entry of the example ledger."""
    made = example()
    return LastEntry(made.entries[-1], tuple(inclusion(made.leaves, len(made.entries) - 1)))


def bundle() -> Bundle:
    """Return the bundle of the example's run."""
    made = example()
    items = tuple(item(name) for name in ("opening", "intent", "outcome", "run"))
    return Bundle(made.id_of("run"), items, tuple(map(item, _KEYRING)), made.notes[-1].encode("utf-8"), last())


def consistency_file() -> ConsistencyFile:
    """Return the proof that the example's newest head extends that of four entries."""
    made = example()
    return ConsistencyFile(
        made.notes[3].encode("utf-8"),
        made.notes[-1].encode("utf-8"),
        tuple(consistency(made.leaves, 4)),
        tuple(map(item, _KEYRING)),
        last(),
    )


def bundle_schema() -> dict[str, Any]:
    """Return the JSON Schema of a bundle."""
    artifact = _closed({"data": _BASE64, "digest": _DIGEST})
    properties = {
        "artifacts": {"type": "array", "minItems": 1, "items": artifact},
        "checkpoint": _NOTE,
        "counter_seals": {"type": "array", "minItems": 1, "items": {"oneOf": [_SEALED, _HEADED]}},
        "covers": {"type": "array", "minItems": 1, "items": _ITEM},
        "items": {"type": "array", "items": _ITEM},
        "keyring": {"type": "array", "items": _ITEM},
        "last": _LAST,
        "schema": {"const": BUNDLE_SCHEMA},
        "subject": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64}|(0|[1-9][0-9]{0,15}):[1-9][0-9]{0,15})$"},
    }
    optional = {"artifacts", "counter_seals", "covers"}
    return _document(BUNDLE_SCHEMA, "Bundle", _closed(properties, required=sorted(properties.keys() - optional)))


def consistency_schema() -> dict[str, Any]:
    """Return the JSON Schema of a consistency file."""
    properties = {
        "keyring": {"type": "array", "items": _ITEM},
        "last": _LAST,
        "new": _NOTE,
        "old": _NOTE,
        "proof": _PROOF,
        "schema": {"const": CONSISTENCY_SCHEMA},
    }
    return _document(CONSISTENCY_SCHEMA, "Consistency file", _closed(properties))


def bundle_example() -> str:
    """Return the example of a bundle, what stands elsewhere in these pages cut out."""
    data = print_bundle(bundle())
    value = canonical.decode(data)
    for each in (*value["items"], *value["keyring"]):
        each["entry"] = f"{{entry {each['entry']['index']}}}"
        each["envelope"] = f"{{envelope of {each['envelope']['payload']['kind']}}}"
    value["last"]["entry"] = "{entry 5}"
    text = json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    for name in ("entry", "envelope"):
        text = text.replace(f'"{{{name} ', f"{{{name} ")
    text = text.replace('}",\n', "},\n")
    return "\n\n".join(
        (
            f"The bundle of the example's run, {len(data)} bytes in one line, here indented, with entries and envelopes left out:",
            fenced(text, "text"),
            "The digest of its bytes:",
            fenced(digest(data)),
        )
    )


def tlog_proof_example() -> str:
    """Return the example of a tlog-proof."""
    made, index = example(), NAMES.index("outcome")
    proof = TlogProof(index, tuple(inclusion(made.leaves, index)), made.notes[-1].encode("utf-8"), made.entries[index])
    return fenced(print_tlog_proof(proof).decode("utf-8"))


def dsse_example() -> str:
    """Return the example of a DSSE envelope."""
    envelope = parse_envelope(example().envelopes[NAMES.index("run")])
    return fenced(print_dsse(envelope).decode("ascii"), "json")


def consistency_example() -> str:
    """Return the example of a consistency file, keyring and notes cut out."""
    data = print_consistency(consistency_file())
    proof = ",".join(f'"{base64.b64encode(each).decode("ascii")}"' for each in consistency_file().proof)
    shown = (
        '{"keyring":[{item 0},{item 5}],"last":{"entry":{entry 5},"proof":[...]},"new":"<note of size 6>",'
        f'"old":"<note of size 4>","proof":[{proof}],"schema":"receipt-ledger.consistency/v1"}}'
    )
    return "\n\n".join((f"{len(data)} bytes in one line, shortened:", fenced(shown), fenced(digest(data))))
