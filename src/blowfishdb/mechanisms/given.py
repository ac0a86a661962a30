"""Answers that follow from what everyone knows: exact and free, and no row is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.secret import Secret
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.plan import Observation, Plan
from blowfishdb.mechanisms.scales import UnitScales

FROM_KNOWN: Final = "From what is known"
"""The mechanism of answers that the known counts determine, and that lose nothing."""


@final
@dataclass(frozen=True, eq=False)
class GivenAnswers(Plan):
    """The values that the known answers determine, whatever the data."""

    workload: Workload
    graph: PolicyGraph
    values: FloatArray
    name: str = FROM_KNOWN

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales.uniform(0, self.workload.count)

    @cached_property
    def exact(self) -> BoolArray:
        return np.ones(self.workload.count, dtype=np.bool_)

    @property
    def one_to_one(self) -> bool:
        return False

    def measure(self, x: IntArray) -> Numbers:
        return self.values

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.values

    def spread(self, noise: Numbers) -> Numbers:
        return np.zeros_like(noise)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.zeros(self.workload.count)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return csr_array((0, self.workload.size), dtype=np.int64), []

    def observe(self, x: Secret[IntArray] | ArrayLike, *, epsilon: AnyEpsilon, noise: Noise) -> Observation:
        """The known values; the counts stay closed."""
        return Observation(self.values, np.empty(0), None)

    def explain(self) -> str:
        return "It follows from the counts that everyone knows: exact, free, and no row is read for it."
