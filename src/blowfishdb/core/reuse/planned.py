"""Intervals for questions that were fixed before any release they use: the law of T·η itself."""

from __future__ import annotations

import math

import numpy as np

from blowfishdb.core.accuracy import failure, least_integer
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.laplace_sums import discretisation, quantile_bound
from blowfishdb.core.reuse.combination import Combination
from blowfishdb.core.reuse.simulated import quantile
from blowfishdb.core.reuse.tails import closed_half_width

_WRITTEN_OUT = 10**7
_ONE_BY_ONE = 2_000
_ETA = 0.05
_ROUNDING = 1e-9


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
    """Bounds that need no draws (:mod:`…core.laplace_sums`), for a β too small to be seen in any."""
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
