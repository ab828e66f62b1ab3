"""Results and event streams of AXLR, judged by its runtime contract.

| kind | told by |
|---|---|
| `result` | an object whose `schema` is `axlr.execution-result/v1` |
| `stream` | lines of `axlr-tui --exec --json`: the first is of a type of the contract, and one holds a result or the first is `session` |
| `journal` | events of `axlr-serve`, one a line: `session_id`, `sequence`, `type`, `payload` |
| `session` | a session of the service that holds a result |
| `policy`, `budget`, `correlation` | the wrapped objects of the contract |

Nothing of AXLR is signed: what holds is what it says of itself, and that its calls keep to its policy where that is at hand.

Source: docs/how-to/axlr.md, docs/reference/seeds.md.
"""

from __future__ import annotations

from verify.foreign import Judgement, Recognised
from verify.foreign.axlr.judging import judge_document
from verify.foreign.axlr.recognising import recognise_document
from verify.options import Options
from verify.trust import Trust

__all__ = ["judge", "name", "recognise"]

name = "axlr"


def recognise(data: bytes) -> Recognised | None:
    """Return what the bytes are of AXLR, None where they are nothing of it."""
    return recognise_document(data)


def judge(data: bytes, found: Recognised, *, trust: Trust | None, options: Options) -> Judgement:
    """Return the judgement on bytes that `recognise` knew."""
    del trust  # nothing of AXLR is signed
    return judge_document(data, found, options)
