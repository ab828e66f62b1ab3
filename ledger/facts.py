"""Facts of receipts, read fast: what the checks of chains and trees need to know.

A ledger holds millions of receipts of few shapes. The fast way is one regular expression a kind, made from the receipt models.
The expression spells out the canonical text that the models of `ledger.receipt` allow: members in order, optional ones optional,
each value by its own grammar, strings of plain printable ASCII.
A match is therefore a receipt that `parse_receipt` accepts, at a third of its cost. No match says nothing: such a receipt goes
through `parse_receipt`. A property test holds the two against each other.

Source: docs/spec/receipts.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from operator import itemgetter
from types import UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, StringConstraints
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from ledger import canonical
from ledger.errors import CanonicalError
from ledger.receipt import (
    Decision,
    Intent,
    Opening,
    Outcome,
    Receipt,
    Resolution,
    Run,
    Step,
    children_of,
    parse_receipt,
    read_members,
    run_of,
)

__all__ = ["Facts", "facts_of", "match_facts", "read_facts", "receipt_of"]

# Printable ASCII that stands for itself in JSON: no quotation mark, no backslash.
_PLAIN = r"[ !#-\[\]-~]"
_NAME: Final = r"^[^\x00-\x1f\x7f-\x9f]{1,256}$"
_SCALAR = rf'(?:"{_PLAIN}*"|0|-?[1-9][0-9]{{0,14}}|true|false|null)'

_RULED: Final = ("limits", "policy", "effect", "approvals", "would_have", "grant", "runbook", "step", "meter")
"""Members by which a receipt says that a rule bears on it."""
_WAITING: Final = "waiting"
"""The status of a decision that asks for an approval: a rule bears on what answers it."""
_FREE: Final = ("arguments", "correlation")
"""Members whose own members have free names."""
_READ: Final = (
    "ledger",
    "run",
    "issuer_name",
    "issuer_key",
    "children",
    "intent",
    "parent_opening",
    "continues",
    *_FREE,
)
"""What a match gives, in this order."""
_GROUPS: Final = frozenset({*_READ, *_RULED, _WAITING}) - frozenset(_FREE)

_KIND: Final = b'"kind":"'
_FEW: Final = 256
_read = 0
"""How many receipts were read, up to that."""


class Facts(NamedTuple):
    """What the checks of chains and trees need to know of a receipt.

    `run` is None outside any run and for an opening, whose run id is its own id. `receipt` is the parsed receipt where it had
    to be parsed anyway, always for headers and keys.
    """

    kind: str
    ledger: str
    run: str | None
    name: str
    """The issuer's name."""
    key: str
    """The issuer's key id."""
    children: tuple[str, ...] = ()
    intent: str | None = None
    parent_opening: str | None = None
    receipt: Receipt | None = None
    continues: str | None = None
    """The run that an opening follows."""
    ruled: bool = False
    """Whether it has limits, a policy, an effect, approvals, a grant, a runbook or a step, what would have been decided, a meter
    that refused, or waits for an approval."""


def read_facts(payload: bytes) -> Facts:
    """Return the facts of the receipt whose canonical bytes are `payload`; accepts exactly what `parse_receipt` accepts.

    Raises:
        CanonicalError: not canonical JSON, over 1 MiB or over 48 levels.
        UnknownFormatError: a schema or kind that this version does not know.
        FormatError: a known kind with members missing, unknown or malformed.
    """
    global _read  # noqa: PLW0603  how often is all that is kept
    if _read < _FEW:
        # An expression pays for itself after these; it costs as much as what checks the model, where that has to be built first.
        _read += 1
        if _is_built(payload):
            return facts_of(parse_receipt(payload))
    return match_facts(payload) or facts_of(parse_receipt(payload))


def _is_built(payload: bytes) -> bool:
    """Return whether what checks the model of a receipt is there already, or that is no common kind."""
    model = _COMMON.get(_hint(payload))
    return model is None or bool(model.__pydantic_complete__)


