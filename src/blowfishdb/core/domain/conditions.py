"""Conditions on single columns, and ``col``, which writes them.

``(col("age") >= 30) & ~col("sex").isin(["F"])`` is a tree that can be checked, shown and evaluated.

On the cells of a domain a condition speaks of the encoded value (clamped, rounded). One that would cut
through a cell is refused, because nothing finer than a cell is ever counted.

Constants that columns are compared with, and how a raw value compares with one.

Numbers compare by their decimal text (0.1 is 1/10), and a date stands for its whole day when a moment is
compared with it: ``between("2024-01-01", "2024-01-31")`` includes the afternoon of the last day.
"""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final, NoReturn, final

import numpy as np

from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.core.domain.attribute import Attribute, Missing
from blowfishdb.core.domain.attributes import Category
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.predicates import Atom, Spans, Truth
from blowfishdb.core.domain.values import exact, is_null, moment, plain, text
from blowfishdb.core.errors import InvalidPredicate, InvalidValue, ReversedBounds

Constant = bool | int | float | Fraction | Decimal | str | date
"""What a column can be compared with."""


def constant(value: object, column: str) -> Constant:
    """A typed constant as a plain Python value."""
    if is_null(value):
        raise InvalidPredicate(
            f"{column!r} cannot be compared with a missing value.", fixes=(f"col({column!r}).is_missing()",)
        )
    scalar = plain(value)
    if not isinstance(scalar, (bool, int, float, Fraction, Decimal, str, date)):
        raise InvalidPredicate(
            f"{column!r} can be compared with a number, a text, a date or a boolean, "
            f"not with {type(value).__name__}."
        )
    if isinstance(scalar, (float, Decimal)) and not math.isfinite(scalar):
        raise InvalidPredicate(f"{column!r} cannot be compared with {scalar}, which is not finite.")
    if isinstance(scalar, date):
        return moment(scalar, f"The moment that {column!r} is compared with", InvalidPredicate)
    return scalar


def sign(value: object, other: Constant, attribute: Attribute | None, *, needs_order: bool) -> int:
    """-1, 0 or 1 as a raw value is below, equal to or above a constant.

    The attribute, where known, says whether a text is a date or has a place in a list.
    """
    value = plain(value)
    if isinstance(attribute, Category):
        left, right = _rank(value, attribute), _rank(other, attribute)
        return (left > right) - (left < right)
    if isinstance(attribute, Date) or isinstance(value, date) or isinstance(other, date):
        earlier, later = (moment(v, "The other side of a date", InvalidPredicate) for v in (value, other))
        earlier, later = _same_precision(earlier, later)
        return (earlier > later) - (earlier < later)
    if isinstance(value, str) and isinstance(other, str):
        if needs_order and value != other:
            raise InvalidPredicate("Only a domain knows the order of texts.", fixes=("pass domain=",))
        return int(value != other)
    x, y = (int(v) if isinstance(v, bool) else exact(v) for v in (value, other))
    if x is None or y is None:
        raise InvalidPredicate(f"{type(value).__name__} and {type(other).__name__} cannot be compared.")
    return (x > y) - (x < y)


def _rank(value: object, listed: Category) -> int:
    """The place of a value in the list; anything that is not listed comes after it."""
    try:
        return listed.span(value)[0]
    except InvalidValue:
        return listed.ticks


def _same_precision(value: date, constant: date) -> tuple[date, date]:
    """A date stands for its whole day when a moment is compared with it."""
    if isinstance(value, datetime) and not isinstance(constant, datetime):
        return value.date(), constant
    if isinstance(constant, datetime) and not isinstance(value, datetime):
        return datetime.combine(value, time()), constant
    return value, constant


