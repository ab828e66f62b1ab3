"""What `ledger run` can hold of a budget and a policy: it sees one process, its time, its end, and runs that join it.

A limit or a rule that it cannot enforce is refused by name before anything runs: it would be read as held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ledger.errors import clip
from ledger.members import Limit
from ledger.rules.amounts import DURATION, parse_budget
from ledger.rules.errors import BudgetError, PolicyError
from ledger.rules.glob import matcher
from ledger.rules.policy import Answer, Policy
from ledger.rules.policy_file import read_policy

__all__ = ["TimeLimit", "budget_of_words", "policy_of_file", "time_limit_of"]

_SEEN: Final = frozenset({DURATION, "receipts", "tool_calls", "depth", "fanout", "concurrency"})
_GRACE_MS: Final = 5_000
_SHORTEST_GRACE_MS: Final = 500
_POLICY_MAX_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A limit on time: after how long the command is told to end, and how long it then has; milliseconds."""

    limit: int
    grace: int

    def left(self, elapsed_ms: int) -> int:
        """Return how long the command may still run."""
        return max(0, self.limit - elapsed_ms)

    @property
    def kill_ms(self) -> int:
        """After how long of the grace it is killed: the rest is for recording how it ended."""
        return self.grace // 2


def budget_of_words(words: Sequence[str]) -> tuple[Limit, ...]:
    """Return the limits that `--budget` asks for; a limit on time has a grace, in which the command ends.

    Raises:
        BudgetError: a word outside its form, or a limit that cannot be enforced here.
    """
    limits = []
    for each in parse_budget(words):
        if each.meter not in _SEEN:
            raise BudgetError(
                f"--budget: {each.meter} cannot be enforced here: one process is seen, and not what it spends",
                code="budget.unenforceable",
                hint=f"enforced here: {', '.join(sorted(_SEEN))}; others by a program that records its calls",
            )
        if each.soft is not None:
            raise BudgetError(
                f"--budget: {each.meter}: a soft limit cannot be enforced here: it asks for an approval",
                code="budget.unenforceable",
            )
        if each.meter == DURATION:
            grace = _GRACE_MS if each.grace is None else each.grace
            if grace < _SHORTEST_GRACE_MS:
                raise BudgetError(
                    f"--budget: {DURATION}: got a grace of {grace} ms, expected {_SHORTEST_GRACE_MS} or more"
                )
            limits.append(each.model_copy(update={"grace": grace}))
        else:
            limits.append(each)
    return tuple(limits)


def time_limit_of(limits: Iterable[Limit]) -> TimeLimit | None:
    """Return the limit on time among the limits of an opening, None where there is none."""
    found = next((each for each in limits if each.meter == DURATION), None)
    return None if found is None else TimeLimit(found.limit, found.grace or 0)


_WORDS: Final = {Answer.ASK: "asks before", Answer.DENY: "forbids"}


def policy_of_file(path: Path | None, command: str) -> bytes | None:
    """Return the policy document of a file, None for no file.

    Raises:
        PolicyError: it cannot be read, or a rule of it cannot be enforced here.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            data = file.read(_POLICY_MAX_BYTES + 1)
    except OSError as error:
        raise PolicyError(f"--policy: {clip(str(path))}: {error.strerror}") from error
    _refuse_unenforceable(read_policy(data).policy, command)
    return data


def _refuse_unenforceable(policy: Policy, command: str) -> None:
    """Raise where a rule speaks of tools other than the command: what that uses is not seen."""
    for place, each in enumerate(policy.always_ask):
        if not matcher(each.name)(command):
            raise _unenforceable(f"always_ask[{place}] ({each.name})", "it asks before what only the command would see")
    for rule in policy.rules or ():
        if rule.then is not Answer.ALLOW and not rule.acts(command):
            raise _unenforceable(f"rule {rule.name}", f"it {_WORDS[rule.then]} what only the command would see")
    for place, each in enumerate(policy.deny):
        if not matcher(each.name)(command):
            raise _unenforceable(f"tools.deny[{place}] ({each.name})", "it forbids what only the command would see")


def _unenforceable(rule: str, why: str) -> PolicyError:
    return PolicyError(
        f"--policy: {clip(rule)} cannot be enforced here: {why}",
        code="policy.unenforceable",
        hint="`ledger run` sees the command as one tool; its own calls are held by a program that records them",
    )
