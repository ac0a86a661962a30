"""Tails of Σ t_r·η_r in closed form, for few noise variables (REUSE §1, Intervals).

One variable: the exact discrete tail. Independent Laplace variables of K different scales a_i = |t_i|·b_i:

    P(|Z| ≥ t) = Σ_i e^{−t/a_i}·Π_{j≠i} a_i²/(a_i² − a_j²),

by partial fractions of the characteristic function Π 1/(1 + a_i²s²). Scales that are too close cancel, so
K ≤ 8 and gaps of 5 % are asked for, and digits are counted. Discrete noise is continuous noise moved by less
than one, so ‖t‖₁ is added.

Where scales are too close, the larger ones are enlarged until they are not, which only spreads the sum; two
that are close are taken to be equal, and (1 + t/2a)·e^{−t/a} is their tail.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from blowfishdb.core.accuracy import least_integer, tail
from blowfishdb.core.arrays import FloatArray

_MOST_TERMS = 8
_GAP = 1.05
_APART = 1.0501
_DUST = 1e-12
_DIGITS = 1e-15
_GUARD = 1e-9


def closed_half_width(weights: FloatArray, scales: FloatArray, beta: float) -> float | None:
    """α with P(|Σ t_r·η_r| > α) ≤ β for discrete Laplace η_r; None where there is no closed form."""
    spread = np.abs(weights) * scales
    used = spread > _DUST * spread.max(initial=0.0)
    if not used.any():
        return 0.0
    if np.count_nonzero(used) == 1:
        weight, scale = abs(float(weights[used][0])), float(scales[used][0])
        allowed = beta * (1 - _GUARD)
        return weight * (1 + _GUARD) * least_integer(lambda m: tail(m, scale) <= allowed)
    found = continuous_quantile(np.sort(spread[used]), beta)
    return None if found is None else found + float(np.abs(weights).sum())


def continuous_quantile(scales: FloatArray, beta: float) -> float | None:
    """t with P(|Z| ≥ t) = β for a sum of independent Laplace variables of increasing ``scales``."""
    if scales.size > _MOST_TERMS or (scales[1:] < _GAP * scales[:-1]).any():
        return None
    squares = scales**2
    gaps = squares[:, None] - squares
    np.fill_diagonal(gaps, 1.0)
    ratios = squares[:, None] / gaps
    np.fill_diagonal(ratios, 1.0)
    factors = ratios.prod(axis=1)
    if np.abs(factors).max() * _DIGITS > _GUARD * beta * 1e3:
        return None

    def excess(t: float) -> float:
        return float(factors @ np.exp(-t / scales)) - beta

    high = float(scales.sum()) * math.log(scales.size / beta)  # some |Z_i| ≥ a_i·ln(K/β), by a union bound
    return float(scipy.optimize.brentq(excess, 0.0, high, xtol=1e-12 * high)) * (1 + _GUARD)


def half_width(weights: FloatArray, scale: float, beta: float) -> float:
    """α with P(|Σ t_r·η_r| > α) ≤ β for discrete Laplace η_r of one scale, and at most eight of them."""
    closed = closed_half_width(weights, np.full(weights.size, scale), beta)
    if closed is not None:
        return closed
    return scale * unit_quantile(weights, beta) + float(np.abs(weights).sum())


def unit_quantile(weights: FloatArray, beta: float) -> float:
    """At least the (1−β)-quantile of |Σ t_r·X_r|, X_r continuous Laplace variables of scale one."""
    spread = np.sort(np.abs(weights))
    spread = spread[spread > _DUST * spread.max(initial=0.0)]
    if spread.size < 2:
        return float(spread.sum()) * math.log(1 / beta)
    if spread.size == 2 and spread[1] < _GAP * spread[0]:
        return float(spread[1]) * _two_alike(beta)
    apart = spread.copy()
    for place in range(1, apart.size):
        apart[place] = max(apart[place], _APART * apart[place - 1])
    quantile = continuous_quantile(apart, beta)
    return float(spread.sum()) * math.log(spread.size / beta) if quantile is None else quantile


def _two_alike(beta: float) -> float:
    """t with (1 + t/2)·e^{−t} = β."""
    return float(scipy.optimize.brentq(lambda t: math.log1p(t / 2) - t - math.log(beta), 0.0, 800.0)) * (
        1 + _GUARD
    )
