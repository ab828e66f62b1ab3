"""Receipts, trees, counter-seals and resume documents of runx, judged by its own rules.

| kind | told by |
|---|---|
| `receipt` | an object whose `schema` is `runx.receipt.v1` |
| `receipts` | several such objects, one a line |
| `counter-seal` | `notary_verification`, at the top or in `receipt` |
| `resume` | `schema` `runx.resume.v1`, or entries bound by `request_digest` |
| `verdict`, `criteria` | `schema` `runx.verdict.v1`, `runx.criteria.v1` |
| `verify-verdict` | `schema` `runx.verify_verdict.v1` |
| `other` | any other `schema` that starts with `runx.` |

Exact facts are of runx 0.8.2. Of 0.12 only prose is known; what it states is checked, and a receipt of a shape that 0.8.2 does
not write is said to be unknown, not altered, where its digest cannot be reproduced.

Source: docs/how-to/runx.md, docs/reference/seeds.md.
"""

from __future__ import annotations

from verify.foreign import Judgement, Recognised
from verify.foreign.runx.judging import judge_document, judge_folder
from verify.foreign.runx.recognising import recognise_document
from verify.options import Options
from verify.trust import Trust

__all__ = ["judge", "judge_folder", "name", "recognise"]

name = "runx"


def recognise(data: bytes) -> Recognised | None:
    """Return what the bytes are of runx, None where they are nothing of it."""
    return recognise_document(data)


def judge(data: bytes, found: Recognised, *, trust: Trust | None, options: Options) -> Judgement:
    """Return the judgement on bytes that `recognise` knew."""
    del options  # nothing of runx is checked only on request
    return judge_document(data, found, trust)
