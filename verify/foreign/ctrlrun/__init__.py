"""ctrlrun: receipts, their chain and its store, verified by ctrlrun's rules and held to a little more.

Source: docs/how-to/ctrlrun.md, docs/spec/words.md.
"""

from __future__ import annotations

from typing import Final

from verify.foreign import Judgement, Recognised
from verify.foreign.ctrlrun.lines import judge_lines, recognise
from verify.options import Options
from verify.trust import Trust

__all__ = ["judge", "name", "recognise"]

name: Final = "ctrlrun"


def judge(data: bytes, found: Recognised, *, trust: Trust | None, options: Options) -> Judgement:  # noqa: ARG001  ctrlrun signs nothing
    """Return the judgement on a file of ctrlrun; nobody signs one, so there is nobody to trust."""
    return judge_lines(data, found)
