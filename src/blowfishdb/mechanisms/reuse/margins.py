"""Margins: how far the truth may be from an answer that follows from stored releases, and who owns it.

Intervals for questions that were fixed before any release they use: the law of T·η itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import Accuracy, check_beta, failure, least_integer
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.laplace_sums import closed_half_width
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.linear.law import discretisation, quantile, quantile_bound
from blowfishdb.mechanisms.reuse.combination import Combination, combine
from blowfishdb.mechanisms.reuse.selected import selected_floor, selected_half_widths
from blowfishdb.mechanisms.reuse.stored import Rows, StoredRelease, rows_of

_ROUNDING = 1e-9
_WRITTEN_OUT = 10**7
_ONE_BY_ONE = 2_000
_ETA = 0.05


def planned_half_widths(combination: Combination, beta: float, *, simultaneous: bool) -> FloatArray:
    """α for each question by itself, or one α for all at once; 0 where an answer is exact."""
    widths = np.zeros(combination.count)
    widths[~combination.determined] = np.inf
    noisy = np.flatnonzero(combination.determined & ~combination.exact)
    if noisy.size:
        together = simultaneous and noisy.size > 1
        widths[noisy] = _together(combination, noisy, beta) if together else _each(combination, noisy, beta)
    return widths


def _together(combination: Combination, noisy: IntArray, beta: float) -> float:
    estimator, scales = combination.estimator, combination.estimator.noise.scales
    weights = _weights(combination, noisy)
    if weights is not None and _one_to_one(weights):
        single = scales[np.abs(weights).argmax(axis=1)]
        allowed = beta * (1 - _ROUNDING)
        return least_integer(lambda m: failure(single, m, Epsilon(1), simultaneous=True) <= allowed)
    found = quantile(
        lambda noise: np.abs(estimator.apply(noise)[:, noisy]).max(axis=1),
        scales,
        max(scales.size, estimator.count),
        beta,
        f"planned|together|{combination.fingerprint}",
    )
    return float(_bounds(combination, noisy, beta / noisy.size).max() if found is None else found)


def _each(combination: Combination, noisy: IntArray, beta: float) -> FloatArray:
    widths = np.full(noisy.size, np.nan)
    weights = _weights(combination, noisy)
    if weights is not None and noisy.size <= _ONE_BY_ONE:
        scales = combination.estimator.noise.scales
        closed = [closed_half_width(weight, scales, beta) for weight in weights]
        widths[:] = [math.nan if width is None else width for width in closed]
    rest = np.flatnonzero(np.isnan(widths))
    if rest.size:
        widths[rest] = _simulated(combination, noisy[rest], beta)
    return widths


def _simulated(combination: Combination, questions: IntArray, beta: float) -> FloatArray:
    estimator, scales = combination.estimator, combination.estimator.noise.scales
    found = quantile(
        lambda noise: np.abs(estimator.apply(noise)[:, questions]),
        scales,
        max(scales.size, 4 * estimator.count),
        beta,
        f"planned|each|{combination.fingerprint}",
    )
    return _bounds(combination, questions, beta) if found is None else found


def _bounds(combination: Combination, questions: IntArray, beta: float) -> FloatArray:
    """Bounds that need no draws (:mod:`…linear.law`), for a β too small to be seen in any."""
    scales = combination.estimator.noise.scales
    spread, rough = np.zeros(questions.size), np.zeros(questions.size)
    step = max(1, _WRITTEN_OUT // scales.size)
    for begin in range(0, questions.size, step):
        some = slice(begin, begin + step)
        squares = combination.estimator.weights(questions[some]) ** 2
        spread[some], rough[some] = 2 * squares @ scales**2, squares.sum(axis=1)
    beyond = quantile_bound(beta * (1 - _ETA), 1)
    grain = np.array([discretisation(float(r), _ETA) for r in rough])
    return np.asarray(beyond * np.sqrt(spread) + grain)


def _weights(combination: Combination, questions: IntArray) -> FloatArray | None:
    room = questions.size * combination.estimator.noise.scales.size
    return combination.estimator.weights(questions) if room <= _WRITTEN_OUT else None


def _one_to_one(weights: FloatArray) -> bool:
    """Whether every answer is one stored number and no two are the same."""
    at = np.abs(weights).argmax(axis=1)
    unit = np.zeros_like(weights)
    unit[np.arange(at.size), at] = 1.0
    return bool(np.unique(at).size == at.size and np.abs(np.abs(weights) - unit).max() < _ROUNDING)


MOST_ROWS = 10**9
"""No dataset is assumed to be larger: what rounding leaves of W − T·A is counted that often."""


class Label(Enum):
    """Why an interval may be trusted. Set by the system, never by the analyst."""

    PLANNED = "planned"
    """The question was registered before any release that it uses was settled."""
    ANY = "any"
    """It may have been chosen after looking at stored answers."""


def margin(
    combination: Combination,
    beta: float,
    label: Label = Label.ANY,
    *,
    simultaneous: bool = True,
    among: int | None = None,
) -> FloatArray:
    """The half-width of every answer's interval; infinite where an answer is not determined.

    ``among``: how many noisy releases the question may have been chosen by; at least those it uses.
    """
    check_beta(beta)
    if label is Label.PLANNED:
        widths = planned_half_widths(combination, beta, simultaneous=simultaneous)
    else:
        seen = max(len(combination.noisy_releases), among or 1, 1)
        widths = selected_half_widths(combination, beta, seen)
    return widths + combination.estimator.residuals * MOST_ROWS


@final
@dataclass(frozen=True, eq=False)
class Offer:
    """An answer for nothing: from which releases, and how accurate it is."""

    combination: Combination
    label: Label
    alpha: float
    margins: FloatArray

    def meets(self, accuracy: Accuracy) -> bool:
        """Whether this is as accurate as was asked; the β is the one it was made for."""
        return self.alpha <= accuracy.alpha


def cheapest(
    releases: Sequence[StoredRelease],
    axes: Sequence[Axis],
    workload: Workload | csr_array | Rows,
    accuracy: Accuracy,
    label: Label = Label.ANY,
) -> Offer | None:
    """The most accurate answer that follows from ``releases``; None if none does. No value is looked at."""
    return candidates(releases, axes, workload, accuracy, label).best


def candidates(
    releases: Sequence[StoredRelease],
    axes: Sequence[Axis],
    workload: Workload | csr_array | Rows,
    accuracy: Accuracy,
    label: Label = Label.ANY,
    *,
    known: int = 0,
    public: Collection[int] | None = None,
) -> Candidates:
    """What could answer a question, before any interval is worked out.

    A question that was planned uses every release. One that was chosen later pays for each release that it
    uses, so all of them together compete with the best one alone (and what is exact on its columns).

    ``public``: the numbers of the releases whose exact rows come along with one alone, where ``releases`` are
    only some of those known; no question may have a say in these. All, if None.
    """
    questions, noisy = rows_of(workload), [release for release in releases if not release.exact.all()]
    everything = combine(releases, axes, questions)
    among = max(1, len(noisy), known)
    combined = [everything]
    if label is Label.ANY and noisy:
        exact = [release for release in releases if public is None or release.number in public]
        fixed = public is None or len(exact) == len(public)
        alone = [_with_exact(release, exact) for release in noisy]
        among += len(noisy) == 1 and len(alone[0]) < len(releases)  # then both sources have one noisy release
        combined = [
            _source(_best(combine(sources, axes, questions) for sources in alone), fixed=fixed),
            _source(everything, fixed=len(releases) >= known),
        ]
    usable = tuple(each for each in combined if each is not None and each.determined.all())
    return Candidates(usable, accuracy, label, among)


def _source(combination: Combination | None, *, fixed: bool) -> Combination | None:
    """What a question is answered from; if that was picked for the question, it is not complete."""
    if combination is None or fixed:
        return combination
    return replace(combination, complete=False)


@final
@dataclass(frozen=True, eq=False)
class Candidates:
    """Combinations that determine a question; the first is the one that usually is the most accurate."""

    combinations: tuple[Combination, ...]
    accuracy: Accuracy
    label: Label
    among: int

    @cached_property
    def floor(self) -> float:
        """No interval is expected to be shorter: who needs a shorter one need not have any worked out."""
        return min(map(self._floor, self.combinations), default=math.inf)

    def _floor(self, combination: Combination) -> float:
        if self.label is Label.PLANNED:
            return 0.0
        return selected_floor(combination, self.accuracy.beta, self.among)

    @cached_property
    def best(self) -> Offer | None:
        """The one with the shortest intervals; one that is not expected to be it is left aside."""
        best: Offer | None = None
        for combination in self.combinations:
            if best is None or self._floor(combination) < best.alpha:
                offer = _offer(combination, self.accuracy, self.label, self.among)
                best = offer if best is None or offer.alpha < best.alpha else best
        return best


def _with_exact(release: StoredRelease, exact: Sequence[StoredRelease]) -> list[StoredRelease]:
    """A release and what is exact on its columns: a set that no question has a say in."""
    others = (other.exact_part() for other in exact if other is not release)
    return [release, *(part for part in others if part is not None and part.columns <= release.columns)]


def _best(candidates: Iterable[Combination | None]) -> Combination | None:
    """The one with the least largest variance: chosen by scales."""
    usable = [found for found in candidates if found is not None and found.determined.all()]
    return min(usable, key=lambda found: float(found.variances.max()), default=None)


def _offer(combination: Combination, accuracy: Accuracy, label: Label, among: int) -> Offer:
    widths = margin(combination, accuracy.beta, label, simultaneous=accuracy.simultaneous, among=among)
    return Offer(combination, label, float(np.max(widths, initial=0.0)), widths)
