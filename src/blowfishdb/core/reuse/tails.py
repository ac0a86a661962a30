"""Tails of Σ t_r·η_r in closed form, for few noise variables (REUSE §1, Intervals).

One variable: the exact discrete tail. Independent Laplace variables of K different scales a_i = |t_i|·b_i:

    P(|Z| ≥ t) = Σ_i e^{−t/a_i}·Π_{j≠i} a_i²/(a_i² − a_j²),

by partial fractions of the characteristic function Π 1/(1 + a_i²s²). Scales that are too close cancel, so
K ≤ 8 and gaps of 5 % are asked for, and digits are counted. Discrete noise is continuous noise moved by less
than one, so ‖t‖₁ is added.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from blowfishdb.core.accuracy import least_integer
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.discrete_laplace import tail

_MOST = 8
_GAP = 1.05
_DUST = 1e-12
_DIGITS = 1e-15
_ROUNDING = 1e-9


def closed_half_width(weights: FloatArray, scales: FloatArray, beta: float) -> float | None:
    """α with P(|Σ t_r·η_r| > α) ≤ β for discrete Laplace η_r; None where there is no closed form."""
    spread = np.abs(weights) * scales
    used = spread > _DUST * spread.max(initial=0.0)
    if not used.any():
        return 0.0
    if np.count_nonzero(used) == 1:
        weight, scale = abs(float(weights[used][0])), float(scales[used][0])
        allowed = beta * (1 - _ROUNDING)
        return weight * (1 + _ROUNDING) * least_integer(lambda m: tail(m, scale) <= allowed)
    found = continuous_quantile(np.sort(spread[used]), beta)
    return None if found is None else found + float(np.abs(weights).sum())


def continuous_quantile(scales: FloatArray, beta: float) -> float | None:
    """t with P(|Z| ≥ t) = β for a sum of independent Laplace variables of increasing ``scales``."""
    if scales.size > _MOST or (scales[1:] < _GAP * scales[:-1]).any():
        return None
    squares = scales**2
    gaps = squares[:, None] - squares
    np.fill_diagonal(gaps, 1.0)
    ratios = squares[:, None] / gaps
    np.fill_diagonal(ratios, 1.0)
    factors = ratios.prod(axis=1)
    if np.abs(factors).max() * _DIGITS > _ROUNDING * beta * 1e3:
        return None

    def excess(t: float) -> float:
        return float(factors @ np.exp(-t / scales)) - beta

    high = float(scales.sum()) * math.log(scales.size / beta)  # some |Z_i| ≥ a_i·ln(K/β), by a union bound
    return float(brentq(excess, 0.0, high, xtol=1e-12 * high)) * (1 + _ROUNDING)
