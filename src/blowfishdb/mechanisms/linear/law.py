"""Tails of sums of independent Laplace variables, from two numbers about the sum.

Let X = Σ a_r·Z_r have variance σ², no term contributing more than σ²/m. A Laplace variable is a normal one
of exponential variance, so X is normal of variance V = Σ σ_r²·E_r and P(|X| > xσ) = E f(V/σ²) with
f(v) = 2Φ(−x/√v). f increases, is convex up to v₀ = x²/3 and concave beyond; f̃, which goes on from v₀ along
the tangent, is convex, increasing and at least f. Weights of at most 1/m are majorised by m weights 1/m, and
E f̃(Σ w_r·E_r) is Schur-convex (Marshall, Olkin, *Inequalities*, 12.G), so

    P(|X| > xσ) ≤ E f̃(G),     G the mean of m standard exponentials.

m = 1 needs nothing but the variance and costs 1.13 times a normal quantile at 5 %; large m tends to the
normal tail times a few per cent. A smaller variance only lowers the bound.

**Discrete noise.** ⌊bE⌋ and the rest bE − ⌊bE⌋ of an exponential are independent, so a continuous Laplace
variable is a discrete one plus an independent symmetric D ∈ (−1, 1). With s = 1/b and h(x) = ln(sinh x/x),
whose second derivative is at most ⅓, ln E e^{λD} = h((s+λ)/2) + h((s−λ)/2) − 2h(s/2) ≤ λ²/12: D is
sub-Gaussian of variance 1/6. If discrete noise z puts some answer T_i·z beyond α, continuous noise z + D
keeps it beyond α − t unless T_i·D goes back by t, which has probability at most η = exp(−3t²/‖T_i‖²). Hence

    P(some |error| > α, discrete) ≤ P(some |error| > α − t, continuous) / (1 − η).

Conservative quantiles by simulation, with the discrete noise as it was drawn (THEORY §5).

The r-th smallest of N draws is at least the (1−β)-quantile but for γ, and γ is taken out of β, so what is
promised holds unconditionally. Streams are keyed by a digest of what was measured: quotes are reproducible,
and no stored value can move one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

import numpy as np
import scipy  # its parts when they are needed: some take a quarter of a second to load
from numpy.typing import NDArray

from blowfishdb.core.accuracy import order_statistic
from blowfishdb.core.arrays import FloatArray

Number = TypeVar("Number", bound=np.generic)

_GRID = 2_000
_ROUNDING = 1e-6


def tail_bound(x: float, terms: int) -> float:
    """An upper bound on P(|X| > x·σ) where no term has more than 1/``terms`` of the variance."""
    turn = x * x / 3
    grid = turn * np.arange(1, _GRID + 1) / _GRID
    value = 2 * scipy.special.ndtr(-x / np.sqrt(grid))
    beyond = scipy.special.gammaincc(terms, terms * np.concatenate(([0.0], grid)))
    below = float(value @ -np.diff(beyond))  # an upper sum: f increases
    slope = x * math.exp(-1.5) / math.sqrt(2 * math.pi) / turn**1.5
    excess = float(scipy.special.gammaincc(terms + 1, terms * turn) - turn * beyond[-1])
    return float(below + value[-1] * beyond[-1] + slope * excess)


@lru_cache(maxsize=4096)
def quantile_bound(probability: float, terms: int) -> float:
    """x such that P(|X| > x·σ) ≤ ``probability``."""
    target = math.log(probability)
    high = 2.0
    while math.log(tail_bound(high, terms)) > target:
        high *= 1.5
    found = scipy.optimize.brentq(lambda x: math.log(tail_bound(x, terms)) - target, 1e-3, high, xtol=1e-7)
    return float(found) * (1 + _ROUNDING)


def discretisation(roughness: float, eta: float) -> float:
    """t such that discrete noise beyond α is continuous noise beyond α − t, but for a share η of cases.

    ``roughness`` is the largest ‖T_i‖².
    """
    return math.sqrt(roughness * math.log(1 / eta) / 3)


def conservative(ordered: FloatArray, beta: float, gamma: float) -> float:
    """A value that is at least the (1−β)-quantile but for γ; of each column, the largest."""
    columns = 1 if ordered.ndim == 1 else ordered.shape[1]
    rank = order_statistic(ordered.shape[0], beta, gamma / columns)
    return math.inf if rank is None else float(ordered[rank - 1].max())


def draws_to_see(beta: float, gamma: float) -> int:
    """How many draws show a failure probability of β but for γ, and some more."""
    return math.ceil(1.2 * math.log(gamma) / math.log1p(-beta))


Statistic = Callable[[FloatArray], FloatArray]

SAMPLES = 10_000  # more would lower ε by about one per cent
GAMMA = 0.01  # the share of β that covers the simulation's own uncertainty

_REUSED_DRAWS = 4 * 10**7
_REUSED_PATIENCE = 5
_REUSED_CHUNK = 2 * 10**6


def quantile(
    statistic: Statistic, scales: FloatArray, width: int, beta: float, key: str
) -> FloatArray | None:
    """A bound on the (1−β)-quantile of ``statistic`` of a batch of noise; None if β is too small to be seen.

    ``width`` is how many numbers one draw takes. A statistic with several columns has one bound for each.
    """
    gamma, allowed = GAMMA * beta, beta * (1 - GAMMA)
    needed = draws_to_see(allowed, gamma)
    if needed * width > _REUSED_PATIENCE * _REUSED_DRAWS:
        return None
    samples = max(needed, min(SAMPLES, _REUSED_DRAWS // width))
    rank = order_statistic(samples, allowed, gamma)
    if rank is None:
        return None
    stream, step = _stream(key), max(1, _REUSED_CHUNK // width)
    drawn = [
        statistic(discrete(stream, min(step, samples - begin), scales)) for begin in range(0, samples, step)
    ]
    return np.asarray(np.partition(np.concatenate(drawn), rank - 1, axis=0)[rank - 1])


def discrete(stream: np.random.Generator, samples: int, scales: FloatArray) -> FloatArray:
    """Discrete Laplace noise for planning: the difference of two geometric variables ⌊b·E⌋."""
    noise = np.empty((samples, scales.size))
    for some in _pieces(noise):
        _exponential(stream, scales, some)
        np.floor(some, out=some)
    for some in _pieces(noise):
        second = np.empty_like(some)
        _exponential(stream, scales, second)
        np.floor(second, out=second)
        np.subtract(some, second, out=some)
    return noise


def continuous(stream: np.random.Generator, samples: int, scales: FloatArray) -> FloatArray:
    """Laplace noise for planning: an exponential variable with a sign."""
    noise = np.empty((samples, scales.size))
    signs = stream.integers(0, 2, size=noise.shape, dtype=np.int8)
    signs += signs - np.int8(1)
    for some, their_signs in zip(_pieces(noise), _pieces(signs), strict=True):
        _exponential(stream, scales, some)
        np.multiply(some, their_signs, out=some)
    return noise


_PIECE = 2**14  # numbers that stay near the processor while they are worked on


def _pieces(rows: NDArray[Number]) -> Iterator[NDArray[Number]]:
    """A few rows at a time, in order; what is drawn for them is what would be drawn for all at once."""
    step = max(1, _PIECE // max(1, rows.shape[1]))
    return (rows[begin : begin + step] for begin in range(0, rows.shape[0], step))


def _exponential(stream: np.random.Generator, scales: FloatArray, out: FloatArray) -> None:
    stream.standard_exponential(out=out)
    np.multiply(out, scales, out=out)


def _stream(key: str) -> np.random.Generator:
    words = np.frombuffer(hashlib.sha256(key.encode()).digest()[:16], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words))
