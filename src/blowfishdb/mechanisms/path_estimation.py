"""Reading cut points off along paths: the decoding that the papers describe, as an estimator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.estimation import WORK, Estimator, as_ranges, undetermined, variances_from_spread
from blowfishdb.mechanisms.strategy import Contrasts


@final
@dataclass(frozen=True, eq=False)
class PathEstimator(Estimator):
    """p̂_stop = p̂_start + y_r for the first row r that ends at the cut point, from public cut points on.

    With rows listed from coarse to fine this is how [B14] §7.2 answers a prefix: an S node, then in each
    level of the block's tree the nodes before the one that holds the cut.
    """

    strategy: Contrasts
    public: BoolArray

    def __post_init__(self) -> None:
        if (self.strategy.minus_starts < self.strategy.minus_stops).any():
            raise NotProven("Paths are made of plain intervals, not of differences.")

    @cached_property
    def _gains(self) -> csr_array:
        """What one unit of every row's noise does to every cut point: the rows on its path.

        p̂ = P·p̂ + E·y with one entry per row of P, so p̂ = (I + P)(I + P²)(I + P⁴)…·E·y.
        """
        cuts = self.public.size
        ends, first = np.unique(self.strategy.stops, return_index=True)
        hidden = ~self.public[ends]
        ends, first = ends[hidden], first[hidden]
        if ends.size < np.count_nonzero(~self.public):
            raise undetermined()
        ones = np.ones(ends.size)
        gains = csr_array((ones, (ends, first)), shape=(cuts, len(self.strategy)))
        jumps = csr_array((ones, (ends, self.strategy.starts[first])), shape=(cuts, cuts))
        while jumps.nnz:
            gains = gains + jumps @ gains
            jumps = csr_array(jumps @ jumps)
        return csr_array(gains)

    def estimate(self, measured: Numbers, x: IntArray) -> FloatArray:
        known = np.where(self.public, np.concatenate(([0], np.cumsum(x))), 0)
        return np.diff(self._gains @ (measured - self.strategy.over_cuts @ known) + known)

    def spread(self, noise: Numbers) -> FloatArray:
        return np.diff(noise @ self._gains.T, axis=-1)

    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        ranges = as_ranges(workload)
        if ranges is None:
            if len(self.strategy) * workload.size > WORK:
                raise TooLarge("The error of every single question is above the limit.")
            return variances_from_spread(workload, self.spread(np.eye(len(self.strategy))), of_noise)
        path = int(np.diff(self._gains.indptr).max(initial=0))
        step = max(1, 10**7 // max(1, 2 * path))
        if workload.count * path > WORK:
            raise TooLarge(
                "The error of every single question is above the limit.", fixes=("ask fewer questions",)
            )
        found = [np.zeros(0)]
        for first in range(0, workload.count, step):
            starts, stops = (end[first : first + step] for end in ranges)
            both = self._gains[stops] - self._gains[starts]
            found.append(both.multiply(both) @ of_noise)
        return np.concatenate(found)

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        return float(self.variances(workload, of_noise).sum())
