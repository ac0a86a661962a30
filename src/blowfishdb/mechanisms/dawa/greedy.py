"""Stage two's budget: how much of ε₂ every node of a binary tree over the buckets is given ([D14] §4.4).

Bottom up, a node takes the share λ of what its descendants have, chosen to minimise tr((μ·Ŵ_qᵀŴ_q +
(1−μ)·[diagonal blocks])·(Y_qᵀD²Y_q)⁻¹), μ = 2^(−depth/2) ([D14] eq. 9). With B the block-diagonal matrix of
the children, the new matrix is (1−λ)²B + λ²·11ᵀ, so three numbers decide everything: σ = 1ᵀB⁻¹1, tr(M·B⁻¹)
and vᵀMv for v = B⁻¹1; and v on a child is a multiple of the child's own. O((m + k) log k) in all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.mechanisms.dawa.coverage import Coverage, paired

_MOST = 0.98  # a node never takes everything: least squares needs its descendants
_GRID = 17
_REFINEMENTS = 14
_GOLDEN = (5**0.5 - 1) / 2


def greedy_scaling(coverage: Coverage, buckets: int) -> list[FloatArray]:
    """The scale of every node, level by level from the buckets to the root; they sum to 1 on every path."""
    depth = (buckets - 1).bit_length()
    squares = coverage.leaves()
    traces = squares.copy()
    factors, masses = np.ones(buckets), np.ones(buckets)
    shares: list[FloatArray] = []
    for level in range(1, depth + 1):
        own = paired(factors**2 * squares)
        squares = coverage.lift(factors, masses)
        masses, traces = paired(masses), paired(traces)
        decay = 2.0 ** (-(depth - level) / 2)
        share = best_shares(traces, decay * squares + (1 - decay) * own, masses)
        ratio = share / (1 - share)
        factors = (1 + ratio) ** 2 / (1 + ratio**2 * masses)
        traces = (1 + ratio) ** 2 * (traces - ratio**2 * squares / (1 + ratio**2 * masses))
        masses = factors * masses
        shares.append(share)
    return _scales(shares, buckets)


def best_shares(traces: FloatArray, quadratic: FloatArray, masses: FloatArray) -> FloatArray:
    """The λ of least (1−λ)⁻²·(tr − ρ·vᵀMv/(1+ρσ)), ρ = (λ/(1−λ))²: a grid, then golden sections."""
    return np.asarray(_kernel()(traces, quadratic, masses))


def _objective(share: float, trace: float, quadratic: float, mass: float) -> float:
    ratio = share / (1.0 - share)
    return (1.0 + ratio) ** 2 * (trace - ratio**2 * quadratic / (1.0 + ratio**2 * mass))


def _best_shares(traces: FloatArray, quadratic: FloatArray, masses: FloatArray) -> FloatArray:
    found = np.zeros(traces.size)
    step = _MOST / (_GRID - 1)
    for node in range(traces.size):
        trace, square, mass = traces[node], quadratic[node], masses[node]
        best, least = 0.0, trace
        for point in range(1, _GRID):
            value = _objective(point * step, trace, square, mass)
            if value < least:
                best, least = point * step, value
        low, high = max(best - step, 0.0), min(best + step, _MOST)
        for _ in range(_REFINEMENTS):
            one, two = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            if _objective(one, trace, square, mass) < _objective(two, trace, square, mass):
                high = two
            else:
                low = one
        middle = (low + high) / 2.0
        found[node] = middle if _objective(middle, trace, square, mass) < least else best
    return found


@cache
def _kernel() -> Callable[..., Any]:
    """The search of all nodes, compiled where numba is installed; the same code runs, slowly, without it."""
    try:
        from numba import njit
    except ImportError:
        return _best_shares
    globals()["_objective"] = njit(cache=True)(_objective)
    return njit(cache=True)(_best_shares)


def _scales(shares: list[FloatArray], buckets: int) -> list[FloatArray]:
    """From the root down: a node's share of what its ancestors have left."""
    left = np.ones(1)
    scales: list[FloatArray] = []
    for below, share in zip(
        [buckets, *(share.size for share in shares)][::-1][1:], shares[::-1], strict=True
    ):
        scales.append(left * share)
        left = np.repeat(left * (1 - share), 2)[:below]
    return [*scales, left][::-1]
