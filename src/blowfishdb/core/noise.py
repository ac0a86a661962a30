"""Exact discrete Laplace noise, P(z) ∝ e^{−|z|/b}, in integer arithmetic only.

Guarantee: if the source yields independent uniform words, the output has *exactly* the discrete Laplace
distribution of the rational scale b. No floating-point number exists in this file (a test reads its syntax
tree), so no rounding is left for an attacker to observe (Mironov 2012).

Why it is exact (the long form is docs/proofs/discrete_laplace.md). Let E ~ Exp(1).

1. *Digits.* The binary digits of E are independent, and the digit of weight 2^k is one with probability
   1/(1 + e^{2^k}) (Marsaglia 1971). Beyond sixteen, ⌊E/16⌋ counts successes of probability e^{−16}.
2. *Coins.* A coin of probability p compares a uniform number with p, sixteen bits at a time, until they
   differ. The digits of p come from integers that provably enclose it, as many as are asked for.
3. *Floor.* ⌊b·E⌋ is geometric with ratio e^{−1/b}. The known digits of E put it between two integers; where
   these disagree, further digits of E are drawn until they agree.
4. *Difference.* ⌊b·E⌋ − ⌊b·E′⌋ with independent E, E′ is the discrete Laplace variable; nothing is rejected.

The work is the same for every sample, whatever its value, but for a small fraction (under one percent for
b ≤ 2^28) that needs further digits: the time taken says next to nothing about the noise (Jin et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any, Final, Protocol, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch, TooLarge

Words: TypeAlias = NDArray[np.uint64]
Scale: TypeAlias = int | Fraction
Scales: TypeAlias = Sequence[Scale] | NDArray[np.integer[Any]] | NDArray[np.object_]
Size: TypeAlias = int | tuple[int, ...]

_EXACT: Final = frozenset({int, Fraction})

# A result leaves int64 only if E ≥ 2^63/b ≥ 128, and P(E ≥ 128) = e^{−128} < 2^−184.
LARGEST_SCALE: Final = 2**56

_WHOLE: Final = 4  # binary digits of E before the point
_TOP: Final = 24  # leading digits of E, multiplied by the whole mantissa: 24 + 39 bits fit a word
_POINT: Final = _TOP - _WHOLE  # digits after the point among the leading ones
_MANTISSA: Final = 39  # bits of a scale's mantissa
_MOST_DIGITS: Final = 48  # digits of E in 64-bit words; exact integers take over beyond them
_SPARE: Final = 13  # digits past the scale's magnitude, which leave about one floor in 2^13 undecided
_VECTOR_LIMIT: Final = 2**40  # smaller numerators and denominators are divided in 64-bit words
_CHUNK: Final = 2**16  # samples per pass, so that the working arrays stay in the cache


class Bits(Protocol):
    """A source of independent uniform 64-bit words; no word is ever handed out twice."""

    def words(self, count: int) -> Words: ...


# --- coins ------------------------------------------------------------------------------------


def exp_bounds(k: int, bits: int) -> tuple[int, int]:
    """Integers ``low ≤ 2^bits · e^{−2^k} ≤ high``, a few units apart for k ≤ 0.

    The series of e^{−x} for x = 2^k ≤ 1 alternates and decreases. Nested integer divisions give each term's
    exact floor, so n terms err by less than n and the omitted ones by less than 1. A larger exponent is
    reached by squaring the bounds of e^{−1}.
    """
    term, total, n = 1 << bits, 0, 0
    while term:
        total += -term if n & 1 else term
        n += 1
        term //= n << max(-k, 0)
    low, high = max(total - n - 1, 0), total + n + 1
    for _ in range(k):
        low, high = low * low >> bits, -(-high * high >> bits)
    return low, high


@final
@dataclass(frozen=True, slots=True)
class Coin:
    """A coin of irrational probability: e^{−2^k}/(1 + e^{−2^k}), or e^{−2^k} itself if ``bare``."""

    k: int
    bare: bool = False

    def bounds(self, bits: int) -> tuple[int, int]:
        """Integers that enclose ``2^bits`` times the probability."""
        low, high = exp_bounds(self.k, bits)
        if self.bare:
            return low, high
        one = 1 << bits  # x/(1+x) grows with x, so the bounds keep their order
        return (low << bits) // (one + low), -((-high << bits) // (one + high))


@cache
def digit(coin: Coin, level: int) -> np.uint16:
    """The base-2^16 digit of the coin's probability at ``level`` (0 is the first after the point).

    Precision doubles until both bounds show the same digits; it ends because the probability is irrational.
    """
    wanted = 16 * (level + 1)
    bits = wanted + 32
    while True:
        low, high = (bound >> (bits - wanted) for bound in coin.bounds(bits))
        if low == high:
            return np.uint16(low & 0xFFFF)
        bits *= 2


@cache
def _digits(coins: tuple[Coin, ...], level: int) -> NDArray[np.uint16]:
    return np.array([[digit(coin, level)] for coin in coins], np.uint16)


def flip(coins: tuple[Coin, ...], bits: Bits, count: int, level: int = 0) -> NDArray[np.bool_]:
    """``count`` independent flips of each coin, a row per coin.

    A flip asks whether a uniform number, drawn digit by digit, is below the coin's probability.
    """
    total = len(coins) * count
    uniform = bits.words(-(-total // 4)).view(np.uint16)[:total].reshape(len(coins), count)
    threshold = _digits(coins, level)
    heads = uniform < threshold
    equal = uniform == threshold
    if equal.any():
        for coin, row, ties in zip(coins, heads, equal, strict=True):
            undecided = np.flatnonzero(ties)
            if undecided.size:
                row[undecided] = flip((coin,), bits, undecided.size, level + 1)[0]
    return heads


_BEYOND: Final = (Coin(_WHOLE, bare=True),)  # given E ≥ 16·i, is it ≥ 16·(i + 1)?


def _exponential(bits: Bits, count: int, digits: int) -> Words:
    """``⌊2^(digits−4) · (E mod 16)⌋`` for ``count`` independent E, most significant digit first."""
    total = np.zeros(count, np.uint64)
    weights = range(_WHOLE - 1, _WHOLE - 1 - digits, -1)
    for first in range(0, digits, 8):
        coins = _coins(weights[first : first + 8])
        byte = np.zeros(count, np.uint8)  # narrow sums are cheap; a wide shift per digit is not
        for heads in flip(coins, bits, count):
            byte += byte
            byte |= heads.view(np.uint8)
        total <<= np.uint64(len(coins))
        total |= byte
    return total


@cache
def _coins(weights: range) -> tuple[Coin, ...]:
    return tuple(Coin(k) for k in weights)


# --- scales -----------------------------------------------------------------------------------


def _rational(scale: object) -> Scale:
    """The scale as an exact positive number, or the reason why it is none."""
    if isinstance(scale, bool) or not isinstance(scale, (int, np.integer, Fraction)):
        raise InvalidScale(
            f"A noise scale must be exact, an int or a Fraction, and this is a {type(scale).__name__}.",
            fixes=("pass a Fraction, such as Fraction(1, 10)",),
        )
    exact = scale if isinstance(scale, Fraction) else int(scale)
    if not 0 < exact <= LARGEST_SCALE:
        raise InvalidScale(
            f"A noise scale must be positive and at most 2^56, so that the noise fits 64 bits; got {exact}.",
            fixes=("use a larger epsilon or a coarser grid",) if exact > 0 else ("pass a positive scale",),
        )
    return exact


@final
@dataclass(frozen=True, slots=True)
class _FixedPoint:
    """Scales b in fixed point: mantissa ≤ b·2^(shift−20) < mantissa + 1, with mantissa < 2^39.

    The shift is cut off at 63: every product is below 2^63, so the floor is zero there either way.
    One entry stands for all samples, or each sample has its own. ``exact`` holds the scales themselves.
    """

    exact: Sequence[Any] | NDArray[np.integer[Any]]
    mantissa: Words
    shift: Words

    @classmethod
    def of(cls, scales: Sequence[object] | NDArray[np.integer[Any]]) -> _FixedPoint:
        plain = isinstance(scales, np.ndarray) or _EXACT.issuperset(map(type, scales))
        exact: Any = scales if plain else [_rational(scale) for scale in scales]
        short = _short_operands(exact) if len(exact) > 1 else None
        if short:
            return cls(exact, *_divide_words(*short))
        pairs = np.array([_divide(_rational(scale)) for scale in exact], np.uint64)
        return cls(exact, pairs[:, 0], pairs[:, 1])

    def digits(self) -> int:
        """How many digits of E decide nearly every floor, even under the largest of these scales."""
        magnitude = _MANTISSA + _POINT - int(self.shift.min())  # every b is below 2^magnitude
        return min(max(magnitude + _SPARE + _WHOLE, _TOP), _MOST_DIGITS)


def _short_operands(exact: Any) -> tuple[Words, Words] | None:
    """Numerators and denominators as words, unless one of them is too long or not positive."""
    if isinstance(exact, np.ndarray):
        above, below = exact, np.ones_like(exact)
    else:
        try:
            above = np.array([scale.numerator for scale in exact], np.int64)
            below = np.array([scale.denominator for scale in exact], np.int64)
        except OverflowError:
            return None
    if above.min() > 0 and max(above.max(), below.max()) < _VECTOR_LIMIT:
        return above.astype(np.uint64), below.astype(np.uint64)
    return None


def _divide(scale: Scale) -> tuple[int, int]:
    """The mantissa and the shift of one scale of any length."""
    above, below = scale.numerator, scale.denominator
    places = _MANTISSA - 1 - above.bit_length() + below.bit_length()
    mantissa = (above << max(places, 0)) // (below << max(-places, 0))
    return mantissa, min(places + _POINT, 63)


def _divide_words(above: Words, below: Words) -> tuple[Words, Words]:
    """`_divide` for many short scales: long division, after both operands are moved up to forty bits."""
    lift, drop = (np.uint64(40) - _bit_lengths(operand) for operand in (above, below))
    divisor = below << drop
    mantissa, rest = np.divmod(above << lift, divisor)
    half = np.uint64((_MANTISSA - 1) // 2)
    for _ in range(2):
        quotient, rest = np.divmod(rest << half, divisor)
        mantissa = mantissa << half | quotient
    return mantissa, np.minimum(np.uint64(_MANTISSA - 1 + _POINT) + lift - drop, np.uint64(63))


def _bit_lengths(values: Words) -> Words:
    for distance in (1, 2, 4, 8, 16, 32):
        values = values | values >> np.uint64(distance)
    return np.bitwise_count(values).astype(np.uint64)


# --- sampling ---------------------------------------------------------------------------------


def floor_bounds(exponential: Words, digits: int, scale: _FixedPoint) -> tuple[Words, Words]:
    """Integers ``low ≤ ⌊b·E⌋ ≤ high`` for every E < 16 that begins with the given digits.

    With E·2^(digits−4) in [e, e + 1) and e = top·2^c + rest, the product in units of 2^c is at least
    mantissa·top + ⌊mantissa·rest/2^c⌋, and exceeds that by less than 1 for this floor, top + 1 for the
    mantissa's own rounding and ⌊mantissa/2^c⌋ + 1 for the digits of E that are not known yet.
    """
    c = np.uint64(digits - _TOP)
    high = exponential >> c
    low = exponential & ((np.uint64(1) << c) - np.uint64(1))
    low *= scale.mantissa
    low >>= c
    low += high * scale.mantissa
    high += low
    high += (scale.mantissa >> c) + np.uint64(3)
    low >>= scale.shift
    high >>= scale.shift
    return low, high


def _exact_floor(exponential: int, digits: int, scale: Scale, bits: Bits) -> int:
    """``⌊b·E⌋`` in Python's integers, drawing further digits of E until they decide it."""
    k = _WHOLE - digits
    while True:
        unit = scale.denominator << -k
        floor = scale.numerator * exponential // unit
        if scale.numerator * (exponential + 1) <= (floor + 1) * unit:
            break
        byte = np.packbits(flip(_coins(range(k - 1, k - 9, -1)), bits, 1))
        exponential, k = exponential << 8 | int(byte[0]), k - 8
    if floor >= 2**63:
        raise TooLarge("The noise does not fit 64 bits, an event of probability below 2^-184.")
    return floor


