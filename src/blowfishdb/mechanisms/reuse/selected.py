"""Intervals that survive choosing a question after looking at stored noise (REUSE §1, Selection).

Of 100 bars on empty data the highest lies outside its own 95 % interval in 92 % of runs. So what is bounded
here is a supremum over everything that could have been chosen (docs/proofs/reuse.md, Theorem 4):

* for ranges and boxes, sup |t·η|/sd over all of them: simulated up to 10⁵ members; beyond, a union bound on
  tails, and on a line also max − min of prefix errors, whichever is less;
* for any question at all, √(ηᵀΣ⁻¹η) of every release, by Cauchy–Schwarz.

The choice may also fall on *which* release and *which* of these bounds, so β is shared among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache, reduce
from statistics import NormalDist
from typing import final

import numpy as np
from scipy.sparse import csr_array, kron

from blowfishdb.core.accuracy import least_integer, tail, variance
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.mechanisms.linear.estimators import ReleaseEstimator
from blowfishdb.mechanisms.linear.law import Statistic, discretisation, quantile, quantile_bound
from blowfishdb.mechanisms.reuse.combination import Combination, Partition, estimate, noise_of
from blowfishdb.mechanisms.reuse.line import LineEstimator
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, Sparse, StoredRelease, all_intervals, rows_of

MOST_MEMBERS = 10**5
MOST_BOX_MEMBERS = 4_000  # a draw of boxes costs far more than one of ranges; beyond, a bound does
RANGES_SHARE = 0.9
"""The share of β for ranges and boxes; the rest is for all other questions."""
_ETA = 0.05


def selected_half_widths(combination: Combination, beta: float, among: int) -> FloatArray:
    """α for each question: for all at once, and whichever was picked by looking at ``among`` releases."""
    widths = np.where(combination.determined, 0.0, np.inf)
    noisy = np.flatnonzero(combination.determined & ~combination.exact)
    if not noisy.size:
        return widths
    sources = combination.noisy_releases
    if _by_family(combination, among):
        share = RANGES_SHARE * beta * _part(len(sources), among)
        per_deviation, absolute = _of_family(_Family(combination.releases), share)
        widths[noisy] = np.minimum(per_deviation * np.sqrt(combination.variances[noisy]), absolute)
        return widths
    parts = np.sqrt(combination.estimator.parts[:, noisy])
    share = (1 - RANGES_SHARE) * beta / among
    widths[noisy] = sum(ellipsoid_quantile(combination.releases[j], share) * parts[j] for j in sources)
    return widths


def selected_floor(combination: Combination, beta: float, among: int) -> float:
    """What the largest α is hardly ever below, without a single draw.

    As if all errors were normal, or Laplace where that is less, and one less since noise is whole numbers. It
    decides only whether α is worth working out, and by scales.
    """
    noisy = combination.determined & ~combination.exact
    if not noisy.any():
        return 0.0
    sources = combination.noisy_releases
    if _by_family(combination, among):
        share = RANGES_SHARE * beta * _part(len(sources), among)
        return max(0.0, _deviations(share) * math.sqrt(combination.variances[noisy].max()) - 1)
    share = (1 - RANGES_SHARE) * beta / among
    parts = np.sqrt(combination.estimator.parts[:, noisy])
    rows = [np.count_nonzero(release.scales) for release in combination.releases]
    radii = {j: max(_deviations(share), 0.9 * math.sqrt(rows[j])) for j in sources}
    return max(0.0, float(np.max(sum(radii[j] * parts[j] for j in sources))) - 1)


def _deviations(share: float) -> float:
    """How many deviations a normal or a Laplace error exceeds with this probability, whichever is less."""
    return min(-NormalDist().inv_cdf(share / 2), -math.log(share) / math.sqrt(2))


def _by_family(combination: Combination, among: int) -> bool:
    """Whether every question is a member of a family that no question had a say in."""
    alone_or_all = len(combination.noisy_releases) in (1, among)
    return combination.complete and alone_or_all and _about_boxes(combination)


def _part(used: int, among: int) -> float:
    """Ranges come from one release alone or from all together: half of the failures each, if they differ."""
    if among == 1:
        return 1.0
    return 0.5 if used == among else 0.5 / among


# --- ranges and boxes ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class _Family:
    """All ranges, or boxes, that releases tell apart; equal if they were measured alike."""

    releases: tuple[StoredRelease, ...] = field(compare=False)
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", "|".join(release.fingerprint for release in self.releases))


@lru_cache(maxsize=256)
def _of_family(family: _Family, beta: float) -> tuple[float, float]:
    """(c, d): with probability 1−β every range is within min(c·sd, d)."""
    partition = Partition.common([release.axes for release in family.releases])
    assert partition is not None  # it is no finer than that of a combination
    members = math.prod(size * (size + 1) // 2 for size in partition.shape)
    scales = noise_of(family.releases).scales
    if members <= (MOST_MEMBERS if partition.line else MOST_BOX_MEMBERS):
        found = _simulated(family, partition, members, beta)
        return (_union_bound(scales, members, beta) if found is None else found), math.inf
    extent = _extent(family, partition, beta / 2)
    if extent is None:
        return _union_bound(scales, members, beta), math.inf
    return _union_bound(scales, members, beta / 2), extent


def _union_bound(scales: FloatArray, members: int, beta: float) -> float:
    """c by the tail of one sum of Laplace variables, taken for every member (:mod:`…linear.law`)."""
    noisy = np.unique(scales[scales > 0])
    variances = np.asarray(variance(noisy))
    rougher = math.sqrt(float((2 * noisy**2 / variances).max()))
    grain = math.sqrt(discretisation(1.0, _ETA) ** 2 / float(variances.min()))
    return rougher * quantile_bound(beta * (1 - _ETA) / members, 1) + grain


def _simulated(family: _Family, partition: Partition, members: int, beta: float) -> float | None:
    volumes = math.prod(n * (n + 1) * (n + 2) // 6 for n in partition.shape)
    if partition.line:
        estimator = estimate(partition, family.releases, all_intervals(partition.count))
    elif volumes <= LIMIT:
        factors = [all_intervals(size).sparse() for size in partition.shape]
        boxes = reduce(lambda a, b: csr_array(kron(a, b)), factors)
        estimator = estimate(partition, family.releases, rows_of(boxes))
    else:
        return None
    if estimator is None:
        return None
    scales, deviations = estimator.noise.scales, np.sqrt(estimator.variances)
    dust = 1e-6 * math.sqrt(float(estimator.noise.variances[estimator.noise.noisy].min()))
    known = estimator.determined & (deviations > dust)
    inverse = np.zeros(members)
    inverse[known] = 1 / deviations[known]
    largest = (
        _LargestRange(estimator, inverse)
        if isinstance(estimator, LineEstimator)
        else _largest(estimator, inverse)
    )
    found = quantile(largest, scales, members // 4 + scales.size, beta, f"any|ranges|{family.name}")
    return None if found is None else float(found)


def _largest(estimator: ReleaseEstimator, inverse: FloatArray) -> Statistic:
    return lambda noise: np.asarray((np.abs(estimator.apply(noise)) * inverse).max(axis=1))


@final
class _LargestRange:
    """sup |φ_b − φ_a|/sd over all ranges from the error φ of every cut point, one length at a time."""

    def __init__(self, estimator: LineEstimator, inverse: FloatArray) -> None:
        cuts, asked = estimator.rows.size + 1, estimator.questions
        table = np.zeros((cuts, cuts))
        table[asked.stops - asked.starts, asked.starts] = inverse
        self._by_length = table
        self._errors = cut_errors(estimator)

    def __call__(self, noise: FloatArray) -> FloatArray:
        found = np.zeros(noise.shape[0])
        for begin in range(0, noise.shape[0], 128):  # as much as stays in the cache
            some = slice(begin, begin + 128)
            errors = np.ascontiguousarray(self._errors.apply(noise[some]).T)
            for length in range(1, errors.shape[0]):
                apart = np.abs(errors[length:] - errors[:-length])
                apart *= self._by_length[length, : errors.shape[0] - length, None]
                np.maximum(found[some], apart.max(axis=0), out=found[some])
        return found


def cut_errors(estimator: LineEstimator) -> LineEstimator:
    """The same rows, asked for every cut point's height above the first one that it is connected with."""
    first, part = np.unique(estimator.component, return_index=True, return_inverse=True)[1:]
    heights = Intervals(estimator.rows.size, first[part], np.arange(part.size))
    return LineEstimator(estimator.rows, estimator.noise, heights)


