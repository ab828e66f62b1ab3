"""Facts: what the checks of chains and trees need to know of a receipt, after all of it was checked against its schema.

`read_facts` accepts exactly what `ledger.receipt.parse_receipt` accepts.
"""

from __future__ import annotations

from dataclasses import dataclass

from ledger.receipt import Approval, Header, Key, Opening, Outcome, Receipt, children_of, parse_receipt, run_of

__all__ = ["Facts", "facts_of", "read_facts"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Who wrote a receipt, of which kind, for which ledger and run, and what it commits.

    `run` is None outside any run and for an opening, whose run id is its own id. `receipt` is the parsed receipt for kinds
    that few checks need whole: headers, keys and approvals.
    """

    kind: str
    ledger: str
    run: str | None
    name: str
    key: str
    children: tuple[str, ...] = ()
    intent: str | None = None
    parent_opening: str | None = None
    receipt: Receipt | None = None


def read_facts(payload: bytes) -> Facts:
    """Return the facts of the receipt whose canonical bytes are `payload`.

    Raises:
        CanonicalError: not canonical JSON, over 1 MiB or over 48 levels.
        UnknownFormatError: a schema or kind that this version does not know.
        FormatError: a known kind with members missing, unknown or malformed.
    """
    return facts_of(parse_receipt(payload))


def facts_of(receipt: Receipt) -> Facts:
    """Return the facts of a parsed receipt."""
    return Facts(
        receipt.kind,
        receipt.ledger,
        None if isinstance(receipt, Opening) else run_of(receipt, ""),
        receipt.issuer.name,
        receipt.issuer.key,
        children_of(receipt),
        receipt.intent if isinstance(receipt, Outcome) else None,
        receipt.parent_opening if isinstance(receipt, Opening) else None,
        receipt if isinstance(receipt, Header | Key | Approval) else None,
    )
