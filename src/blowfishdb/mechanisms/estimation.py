"""Estimators: from noisy rows to cells, linear and unbiased, and the exact variance of what follows.

An estimator is public: it depends on the rows, their weights and the policy. Of the data it may use, besides
the noisy measurements, only the totals that no edge of the policy changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.invariants import component_sums, invariant_components
from blowfishdb.mechanisms.strategy import Strategy

DENSE_CELLS = 2_000
WORK = 2 * 10**9
_SINGULAR = 1e-11


class Estimator(ABC):
    """x̂ = R·y + (what the invariant totals fix), with R·A = I on everything that can change."""

    @abstractmethod
    def estimate(self, measured: Numbers, x: IntArray) -> FloatArray:
        """The cells, from the noisy rows; of ``x`` only invariant totals are used."""

    @abstractmethod
    def spread(self, noise: Numbers) -> FloatArray:
        """R·η on the cells, for a batch of noise vectors (last axis)."""

    @abstractmethod
    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        """The exact variance of every answer, given that of every row's noise."""

    @abstractmethod
    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        """The sum of ``variances``, possibly without writing them out."""


def as_ranges(workload: Workload) -> tuple[IntArray, IntArray] | None:
    """The questions as intervals [start, stop) of cells, where they are that."""
    cells = np.arange(workload.size, dtype=np.int64)
    if isinstance(workload, Histogram):
        return cells, cells + 1
    if isinstance(workload, Cumulative):
        return np.zeros_like(cells), cells + 1
    if isinstance(workload, Ranges):
        return workload.starts, workload.ends + 1
    if isinstance(workload, AllRanges):
        if workload.count > LIMIT:
            raise TooLarge(
                f"{workload.count:,} answers are too many to list.",
                fixes=("ask for the cumulative histogram: a range is a difference of two of its answers",),
            )
        starts, ends = np.triu_indices(workload.size)
        return starts.astype(np.int64), ends.astype(np.int64) + 1
    return None


def cells_over_cuts(size: int) -> csr_array:
    """x_u = p_{u+1} − p_u: questions over cells, times this, are questions over cut points."""
    cells = np.arange(size)
    signs = np.repeat(np.array([1, -1], dtype=np.int64), size)
    places = np.tile(cells, 2), np.concatenate((cells + 1, cells))
    return csr_array((signs, places), shape=(size, size + 1))


def variances_from_spread(workload: Workload, spread: FloatArray, of_noise: FloatArray) -> FloatArray:
    """Σ_r v_r·T_ir², from R written out: ``spread[r]`` is what one unit of noise r does to the cells."""
    ranges = as_ranges(workload)
    if ranges is not None and workload.count > len(spread):
        cuts = np.concatenate((np.zeros((len(spread), 1)), np.cumsum(spread, axis=1)), axis=1)
        covariance = cuts.T @ (of_noise[:, None] * cuts)
        diagonal = np.diagonal(covariance)
        starts, stops = ranges
        found = diagonal[starts] + diagonal[stops] - 2 * covariance[starts, stops]
        return np.asarray(np.maximum(found, 0.0))
    if len(spread) * workload.count > WORK:
        raise TooLarge(
            "The error of every single question is above the limit.", fixes=("ask fewer questions",)
        )
    total = np.zeros(workload.count)
    step = max(1, 10**7 // max(1, workload.count))
    for first in range(0, len(spread), step):
        part = np.asarray(workload.answer(spread[first : first + step]), dtype=np.float64)
        total += of_noise[first : first + step] @ part**2
    return total


@final
@dataclass(frozen=True, eq=False)
class DenseLeastSquares(Estimator):
    """Weighted least squares by dense algebra, for any rows and any graph on at most 2,000 cells.

    Unknowns are all cells but the first of each component, whose count is the public total less the others;
    without public totals all cells are unknown.
    """

    strategy: Strategy
    graph: PolicyGraph

    def __post_init__(self) -> None:
        if self.strategy.size > DENSE_CELLS:
            raise TooLarge(
                f"Least squares on {self.strategy.size:,} cells without the structure of a line is above the "
                f"limit of {DENSE_CELLS:,}.",
                fixes=("ask about fewer or larger bins",),
            )

    @cached_property
    def _basis(self) -> csr_array:
        """Z: the changes of the cells that keep every public total."""
        size = self.strategy.size
        cells = np.arange(size)
        components = invariant_components(self.graph)
        if components is None:
            return csr_array((np.ones(size), (cells, cells)), shape=(size, size))
        first = components.first(components.assignment())
        free = np.flatnonzero(first != cells)
        signs = np.repeat([1.0, -1.0], free.size)
        places = np.concatenate((free, first[free])), np.tile(np.arange(free.size), 2)
        return csr_array((signs, places), shape=(size, free.size))

    @cached_property
    def spread_matrix(self) -> FloatArray:
        """Rᵀ with R = Z(ZᵀAᵀΛAZ)⁻¹ZᵀAᵀΛ: one row per measured row, one column per cell."""
        seen = (self.strategy.sparse() @ self._basis).toarray()
        weighted = seen * self.strategy.precision[:, None]
        gram = weighted.T @ seen
        if gram.size == 0:
            return np.zeros((len(self.strategy), self.strategy.size))
        values = np.linalg.eigvalsh(gram)
        if values[0] <= _SINGULAR * values[-1]:
            raise undetermined()
        return np.asarray((self._basis @ np.linalg.solve(gram, weighted.T)).T)

    def estimate(self, measured: Numbers, x: IntArray) -> FloatArray:
        anchor = anchored(x, self.graph)
        return self.spread(measured - self.strategy.answer(anchor)) + anchor

    def spread(self, noise: Numbers) -> FloatArray:
        return np.asarray(noise @ self.spread_matrix)

    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        return variances_from_spread(workload, self.spread_matrix, of_noise)

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        return float(self.variances(workload, of_noise).sum())


def anchored(x: IntArray, graph: PolicyGraph) -> IntArray:
    """The public totals of ``x`` and nothing else of it: everybody in the first cell of their component."""
    components = invariant_components(graph)
    anchor = np.zeros_like(x)
    if components is not None:
        anchor[components.first(np.arange(components.count))] = component_sums(x, components)
    return anchor


def undetermined() -> NotProven:
    """Why rows that leave an answer open are refused."""
    return NotProven(
        "The measured rows do not determine every answer, so no unbiased answer exists.",
        fixes=("measure the single cells as well",),
    )