def facts_of(receipt: Receipt) -> Facts:
    """Return the facts of a parsed receipt."""
    return Facts(
        receipt.kind,
        receipt.ledger,
        None if isinstance(receipt, Opening) else run_of(receipt, ""),
        receipt.issuer.name,
        receipt.issuer.key,
        children_of(receipt),
        receipt.intent if isinstance(receipt, Outcome | Resolution) else None,
        receipt.parent_opening if isinstance(receipt, Opening) else None,
        receipt,
        receipt.continues if isinstance(receipt, Opening) else None,
        any(getattr(receipt, member, None) for member in _RULED) or getattr(receipt, "status", None) == _WAITING,
    )


def receipt_of(facts: Facts, payload: bytes) -> Receipt:
    """Return the receipt that facts were read of; its bytes are lawful by then, so they are not held against the profile again."""
    return facts.receipt if facts.receipt is not None else read_members(facts.kind, payload)


def match_facts(payload: bytes) -> Facts | None:
    """Return the facts of a receipt that has a common shape, None for any other bytes, whether lawful or not."""
    if len(payload) > canonical.RECEIPT_MAX_BYTES:
        return None
    shape = _shape(_hint(payload))
    match = shape.expression.fullmatch(payload) if shape is not None else None
    if match is None or shape is None:
        return None
    groups = (*match.groups(), None)
    ledger, run, name, key, children, intent, parent, continues, arguments, correlation = shape.pick(groups)
    # Order and uniqueness of free names are beyond an expression.
    if (arguments is not None and not _is_canonical(arguments)) or (
        correlation is not None and not _is_canonical(correlation)
    ):
        return None
    found = (
        shape.kind,
        ledger.decode(),
        None if run is None else run.decode(),
        name.decode(),
        key.decode(),
        tuple(children[2:-2].decode().split('","')) if children else (),
        None if intent is None else intent.decode(),
        None if parent is None else parent.decode(),
        None,
        None if continues is None else continues.decode(),
        shape.ruled is not None and any(shape.ruled(groups)),
    )
    return tuple.__new__(Facts, found)  # as the class itself makes it, without the call between


def _hint(payload: bytes) -> bytes:
    """Return the kind of a receipt, if it is one."""
    start = payload.find(_KIND) + len(_KIND)
    return payload[start : payload.find(b'"', start)]


def _is_canonical(data: bytes) -> bool:
    try:
        canonical.decode(data)
    except CanonicalError:
        return False
    return True


_Pick: TypeAlias = Callable[[tuple[bytes | None, ...]], tuple[Any, ...]]
"""Takes some of the groups of a match, which None follows for those that it does not have."""


class _Shape(NamedTuple):
    """A kind and the expression of its canonical text."""

    kind: str
    expression: re.Pattern[bytes]
    pick: _Pick
    """Gives what is read."""
    ruled: _Pick | None
    """Gives the members by which a rule bears on it, None where the kind has none of them."""


_COMMON: Final[dict[bytes, type[BaseModel]]] = {
    model.model_fields["kind"].default.encode(): model for model in (Opening, Intent, Outcome, Decision, Step, Run)
}


def _shape(kind: bytes) -> _Shape | None:
    """Return the shape of a kind, None for one that is not common."""
    model = _COMMON.get(kind)
    return None if model is None else _made(model)


@cache
def _made(model: type[BaseModel]) -> _Shape:
    """Return the shape of a model. Compiling it costs as much as parsing some hundred receipts."""
    expression = re.compile(_object(model, top=True).encode())
    place = expression.groupindex
    pick = itemgetter(*(place.get(name, 0) - 1 for name in _READ))
    ruled = [place[name] - 1 for name in (*_RULED, _WAITING) if name in place]
    return _Shape(model.model_fields["kind"].default, expression, pick, itemgetter(*ruled, -1) if ruled else None)


def _object(model: type[BaseModel], *, top: bool = False, issuer: bool = False) -> str:
    """Return the expression of a model's canonical text."""
    members = sorted((field.alias or name, field) for name, field in model.model_fields.items())
    required = [position for position, (name, field) in enumerate(members) if _is_required(name, field)]
    pivot = required[0]
    parts = []
    for position, (name, field) in enumerate(members):
        value = _value(field.annotation, field.metadata, name)
        if (top and name in _GROUPS) or name in _FREE:
            value = _named(name, value)
        if top and name == "status":
            value = value.replace(f'"{_WAITING}"', f'(?P<{_WAITING}>"{_WAITING}")')
        if issuer:
            value = _named(f"issuer_{name}", value)
        text = f'"{re.escape(name)}":{value}'
        optional = position not in required
        if position < pivot:
            parts.append(f"(?:{text},)?")
        elif position == pivot:
            parts.append(text)
        else:
            parts.append(f"(?:,{text})?" if optional else f",{text}")
    return r"\{" + "".join(parts) + r"\}"


