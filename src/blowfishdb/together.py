"""Questions that are settled on before any of them is answered: they pay for what they lose together.

Losses add up pair by pair, so answers about groups that no edge joins, or about distant parts of a line, cost
as much as the dearest of them. What each one is charged is what it adds to the loss of those before it about
the same rows: someone may have one value in these and another in later ones.
"""

from __future__ import annotations

from collections import defaultdict
from typing import final

from blowfishdb.core.budget import Epsilon
from blowfishdb.history import Past
from blowfishdb.mechanisms.losses import Kernel
from blowfishdb.records import DatasetRecord


@final
class Together:
    """A basket that is being answered, question by question."""

    def __init__(self) -> None:
        self.charges: set[int] = set()
        """Of the questions that have been answered."""
        self._kernels: dict[str, list[Kernel]] = defaultdict(list)
        self._paid: dict[str, Epsilon] = defaultdict(lambda: Epsilon(0))
        self._versions: dict[str, int] = {}

    def due(self, dataset: DatasetRecord, kernel: Kernel, alone: Epsilon) -> Epsilon:
        """What one more answer is charged: at most its price ``alone``."""
        if self._versions.get(dataset.name) != dataset.version or not dataset.declared_kind.combined:
            self._kernels[dataset.name], self._paid[dataset.name] = [], Epsilon(0)
            self._versions[dataset.name] = dataset.version
        kernels, paid = self._kernels[dataset.name], self._paid[dataset.name]
        kernels.append(kernel)
        lost = Past.of(tuple(kernels), dataset.policy).epsilon
        more = alone if lost is None else min(alone, lost - paid if lost > paid else Epsilon(0))
        self._paid[dataset.name] = paid + more
        return more
