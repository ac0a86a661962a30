"""Numbers that are computed from released ones: ``sum / count``, ``100 * count / total``, ``round(mean, 2)``.

Computing them costs nothing: they are functions of what is out. Most are quotients of two sums of multiples
of released numbers, and that is why their intervals can be told exactly: over all numbers that the noise
intervals allow, such a quotient is largest and smallest at ends of intervals. What is none (a product, or the
difference of two means that are sums divided by counts) lies between the ends of what its parts may be: that
holds, too, but may be wider than need be. Where what is divided by may be zero there is no interval, and too
few rows to say.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, whole
from blowfishdb.core.errors import InvalidInput, InvalidWorkload

_STEPS: Final = 200
_SLACK: Final = 1e-12
_MOST_DIGITS: Final = 12
_DEEPEST: Final = 32
_SIGNS: Final = ("+", "-", "*", "/")


@final
@dataclass(frozen=True, eq=False)
class ReleasedTable:
    """What is out: a row for each group, a column for each released number, with the ends of its interval."""

    values: FloatArray
    low: FloatArray
    high: FloatArray
    exact: BoolArray

    def total(self) -> ReleasedTable:
        """The sums over all groups."""
        values, low, high = (each.sum(axis=0) for each in (self.values, self.low, self.high))
        return ReleasedTable(values, low, high, np.asarray(self.exact.all(axis=0)))


Ends = tuple[FloatArray, FloatArray]
"""The lower and the upper end in every group."""


class Number(ABC):
    """A number of every group."""

    __slots__ = ()

    @abstractmethod
    def quotient(self) -> Quotient:
        """The number as a quotient of sums; what is none is refused."""

    @abstractmethod
    def to_plain(self) -> Any:
        """JSON-ready data."""

    @abstractmethod
    def words(self, names: tuple[str, ...]) -> str:
        """The number in words, by the names of those that are released."""

    @property
    def told(self) -> frozenset[int]:
        """Which released numbers it is computed from."""
        quotient, parts = _apart(self)
        if quotient is None:
            return parts[0].told | parts[1].told
        return frozenset(index for part in (quotient.above, quotient.below) for _, index in part.times)

    @property
    def divides(self) -> bool:
        """Whether something is divided for it."""
        return False

    def of(self, table: ReleasedTable) -> FloatArray:
        """Its value in every group, from the released values; not a number where nothing can be said."""
        quotient, parts = _apart(self)
        if quotient is not None:
            return quotient.value(table)
        left, right = (part.of(table) for part in parts)
        if _sign(self) == "/":
            low, high = parts[1].interval(table)
            right = np.where(((low > 0) | (high < 0)) & (right != 0), right, math.nan)
        return _to_places(self, _COMPUTE[_sign(self)](left, right))

    def interval(self, table: ReleasedTable) -> Ends:
        """What it may be while every released number is in its interval; not a number where anything."""
        quotient, parts = _apart(self)
        if quotient is not None:
            return quotient.interval(table)
        low, high = _combined(_sign(self), *(part.interval(table) for part in parts))
        return _to_places(self, low), _to_places(self, high)

    def exact(self, table: ReleasedTable) -> BoolArray:
        """Where it is computed from exact numbers only."""
        quotient, parts = _apart(self)
        return parts[0].exact(table) & parts[1].exact(table) if quotient is None else quotient.exact(table)


@final
@dataclass(frozen=True, slots=True)
class Told(Number):
    """A released number, by its place among those of the question."""

    index: int

    def __post_init__(self) -> None:
        if whole(self.index, "The place of a released number", InvalidInput) < 0:
            raise InvalidInput("Released numbers are counted from 0.")

    def quotient(self) -> Quotient:
        return Quotient(Linear({("group", self.index): Fraction(1)}))

    def to_plain(self) -> Any:
        return {"told": self.index}

    def words(self, names: tuple[str, ...]) -> str:
        return names[self.index]


@final
@dataclass(frozen=True, slots=True)
class Total(Number):
    """A released number, added up over all groups."""

    index: int

    def quotient(self) -> Quotient:
        return Quotient(Linear({("total", self.index): Fraction(1)}))

    def to_plain(self) -> Any:
        return {"total": self.index}

    def words(self, names: tuple[str, ...]) -> str:
        return f"all {names[self.index]}"


@final
@dataclass(frozen=True, slots=True)
class Constant(Number):
    """A number that was typed."""

    value: Fraction

    def quotient(self) -> Quotient:
        return Quotient(Linear({}, self.value))

    def to_plain(self) -> Any:
        whole_number = self.value.denominator == 1
        return int(self.value) if whole_number else f"{self.value.numerator}/{self.value.denominator}"

    def words(self, names: tuple[str, ...]) -> str:
        return f"{float(self.value):,.12g}"


@final
@dataclass(frozen=True, slots=True)
class Computed(Number):
    """Two numbers added, subtracted, multiplied or divided; a division is exact, and never cut off."""

    sign: str
    left: Number
    right: Number

    def __post_init__(self) -> None:
        if self.sign not in _SIGNS:
            raise InvalidInput(f"There is no sign {self.sign!r}.", fixes=_SIGNS)

    @property
    def divides(self) -> bool:
        return self.sign == "/" or self.left.divides or self.right.divides

    def quotient(self) -> Quotient:
        one, other = self.left.quotient(), self.right.quotient()
        match self.sign:
            case "+":
                return one.plus(other, 1)
            case "-":
                return one.plus(other, -1)
            case "*":
                return one.by(other.above, other.below)
        return one.by(other.below, other.above)

    def to_plain(self) -> Any:
        return {"sign": self.sign, "left": self.left.to_plain(), "right": self.right.to_plain()}

    def words(self, names: tuple[str, ...]) -> str:
        parts = (
            f"({part.words(names)})" if isinstance(part, Computed) else part.words(names)
            for part in (self.left, self.right)
        )
        return f" {self.sign} ".join(parts)


@final
@dataclass(frozen=True, slots=True)
class Rounded(Number):
    """A number to so many decimal places, halves away from zero; nothing is computed from it any more."""

    inner: Number
    digits: int = 0

    def __post_init__(self) -> None:
        if abs(whole(self.digits, "The number of decimal places", InvalidInput)) > _MOST_DIGITS:
            raise InvalidInput(f"At most {_MOST_DIGITS} decimal places are told.")

    @property
    def divides(self) -> bool:
        return self.inner.divides

    def quotient(self) -> Quotient:
        inner = self.inner.quotient()
        if inner.digits is not None:
            raise InvalidWorkload("A number is rounded once.", fixes=("round the whole number",))
        return replace(inner, digits=self.digits)

    def to_plain(self) -> Any:
        return {"round": self.inner.to_plain(), "digits": self.digits}

    def words(self, names: tuple[str, ...]) -> str:
        return f"round({self.inner.words(names)}, {self.digits})"


def number_from_plain(stored: object, depth: int = 0) -> Number:
    """A number from its plain form."""
    if depth > _DEEPEST:
        raise InvalidInput("This number is nested too deeply.")
    match stored:
        case bool():
            pass
        case int() | float() | str():
            return Constant(_fraction(stored))
        case {"told": int() as index, **rest} if not rest:
            return Told(index)
        case {"total": int() as index, **rest} if not rest:
            return Total(index)
        case {"round": inner, "digits": int() as digits, **rest} if not rest:
            return Rounded(number_from_plain(inner, depth + 1), digits)
        case {"sign": str() as sign, "left": left, "right": right, **rest} if not rest:
            return Computed(sign, number_from_plain(left, depth + 1), number_from_plain(right, depth + 1))
    raise InvalidInput(
        "A number is told, total, sign with left and right, round with digits, or a constant.",
        fixes=('{"told": 0}',),
    )


def _fraction(typed: int | float | str) -> Fraction:
    try:
        return Fraction(str(typed))
    except (ValueError, ZeroDivisionError):
        raise InvalidInput("A constant is a number, or a text such as '1/3'.") from None


def replaced(number: Number, by: Sequence[Number]) -> Number:
    """With other numbers in the places of those that are released; totals are those of sums."""
    match number:
        case Told(index):
            return by[index]
        case Total(index):
            return _total(by[index])
        case Computed(sign, left, right):
            return Computed(sign, replaced(left, by), replaced(right, by))
        case Rounded(inner, digits):
            return Rounded(replaced(inner, by), digits)
    return number


def _total(number: Number) -> Number:
    match number:
        case Told(index):
            return Total(index)
        case Computed("+" | "-" as sign, left, right):
            return Computed(sign, _total(left), _total(right))
    raise InvalidWorkload("Only sums and counts are added up over all groups.")


# --- of what is no quotient of sums ---------------------------------------------------------------------

_COMPUTE: Final[dict[str, Callable[[FloatArray, FloatArray], FloatArray]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


class NoQuotient(InvalidWorkload):
    """A number that is no quotient of two sums."""


def _apart(number: Number) -> tuple[Quotient | None, tuple[Number, ...]]:
    """The number as a quotient of sums; else the two that it is computed from."""
    inner = number.inner if isinstance(number, Rounded) else number
    try:
        return number.quotient(), ()
    except NoQuotient:
        if not isinstance(inner, Computed):
            raise
        for part in (inner.left, inner.right):
            if any(isinstance(each, Rounded) for each in _within(part)):
                raise InvalidWorkload(
                    "A number is rounded last.", fixes=("round the whole number",)
                ) from None
        return None, (inner.left, inner.right)


def _within(number: Number) -> Iterator[Number]:
    yield number
    if isinstance(number, Computed):
        yield from _within(number.left)
        yield from _within(number.right)


def _sign(number: Number) -> str:
    inner = number.inner if isinstance(number, Rounded) else number
    assert isinstance(inner, Computed)
    return inner.sign


def _combined(sign: str, left: Ends, right: Ends) -> Ends:
    """The ends of a sum, a difference, a product or a quotient of two numbers between theirs.

    All four are largest and smallest where both numbers are at an end; a quotient as long as what is divided
    by is not zero in between.
    """
    certain = np.ones(len(left[0]), dtype=np.bool_)
    if sign == "/":
        certain = (right[0] > 0) | (right[1] < 0)
        right = np.where(certain, right[0], 1.0), np.where(certain, right[1], 1.0)
    corners = np.stack([_COMPUTE[sign](one, other) for one in left for other in right])
    low, high = corners.min(axis=0), corners.max(axis=0)
    low, high = low - _SLACK * np.abs(low), high + _SLACK * np.abs(high)
    return np.where(certain, low, math.nan), np.where(certain, high, math.nan)


def _to_places(number: Number, values: FloatArray) -> FloatArray:
    return _to_digits(values, number.digits) if isinstance(number, Rounded) else values


def _to_digits(values: FloatArray, digits: int) -> FloatArray:
    """Rounding keeps the order of numbers, so it keeps what lies between two of them."""
    unit = 10.0**digits
    return np.copysign(np.floor(np.abs(values) * unit + 0.5) / unit, values)


# --- quotients of sums --------------------------------------------------------------------------------

_Place = tuple[str, int]
"""``group`` or ``total``, and which released number."""


@final
@dataclass(frozen=True)
class Linear:
    """A sum of multiples of released numbers, and a constant."""

    times: Mapping[_Place, Fraction]
    constant: Fraction = Fraction(0)

    @property
    def fixed(self) -> Fraction | None:
        """What it is if it depends on nothing."""
        return self.constant if not self.times else None

    def scaled(self, factor: Fraction) -> Linear:
        """So many times as much."""
        return Linear(
            {place: n * factor for place, n in self.times.items() if factor}, self.constant * factor
        )

    def plus(self, other: Linear) -> Linear:
        """Both together."""
        times = dict(self.times)
        for place, n in other.times.items():
            times[place] = times.get(place, Fraction(0)) + n
        return Linear({place: n for place, n in times.items() if n}, self.constant + other.constant)

    def by(self, other: Linear) -> Linear:
        """The product, where one of both is a constant."""
        if other.fixed is not None:
            return self.scaled(other.fixed)
        if self.fixed is not None:
            return other.scaled(self.fixed)
        raise NoQuotient(
            "Released numbers are added, subtracted and divided by one another, but not multiplied.",
            fixes=("ask for each of them, and multiply what is told",),
        )


@final
@dataclass(frozen=True)
class Quotient:
    """One sum divided by another, and to how many decimal places it is told."""

    above: Linear
    below: Linear = field(default_factory=lambda: Linear({}, Fraction(1)))
    digits: int | None = None

    def plus(self, other: Quotient, sign: int) -> Quotient:
        """The sum or the difference, where both are divided by the same."""
        self._unrounded(other)
        signed = Fraction(sign)
        if self.below == other.below:
            return Quotient(self.above.plus(other.above.scaled(signed)), self.below)
        crossed = self.above.by(other.below), other.above.by(self.below).scaled(signed)
        return Quotient(crossed[0].plus(crossed[1]), self.below.by(other.below))

    def by(self, above: Linear, below: Linear) -> Quotient:
        """Times one sum, divided by another."""
        self._unrounded()
        if below.fixed == 0:
            raise InvalidWorkload("Nothing is divided by zero.")
        whole = Quotient(self.above.by(above), self.below.by(below))
        negative = whole.below.fixed is not None and whole.below.fixed < 0
        turned = Fraction(-1 if negative else 1)
        return Quotient(whole.above.scaled(turned), whole.below.scaled(turned))

    def _unrounded(self, *others: Quotient) -> None:
        if any(each.digits is not None for each in (self, *others)):
            raise InvalidWorkload("A number is rounded last.", fixes=("round the whole number",))

    def value(self, table: ReleasedTable) -> FloatArray:
        """From the released values; not a number where what is divided by may be zero or less."""
        boxes = _Boxes(table)
        above, below = (boxes.value(part) for part in (self.above, self.below))
        if self.below.fixed is not None:
            return self._told(above / below)
        certain = (boxes.least(self.below) > 0) & (below > 0)
        return self._told(np.divide(above, below, out=np.full(len(above), math.nan), where=certain))

    def interval(self, table: ReleasedTable) -> tuple[FloatArray, FloatArray]:
        """What it may be while every released number is in its interval; not a number where anything."""
        boxes = _Boxes(table)
        low = -boxes.most(self.above.scaled(Fraction(-1)), self.below)
        return self._told(low), self._told(boxes.most(self.above, self.below))

    def exact(self, table: ReleasedTable) -> BoolArray:
        """Where it is computed from exact numbers only."""
        known, total = np.ones(len(table.values), dtype=np.bool_), table.total()
        for scope, index in (*self.above.times, *self.below.times):
            known = known & (table.exact[:, index] if scope == "group" else total.exact[index])
        return known

    def _told(self, values: FloatArray) -> FloatArray:
        return values if self.digits is None else _to_digits(values, self.digits)


@final
class _Boxes:
    """For every group, the intervals of its own numbers and of those of all other groups together."""

    def __init__(self, table: ReleasedTable) -> None:
        total = table.total()
        self.values = np.hstack((table.values, total.values - table.values))
        self.low = np.hstack((table.low, total.low - table.low))
        self.high = np.hstack((table.high, total.high - table.high))
        self.columns = table.values.shape[1]

    def _times(self, part: Linear) -> FloatArray:
        """What each own number and each sum of the others counts; a total counts both."""
        times = np.zeros(2 * self.columns)
        for (scope, index), n in part.times.items():
            times[index] += float(n)
            if scope == "total":
                times[self.columns + index] += float(n)
        return times

    def value(self, part: Linear) -> FloatArray:
        """The sum, from the released values."""
        used = np.flatnonzero(self._times(part))
        return np.asarray(self.values[:, used] @ self._times(part)[used] + float(part.constant))

    def least(self, part: Linear) -> FloatArray:
        """The least that the sum may be while every released number is in its interval."""
        times = self._times(part)
        used = np.flatnonzero(times)
        ends = np.where(times[used] > 0, self.low[:, used], self.high[:, used])
        return np.asarray(ends @ times[used] + float(part.constant))

    def most(self, above: Linear, below: Linear) -> FloatArray:
        """The largest quotient (Dinkelbach): t is reached if no numbers make above − t·below positive.

        After every step t + (what above − t·below may still be) / (the least below) is an upper bound.
        """
        up, down = self._times(above), self._times(below)
        used = np.flatnonzero((up != 0) | (down != 0))
        low, high, up, down = self.low[:, used], self.high[:, used], up[used], down[used]
        plus, minus = float(above.constant), float(below.constant)
        least = self.least(below)
        certain = least > 0
        safe = np.where(certain, least, 1.0)
        best = np.full(len(low), -math.inf)
        t = ((low + high) / 2 @ up + plus) / np.where(certain, (low + high) / 2 @ down + minus, 1.0)
        for _ in range(_STEPS):
            weights = up - t[:, None] * down
            corner = np.where(weights > 0, high, low)
            reached = (corner @ up + plus) / np.where(certain, corner @ down + minus, 1.0)
            left = (corner * weights).sum(axis=1) + plus - t * minus
            best = np.where(certain, t + np.maximum(left, 0.0) / safe, math.nan)
            if not (certain & (reached > t)).any():
                break
            t = np.maximum(t, reached)
        return np.asarray(best + _SLACK * np.abs(best))
