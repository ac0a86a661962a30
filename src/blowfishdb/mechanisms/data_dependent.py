"""Data-dependent mechanisms: what they measure next depends on what they have measured, privately.

Their error depends on the data, so none of them promises an (α, β) beforehand: asking for one raises
``NoGuarantee``. They are for questions that state an ε, and usually beat what can be promised.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, integers
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.errors import NoGuarantee, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.secret import Secret
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.invariants import unchanging_rows
from blowfishdb.mechanisms.plan import Observation, Plan


class DataDependentMechanism(ABC):
    """A way to answer workloads privately whose error, as a rule, depends on the data."""

    @abstractmethod
    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan | DataDependentPlan:
        """How this mechanism would answer ``workload`` under ``graph``; NotProven if no proof covers it."""


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

    @cached_property
    def exact(self) -> BoolArray:
        """Which answers no edge of the policy changes: they are given as they are and cost nothing."""
        try:
            return unchanging_rows(self.workload, self.graph)
        except TooLarge:  # not found out within reason: answered from the estimate like all others
            return np.zeros(self.workload.count, dtype=np.bool_)

    @property
    def free(self) -> bool:
        """Whether every answer is exact, so that a release costs nothing."""
        return bool(self.exact.all())

    def observe(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> Observation:
        """A release, with what no edge changes put in exactly.

        Nothing is kept of what was measured: which questions were asked depends on the data, so they cannot
        be combined with the rows of other releases.
        """
        counts = self._counts(x)
        true = np.asarray(self.workload.answer(counts), dtype=np.float64)
        answers = true if self.free else self.release(counts, epsilon=epsilon, noise=noise)
        return Observation(np.where(self.exact, true, answers), measured=np.empty(0), totals=None)

    def release(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> FloatArray:
        """Private answers to the workload: those of the estimated cells, which is post-processing."""
        cells = self.estimate(self._counts(x), epsilon=positive(epsilon), noise=noise)
        return np.asarray(self.workload.answer(cells), dtype=np.float64)

    def _counts(self, x: Secret[IntArray] | ArrayLike) -> IntArray:
        counts = integers(x.reveal() if isinstance(x, Secret) else x, "Counts", SizeMismatch)
        if counts.shape != (self.workload.size,):
            raise SizeMismatch(f"Expected {self.workload.size:,} counts, got shape {counts.shape}.")
        return counts

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
