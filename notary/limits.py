"""How often somebody may ask: a token bucket for each, in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

__all__ = ["Rate"]

_MAX_KEPT: Final = 10_000


class Rate:
    """Lets each name through `per_second` times a second on average, `burst` times at once. Time is an argument, in milliseconds."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_ms = per_second / 1000
        self._burst = burst
        self._left: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, name: str, *, at_ms: int) -> int:
        """Return 0 if the name may ask now, else in how many seconds, at least 1."""
        left, before_ms = self._left.pop(name, (float(self._burst), at_ms))
        left = min(self._burst, left + (at_ms - before_ms) * self._per_ms)
        allowed = left >= 1
        self._left[name] = (left - 1 if allowed else left, at_ms)
        if len(self._left) > _MAX_KEPT:
            self._left.popitem(last=False)
        return 0 if allowed else max(1, round((1 - left) / self._per_ms / 1000))
