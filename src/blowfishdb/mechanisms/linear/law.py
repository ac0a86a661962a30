"""Accuracy by simulation, for plans whose errors have no closed tail.

The largest error M = max_i |(T·η)_i| is simulated once with *continuous* noise at ε = 1; it scales as 1/ε, so
every later (α, β) is a lookup. A conservative order statistic of the draws is at least the (1−β)-quantile but
for γ, and γ is taken out of β, so the failure probability is at most β unconditionally. One answer at a time,
and where β is too small to be seen in draws, an exact bound on tails takes their place
(``tail_bound``; ``discretisation`` passes from continuous to discrete noise: α shrinks by t).

Where the plan is small and t matters, ε is then lowered as far as fresh draws of *discrete* noise certify:
every attempt has draws and a share of γ of its own, so choosing ε by earlier draws does no harm. Streams are
keyed by the plan, so a quote is reproducible; they are never used for a release.

Tails of sums of independent Laplace variables, from two numbers about the sum.

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

Tails of Σ t_r·η_r in closed form, for few noise variables (REUSE §1, Intervals).

One variable: the exact discrete tail. Independent Laplace variables of K different scales a_i = |t_i|·b_i:

    P(|Z| ≥ t) = Σ_i e^{−t/a_i}·Π_{j≠i} a_i²/(a_i² − a_j²),

by partial fractions of the characteristic function Π 1/(1 + a_i²s²). Scales that are too close cancel, so
K ≤ 8 and gaps of 5 % are asked for, and digits are counted. Discrete noise is continuous noise moved by less
than one, so ‖t‖₁ is added.

Conservative quantiles by simulation, with the discrete noise as it was drawn (THEORY §5).

The r-th smallest of N draws is at least the (1−β)-quantile but for γ, and γ is taken out of β, so what is
promised holds unconditionally. Streams are keyed by a digest of what was measured: quotes are reproducible,
and no stored value can move one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, final

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc, ndtr

from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy, least_integer, order_statistic, tail
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales

_GRID = 2_000
_ROUNDING = 1e-6


def tail_bound(x: float, terms: int) -> float:
    """An upper bound on P(|X| > x·σ) where no term has more than 1/``terms`` of the variance."""
    turn = x * x / 3
    grid = turn * np.arange(1, _GRID + 1) / _GRID
    value = 2 * ndtr(-x / np.sqrt(grid))
    beyond = gammaincc(terms, terms * np.concatenate(([0.0], grid)))
    below = float(value @ -np.diff(beyond))  # an upper sum: f increases
    slope = x * math.exp(-1.5) / math.sqrt(2 * math.pi) / turn**1.5
    excess = float(gammaincc(terms + 1, terms * turn) - turn * beyond[-1])
    return float(below + value[-1] * beyond[-1] + slope * excess)


@lru_cache(maxsize=4096)
def quantile_bound(probability: float, terms: int) -> float:
    """x such that P(|X| > x·σ) ≤ ``probability``."""
    target = math.log(probability)
    high = 2.0
    while math.log(tail_bound(high, terms)) > target:
        high *= 1.5
    found = brentq(lambda x: math.log(tail_bound(x, terms)) - target, 1e-3, high, xtol=1e-7)
    return float(found) * (1 + _ROUNDING)


def discretisation(roughness: float, eta: float) -> float:
    """t such that discrete noise beyond α is continuous noise beyond α − t, but for a share η of cases.

    ``roughness`` is the largest ‖T_i‖².
    """
    return math.sqrt(roughness * math.log(1 / eta) / 3)


_MOST_TERMS = 8
_GAP = 1.05
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
    return float(brentq(excess, 0.0, high, xtol=1e-12 * high)) * (1 + _GUARD)


_DRAWS = 2 * 10**7  # numbers per simulation: about half a second
_PATIENCE = 7  # times as many where there is no other way
_SAMPLES = 10_000  # more would lower ε by less than one per cent
_SMALL = 2 * 10**6
_COLUMN = 4  # what ordering the draws of one answer takes, next to making them
_CHUNK = 10**6
_GAMMA = 0.01  # the share of β that covers the simulation's own uncertainty
_ETAS = (0.2, 0.05, 0.01)
_NOTICEABLE = 1.02
_RARE = 0.02
_ATTEMPTS = 6
_WRITTEN_OUT = 12_000


class LinearErrors(Protocol):
    """What a simulation needs to know of a plan whose error is T·η."""

    @property
    def workload(self) -> Workload: ...
    @property
    def scales(self) -> UnitScales: ...
    @property
    def fingerprint(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def largest_deviation(self) -> float: ...
    def spread(self, noise: Numbers) -> Numbers: ...
    def largest_errors(self, noise: Numbers) -> FloatArray: ...
    def largest_variance(self, of_noise: FloatArray) -> float: ...


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """The law of the errors of one plan, with a memory: a second quote is a lookup."""

    plan: LinearErrors

    def epsilon(self, accuracy: Accuracy) -> Epsilon:
        """The least ε known to meet ``accuracy``."""
        if accuracy not in self._quotes:
            self._quotes[accuracy] = self._least_epsilon(accuracy)
        return self._quotes[accuracy]

    def alpha(self, epsilon: Epsilon, beta: float, *, simultaneous: bool) -> float:
        """The least α known to hold at ``epsilon``."""
        key = (epsilon, beta, simultaneous)
        if key not in self._promises:
            bounds = [bound / float(epsilon) + t for bound, t in self._bounds(beta, simultaneous)]
            if self._small(beta, simultaneous):
                bounds.append(self._certified(epsilon, beta, simultaneous, attempt=1))
            self._promises[key] = min(bounds)
        return self._promises[key]

    @cached_property
    def _quotes(self) -> dict[Accuracy, Epsilon]:
        return {}

    @cached_property
    def _promises(self) -> dict[tuple[Epsilon, float, bool], float]:
        return {}

    # --- from a bound at ε = 1 ------------------------------------------------------------------

    def _least_epsilon(self, accuracy: Accuracy) -> Epsilon:
        bounds = self._bounds(accuracy.beta, accuracy.simultaneous)
        ideal = min(bound for bound, _ in bounds) / accuracy.alpha
        enough = min((b / (accuracy.alpha - t) for b, t in bounds if t < accuracy.alpha), default=math.inf)
        if enough > _NOTICEABLE * ideal and self._small(accuracy.beta, accuracy.simultaneous):
            enough = min(enough, self._lowered(accuracy, ideal, enough))
        if enough > float(LARGEST_EPSILON):
            raise Infeasible(
                "No reasonable privacy loss reaches this accuracy.",
                fixes=("allow a larger error", "accept a lower confidence"),
            )
        return Epsilon.at_least(enough)

    def _bounds(self, beta: float, simultaneous: bool) -> list[tuple[float, float]]:
        """Pairs (u, t): at any ε, discrete errors stay within u/ε + t with probability 1 − β."""
        gamma = _GAMMA * beta / 2 / len(_ETAS)
        samples = self._samples(beta * (1 - _GAMMA) * (1 - max(_ETAS)), gamma) if simultaneous else 0
        bounds = []
        for eta in _ETAS:
            allowed = beta * (1 - _GAMMA) * (1 - eta)
            if samples:
                unit = _conservative(self._unit_errors(samples), allowed, gamma)
            else:
                share = allowed / self.plan.workload.count if simultaneous else allowed
                unit = self.plan.largest_deviation * quantile_bound(share, self._terms_for(share))
            bounds.append((unit, discretisation(self._roughness, eta)))
        return bounds

    @cached_property
    def _roughness(self) -> float:
        """The largest ‖T_i‖² over noise that there is."""
        return self.plan.largest_variance((self._unit_scales > 0).astype(np.float64))

    @cached_property
    def _unit_scales(self) -> FloatArray:
        return self.plan.scales.floats()

    def _samples(self, beta: float, gamma: float) -> int:
        """As many draws as time allows; 0 if they cannot show a failure probability of β."""
        affordable = min(_SAMPLES, max(500, _DRAWS // self.plan.width))
        needed = _draws_to_see(beta, gamma)
        if needed > affordable and needed * self.plan.width > _PATIENCE * _DRAWS:
            return 0
        return max(affordable, needed)

    def _terms_for(self, probability: float) -> int:
        """Going through T takes seconds on a large plan; at a few per cent it would lower ε by only 8 %."""
        quick = self._unit_scales.size * self.plan.width <= 3 * _DRAWS
        return self._terms if quick or probability < _RARE else 1

    @cached_property
    def _terms(self) -> int:
        """m such that no single noise variable has more than 1/m of the largest variance of an answer."""
        scales = self._unit_scales
        if scales.size > _WRITTEN_OUT or scales.size * self.plan.width > _PATIENCE * _DRAWS:
            return 1
        largest, step = 0.0, max(1, _CHUNK // self.plan.width)
        for begin in range(0, scales.size, step):
            some = np.arange(begin, min(begin + step, scales.size))
            single = np.zeros((some.size, scales.size))
            single[np.arange(some.size), some] = scales[some]
            largest = max(largest, float(self.plan.largest_errors(single).max()))
        share = 2 * largest**2 / self.plan.largest_deviation**2
        return max(1, math.floor(1 / share * (1 - 1e-9)))

    @cached_property
    def _memory(self) -> dict[int, FloatArray]:
        return {}

    def _unit_errors(self, samples: int) -> FloatArray:
        """Sorted draws of M at ε = 1."""
        if samples not in self._memory:
            stream = self._stream(0)

            def laplace(shape: tuple[int, int]) -> FloatArray:
                signs = 2.0 * stream.integers(0, 2, size=shape, dtype=np.int8) - 1.0
                return np.asarray(stream.standard_exponential(size=shape) * signs * self._unit_scales)

            errors = [self.plan.largest_errors(laplace(shape)) for shape in self._shapes(samples)]
            self._memory[samples] = np.sort(np.concatenate(errors))
        return self._memory[samples]

    # --- from discrete draws at one ε -----------------------------------------------------------

    def _small(self, beta: float, simultaneous: bool) -> bool:
        """Whether a certificate takes milliseconds."""
        width = self.plan.width if simultaneous else max(self.plan.width, _COLUMN * self.plan.workload.count)
        return self._certificate_samples(beta, simultaneous) * width <= _SMALL

    def _certificate_samples(self, beta: float, simultaneous: bool) -> int:
        gamma = _GAMMA * beta / 2 ** (_ATTEMPTS + 1) / (1 if simultaneous else self.plan.workload.count)
        needed = math.ceil(2 * math.log(gamma) / math.log1p(-beta * (1 - _GAMMA)))
        return max(needed, min(_SAMPLES, max(5_000, _SMALL // self.plan.width)))

    def _lowered(self, accuracy: Accuracy, guess: float, enough: float) -> float:
        """The first ε between the ideal and what is known to be enough that gets a certificate."""
        for attempt in range(1, _ATTEMPTS + 1):
            if guess >= enough:
                break
            epsilon = Epsilon.at_least(guess)
            reached = self._certified(epsilon, accuracy.beta, accuracy.simultaneous, attempt)
            if reached <= accuracy.alpha:
                return float(epsilon)
            guess *= max(1.01, min(1.2, reached / accuracy.alpha))
        return enough

    def _certified(self, epsilon: Epsilon, beta: float, simultaneous: bool, attempt: int) -> float:
        """An α that holds at ``epsilon``, with noise as it will be: discrete."""
        samples = self._certificate_samples(beta, simultaneous)
        stream, scales = self._stream(attempt), self._unit_scales / float(epsilon)
        measure: Callable[[Numbers], Numbers]
        measure = self.plan.largest_errors if simultaneous else lambda noise: np.abs(self.plan.spread(noise))
        errors = [measure(discrete(stream, rows, scales)) for rows, _ in self._shapes(samples)]
        return _conservative(
            np.sort(np.concatenate(errors), axis=0), beta * (1 - _GAMMA), _GAMMA * beta / 2 ** (attempt + 1)
        )

    def _stream(self, attempt: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.plan.fingerprint, attempt]))

    def _shapes(self, samples: int) -> Iterator[tuple[int, int]]:
        rows = max(1, _CHUNK // self.plan.width)
        for start in range(0, samples, rows):
            yield min(rows, samples - start), self._unit_scales.size


def _conservative(ordered: FloatArray, beta: float, gamma: float) -> float:
    """A value that is at least the (1−β)-quantile but for γ; of each column, the largest."""
    columns = 1 if ordered.ndim == 1 else ordered.shape[1]
    rank = order_statistic(ordered.shape[0], beta, gamma / columns)
    return math.inf if rank is None else float(ordered[rank - 1].max())


def _draws_to_see(beta: float, gamma: float) -> int:
    """How many draws show a failure probability of β but for γ, and some more."""
    return math.ceil(1.2 * math.log(gamma) / math.log1p(-beta))


Statistic = Callable[[FloatArray], FloatArray]

_REUSED_DRAWS = 4 * 10**7
_REUSED_PATIENCE = 5
_REUSED_CHUNK = 2 * 10**6


def quantile(
    statistic: Statistic, scales: FloatArray, width: int, beta: float, key: str
) -> FloatArray | None:
    """A bound on the (1−β)-quantile of ``statistic`` of a batch of noise; None if β is too small to be seen.

    ``width`` is how many numbers one draw takes. A statistic with several columns has one bound for each.
    """
    gamma, allowed = _GAMMA * beta, beta * (1 - _GAMMA)
    needed = _draws_to_see(allowed, gamma)
    if needed * width > _REUSED_PATIENCE * _REUSED_DRAWS:
        return None
    samples = max(needed, min(_SAMPLES, _REUSED_DRAWS // width))
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
    shape = (samples, scales.size)
    first, second = (np.floor(stream.standard_exponential(size=shape) * scales) for _ in range(2))
    return np.asarray(first - second)


def _stream(key: str) -> np.random.Generator:
    words = np.frombuffer(hashlib.sha256(key.encode()).digest()[:16], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=words))
