"""Raw values, as a column or a user writes them: NULL, exact numbers, moments, readable text.

A float stands for the decimal that was typed (0.1 is 1/10, not its binary neighbour), so a grid of 0.1 is
exact. Messages name types and never values: the same functions read data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.errors import InvalidInput, InvalidValue, NotFinite

Number = int | float | str | Fraction | Decimal
"""What a user may type for a number."""

Value = bool | int | Fraction | str | date
"""What a cell of an attribute stands for (a ``datetime`` is a ``date``)."""

_LONGEST_INTEGER = 3400  # bits, about as many as 1,000 digits; Python writes no more than 4,300 of them
_LONGEST_EXPONENT = 1000  # "1e999999999" is short to type and fills the memory


def is_null(value: object) -> bool:
    """None, NaN, NaT and pandas.NA: the ways in which a column says that it does not know."""
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (float, date, np.generic)):
        return bool(value != value)  # noqa: PLR0124 - only NaN and NaT differ from themselves
    return value is None or type(value).__name__ == "NAType"  # pandas.NA, without importing pandas


def plain(value: object) -> object:
    """NumPy and pandas scalars as the Python values they stand for; anything else unchanged."""
    if isinstance(value, np.datetime64):
        whole_days = np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D")
        return value.astype("datetime64[D]" if whole_days else "datetime64[us]").item()
    if isinstance(value, np.timedelta64):
        return value.astype("timedelta64[us]").item()
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, datetime) and type(value) is not datetime and not is_null(value):
        return datetime.combine(value.date(), value.timetz())
    return value


def exact(value: object) -> Fraction | float | None:
    """A number as the fraction its decimal text says; infinities and NaN as floats; None if not a number."""
    value = plain(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return Fraction(repr(value)) if math.isfinite(value) else value
    if isinstance(value, Decimal):
        return _from_decimal(value)
    if isinstance(value, int) and value.bit_length() > _LONGEST_INTEGER:
        return math.inf if value > 0 else -math.inf
    return Fraction(value) if isinstance(value, (int, Fraction)) else None


def _from_decimal(value: Decimal) -> Fraction | float:
    """Exact, except that exponents beyond any bound are infinite or next to zero."""
    if value.is_nan() or not value:
        return math.nan if value.is_nan() else Fraction(0)
    if value.is_infinite() or value.adjusted() > _LONGEST_EXPONENT:
        return math.copysign(math.inf, value)
    if value.adjusted() < -_LONGEST_EXPONENT:
        return Fraction(-1 if value < 0 else 1, 10**_LONGEST_EXPONENT)
    return Fraction(value)


def data_number(value: object, column: str) -> Fraction | float:
    """A number in a column of data; infinities stay floats."""
    number = exact(value)
    if number is None:
        raise InvalidValue(f"{column} holds numbers, not {type(value).__name__}.")
    return number


def finite(value: object, column: str) -> Fraction:
    """A number that a user compares a column with."""
    number = data_number(value, column)
    if isinstance(number, float):
        raise InvalidValue(f"{column} holds finite numbers, not {number}.")
    return number


def number(value: object, what: str, error: type[InvalidInput]) -> Fraction:
    """A finite number that a user typed, perhaps as text (``"0.1"``, ``"1/3"``)."""
    parsed = _from_text(value) if isinstance(value, str) else exact(value)
    if parsed is None:
        raise error(f"{what} must be a number, not {value!r}.")
    if isinstance(parsed, float):
        long = isinstance(value, int)  # Python itself refuses to write it
        raise NotFinite(f"{what} must be a finite number, not {'one so long' if long else value}.")
    return parsed


def _from_text(text: str) -> Fraction | float | None:
    try:
        if "/" in text:
            return Fraction(text)
        decimal = Decimal(text)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        return None
    return _from_decimal(decimal)


def moment(value: object, what: str, error: type[InvalidInput]) -> date:
    """A date or a datetime without time zone, perhaps as ISO text."""
    value = plain(value)
    if is_null(value):
        raise error(f"{what} is missing.")
    if isinstance(value, str):
        try:
            value = date.fromisoformat(value)
        except ValueError:
            try:
                value = datetime.fromisoformat(str(value))
            except ValueError:
                raise error(f"{what} is text that is not a date; write it as '2024-12-31'.") from None
    if not isinstance(value, date):
        raise error(f"{what} must be a date, a datetime or ISO text, not {type(value).__name__}.")
    if isinstance(value, datetime) and value.tzinfo is not None:
        raise error(
            f"{what} has a time zone; the same moment would fall in different cells for different zones.",
            fixes=("convert everything to one zone and drop it with .replace(tzinfo=None)",),
        )
    return value


def as_column(values: object) -> NDArray[Any] | list[object]:
    """One column of data: a NumPy array where that loses nothing, a list otherwise."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidValue(f"A column is a list or an array of values, not {type(values).__name__}.")
    if hasattr(values, "to_pylist"):  # Arrow: its scalars are not Python values
        return list(values.to_pylist())
    if not isinstance(getattr(values, "dtype", None), np.dtype):  # a list, Polars, nullable pandas
        return list(values)
    array: NDArray[Any] = np.asarray(values)
    if array.ndim != 1:
        raise InvalidValue(f"A column has one dimension, and this array has {array.ndim}.")
    return array


def text(value: Value, *, grouped: bool = False) -> str:
    """How a value is shown to people: 0.25 rather than 1/4, ISO dates; 10,000 with ``grouped`` digits."""
    if grouped and isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Fraction):
        return _decimal_text(value)
    if isinstance(value, str):
        return value if value.strip() else repr(value)  # a blank would not be seen
    return value.isoformat() if isinstance(value, date) else str(value)


def _decimal_text(value: Fraction) -> str:
    digits = next((k for k in range(40) if 10**k % value.denominator == 0), None)
    if digits is None:
        return str(value)
    whole, rest = divmod(abs(value.numerator) * 10**digits // value.denominator, 10**digits)
    return f"{'-' if value < 0 else ''}{whole}" + (f".{rest:0{digits}d}" if digits else "")
