"""NOT PRIVATE: what [D14] compares with or measured without the noise that its proof needs.

Nothing here may be released. The calibration is written from our description of the published one (half the
noise scale, none on single cells, costs clipped at zero; docs/proofs/dawa.md), not from its code.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.dawa.measuring import (
    coverage,
    greedy_scaling,
    integer_weights,
    noisy_sums,
    tree_least_squares,
)
from blowfishdb.mechanisms.dawa.partition import Candidates, Ranked, deviations, expand, least_cost


def not_private_partition(x: np.ndarray, first: Fraction, second: Fraction, noise: Noise) -> np.ndarray:
    """Stage one with too little noise: an audit finds a log-ratio of 2.6 where 1 is claimed."""
    candidates = Candidates.powers_of_two(x.size)
    units = candidates.units
    ranked = Ranked(x)
    costs = np.zeros((len(candidates.lengths), x.size), dtype=np.int64)
    for row, length in zip(costs, candidates.lengths, strict=True):
        starts = x.size - length + 1
        row[:starts] = deviations(ranked, length, units)
        if length > 1:
            scale = (2 + Fraction(2 * (length - 1), length)) * units / (2 * first)
            row[:starts] = np.maximum(row[:starts] + noise.discrete_laplace(scale, starts), 0)
        row[:starts] += round(units / second)
    return least_cost(costs, candidates.lengths)


def not_private_dawa(x: np.ndarray, asked: Workload, epsilon: float, noise: Noise) -> np.ndarray:
    """DAWA with that partition: a quarter of ε for stage one, as published."""
    whole = Fraction(str(epsilon))
    first, second = whole / 4, whole * 3 / 4
    buckets = not_private_partition(x, first, second, noise)
    weights = integer_weights(greedy_scaling(coverage(asked, None, buckets), buckets.size))
    measured = noisy_sums(np.add.reduceat(x, buckets), weights, second, noise)
    return expand(buckets, tree_least_squares(measured, weights), None, x.size)


def not_private_optimum(deviation_units: np.ndarray, candidates: Candidates, second: Fraction) -> np.ndarray:
    """The partition of least cost, from the true deviations."""
    return least_cost(deviation_units + round(candidates.units / second), candidates.lengths)
