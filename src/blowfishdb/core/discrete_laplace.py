"""The discrete Laplace distribution in closed form: P(z) = (1−q)/(1+q)·q^|z| with q = e^{−1/scale}.

Floating point, for planning and for tests; the noise itself is made in `blowfishdb.core.noise` without any.
Every form below avoids 1 − q, which loses all its digits when the scale is large. Scalars give floats, arrays
give arrays, and arguments broadcast.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.errors import InvalidInput, InvalidScale

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