def _extent(family: _Family, partition: Partition, beta: float) -> float | None:
    """max − min of prefix errors: no range is further out, whatever its deviation."""
    nothing = np.zeros(1, dtype=np.int64)
    shape = estimate(partition, family.releases, Intervals(partition.count, nothing, nothing))
    if not isinstance(shape, LineEstimator):
        return None
    heights = cut_errors(shape)
    order = np.argsort(shape.component, kind="stable")
    begins = np.flatnonzero(np.diff(shape.component[order], prepend=-1))

    def extent(noise: FloatArray) -> FloatArray:
        errors = heights.apply(noise)[:, order]
        most, least = (of.reduceat(errors, begins, axis=1) for of in (np.maximum, np.minimum))
        return np.asarray((most - least).max(axis=1))

    scales = shape.noise.scales
    found = quantile(extent, scales, 4 * scales.size + order.size, beta, f"any|extent|{family.name}")
    return None if found is None else float(found)


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
    each = np.repeat([b for b, _ in scales], [n for _, n in scales])
    inverse = 1 / np.asarray(variance(each))
    found = quantile(lambda z: np.sqrt(z**2 @ inverse), each, each.size, beta, f"any|ellipsoid|{scales}")
    if found is not None:
        return float(found)
    share = beta / each.size  # all at once, by a union bound
    return math.sqrt(sum(n * _furthest(b, share) ** 2 / variance(b) for b, n in scales))


def _furthest(scale: float, beta: float) -> int:
    return least_integer(lambda m: tail(m, scale) <= beta)


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
