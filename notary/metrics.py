"""Counts of what a notary did, in the text format of Prometheus. They name no origin, receipt, token or address."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]


class Metrics:
    """The counts of one service."""

    def __init__(self, *, waiting: Callable[[], int], sealed: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter("notary_requests", "Requests answered.", ["route", "status"], registry=self._registry)
        self._seconds = Histogram(
            "notary_request_seconds", "Time until the answer.", ["route"], registry=self._registry
        )
        Gauge("notary_waiting", "Submissions that wait.", registry=self._registry).set_function(waiting)
        Gauge("notary_sealed", "Counter-seals and cosignatures in its ledger.", registry=self._registry).set_function(
            sealed
        )

    def answered(self, route: str, status: int, *, duration_ms: int) -> None:
        """Count one answer."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(duration_ms / 1000)

    def text(self) -> bytes:
        """Return all counts."""
        return generate_latest(self._registry)
