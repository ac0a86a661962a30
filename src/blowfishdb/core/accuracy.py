"""Accuracy: what an analyst asks for, and the privacy loss that it needs.

(α, β) means: with probability at least 1−β every answer that is not exact is within ±α of the
truth, bounds included. Noise is discrete, so only m = ⌊α⌋ matters, and the exact discrete tail
P(|Z| > m) = 2q^{m+1}/(1+q) is used; the familiar continuous formula is wrong for fractional α.

The discrete Laplace distribution in closed form: P(z) = (1−q)/(1+q)·q^|z| with q = e^{−1/scale}.

Floating point, for planning and for tests; the noise itself is made in `blowfishdb.core.noise` without any.
Every form below avoids 1 − q, which loses all its digits when the scale is large. Scalars give floats, arrays
give arrays, and arguments broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final, overload

import numpy as np
import scipy
from numpy.typing import NDArray

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import Infeasible, InvalidAlpha, InvalidBeta, InvalidInput, InvalidScale

Floats: TypeAlias = NDArray[np.float64]
Scales: TypeAlias = NDArray[Any] | Sequence[float | Fraction]
Whole: TypeAlias = int | NDArray[Any] | Sequence[int]


def _rate(scale: Any) -> Floats:
    """1/scale, which is ε/Δ where the scale came from a sensitivity."""
    scales = np.asarray(scale, dtype=np.float64)
    if not (np.isfinite(scales) & (scales > 0)).all():
        raise InvalidScale("A noise scale must be a positive finite number.")
    return np.asarray(1 / scales)


def _whole(values: Any) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if not (numbers == np.floor(numbers)).all():
        raise InvalidInput("Discrete noise takes whole values only.", fixes=("round the bound down first",))
    return numbers


@overload
def variance(scale: float | Fraction) -> float: ...
@overload
def variance(scale: Scales) -> Floats: ...
def variance(scale: float | Fraction | Scales) -> float | Floats:
    """The variance 2q/(1−q)² = 1/(2·sinh²(1/(2·scale))); about 2·scale² for a large scale."""
    with np.errstate(over="ignore"):  # sinh of a large rate is infinite, and the variance rightly zero
        half = np.sinh(_rate(scale) / 2)
        return _like(0.5 / half / half)


@overload
def log_tail(m: int, scale: float | Fraction) -> float: ...
@overload
def log_tail(m: Whole, scale: float | Fraction | Scales) -> float | Floats: ...
def log_tail(m: Whole, scale: float | Fraction | Scales) -> float | Floats:
    """ln P(|Z| > m) for a whole m ≥ 0, exact where the probability itself would underflow."""
    bound = _whole(m)
    if (bound < 0).any():
        raise InvalidInput("A tail begins at a bound of zero or more.")
    rate = _rate(scale)
    return _like(np.log(2) - (bound + 1) * rate - np.log1p(np.exp(-rate)))


@overload
def tail(m: int, scale: float | Fraction) -> float: ...
@overload
def tail(m: Whole, scale: float | Fraction | Scales) -> float | Floats: ...
def tail(m: Whole, scale: float | Fraction | Scales) -> float | Floats:
    """P(|Z| > m) = 2·q^{m+1}/(1+q) for a whole m ≥ 0."""
    return _like(np.exp(log_tail(m, scale)))


@overload
def pmf(z: int, scale: float | Fraction) -> float: ...
@overload
def pmf(z: Whole, scale: float | Fraction | Scales) -> float | Floats: ...
def pmf(z: Whole, scale: float | Fraction | Scales) -> float | Floats:
    """P(Z = z) = tanh(1/(2·scale))·q^|z|."""
    rate = _rate(scale)
    return _like(np.tanh(rate / 2) * np.exp(-np.abs(_whole(z)) * rate))


def _like(values: Floats) -> float | Floats:
    return float(values) if np.ndim(values) == 0 else values


LARGEST_EPSILON = Epsilon(10**6)
"""Beyond this nothing is hidden in any sense; a request that needs more is refused."""

NO_PROMISE = "This mechanism promises no error beforehand: how far off it is depends on the data."
"""What is said wherever people look for an accuracy and none is promised."""

_LARGEST_ALPHA = 1e300  # finite, also after a few multiplications
_SECANTS = 6
_WINDOW = 2  # nano-ε around a guess in which the least ε is looked for first
_ROUNDING = 1e-12  # relative, against the analyst: far above float error, far below notice


@final
@dataclass(frozen=True)
class Accuracy:
    """Within ±``alpha`` with probability 1 − ``beta``: all answers at once, or each by itself.

    ``one_sided``: each answer can fail in one direction only, known beforehand or not.
    """

    alpha: float
    beta: float
    simultaneous: bool = True
    one_sided: bool = False

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_beta(self.beta)


def check_alpha(alpha: object) -> float:
    """A finite positive half-width."""
    number = isinstance(alpha, (int, float, Fraction, np.integer, np.floating)) and not isinstance(
        alpha, bool
    )
    if not number or not 0 < alpha <= _LARGEST_ALPHA:  # type: ignore[operator]
        raise InvalidAlpha(
            f"An accuracy must be a positive number of people, not {alpha!r}.",
            fixes=("ask for ±50, say",),
        )
    return float(alpha)  # type: ignore[arg-type]


def check_beta(beta: object) -> float:
    """A probability strictly between 0 and 1."""
    number = isinstance(beta, (int, float, Fraction, np.floating)) and not isinstance(beta, bool)
    if not number or not 0 < beta < 1:  # type: ignore[operator]
        raise InvalidBeta(
            f"A failure probability must lie strictly between 0 and 1, not {beta!r}.",
            fixes=("use 0.05 for answers that hold 95 times in 100",),
        )
    return float(beta)  # type: ignore[arg-type]


def failure(
    unit_scales: FloatArray,
    bound: int,
    epsilon: Epsilon,
    *,
    simultaneous: bool,
    one_sided: bool = False,
    times: IntArray | int = 1,
) -> float:
    """P(some |Z_r| > bound), or the largest P(|Z_r| > bound); Z_r independent with scale c_r/ε.

    ``times``: how often each scale occurs.
    """
    each = np.asarray(tail(bound, unit_scales / float(epsilon))) / (2 if one_sided else 1)
    return -math.expm1((times * np.log1p(-each)).sum()) if simultaneous else float(each.max())


def independent_epsilon(unit_scales: FloatArray, accuracy: Accuracy) -> Epsilon:
    """The least ε at which independent noise of scale c_r/ε meets ``accuracy``."""
    if unit_scales.size == 0:
        return Epsilon(0)
    bound, allowed = math.floor(accuracy.alpha), accuracy.beta * (1 - _ROUNDING)
    scales, times = np.unique(unit_scales, return_counts=True)

    def holds(epsilon: Epsilon) -> bool:
        fails = failure(
            scales,
            bound,
            epsilon,
            simultaneous=accuracy.simultaneous,
            one_sided=accuracy.one_sided,
            times=times,
        )
        return fails <= allowed

    near = _where_it_holds(scales, times, bound, accuracy)
    return least_epsilon(holds, near=near)


def _where_it_holds(scales: FloatArray, times: IntArray, bound: int, accuracy: Accuracy) -> float:
    """About the ε at which independent noise meets ``accuracy``; 0 where no guess is at hand.

    The fixed point of P(|Z| > m) = 2q^{m+1}/(1+q) for the largest scale, then a few secants for all of them.
    """
    sides = 2.0 if accuracy.one_sided else 1.0
    rates: list[float] = [1 / scale for scale in scales.tolist()]
    counts: list[int] = times.tolist()
    target = math.log1p(-accuracy.beta) if accuracy.simultaneous else math.log(accuracy.beta)

    def excess(epsilon: float) -> float:
        """How much likelier than allowed a failure is; decreases, and changes its sign where it holds."""
        each = [2 * math.exp(-(bound + 1) * r * epsilon) / (1 + math.exp(-r * epsilon)) for r in rates]
        if not accuracy.simultaneous:
            return math.log(max(each) / sides) - target
        held = sum(k * math.log1p(-chance / sides) for chance, k in zip(each, counts, strict=True))
        return math.log(held / target)

    share = -math.expm1(target / counts[-1]) if accuracy.simultaneous else accuracy.beta
    rate = 0.0
    for _ in range(_SECANTS):
        rate = max(0.0, (math.log(2 / (share * sides)) - math.log1p(math.exp(-rate))) / (bound + 1))
    first, second = rate / rates[-1], 1.01 * rate / rates[-1]
    try:
        before, now = excess(first), excess(second)
        for _ in range(_SECANTS):
            if before == now or abs(now) < 1e-13:
                break
            first, second, before = second, second - now * (second - first) / (now - before), now
            now = excess(second)
    except (ValueError, OverflowError, ZeroDivisionError):  # so rare or so close that a float cannot tell
        return 0.0
    return second


def independent_alpha(
    unit_scales: FloatArray, epsilon: Epsilon, beta: float, *, simultaneous: bool = True
) -> int:
    """The least whole α that independent noise of scale c_r/ε meets with probability 1 − β."""
    if unit_scales.size == 0:
        return 0
    allowed = check_beta(beta) * (1 - _ROUNDING)
    scales, times = np.unique(unit_scales, return_counts=True)
    return least_integer(
        lambda bound: failure(scales, bound, epsilon, simultaneous=simultaneous, times=times) <= allowed
    )


def least_epsilon(holds: Callable[[Epsilon], bool], near: float = 0.0) -> Epsilon:
    """The least whole nano-ε at which a condition that is monotone in ε holds; ``near`` is a guess at it."""
    found = _close_to(lambda nano: holds(Epsilon.from_nano(nano)), near)
    if found is not None:
        return Epsilon.from_nano(found)
    if not holds(LARGEST_EPSILON):
        raise Infeasible(
            "No reasonable privacy loss reaches this accuracy.",
            fixes=("allow a larger error", "accept a lower confidence"),
        )
    return Epsilon.from_nano(
        least_integer(lambda nano: holds(Epsilon.from_nano(nano)), low=1, high=LARGEST_EPSILON.nano)
    )


def _close_to(holds: Callable[[int], bool], near: float) -> int | None:
    """The least whole number of nano-ε at which it holds, if that is within a few of a guess."""
    if not 0 < near < float(LARGEST_EPSILON):
        return None
    middle = math.ceil(near * NANO)
    below, above = max(0, middle - _WINDOW), min(LARGEST_EPSILON.nano, middle + _WINDOW)
    if not holds(above) or (below and holds(below)):
        return None
    probe = middle
    while above - below > 1:
        below, above = (below, probe) if holds(probe) else (probe, above)
        probe = (above + below) // 2
    return above


def least_integer(holds: Callable[[int], bool], low: int = 0, high: int | None = None) -> int:
    """The least integer from ``low`` on at which a monotone condition holds: doubling, then bisection."""
    step = 1
    below = low - 1
    while not holds(probe := low + step - 1 if high is None else min(high, low + step - 1)):
        below, step = probe, 2 * step
    above = probe
    while above - below > 1:
        middle = (above + below) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def order_statistic(samples: int, beta: float, gamma: float) -> int | None:
    """r such that the r-th smallest of ``samples`` draws is ≥ their (1−β)-quantile, but for γ.

    The smallest r with P(Bin(N, 1−β) ≤ r−1) ≥ 1−γ; None if N is too small for any.
    """
    rank = int(scipy.special.bdtrik(1 - gamma, samples, 1 - beta)) + 1
    while rank > 1 and scipy.special.bdtrc(rank - 2, samples, 1 - beta) <= gamma:
        rank -= 1
    while rank <= samples and scipy.special.bdtrc(rank - 1, samples, 1 - beta) > gamma:
        rank += 1
    return rank if rank <= samples else None
