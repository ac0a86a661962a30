"""What a monitoring system may know: how many requests, how long they took, and what the ledger says.

With several workers, each writes its numbers into one folder (``PROMETHEUS_MULTIPROC_DIR``, which ``serve``
makes), and whichever of them is asked adds them up.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from prometheus_client import Metric

    from blowfishdb.workspace import Workspace

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@final
class Metrics:
    """The numbers of one app; apps in the same process do not mix theirs."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._own = CollectorRegistry()
        self._ledger = LedgerNumbers(workspace)
        self._requests = Counter(
            "blowfishdb_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._own,
        )
        self._seconds = Histogram(
            "blowfishdb_request_seconds",
            "How long requests took.",
            ("route", "method"),
            buckets=_BOUNDS,
            registry=self._own,
        )

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note one request; made-up methods share a name, so that nobody can fill the memory with them."""
        known = method if method in _METHODS else "other"
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route, known).observe(seconds)

    def text(self) -> bytes:
        """Everything, in the form that Prometheus reads."""
        requests = self._own
        if SHARED_FOLDER in os.environ:
            requests = CollectorRegistry()
            MultiProcessCollector(requests)  # type: ignore[no-untyped-call]
        ledger = CollectorRegistry()
        ledger.register(self._ledger)
        return generate_latest(requests) + generate_latest(ledger)


@final
class LedgerNumbers(Collector):
    """Budgets as the ledger has them at this moment; every worker would say the same."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace  # asked each time: the demonstration replaces it when it starts over

    def collect(self) -> Iterable[Metric]:
        """One number for each dataset and state."""
        budgets = GaugeMetricFamily(
            "blowfishdb_epsilon", "Privacy loss by dataset.", labels=("dataset", "state")
        )
        for name, state, epsilon in self._numbers():
            budgets.add_metric((name, state), epsilon)
        yield budgets

    def _numbers(self) -> Iterator[tuple[str, str, float]]:
        workspace = self._workspace()
        for name in workspace.datasets():
            budget = workspace.budget(name)
            yield name, "total", float(budget.total)
            yield name, "spent", float(budget.spent)
            yield name, "held", float(budget.held)
