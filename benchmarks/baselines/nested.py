"""Nested partitions of the cells, and the least-squares cells from noisy counts of all of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from benchmarks.baselines.asking import Asking
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.mechanisms.adaptive.forest import precisions


@final
@dataclass(frozen=True, eq=False)
class Level:
    """One partition: the label of every cell, and noisy counts of the labels with their rates in nano-ε.

    A rate of zero says that nothing is known about a label.
    """

    labels: IntArray
    answers: IntArray
    rates: IntArray

    @classmethod
    def asked(cls, asking: Asking, labels: IntArray, rate: int) -> Level:
        """Every label counted at the same rate."""
        rates = np.full(int(labels.max()) + 1, rate, dtype=np.int64)
        return cls(labels, asking.counts(labels, rates), rates)

    @classmethod
    def unasked(cls, labels: IntArray) -> Level:
        """Nothing known."""
        unknown = np.zeros(int(labels.max()) + 1, dtype=np.int64)
        return cls(labels, unknown, unknown)


def boxes(shape: tuple[int, ...], parts: int) -> IntArray:
    """Labels that cut every axis into ``parts`` about equal parts, or into its cells if it has fewer.

    Parts that are multiples of one another nest.
    """
    labels = np.zeros(1, dtype=np.int64)
    for length in shape:
        pieces = min(parts, length)
        along = np.arange(length, dtype=np.int64) * pieces // length
        labels = (labels[:, None] * pieces + along).ravel()
    return labels


def least_squares(levels: Sequence[Level], total: int | None) -> FloatArray:
    """The cells of least weighted squared error, levels from coarse to fine, the first being the whole.

    What is known of no part of a group is spread evenly over its cells. A public ``total`` is met exactly.
    """
    size = levels[0].labels.size
    levels = [*levels, Level.unasked(np.arange(size, dtype=np.int64))]
    parents = [_parents(coarse, fine) for coarse, fine in itertools.pairwise(levels)]
    values, variances = _upwards(levels, parents)
    final = values[0] if total is None else np.array([float(total)])
    for level, parent, value, variance in zip(levels[1:], parents, values[1:], variances[1:], strict=True):
        final = _shared(final, parent, value, variance, np.bincount(level.labels))
    return final[levels[-1].labels]


def _parents(coarse: Level, fine: Level) -> IntArray:
    parents = np.zeros(fine.rates.size, dtype=np.int64)
    parents[fine.labels] = coarse.labels
    return parents


def _upwards(levels: Sequence[Level], parents: list[IntArray]) -> tuple[list[FloatArray], list[FloatArray]]:
    """The best estimate of every group from itself and what is below; nothing known: infinite variance."""
    values: list[FloatArray] = []
    variances: list[FloatArray] = []
    for index in range(len(levels) - 1, -1, -1):
        level = levels[index]
        asked = level.rates > 0
        own = np.zeros(level.rates.size)
        own[asked] = precisions(level.rates[asked])
        weighted = own * level.answers
        if values:
            below = np.bincount(parents[index], values[0], own.size)
            spread = np.bincount(parents[index], variances[0], own.size)
            weighted += np.where(np.isfinite(spread), below, 0.0) / spread
            own += 1.0 / spread
        known = own > 0
        values.insert(0, np.divide(weighted, own, out=np.zeros_like(own), where=known))
        variances.insert(0, np.divide(1.0, own, out=np.full_like(own, np.inf), where=known))
    return values, variances


def _shared(
    above: FloatArray, parent: IntArray, values: FloatArray, variances: FloatArray, sizes: IntArray
) -> FloatArray:
    """Children that add up to their parents: the difference is shared by variance, or by size if unknown."""
    unknown = np.isinf(variances)
    open_families = np.bincount(parent, unknown, above.size) > 0
    weights = np.where(open_families[parent], unknown * sizes, variances)
    rest = above - np.bincount(parent, values, above.size)
    return np.asarray(values + weights * (rest / np.bincount(parent, weights, above.size))[parent])
