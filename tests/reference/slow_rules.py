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
        for meter in meters:
            if "->" in meter and status != "ambiguous":
                spent[meter] = max(said.get(meter, 0), held.get(meter, 0))
        self.acts[act] = [status, now, spent]


@dataclass
class SlowEffect:
    """One effect key: every event in a list; each answer is found by reading the list from the start."""

    events: list = field(default_factory=list)

    def attempts(self) -> list:
        return [event for event in self.events if event[0] == "intent"]

    def state(self, now_ms: int) -> str:
        attempts = self.attempts()
        if not attempts:
            return "new"
        until = attempts[-1][2]
        later = self.events[self.events.index(attempts[-1]) + 1 :]
        for what, *rest in later:
            if what == "resolution":
                return "committed" if rest[0] == "happened" else "failed"
        for what, *rest in later:
            if what == "outcome":
                return rest[0]
        return "ambiguous" if now_ms >= until else "in_progress"

    def may_run(self, now_ms: int) -> int | None:
        """The number of the attempt that may run now, None for none."""
        return len(self.attempts()) + 1 if self.state(now_ms) in ("new", "failed") else None

    def happened(self) -> int:
        """How often the effect is known to have happened."""
        count = 0
        for place, event in enumerate(self.events):
            if event[0] != "intent":
                continue
            ends = []
            for later in self.events[place + 1 :]:
                if later[0] == "intent":
                    break
                ends.append(later)
            count += any(end in (("outcome", "committed"), ("resolution", "happened")) for end in ends)
        return count


@dataclass
class SlowVotes:
    """One request: answers as they came, (key, granted, expires), and when it was used."""

    needed: int
    expires: int
    answers: list = field(default_factory=list)
    used: bool = False

    def current(self) -> dict:
        return {key: (granted, until) for key, granted, until in self.answers}

    def state(self, now: int) -> str:
        if self.used:
            return "consumed"
        current = self.current().values()
        if any(not granted for granted, _ in current):
            return "denied"
        if len([until for granted, until in current if until > now]) >= self.needed:
            return "granted"
        return "expired" if now >= self.expires else "pending"
