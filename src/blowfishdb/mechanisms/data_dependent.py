"""Data-dependent mechanisms: what they measure next depends on what they have measured, privately.

Their error depends on the data, so none of them promises an (α, β) beforehand: asking for one raises
``NoGuarantee``. They are for questions that state an ε, and usually beat what can be promised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray, integers
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.errors import NoGuarantee, SizeMismatch
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.secret import Secret
from blowfishdb.core.workloads import Workload


class DataDependentPlan(ABC):
    """One data-dependent mechanism, one workload, one policy."""

    name: str
    workload: Workload
    graph: PolicyGraph

    @abstractmethod
    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        """A private estimate of every cell, at exactly ``epsilon`` on every edge of the policy, or less."""

    @abstractmethod
    def explain(self) -> str:
        """What the plan does and why it is private, in a sentence or two."""

    def release(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> FloatArray:
        """Private answers to the workload: those of the estimated cells, which is post-processing."""
        counts = integers(x.reveal() if isinstance(x, Secret) else x, "Counts", SizeMismatch)
        if counts.shape != (self.workload.size,):
            raise SizeMismatch(f"Expected {self.workload.size:,} counts, got shape {counts.shape}.")
        cells = self.estimate(counts, epsilon=positive(epsilon), noise=noise)
        return np.asarray(self.workload.answer(cells), dtype=np.float64)

    def squared_errors(self, *, epsilon: AnyEpsilon) -> NoReturn:
        """Not known before the data is seen."""
        raise self._unknown()

    def squared_error(self, *, epsilon: AnyEpsilon) -> NoReturn:
        """Not known before the data is seen."""
        raise self._unknown()

    def epsilon_for(self, *, alpha: float, beta: float, simultaneous: bool = True) -> NoReturn:
        """No ε is known to reach an accuracy on all data."""
        raise self._unknown()

    def alpha_for(self, *, epsilon: AnyEpsilon, beta: float, simultaneous: bool = True) -> NoReturn:
        """No accuracy is known to hold on all data."""
        raise self._unknown()

    def _unknown(self) -> NoGuarantee:
        return NoGuarantee(
            f"How far off {self.name} is depends on the data, so it promises no accuracy.",
            fixes=("state an ε instead", "the cheapest mechanism with a promise: best"),
        )
