"""Acts re-proved: a fold over receipts in chain order that finds a receipt whose act is not the one that its digest is of.

An approval and the binding of an effect hold by the act digest alone, so it is made again from the act, the actor of the run and
the effect key. Members of the arguments that stand inline are held against all arguments, where the caller has them. Receipts that
restate a foreign document are no exception, since the digest they state is ours; but an import may add members of the document.

Source: docs/spec/rules/README.md, clauses 11 and 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ledger.canonical import JsonValue, encode_part
from ledger.errors import clip
from ledger.members import Actor
from ledger.receipt import Decision, Intent, Opening, Receipt, Run, act_digest
from ledger.rules.breach import Breach, Finding

if TYPE_CHECKING:
    from ledger.rules.policy_replay import ArgumentsOf

__all__ = ["ActReplay", "read_once"]


def read_once(arguments_of: ArgumentsOf) -> ArgumentsOf:
    """Return what gives the same arguments and reads those of one intent once, however many rules ask in a row."""
    last: tuple[Intent | None, Mapping[str, JsonValue] | None] = (None, None)

    def found(intent: Intent) -> Mapping[str, JsonValue] | None:
        nonlocal last
        if last[0] is not intent:
            last = (intent, arguments_of(intent))
        return last[1]

    return found


class ActReplay:
    """Acts of one ledger, folded over its receipts."""

    def __init__(self, arguments_of: ArgumentsOf) -> None:
        self._arguments_of = arguments_of
        self._actors: dict[str, Actor] = {}
        """Open run -> who acts in it."""

    def state(self) -> dict[str, Actor]:
        """Return the state to go on from: the actor of each open run."""
        return dict(self._actors)

    def resume(self, state: Mapping[str, Actor]) -> None:
        """Go on from a state."""
        self._actors |= state

    def see(self, index: int, id_: str, receipt: Receipt) -> list[Finding]:
        """Return what one receipt shows, and take it into account. Receipts come in chain order, each once."""
        match receipt:
            case Opening():
                self._actors[id_] = receipt.actor
            case Intent() | Decision():
                return self._judge(index, receipt)
            case Run():
                self._actors.pop(receipt.run, None)
            case _:
                pass
        return []

    def _judge(self, index: int, receipt: Intent | Decision) -> list[Finding]:
        actor = self._actors.get(receipt.run)
        if actor is None:
            return []  # of no open run, which is a fault of its own
        key = None if receipt.effect is None else receipt.effect.key
        found = act_digest(receipt.act, ledger=receipt.ledger, run=receipt.run, actor=actor, effect_key=key)
        if found != receipt.act_digest:
            return [Breach("act.digest", index, f"act digest: got {receipt.act_digest[:15]}, expected {found[:15]}")]
        inline = receipt.act.arguments
        if not inline or not isinstance(receipt, Intent):
            return []
        arguments = self._arguments_of(receipt)
        if arguments is None:
            return []
        for name, value in inline.items():
            absent = name not in arguments
            if absent and receipt.source is not None:
                continue
            if absent or not _is_same(arguments[name], value):
                message = f"inline argument {clip(name)}: got another than the arguments hold"
                return [Breach("act.arguments", index, message)]
        return []


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two JSON values have the same canonical bytes: 1 and true have not."""
    return encode_part({"": one}) == encode_part({"": other})