def shown(value: Constant) -> str:
    """A constant as it is written in a condition."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, date):
        return f"'{text(value)}'"
    return text(value) if isinstance(value, Fraction) else str(value)


class Op(Enum):
    """How a column is compared with a constant."""

    GE = ">="
    GT = ">"
    LE = "<="
    LT = "<"
    EQ = "=="
    NE = "!="

    @property
    def needs_order(self) -> bool:
        """Whether the comparison has a meaning only on a line."""
        return self not in (Op.EQ, Op.NE)

    def holds(self, sign: int) -> bool:
        """Whether it is true of a value whose comparison with the constant has this sign."""
        return bool(COMPARES[self](sign, 0))


_WITHOUT_CELL: dict[Missing, str] = {
    "none": "The column is declared to have no missing values.",
    "drop": "Rows without a value are left out of every question about the column.",
    "clamp": "Missing values count as one of the declared values.",
}
COMPARES: Final[dict[Op, Callable[[Any, Any], bool]]] = {
    Op.GE: operator.ge,
    Op.GT: operator.gt,
    Op.LE: operator.le,
    Op.LT: operator.lt,
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
}


class ValueAtom(Atom):
    """A condition on the value of one column; unknown where the value is missing."""

    __slots__ = ()

    @abstractmethod
    def ticks(self, attribute: Attribute) -> Spans:
        """The ticks on which it is true, not yet limited to those of the column."""

    @abstractmethod
    def holds(self, compare: Callable[[Constant], int]) -> bool:
        """Whether it is true of a value, given how the value compares with a constant."""

    @property
    @abstractmethod
    def needs_order(self) -> bool:
        """Whether it has a meaning only on a line."""

    def cells(self, attribute: Attribute) -> Spans:
        if self.needs_order and not attribute.ordered:
            raise InvalidPredicate(
                f"{self}: unordered categories have no order.",
                fixes=("use ==, != or .isin()", "declare the category with ordered=True"),
            )
        try:
            spans = _merged(self.ticks(attribute), attribute.ticks)
        except InvalidValue as error:
            raise InvalidPredicate(f"{self}: {error.message}") from None
        for first, stop in spans:
            self._refuse_cut(attribute, first, "starts", 0)
            self._refuse_cut(attribute, stop, "ends", -1)
        width = attribute.ticks_per_cell
        return [(first // width, ceil_div(stop, width)) for first, stop in spans]

    def _refuse_cut(self, attribute: Attribute, tick: int, does: str, shift: int) -> None:
        width = attribute.ticks_per_cell
        if tick % width == 0 or tick == attribute.ticks:
            return
        below = tick // width * width
        near = [t + shift for t in (below, min(below + width, attribute.ticks)) if t + shift >= 0]
        aligned = " or ".join(text(attribute.at(t)) for t in near if t < attribute.ticks)
        raise InvalidPredicate(
            f"{self} {does} in the middle of the cell {attribute.label(tick // width)}, "
            "and nothing finer than a cell is counted.",
            fixes=(f"a condition that {does} with {aligned}",),
        )

    def on_value(self, value: object, attribute: Attribute | None) -> Truth:
        if is_null(value):
            return np.asarray(False), np.asarray(False)
        held = np.asarray(
            self.holds(lambda other: sign(value, other, attribute, needs_order=self.needs_order))
        )
        return held, ~held

    def on_cells_of(self, attribute: Attribute, cells: IntArray) -> Truth:
        ends = np.array([end for span in self.cells(attribute) for end in span], dtype=np.int64)
        held = np.searchsorted(ends, cells, side="right") % 2 == 1
        present = (cells >= 0) & (cells < attribute.value_count)
        return held & present, ~held & present


@final
@dataclass(frozen=True, slots=True)
class Comparison(ValueAtom):
    """``column op value``."""

    column: str
    op: Op
    value: Constant

    def __post_init__(self) -> None:
        _check_column(self.column)
        if not isinstance(self.op, Op):
            raise InvalidPredicate(f"{self.op!r} is not a comparison; use one of Op.")
        object.__setattr__(self, "value", constant(self.value, self.column))

    @property
    def needs_order(self) -> bool:
        return self.op.needs_order

    def ticks(self, attribute: Attribute) -> Spans:
        first, stop = attribute.span(self.value)
        if self.op in (Op.EQ, Op.NE):
            _check_possible(self.value, first, stop, attribute)
        everything: dict[Op, Spans] = {
            Op.GE: [(first, attribute.ticks)],
            Op.GT: [(stop, attribute.ticks)],
            Op.LE: [(0, stop)],
            Op.LT: [(0, first)],
            Op.EQ: [(first, stop)],
            Op.NE: [(0, first), (stop, attribute.ticks)],
        }
        return everything[self.op]

    def holds(self, compare: Callable[[Constant], int]) -> bool:
        return self.op.holds(compare(self.value))

    def __str__(self) -> str:
        return f"{self.column} {self.op.value} {shown(self.value)}"


@final
@dataclass(frozen=True, slots=True)
class Between(ValueAtom):
    """``lo <= column <= hi``, both included."""

    column: str
    lo: Constant
    hi: Constant

    def __post_init__(self) -> None:
        _check_column(self.column)
        for name in ("lo", "hi"):
            object.__setattr__(self, name, constant(getattr(self, name), self.column))
        if not isinstance(self.lo, str) and sign(self.lo, self.hi, None, needs_order=True) > 0:
            raise ReversedBounds(f"{self}: the lower bound is above the upper bound.")

    @property
    def needs_order(self) -> bool:
        return True

    def ticks(self, attribute: Attribute) -> Spans:
        (first, _), (last, stop) = attribute.span(self.lo), attribute.span(self.hi)
        if last < first and stop <= first:
            raise ReversedBounds(f"{self}: the lower bound is above the upper bound.")
        return [(first, stop)]

    def holds(self, compare: Callable[[Constant], int]) -> bool:
        return compare(self.lo) >= 0 and compare(self.hi) <= 0

    def __str__(self) -> str:
        return f"{self.column} between {shown(self.lo)} and {shown(self.hi)}"


@final
@dataclass(frozen=True, slots=True)
class IsIn(ValueAtom):
    """The column has one of the listed values."""

    column: str
    values: tuple[Constant, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        values: object = self.values
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise InvalidPredicate(f".isin() on {self.column!r} needs a list of values, not {values!r}.")
        listed = tuple(dict.fromkeys(constant(value, self.column) for value in values))
        if not listed:
            raise InvalidPredicate(f".isin() on {self.column!r} needs at least one value.")
        object.__setattr__(self, "values", listed)

    @property
    def needs_order(self) -> bool:
        return False

    def ticks(self, attribute: Attribute) -> Spans:
        spans = [(value, *attribute.span(value)) for value in self.values]
        for value, first, stop in spans:
            _check_possible(value, first, stop, attribute)
        return [(first, stop) for _, first, stop in spans]

    def holds(self, compare: Callable[[Constant], int]) -> bool:
        return any(compare(value) == 0 for value in self.values)

    def __str__(self) -> str:
        return f"{self.column} in ({', '.join(map(shown, self.values))})"


@final
@dataclass(frozen=True, slots=True)
class IsMissing(Atom):
    """The column is NULL; never unknown. Only a column that keeps missing values apart can be asked."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)

    def cells(self, attribute: Attribute) -> Spans:
        if attribute.has_missing_cell:
            return []
        raise InvalidPredicate(
            f"{self}: who has no value cannot be told here. {_WITHOUT_CELL[attribute.missing]}",
            fixes=("leave the condition out", "ask the curator to declare missing='value' or 'public'"),
        )

    def on_value(self, value: object, attribute: Attribute | None) -> Truth:
        held = np.asarray(is_null(value))
        return held, ~held

    def on_cells_of(self, attribute: Attribute, cells: IntArray) -> Truth:
        held = cells == attribute.value_count
        return held, ~held

    def __str__(self) -> str:
        return f"{self.column} is missing"


