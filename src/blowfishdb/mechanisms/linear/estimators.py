"""Estimators: from noisy rows to cells, linear and unbiased, and the exact variance of what follows.

An estimator is public: it depends on the rows, their weights and the policy. Of the data it may use, besides
the noisy measurements, only the totals that no edge of the policy changes.

Reading cut points off along paths: the decoding that the papers describe, as an estimator.

What both ways of combining releases can do: T with T·A = W and the least variance (Gauss–Markov).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.cost import component_sums, invariant_components
from blowfishdb.mechanisms.linear.strategy import Contrasts, Strategy

DENSE_CELLS = 2_000
_WORK = 2 * 10**9
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

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        """The sum of ``variances``, possibly without writing them out."""
        return float(self.variances(workload, of_noise).sum())


def cells_over_cuts(size: int) -> csr_array:
    """x_u = p_{u+1} − p_u: questions over cells, times this, are questions over cut points."""
    cells = np.arange(size)
    signs = np.repeat(np.array([1, -1], dtype=np.int64), size)
    places = np.tile(cells, 2), np.concatenate((cells + 1, cells))
    return csr_array((signs, places), shape=(size, size + 1))


def check_work(numbers: int) -> None:
    """Refuse to list variances that take too long."""
    if numbers > _WORK:
        raise TooLarge(
            "The error of every single question is above the limit.", fixes=("ask fewer questions",)
        )


def variances_from_spread(workload: Workload, spread: FloatArray, of_noise: FloatArray) -> FloatArray:
    """Σ_r v_r·T_ir², from R written out: ``spread[r]`` is what one unit of noise r does to the cells."""
    ranges = workload.intervals()
    if ranges is not None and workload.count > len(spread):
        cuts = np.concatenate((np.zeros((len(spread), 1)), np.cumsum(spread, axis=1)), axis=1)
        covariance = cuts.T @ (of_noise[:, None] * cuts)
        diagonal = np.diagonal(covariance)
        starts, stops = ranges
        variances = diagonal[starts] + diagonal[stops] - 2 * covariance[starts, stops]
        return np.asarray(np.maximum(variances, 0.0))
    check_work(len(spread) * workload.count)
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
        public = np.where(self.public, np.concatenate(([0], np.cumsum(x))), 0)
        return np.diff(self._gains @ (measured - self.strategy.over_cuts @ public) + public)

    def spread(self, noise: Numbers) -> FloatArray:
        return np.diff(noise @ self._gains.T, axis=-1)

    def variances(self, workload: Workload, of_noise: FloatArray) -> FloatArray:
        ranges = workload.intervals()
        if ranges is None:
            check_work(len(self.strategy) * workload.size)
            return variances_from_spread(workload, self.spread(np.eye(len(self.strategy))), of_noise)
        path = int(np.diff(self._gains.indptr).max(initial=0))
        step = max(1, 10**7 // max(1, 2 * path))
        check_work(workload.count * path)
        variances = [np.zeros(0)]
        for first in range(0, workload.count, step):
            starts, stops = (end[first : first + step] for end in ranges)
            both = self._gains[stops] - self._gains[starts]
            variances.append(both.multiply(both) @ of_noise)
        return np.concatenate(variances)

    def total_variance(self, workload: Workload, of_noise: FloatArray) -> float:
        """Of all ranges without listing them: Σ_{i<j} ‖g_j − g_i‖² = (k+1)·Σ ‖g_j‖² − ‖Σ g_j‖², j = 0 … k."""
        if not workload.every_range:
            return super().total_variance(workload, of_noise)
        alone = np.asarray(self._gains.multiply(self._gains).sum(axis=0)).ravel()
        together = np.asarray(self._gains.sum(axis=0)).ravel()
        return float(of_noise @ (self.public.size * alone - together**2))


@final
@dataclass(frozen=True, eq=False)
class RowNoise:
    """The noise of all measured rows, releases one after another."""

    variances: FloatArray
    scales: FloatArray
    release: IntArray
    """Which release a row belongs to."""
    releases: int

    @property
    def noisy(self) -> BoolArray:
        """Rows that carry noise; the others are exact, and are eliminated rather than weighted."""
        return self.variances > 0


class ReleaseEstimator(ABC):
    """The best linear unbiased answers T·y to fixed questions from measured rows."""

    noise: RowNoise

    @property
    @abstractmethod
    def count(self) -> int:
        """How many questions there are."""

    @property
    @abstractmethod
    def determined(self) -> BoolArray:
        """Which questions follow from the measured rows."""

    @property
    @abstractmethod
    def residuals(self) -> FloatArray:
        """max |W − T·A| of each question: what rounding has left."""

    @property
    @abstractmethod
    def variances(self) -> FloatArray:
        """The variance of each answer; infinite where it is not determined."""

    @property
    @abstractmethod
    def parts(self) -> FloatArray:
        """The variance that each release contributes (first axis) to each answer."""

    @abstractmethod
    def apply(self, measured: FloatArray) -> FloatArray:
        """T·y for a batch (last axis runs over rows); meaningless where a question is not determined."""

    @abstractmethod
    def weights(self, questions: IntArray) -> FloatArray:
        """The rows of T over noisy measurements, zero at exact ones."""


def per_release(weights: FloatArray, noise: RowNoise) -> FloatArray:
    """Σ t_r²·σ_r² over the rows of each release, for every row of weights."""
    rows = np.arange(noise.release.size)
    member = csr_array((noise.variances, (noise.release, rows)), shape=(noise.releases, rows.size))
    return np.asarray(member @ (weights**2).T)
