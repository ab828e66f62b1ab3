"""JSON Schemas (draft 2020-12) of the receipts, from the pydantic models, and of the fixed layouts around them."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from typing import Any, get_args

from ledger.canonical import MAX_INTEGER
from ledger.entry import ENTRY_SCHEMA
from ledger.members import TIME_PATTERN, Member
from ledger.receipt import Receipt
from verify.report import VERDICT_SCHEMA, NativeStatus

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_KEY = {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,31}:[0-9a-f]{64}$"}
_NAME = {"type": "string", "minLength": 1}
_INDEX = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}


def _describe(model: type[Member]) -> None:
    """Give each member of a model, and of what it is derived from, the text that stands below it in the source.

    pydantic can do that by itself, but it reads the sources each time a program starts.
    """
    said: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not issubclass(each, Member):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)  # noqa: S101
        for first, second in zip(body.body, body.body[1:], strict=False):
            match first, second:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    said[name] = inspect.cleandoc(text)
    for name, text in said.items():
        model.model_fields[name].description = text


def _all_models(model: type[Member] = Member) -> list[type[Member]]:
    return [each for child in model.__subclasses__() for each in (child, *_all_models(child))]


for _model in _all_models():
    _describe(_model)
for _model in _all_models():
    _model.model_rebuild(force=True)

KINDS: dict[str, type[Member]] = {model.model_fields["kind"].default: model for model in get_args(Receipt)}


def text_of(schema: dict[str, Any]) -> str:
    """Return a schema as text, members in a fixed order."""
    return json.dumps(schema, indent=2, ensure_ascii=True) + "\n"


def _without_null(node: object) -> Any:  # noqa: ANN401  a JSON value of the shape that came in
    """Return the schema without what the models say only for Python: null, defaults and titles of members."""
    if isinstance(node, list):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {name: _without_null(item) for name, item in node.items()}
    if "properties" in node:
        node["properties"] = {name: _member(member) for name, member in node["properties"].items()}
    return node


def _member(member: dict[str, Any]) -> dict[str, Any]:
    """Return a member's schema: null stands for absence in Python only, and an empty list is absent."""
    kept = {name: value for name, value in member.items() if name not in {"anyOf", "default", "title"}}
    choices = [choice for choice in member.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) == 1:
        kept = choices[0] | kept
    elif choices:
        kept = {"anyOf": choices} | kept
    return {"minItems": 1} | kept if member.get("default") == [] else kept


def receipt_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of one kind of receipt."""
    model = KINDS[kind]
    schema = _without_null(model.model_json_schema(by_alias=True))
    schema["required"] = [
        name for name in schema["properties"] if name in {"schema", "kind"} or name in schema.get("required", [])
    ]
    head = {
        "$schema": _DRAFT,
        "$id": f"receipt-ledger.receipt/v1/{kind}",
        "$comment": "What a schema cannot say (canonical bytes, sizes, depth, seals) is in docs/spec/receipts.md.",
    }
    return head | schema


def _closed(title: str, properties: dict[str, Any], *, required: list[str] | None = None) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": sorted(properties) if required is None else required,
    }


def entry_schema() -> dict[str, Any]:
    """Return the JSON Schema of an entry."""
    properties = {
        "envelope": _DIGEST,
        "index": _INDEX,
        "keyring": _INDEX,
        "previous": _DIGEST,
        "receipt": _DIGEST,
        "recorded_at": {"type": "string", "pattern": TIME_PATTERN},
        "schema": {"const": ENTRY_SCHEMA},
    }
    return {"$schema": _DRAFT, "$id": ENTRY_SCHEMA} | _closed("Entry", properties)


def envelope_schema() -> dict[str, Any]:
    """Return the JSON Schema of an envelope."""
    signature = {"type": "string", "pattern": "^[A-Za-z0-9+/]+={0,2}$"}
    properties = {
        "payload": {"type": "object", "$comment": "one of the receipts of this folder"},
        "payload_type": {"type": "string", "pattern": "^[a-z0-9!#$&^_.+/-]{3,255}$"},
        "seals": {"type": "array", "maxItems": 1, "items": _closed("Seal", {"key": _KEY, "signature": signature})},
    }
    return {"$schema": _DRAFT, "$id": "receipt-ledger.envelope/v1"} | _closed("Envelope", properties)


def head_line_schema() -> dict[str, Any]:
    """Return the JSON Schema of the line that ends a commit."""
    properties = {
        "head": {"type": "string", "$comment": "a signed note, docs/spec/heads.md"},
        "previous_head": _DIGEST,
    }
    return {"$schema": _DRAFT, "$id": "receipt-ledger.head-line/v1"} | _closed("Head line", properties)


def verdict_schema() -> dict[str, Any]:
    """Return the JSON Schema of a verdict."""
    counts = dict.fromkeys(("own_seal", "sealed_root", "signed_head"), _INDEX)
    check = {
        "name": _NAME,
        "status": {"enum": ["ok", "failed", "not_checked", "absent", "unreadable"]},
        "count": _INDEX,
        "asked": {"type": "boolean"},
        "code": {"type": "string", "pattern": r"^[a-z_]+\.[a-z_]+$"},
        "where": {"type": "string"},
        "message": {"type": "string"},
    }
    properties = {
        "schema": {"const": VERDICT_SCHEMA},
        "subject": {"type": "string"},
        "status": {"enum": ["ok", "failed", "not_established", "not_trusted", "absent", "rule_broken"]},
        "exit": {"enum": [0, 1, 3, 4, 5, 6]},
        "coverage": _closed("Coverage", {"from": _INDEX, "to": _INDEX, "count": _INDEX}),
        "covered": _closed("Covered", counts),
        "head": _closed("Head", {"origin": _NAME, "size": _INDEX, "root": _DIGEST}),
        "trust": _closed("Trust", {"digest": _DIGEST, "source": {"type": "string"}}),
        "verifier": _closed("Verifier", {"name": _NAME, "version": _NAME}),
        "checks": {
            "type": "array",
            "items": _closed("Check", check, required=["name", "status", "count", "asked"]),
        },
        "accepted": {"type": "array", "items": {"type": "string"}},
        "notes": {"type": "array", "items": {"type": "string"}},
        "path": {"type": "array", "minItems": 1, "items": _DIGEST},
        "native": _native_schema(),
        "time": _time_schema(),
    }
    required = [name for name in properties if name not in {"head", "trust", "path", "native", "time"}]
    return {"$schema": _DRAFT, "$id": VERDICT_SCHEMA} | _closed("Verdict", properties, required=required)


def _time_schema() -> dict[str, Any]:
    """Return the JSON Schema of the bounds of time that pinned parties gave."""
    kinds = {"enum": ["counter-seal", "cosignature", "timestamp"]}
    bound = _closed("Bound", {"time": {"type": "string"}, "by": _NAME, "kind": kinds})
    return _closed("Time", {"not_before": bound, "not_after": bound}, required=[])


def _native_schema() -> dict[str, Any]:
    """Return the JSON Schema of what another system's rules say of its document."""
    text = {"type": "string"}
    finding = {"name": _NAME, "where": text, "detail": text}
    properties = {
        "format": _NAME,
        "kind": _NAME,
        "version": _NAME,
        "status": {"enum": list(get_args(NativeStatus))},
        "code": _NAME,
        "found": _INDEX,
        "findings": {"type": "array", "items": _closed("Native finding", finding, required=["name"])},
    }
    return _closed("Native", properties)