def _is_required(name: str, field: FieldInfo) -> bool:
    return field.is_required() or name in ("schema", "kind")


def _named(name: str, value: str) -> str:
    """Return the expression with a group around the text of a string, or around the whole of anything else."""
    if value.startswith('"') and value.endswith('"') and name != "children":
        return f'"(?P<{name}>{value[1:-1]})"'
    return f"(?P<{name}>{value})"


def _value(kind: Any, metadata: list[Any], name: str) -> str:  # noqa: ANN401, PLR0911  the types of annotations are open
    """Return the expression of one value, by its annotation and constraints."""
    origin = get_origin(kind)
    if isinstance(kind, TypeAliasType):
        return _SCALAR
    if origin is Annotated:
        inner, *more = get_args(kind)
        return _value(inner, [*metadata, *more], name)
    if origin is Literal:
        return _one_of(f'"{re.escape(word)}"' for word in get_args(kind))
    if origin in (Union, UnionType):
        return _one_of(_value(each, metadata, name) for each in get_args(kind) if each is not type(None))
    if origin is tuple:
        item = _value(get_args(kind)[0], [], name)
        # A rule over the whole list is beyond an expression; lists of one item keep every such rule.
        ruled = any(isinstance(each, AfterValidator) for each in metadata)
        longest = 1 if ruled else _constraint(metadata, "max_length", 1_000)
        return rf"\[{item}(?:,{item}){{0,{longest - 1}}}\]"
    if origin is dict:
        member = ":".join(_value(each, [], name) for each in get_args(kind))
        return rf"\{{(?:{member}(?:,{member}){{0,{_constraint(metadata, 'max_length', 1_000) - 1}}})?\}}"
    if kind is str:
        return f'"{_string(metadata)}"'
    if kind is bool:
        return "(?:true|false)"
    if kind is int:
        return _integer(_constraint(metadata, "ge", 0), _constraint(metadata, "le", canonical.MAX_INTEGER))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _one_of(f'"{re.escape(word.value)}"' for word in kind if _passes(word, metadata))
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _object(kind, issuer=name == "issuer")
    raise TypeError(f"{name}: no expression for {kind!r}")


def _passes(word: Enum, metadata: list[Any]) -> bool:
    """Return whether a word is let through by the rules of its member."""
    try:
        for each in metadata:
            if isinstance(each, AfterValidator):
                each.func(word)  # type: ignore[call-arg]
    except ValueError:
        return False
    return True


def _one_of(alternatives: Any) -> str:  # noqa: ANN401
    found = list(dict.fromkeys(alternatives))
    return found[0] if len(found) == 1 else "(?:" + "|".join(found) + ")"


def _string(metadata: list[Any]) -> str:
    pattern = next((each.pattern for each in metadata if isinstance(each, StringConstraints) and each.pattern), None)
    if pattern is None:
        return f"{_PLAIN}*"
    return f"{_PLAIN}{{1,256}}" if pattern == _NAME else f"(?:{str(pattern)[1:-1]})"


def _constraint(metadata: list[Any], name: str, default: int) -> int:
    for each in metadata:
        value = getattr(each, name, None)
        if value is None and hasattr(each, "metadata"):
            value = _constraint(list(each.metadata), name, -1)
            value = None if value == -1 else value
        if isinstance(value, int):
            return value
    return default


def _integer(low: int, high: int) -> str:
    """Return the expression of the integers from `low` to `high`; the largest of a wide range are left to the parser."""
    if high - low < 1_000:
        return "(?:" + "|".join(str(number) for number in range(high, low - 1, -1)) + ")"
    return "(?:0|[1-9][0-9]{0,14})" if low == 0 else "[1-9][0-9]{0,14}"
