"""Stage two's measurement: noisy sums on a weighted binary tree, combined by least squares in two passes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.noise import Noise
from blowfishdb.mechanisms.dawa.coverage import paired

_WHOLE = 2**16


def integer_weights(scales: list[FloatArray]) -> list[IntArray]:
    """Scales as whole numbers of 1/65,536; every bucket keeps at least one."""
    weights = [np.floor(level * _WHOLE).astype(np.int64) for level in scales]
    weights[0] = np.maximum(weights[0], 1)
    return weights


def cost(weights: list[IntArray]) -> int:
    """The largest sum of weights from a bucket to the root: what one record more or less changes, exactly."""
    above = np.zeros(1, dtype=np.int64)
    for position, level in enumerate(weights[::-1]):
        above = level if position == 0 else np.repeat(above, 2)[: level.size] + level
    return int(above.max())


def noisy_sums(
    counts: IntArray, weights: list[IntArray], epsilon: Fraction, noise: Noise
) -> list[FloatArray]:
    """The sum of every node plus noise of scale K/(w·ε), ε-private under add/remove."""
    flat = np.concatenate(weights)
    drawn = np.zeros(flat.size, dtype=np.int64)
    measured = np.flatnonzero(flat)
    values, which = np.unique(flat[measured], return_inverse=True)
    largest = cost(weights)
    scales = [largest / (int(value) * epsilon) for value in values]
    drawn[measured] = noise.discrete_laplace([scales[index] for index in which.tolist()])
    found, place = [], 0
    for level in weights:
        found.append((counts + drawn[place : place + level.size]).astype(np.float64))
        counts, place = paired(counts), place + level.size
    return found


def tree_least_squares(measured: list[FloatArray], weights: list[IntArray]) -> FloatArray:
    """The best linear unbiased counts of the buckets: up by inverse variance, down by sharing the rest."""
    estimates = [measured[0]]
    variances = [1.0 / weights[0].astype(np.float64) ** 2]
    for sums, level in zip(measured[1:], weights[1:], strict=True):
        below, spread = paired(estimates[-1]), paired(variances[-1])
        gain = spread * level.astype(np.float64) ** 2
        estimates.append((below + gain * sums) / (1 + gain))
        variances.append(spread / (1 + gain))
    final = estimates[-1]
    for estimate, spread in zip(estimates[-2::-1], variances[-2::-1], strict=True):
        rest = (final - paired(estimate)) / paired(spread)
        final = estimate + spread * np.repeat(rest, 2)[: estimate.size]
    return final