def _floors(scale: _FixedPoint, copies: int, count: int, bits: Bits) -> NDArray[np.int64]:
    """``copies`` rows of ``count`` independent ⌊b·E⌋, all in one pass."""
    digits = scale.digits()
    exponential = _exponential(bits, copies * count, digits).reshape(copies, count)
    beyond = flip(_BEYOND, bits, copies * count).reshape(copies, count)
    floors, high = floor_bounds(exponential, digits, scale)
    for side, i in np.argwhere((floors != high) | beyond):
        laps = int(beyond[side, i])
        while laps and flip(_BEYOND, bits, 1)[0, 0]:
            laps += 1
        known = int(exponential[side, i]) + (laps << digits)
        own = _rational(scale.exact[i if len(scale.exact) > 1 else 0])
        floors[side, i] = _exact_floor(known, digits, own, bits)
    signed: NDArray[np.int64] = floors.view(np.int64)
    return signed


@final
@dataclass(frozen=True, slots=True)
class Noise:
    """Noise drawn from a source of uniform words; `blowfishdb.noise` joins it to a keystream.

    The result is a function of the words alone, so a recorded source replays it.
    """

    bits: Bits = field(repr=False)

    @overload
    def discrete_laplace(self, scale: Scale, size: None = None) -> np.int64: ...
    @overload
    def discrete_laplace(self, scale: Scale, size: Size) -> NDArray[np.int64]: ...
    @overload
    def discrete_laplace(self, scale: Scales, size: Size | None = None) -> NDArray[np.int64]: ...
    def discrete_laplace(
        self, scale: Scale | Scales, size: Size | None = None
    ) -> np.int64 | NDArray[np.int64]:
        """Independent samples with exactly P(z) = (1−q)/(1+q)·q^|z|, where q = e^{−1/scale}.

        ``scale`` is a positive int or Fraction of at most 2^56, or an array of them with one sample for each;
        ``size`` is then left out or equal to its shape. One scale without a size gives one number.
        Raises `InvalidScale` for anything else, floats included: a float is not the number that was meant.
        """
        scales, own_shape = _listed(scale)
        shape = own_shape or () if size is None else _shape(size)
        if own_shape not in (None, shape):
            raise SizeMismatch(
                f"Scales of shape {own_shape} cannot fill a size of {shape}.", fixes=("leave the size out",)
            )
        samples = np.empty(prod(shape), np.int64)
        for start in range(0, samples.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            fixed = _FixedPoint.of(scales if own_shape is None else scales[chunk])
            first, second = _floors(fixed, 2, samples[chunk].size, self.bits)
            samples[chunk] = first - second
        return samples.reshape(shape)[()]

    def geometric(self, scales: Sequence[Scale]) -> NDArray[np.int64]:
        """One ⌊b·E⌋ for each scale b: P(z) = (1−q)·q^z for z ≥ 0, where q = e^{−1/b}, exactly."""
        samples = np.empty(len(scales), np.int64)
        for start in range(0, samples.size, _CHUNK):
            chunk = slice(start, start + _CHUNK)
            samples[chunk] = _floors(_FixedPoint.of(scales[chunk]), 1, samples[chunk].size, self.bits)[0]
        return samples


def _listed(scale: object) -> tuple[Any, tuple[int, ...] | None]:
    """The scales in one row, and the shape they came in; one scale for all samples has none."""
    if isinstance(scale, np.ndarray):
        return scale.ravel() if scale.dtype.kind in "iu" else scale.ravel().tolist(), scale.shape
    if isinstance(scale, Sequence) and not isinstance(scale, (str, bytes)):
        flat = _EXACT.issuperset(map(type, scale))
        return (scale, (len(scale),)) if flat else _listed(np.array(scale, dtype=object))
    return [_rational(scale)], None


def _shape(size: Size) -> tuple[int, ...]:
    shape = size if isinstance(size, tuple) else (size,)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in shape):
        raise InvalidInput("A size must be a whole number of samples, or a tuple of them; none is negative.")
    return shape
