"""Intervals that survive choosing a question after looking at stored noise (REUSE §1, Selection).

Of 100 bars on empty data the highest lies outside its own 95 % interval in 92 % of runs. So what is bounded
here is a supremum over everything that could have been chosen (docs/proofs/reuse.md, Theorem 4):

* from one release, sup |t·η|/sd over all its ranges or boxes, or max − min of its prefix errors;
* for any question at all, √(ηᵀΣ⁻¹η) of every release, by Cauchy–Schwarz.

The choice may also fall on *which* release and *which* of the two bounds, so β is shared among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from typing import final

import numpy as np
from scipy.sparse import csr_array, kron

from blowfishdb.core.accuracy import least_integer
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.discrete_laplace import tail
from blowfishdb.core.reuse.combination import Combination, estimator_of
from blowfishdb.core.reuse.estimator import Estimator
from blowfishdb.core.reuse.line import LineEstimator
from blowfishdb.core.reuse.partition import Partition
from blowfishdb.core.reuse.rows import Intervals, Rows, Sparse, all_intervals, rows_of
from blowfishdb.core.reuse.simulated import quantile
from blowfishdb.core.reuse.stored import StoredRelease

MOST_MEMBERS = 10**5
RANGES_SHARE = 0.9
"""The share of β for ranges and boxes of one release; the rest is for all other questions."""


def selected_half_widths(combination: Combination, beta: float, among: int) -> FloatArray:
    """α for each question, valid for all of them at once and for whichever is picked among ``among`` releases."""
    widths = np.where(combination.determined, 0.0, np.inf)
    noisy = np.flatnonzero(combination.determined & ~combination.exact)
    if not noisy.size:
        return widths
    sources = combination.noisy_releases
    if len(sources) == 1 and _about_boxes(combination):
        family = _Family(combination.releases)
        found = _of_family(family, RANGES_SHARE * beta / among)
        if found is not None:
            constant, per_deviation = found
            widths[noisy] = constant * (np.sqrt(combination.variances[noisy]) if per_deviation else 1.0)
            return widths
    parts = np.sqrt(combination.estimator.parts[:, noisy])
    share = (1 - RANGES_SHARE) * beta / among
    widths[noisy] = sum(ellipsoid_quantile(combination.releases[j], share) * parts[j] for j in sources)
    return widths


# --- one release -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class _Family:
    """All ranges, or boxes, of one release and what is exact beside it; equal if measured alike."""

    releases: tuple[StoredRelease, ...] = field(compare=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", "|".join(release.fingerprint for release in self.releases))


def range_quantile(releases: Sequence[StoredRelease], beta: float) -> float | None:
    """c: the conservative (1−β)-quantile of sup |t·η|/sd over the boxes of releases with one noisy among them."""
    found = _of_family(_Family(tuple(releases)), beta)
    return found[0] if found is not None and found[1] else None


@lru_cache(maxsize=256)
def _of_family(family: _Family, beta: float) -> tuple[float, bool] | None:
    """A bound, and whether it is in standard deviations; None if there is no better than the ellipsoid's."""
    partition = Partition.common([release.axes for release in family.releases])
    if partition is None:
        return None
    members = math.prod(size * (size + 1) // 2 for size in partition.shape)
    if members <= MOST_MEMBERS:
        estimator = _members(family, partition)
        return None if estimator is None else _standardised(estimator, family, beta)
    return _extent(family, partition, beta)


def _members(family: _Family, partition: Partition) -> Estimator | None:
    if partition.line:
        return estimator_of(partition, family.releases, all_intervals(partition.count))
    volumes = math.prod(int((n * (n + 1) * (n + 2)) // 6) for n in partition.shape)
    if volumes > LIMIT:
        return None
    factors = [all_intervals(size).sparse() for size in partition.shape]
    return estimator_of(partition, family.releases, rows_of(csr_array(reduce(kron, factors))))


def _standardised(estimator: Estimator, family: _Family, beta: float) -> tuple[float, bool] | None:
    scales, deviations = estimator.noise.scales, np.sqrt(estimator.variances)
    dust = 1e-6 * scales[scales > 0].min(initial=1.0)
    at = np.flatnonzero(estimator.determined & (deviations > dust))

    def largest(noise: FloatArray) -> FloatArray:
        return np.asarray((np.abs(estimator.apply(noise)[:, at]) / deviations[at]).max(axis=1, initial=0.0))

    width = max(scales.size, estimator.count)
    found = quantile(largest, scales, width, beta, f"any|ranges|{family.name}")
    return None if found is None else (float(found), True)


def _extent(family: _Family, partition: Partition, beta: float) -> tuple[float, bool] | None:
    """max − min of prefix errors: no range is further out, whatever its deviation."""
    cuts = np.arange(partition.count + 1)
    shape = estimator_of(partition, family.releases, Intervals(partition.count, cuts[:1], cuts[:1]))
    if not isinstance(shape, LineEstimator):
        return None
    labels, first, part = np.unique(shape.component, return_index=True, return_inverse=True)
    order = np.argsort(part, kind="stable")
    begins = np.searchsorted(part[order], np.arange(labels.size))
    prefixes = Intervals(partition.count, first[part], cuts)
    estimator = LineEstimator(shape.rows, shape.noise, prefixes)

    def extent(noise: FloatArray) -> FloatArray:
        errors = estimator.apply(noise)[:, order]
        highest, lowest = (
            np.maximum.reduceat(errors, begins, axis=1),
            np.minimum.reduceat(errors, begins, axis=1),
        )
        return np.asarray((highest - lowest).max(axis=1))

    scales = estimator.noise.scales
    found = quantile(extent, scales, max(scales.size, cuts.size), beta, f"any|extent|{family.name}")
    return None if found is None else (float(found), False)


# --- any question ----------------------------------------------------------------------------------------


def ellipsoid_quantile(release: StoredRelease, beta: float) -> float:
    """r: the conservative (1−β)-quantile of √(ηᵀΣ⁻¹η) over the noisy rows of a release."""
    distinct = tuple(float(scale) for scale in release.distinct)
    times = np.bincount(release.which, minlength=len(distinct))
    return _ellipsoid(
        tuple((b, int(n)) for b, n in sorted(zip(distinct, times, strict=True)) if b and n), beta
    )


@lru_cache(maxsize=256)
def _ellipsoid(scales: tuple[tuple[float, int], ...], beta: float) -> float:
    from blowfishdb.core.discrete_laplace import variance

    each = np.repeat([b for b, _ in scales], [n for _, n in scales])
    inverse = 1 / np.asarray(variance(each))
    found = quantile(lambda z: np.sqrt(z**2 @ inverse), each, each.size, beta, f"any|ellipsoid|{scales}")
    if found is not None:
        return float(found)
    share = beta / each.size  # all at once, by a union bound
    furthest = [(least_integer(lambda m, b=b: tail(m, b) <= share), b, n) for b, n in scales]  # type: ignore[misc]
    return math.sqrt(sum(n * m * m / variance(b) for m, b, n in furthest))


def _about_boxes(combination: Combination) -> bool:
    """Whether every question counts one range, or one box, of the common boxes."""
    if isinstance(combination.estimator, LineEstimator):
        return True
    asked = combination.partition.matrix(combination.questions, combination.axes)
    return asked is not None and _rectangular(rows_of(asked), combination)


def _rectangular(rows: Rows, combination: Combination) -> bool:
    sparse = Sparse.of(rows.sparse())
    whole = not isinstance(combination.questions, Sparse) or combination.questions.denominator == 1
    steps = np.diff(sparse.pointers)
    if not whole or (sparse.entries != 1).any() or (steps == 0).any():
        return False
    volume = np.ones_like(steps)
    for along in np.unravel_index(sparse.columns, combination.partition.shape):
        at = sparse.pointers[:-1]
        volume *= np.maximum.reduceat(along, at) - np.minimum.reduceat(along, at) + 1
    return bool((volume == steps).all())
