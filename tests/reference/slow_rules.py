"""Slow, plain models of the rules: everything is kept as a list and counted anew at each question."""

from __future__ import annotations

from dataclasses import dataclass, field


def covers(pattern: str, text: str) -> bool:
    """Whether a pattern covers a text: a table of which prefixes match, filled from the definition."""
    tokens = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**", at):
            tokens.append("**")
            at += 2
        else:
            tokens.append(pattern[at])
            at += 1
    reachable = {0}
    for token in tokens:
        after = set()
        for place in reachable:
            if token == "**":
                after |= set(range(place, len(text) + 1))
            elif token == "*":
                end = place
                after.add(end)
                while end < len(text) and text[end] != "/":
                    end += 1
                    after.add(end)
            elif place < len(text) and (token == text[place] or (token == "?" and text[place] != "/")):
                after.add(place + 1)
        reachable = after
    return len(text) in reachable


@dataclass
class SlowBudget:
    """Acts of one purse: each an entry [state, reserved by meter, spent by meter]."""

    limits: dict[str, int]
    acts: list = field(default_factory=list)
    overrun: bool = False

    def total(self, meter: str) -> int:
        return sum(held.get(meter, 0) + spent.get(meter, 0) for _, held, spent in self.acts)

    def reserve(self, draw: dict[str, int]) -> int | None:
        if self.overrun:
            return None
        for meter, limit in self.limits.items():
            if self.total(meter) + draw.get(meter, 0) > limit:
                return None
        self.acts.append(["reserved", dict(draw), {}])
        return len(self.acts) - 1

    def end(self, act: int, status: str, said: dict[str, int]) -> None:
        _, held, _ = self.acts[act]
        meters = {*held, *said}
        if status == "committed":
            now, spent = {}, {meter: said.get(meter, held.get(meter, 0)) for meter in meters}
        elif status == "failed":
            now, spent = {}, {meter: said.get(meter, 0) for meter in meters}
        else:
            now, spent = {meter: max(said.get(meter, 0), held.get(meter, 0)) for meter in meters}, {}
        for meter in self.limits:
            if spent.get(meter, 0) + now.get(meter, 0) > held.get(meter, 0):
                self.overrun = True
        self.acts[act] = [status, now, spent]
