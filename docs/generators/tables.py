"""The tables of members in docs/spec/receipts.md, from the pydantic models."""

from __future__ import annotations

from typing import Any

from generators.meaning import MEANING
from generators.schemas import KINDS, receipt_schema
from ledger.words import SEALED_KINDS

_NAMED = {
    r"^sha256:[0-9a-f]{64}$": "Digest",
    r"^[a-z][a-z0-9-]{0,31}:[0-9a-f]{64}$": "KeyId",
    r"^[0-9a-f]{32}$": "Nonce",
    r"^[^\x00-\x1f\x7f-\x9f]{1,256}$": "Name",
    r"^[!-*,-~]{1,255}$": "Origin",
}
_OBJECTS = (
    "Issuer", "Producer", "Source", "NextKeys", "Continues", "Actor", "Adapter", "Limit", "PeriodLimit", "Runbook", "Act",
    "Tool", "CurrencyAmount", "Effect", "WouldHave", "Charge", "Artifact", "Evaluator", "Answer",
)  # fmt: skip
_LISTED = {"Reason": "[Reason](words.md#reasons)", "Json": "any canonical value"}


def _type(schema: dict[str, Any], defs: dict[str, Any]) -> str:  # noqa: C901, PLR0911  one case a form of schema
    match schema:
        case {"$ref": ref}:
            name = ref.rsplit("/", 1)[1]
            if name in _LISTED:
                return _LISTED[name]
            return _type(defs[name], defs) if "enum" in defs[name] else f"[{name}](#{name.lower()})"
        case {"anyOf": choices}:
            return " or ".join(_type(choice, defs) for choice in choices)
        case {"const": word}:
            return f"`{word}`"
        case {"enum": words}:
            return ", ".join(f"`{word}`" for word in words)
        case {"type": "array", "items": items}:
            least = f"{schema['minItems']} to " if "minItems" in schema else "up to "
            return f"list of {least}{schema['maxItems']:,} {_type(items, defs)}"
        case {"type": "object", "additionalProperties": inner}:
            return f"object of {_type(inner, defs)}"
        case {"type": "object", "patternProperties": inner}:
            most = f" of up to {schema['maxProperties']:,} members" if "maxProperties" in schema else ""
            return f"object{most}, {_type({'type': 'string', 'pattern': next(iter(inner))}, defs)} to Name"
        case {"type": "integer", "minimum": low, "maximum": high}:
            if high != 2**53 - 1:
                return f"{low} to {high}"
            return "Count" if low == 0 else f"Count from {low}"
        case {"type": "string", "pattern": pattern}:
            return _NAMED.get(pattern) or ("Time" if pattern.endswith("Z$") else "media type")
        case {"type": "boolean"}:
            return "boolean"
    raise TypeError(f"no words for {schema!r}")


def _rows(owner: str, schema: dict[str, Any], defs: dict[str, Any], leave: frozenset[str] = frozenset()) -> list[str]:
    rows = ["| member | type | | says |", "|---|---|---|---|"]
    for name, member in schema["properties"].items():
        if name in leave:
            continue
        says = member.get("description") or MEANING.get(f"{owner}.{name}")
        if says is None:
            raise KeyError(f"docs/generators/meaning.py says nothing about {owner}.{name}")
        presence = "always" if name in schema.get("required", []) else "may be absent"
        bare = {key: value for key, value in member.items() if key != "description"}
        rows.append(f"| `{name}` | {_type(bare, defs)} | {presence} | {says.replace(chr(10), ' ')} |")
    return rows


_COMMON = ("schema", "ledger", "issuer", "issued_at", "nonce", "producer", "source")


def common_table() -> str:
    """Return the table of members that every receipt has."""
    schema = receipt_schema("header")
    own = frozenset(schema["properties"]) - frozenset(_COMMON)
    return "\n".join(_rows("common", schema, schema["$defs"], own))


def kind_tables() -> str:
    """Return a section a kind: what it says, its seal and its own members."""
    parts = []
    for kind, model in KINDS.items():
        schema = receipt_schema(kind)
        sealed = "Always sealed." if kind in SEALED_KINDS else "Sealed or not."
        rows = _rows(kind, schema, schema.get("$defs", {}), frozenset((*_COMMON, "kind")))
        parts.append("\n".join((f"### `{kind}`", "", f"{model.__doc__} {sealed}", "", *rows)))
    return "\n\n".join(parts)


def object_tables() -> str:
    """Return a section for each object that stands inside receipts."""
    defs: dict[str, Any] = {}
    for kind in KINDS:
        defs |= receipt_schema(kind).get("$defs", {})
    found = {name for name, schema in defs.items() if schema.get("type") == "object"}
    if found != set(_OBJECTS):
        raise KeyError(f"docs/generators/tables.py: objects differ: {sorted(found ^ set(_OBJECTS))}")
    parts = [
        "\n".join((f"### {name}", "", defs[name]["description"], "", *_rows(name, defs[name], defs)))
        for name in _OBJECTS
    ]
    return "\n\n".join(parts)