@final
class Column:
    """A named column, waiting for a comparison."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        _check_column(name)
        self.name = name

    def __ge__(self, value: Constant) -> Comparison:
        return Comparison(self.name, Op.GE, value)

    def __gt__(self, value: Constant) -> Comparison:
        return Comparison(self.name, Op.GT, value)

    def __le__(self, value: Constant) -> Comparison:
        return Comparison(self.name, Op.LE, value)

    def __lt__(self, value: Constant) -> Comparison:
        return Comparison(self.name, Op.LT, value)

    def __eq__(self, value: Constant) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, Op.EQ, value)

    def __ne__(self, value: Constant) -> Comparison:  # type: ignore[override]
        return Comparison(self.name, Op.NE, value)

    def between(self, lo: Constant, hi: Constant) -> Between:
        """From ``lo`` to ``hi``, both included."""
        return Between(self.name, lo, hi)

    def isin(self, values: Iterable[Constant]) -> IsIn:
        """One of the listed values."""
        return IsIn(self.name, values)  # type: ignore[arg-type]

    def is_missing(self) -> IsMissing:
        """NULL."""
        return IsMissing(self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def _refuse(self, *_: object) -> NoReturn:
        raise InvalidPredicate(
            f"The column {self.name!r} is not a condition.", fixes=(f"col({self.name!r}) == True",)
        )

    __and__ = __rand__ = __or__ = __ror__ = __invert__ = __bool__ = _refuse

    def __repr__(self) -> str:
        return f"col({self.name!r})"


def col(name: str) -> Column:
    """The column to write a condition about: ``col("age") >= 30``."""
    return Column(name)


def _check_column(name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidPredicate(f"A column is named by a text, not {name!r}.")


def _check_possible(value: Constant, first: int, stop: int, attribute: Attribute) -> None:
    """Equality with a value that the column cannot have is a slip, as an unknown category is."""
    if first < stop and first < attribute.ticks and stop > 0:
        return
    near = sorted({min(max(tick, 0), attribute.ticks - 1) for tick in (first - 1, first)})
    choices = " and ".join(text(attribute.at(tick)) for tick in near)
    raise InvalidValue(f"{shown(value)} is not a value of the column; the nearest: {choices}.")


def _merged(spans: Spans, ticks: int) -> Spans:
    """The spans inside the column, in order, joined where they touch."""
    merged: Spans = []
    for first, stop in sorted((max(first, 0), min(stop, ticks)) for first, stop in spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif first < stop:
            merged.append((first, stop))
    return merged
