"""JSON Schemas (2020-12) of the files of vectors: one for the file, one for the input of each check."""

from __future__ import annotations

from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": "string"}
HEX = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
INTEGER = {"type": "integer"}
BYTES = {"oneOf": [{"required": ["text"]}, {"required": ["hex"]}]}


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def shape(
    says: str, always: dict[str, Any], may: dict[str, Any] | None = None, *, bytes_: bool = False
) -> dict[str, Any]:
    """An object with exactly these members; with `bytes_`, also `text` or `hex`."""
    members = {**({"text": TEXT, "hex": HEX} if bytes_ else {}), **always, **(may or {})}
    return {
        "description": says, "type": "object", "additionalProperties": False, "properties": members, "required": sorted(always),
        **(BYTES if bytes_ else {}),
    }  # fmt: skip


ACTOR = {
    "type": "object",
    "properties": dict.fromkeys(("agent", "user", "model"), TEXT),
    "required": ["agent", "model", "user"],
}
SEGMENT = shape(
    "One segment.",
    {
        "first_index": {"type": "integer", "minimum": 0},
        "file": {"type": "string", "pattern": "^([a-z0-9-]+/)*[a-z0-9-]+\\.jsonl$"},
    },
)
FILE = {"type": "string", "pattern": "^([a-z0-9-]+/)*[a-z0-9-]+\\.bin$"}
TEXT_INPUT = shape("One text.", {"text": TEXT})
BYTES_INPUT = shape("Bytes.", {}, bytes_=True)

INPUTS: dict[str, dict[str, Any]] = {
    "canonical-json": shape("A document.", {}, {"max_depth": INTEGER}, bytes_=True),
    "canonical-json.write": shape("JSON text whose value is to be written.", {"text": TEXT}),
    "digest": TEXT_INPUT,
    "digest.of": BYTES_INPUT,
    "receipt": BYTES_INPUT,
    "act-digest": shape(
        "What an act digest is over.",
        {"act": {"type": "object"}, "ledger": TEXT, "run": TEXT, "actor": ACTOR},
        {"effect_key": TEXT},
    ),
    "envelope": BYTES_INPUT,
    "seal": BYTES_INPUT,
    "key": TEXT_INPUT,
    "key.pin": TEXT_INPUT,
    "key.next": TEXT_INPUT,
    "base64": TEXT_INPUT,
    "signature": shape("A signature.", {"key": TEXT, "signature": HEX, "message": HEX}),
    "entry": BYTES_INPUT,
    "line.entry": BYTES_INPUT,
    "line.head": BYTES_INPUT,
    "merkle.root": shape("Entries.", {"entries": list_of(HEX)}),
    "merkle.inclusion": shape(
        "An inclusion proof.", {"entry": HEX, "index": INTEGER, "size": INTEGER, "proof": list_of(HEX), "root": HEX}
    ),
    "merkle.consistency": shape(
        "A consistency proof.",
        {"old_size": INTEGER, "old_root": HEX, "new_size": INTEGER, "new_root": HEX, "proof": list_of(HEX)},
    ),
    "note": shape("A signed note and the known keys.", {"keys": list_of(TEXT)}, bytes_=True),
    "note.key": TEXT_INPUT,
    "checkpoint": TEXT_INPUT,
    "head": shape(
        "A signed head, and the origin and log key that are believed.", {"origin": TEXT, "log_key": TEXT}, bytes_=True
    ),
    "trust": shape("A trust file.", {"allow_test_keys": {"type": "boolean"}}, bytes_=True),
    "file": shape(
        "One file of evidence: its bytes, the trust file, the remembered note, what is asked for besides.",
        {"file": FILE},
        {"trust": TEXT, "memory": TEXT, "require": list_of(TEXT)},
    ),
    "published": shape(
        "A published tree: its files by their paths below its root, the trust file, the remembered note.",
        {"files": list_of(shape("One file of the tree.", {"path": TEXT, "file": FILE}))},
        {"trust": TEXT, "memory": TEXT, "require": list_of(TEXT)},
    ),
    "ledger": shape(
        "A ledger: segments, trust file, remembered note, what is asked for besides, segments of the ledger that it continues, texts of policies and arguments.",
        {"segments": list_of(SEGMENT)},
        {
            "trust": TEXT,
            "memory": TEXT,
            "require": list_of(TEXT),
            "older": list_of(SEGMENT),
            "documents": list_of(TEXT),
        },
    ),
}

STATUSES = ["ok", "failed", "refused", "not_established", "not_trusted", "absent", "rule_broken"]
EXPECTED = {
    "type": "object", "additionalProperties": False, "required": ["exit", "status"],
    "properties": {
        "status": {"enum": STATUSES}, "exit": {"type": "integer", "minimum": 0, "maximum": 6}, "code": TEXT,
        "value": {"description": "What the check gives, where it gives something."},
    },
}  # fmt: skip


def case_of(check: str) -> dict[str, Any]:
    return {"properties": {"check": {"const": check}, "input": {"$ref": f"{check}.json"}}}


def make() -> dict[str, Any]:
    """Return every schema by its name below vectors/."""
    case = {
        "type": "object", "additionalProperties": False, "required": ["check", "comment", "expected", "flags", "id", "input"],
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z0-9-]+$"}, "comment": TEXT, "flags": list_of({"type": "string", "pattern": "^[a-z0-9-]+$"}),
            "check": {"enum": sorted(INPUTS)}, "input": {"type": "object"}, "expected": EXPECTED,
        },
        "oneOf": [case_of(check) for check in sorted(INPUTS)],
    }  # fmt: skip
    file = {
        "$schema": DIALECT, "title": "A file of vectors", "type": "object", "additionalProperties": False,
        "required": ["cases", "schema", "spec"],
        "properties": {
            "schema": {"const": "receipt-ledger.vectors/v1"}, "spec": list_of(TEXT), "cases": {"type": "array", "minItems": 1, "items": case},
        },
    }  # fmt: skip
    inputs = {
        f"schema/{check}.json": {"$schema": DIALECT, "title": f"Input of the check {check}", **given}
        for check, given in INPUTS.items()
    }
    return {"schema/vectors.json": file, **inputs}
