"""What an expression of one column is for a value of it: no row is looked at for that.

``FLOOR(age / 10) * 10``, ``EXTRACT(MONTH FROM day)``, ``UPPER(region)``, ``ABS(age - 40)``: as a database
computes them where databases agree, and as PostgreSQL does where whole numbers are divided or halves are
rounded. What they do not agree on otherwise is not computed. Without a column an expression is a constant:
``DATE '2024-01-01' + INTERVAL '90 days'``.
"""

from __future__ import annotations

import calendar
import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Final

from sqlglot import exp

from blowfishdb.core.domain.dates import MONTHS, PARTS, WEEKDAYS
from blowfishdb.core.domain.values import moment
from blowfishdb.core.errors import InvalidInput, InvalidQuestion
from blowfishdb.language.text import number_from

PARTS_OF_DAYS: Final[dict[str, Callable[[date], int]]] = {
    **{part.upper(): PARTS[part] for part in ("year", "quarter", "month", "week", "day", "hour")},
    "DOW": lambda day: day.isoweekday() % 7,
    "ISODOW": PARTS["weekday"],
    "DOY": lambda day: day.timetuple().tm_yday,
}
_CALLED: Final[dict[type[exp.Expr], str]] = {
    exp.Year: "YEAR",
    exp.Quarter: "QUARTER",
    exp.Month: "MONTH",
    exp.Week: "WEEK",
    exp.WeekOfYear: "WEEK",
    exp.Day: "DAY",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
    exp.DayOfWeekIso: "ISODOW",
    exp.Hour: "HOUR",
}
"""Functions for parts of days on which databases agree; weeks are those of ISO 8601, as in DuckDB."""
STARTS_OF_DAYS: Final[dict[str, Callable[[date], date]]] = {
    "DAY": lambda day: day,
    "WEEK": lambda day: day - timedelta(days=day.weekday()),
    "MONTH": lambda day: day.replace(day=1),
    "QUARTER": lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
    "YEAR": lambda day: day.replace(month=1, day=1),
}
_TEXTS: Final[dict[type[exp.Expr], Callable[[str], str | int]]] = {
    exp.Upper: str.upper,
    exp.Lower: str.lower,
    exp.Length: len,
    exp.Trim: lambda text: text.strip(" "),
}
_WRITTEN: Final = {
    "%Y": "YYYY",
    "%m": "MM",
    "%d": "DD",
    "%y": "YY",
}
"""Parts of dates as C and as Oracle write them."""
_WHOLE: Final = {exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT}
_EXACT: Final = {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL}
_LETTERS: Final = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
_LONGEST: Final = 200
_FURTHEST: Final = 4_000_000  # days


class NotComputed(Exception):
    """An expression that is not computed here."""


def value_of(node: exp.Expr, value: Any = None) -> Any:
    """What the expression is for a value of its column; ``NotComputed`` where that is not said here.

    Whole numbers are ints, other numbers fractions: they are divided in different ways.
    """
    try:
        return _value(node, value)
    except (ArithmeticError, ValueError, TypeError, InvalidInput) as error:
        raise NotComputed from error


def _value(node: exp.Expr, value: Any) -> Any:
    match node:
        case exp.Column():
            return _read(value)
        case exp.Paren():
            return _value(node.this, value)
        case exp.Literal() if node.is_string:
            return str(node.this)
        case exp.Literal():
            typed = number_from(node.this)
            return typed if isinstance(typed, int) else Fraction(str(typed))
        case exp.Neg():
            return -_number(_value(node.this, value))
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            return _moved(_value(node.this, value), node.expression, 1 if isinstance(node, exp.Add) else -1)
        case exp.DateAdd() | exp.DateSub() if isinstance(node.expression, exp.Interval):
            sign = 1 if isinstance(node, exp.DateAdd) else -1
            return _moved(_value(node.this, value), node.expression, sign)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv() | exp.Mod():
            left, right = (_number(_value(side, value)) for side in (node.this, node.expression))
            return _calculated(node, left, right)
        case exp.Floor() | exp.Ceil() | exp.Abs() | exp.Round() | exp.Trunc():
            return _rounded(node, _undivided(node, value))
        case exp.Cast():
            return _cast(node, _value(node.this, value))
        case exp.Extract():
            return _part(node.this.name.upper(), _value(node.expression, value))
        case exp.Dayname() | exp.Monthname():
            day = _day(_value(node.this, value))
            return WEEKDAYS[day.weekday()] if isinstance(node, exp.Dayname) else MONTHS[day.month - 1]
        case exp.DateTrunc() | exp.TimestampTrunc():
            unit, inner = str(node.args["unit"].name).upper(), _value(node.this, value)
            if unit in ("HOUR", "MINUTE") and isinstance(inner, datetime):
                return datetime(
                    inner.year, inner.month, inner.day, inner.hour, inner.minute * (unit != "HOUR")
                )
            return STARTS_OF_DAYS[unit](_day(inner))
        case exp.Date() if len(_given(node)) == 1:
            return _day(_value(node.this, value))
        case exp.ToChar() if node.args.get("format") is not None:
            return _dated(_day(_value(node.this, value)), _text(_value(node.args["format"], value)))
        case exp.WidthBucket():
            return _bucket(node, Fraction(_number(_value(node.this, value))))
        case exp.Anonymous():
            return _called(node, value)
    if type(node) in _CALLED and len(_given(node)) == 1:
        return _part(_CALLED[type(node)], _value(node.this, value))
    return _of_text(node, value)


def _read(value: Any) -> Any:
    if isinstance(value, bool | int | str | date | Fraction):
        return value
    if value is None:
        raise NotComputed
    return Fraction(str(value))


# --- numbers ----------------------------------------------------------------------------------------


def _number(value: Any) -> int | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise NotComputed
    return value


def _calculated(node: exp.Expr, left: int | Fraction, right: int | Fraction) -> int | Fraction:
    match node:
        case exp.Add():
            return left + right
        case exp.Sub():
            return left - right
        case exp.Mul():
            return left * right
    whole = isinstance(left, int) and isinstance(right, int)
    if isinstance(node, exp.Div) and not whole:
        return Fraction(left) / right
    if left < 0 or right <= 0:
        raise NotComputed  # databases do not agree on which way these are rounded
    if isinstance(node, exp.Mod):
        return left % right
    return left // right


def _undivided(node: exp.Expr, value: Any) -> int | Fraction:
    """What is rounded; a quotient of whole numbers exactly, where that makes no difference in the end."""
    inner = node.this.unnest()
    if not isinstance(inner, exp.Div):
        return _number(_value(inner, value))
    top, bottom = (_number(_value(side, value)) for side in (inner.this, inner.expression))
    whole = isinstance(top, int) and isinstance(bottom, int) and top % bottom
    if whole and not isinstance(node, exp.Floor) and not (isinstance(node, exp.Trunc) and top >= 0):
        raise NotComputed
    return Fraction(top) / bottom


def divides_whole_numbers(node: exp.Expr) -> bool:
    """Whether there may be something left that some databases keep and others do not."""
    return any(
        isinstance(each.expression, exp.Literal)
        and "." not in str(each.expression.this)
        and not isinstance(each.parent, exp.Floor)
        for each in node.find_all(exp.Div)
    )


def exactly(node: exp.Expr) -> exp.Expr | None:
    """The same with exact divisions; None where no whole numbers are divided."""
    if not divides_whole_numbers(node):
        return None
    exact = node.copy()
    for each in list(exact.find_all(exp.Div)):
        if isinstance(each.expression, exp.Literal) and "." not in str(each.expression.this):
            each.set("expression", exp.Literal.number(f"{each.expression.this}.0"))
    return exact


def _rounded(node: exp.Expr, number: int | Fraction) -> int | Fraction:
    """Floors, ceilings and rounded numbers are no whole numbers to a database: they are divided exactly."""
    size: int | Fraction = number if number >= 0 else -number
    match node:
        case exp.Abs():
            return size
        case exp.Floor() if not node.args.get("decimals"):
            return Fraction(math.floor(number))
        case exp.Ceil() if not node.args.get("decimals"):
            return Fraction(math.ceil(number))
        case exp.Trunc():
            digits = node.args.get("decimals")
            if digits is None or value_of(digits) == 0:
                return Fraction(math.trunc(number))
        case exp.Round() if not node.args.get("truncate"):
            said = node.args.get("decimals")
            digits = 0 if said is None else value_of(said)
            if isinstance(digits, int) and abs(digits) <= _LONGEST:
                unit = Fraction(10**-digits) if digits < 0 else Fraction(1, 10**digits)
                away = math.floor(size / unit + Fraction(1, 2)) * unit  # halves away from zero
                return away if number >= 0 else -away
    raise NotComputed


def _bucket(node: exp.WidthBucket, number: Fraction) -> int:
    names = ("min_value", "max_value", "num_buckets")
    low, high, count = (_number(value_of(node.args[name])) for name in names)
    if not low < high or not isinstance(count, int) or count < 1:
        raise NotComputed
    return min(max(math.floor((number - low) * count / Fraction(high - low)) + 1, 0), count + 1)


def increasing(node: exp.Expr) -> bool:
    """Whether the expression never falls while its column grows, as its form shows."""
    match node:
        case exp.Column():
            return True
        case exp.Paren() | exp.Floor() | exp.Ceil() | exp.Round() | exp.Trunc() | exp.WidthBucket():
            return increasing(node.this)
        case exp.Cast() if node.to.this not in _LETTERS:
            return increasing(node.this)
        case exp.Add() | exp.Sub() if not any(node.expression.find_all(exp.Column)):
            return increasing(node.this)
        case exp.Sub() if isinstance(node.expression, exp.Mod):
            return isinstance(node.this, exp.Column) and node.this == node.expression.this
        case exp.Mul() | exp.Div() | exp.IntDiv() if not any(node.expression.find_all(exp.Column)):
            return isinstance(node.expression, exp.Literal) and increasing(node.this)
        case exp.Extract() if node.this.name.upper() == "YEAR":
            return increasing(node.expression)
        case exp.Year() | exp.DateTrunc() | exp.TimestampTrunc():
            return increasing(node.this)
    return False


# --- days -------------------------------------------------------------------------------------------


def _day(value: Any) -> date:
    """The day of a moment, or one that is written as a text."""
    said = moment(value, "A day", InvalidQuestion) if isinstance(value, str) else value
    if isinstance(said, datetime):
        return said.date()
    if not isinstance(said, date):
        raise NotComputed
    return said


def _part(unit: str, value: Any) -> int:
    """``EXTRACT(YEAR FROM day)``, ``YEAR(day)``."""
    if unit not in PARTS_OF_DAYS or (unit == "HOUR" and not isinstance(value, datetime)):
        raise NotComputed
    return PARTS_OF_DAYS[unit](value if unit == "HOUR" else _day(value))


def _moved(value: Any, length: exp.Interval, sign: int) -> date:
    """A day so many days, weeks, months or years later; the last of a month where it has no such day."""
    day, unit = _day(value), "" if length.unit is None else str(length.unit.name).upper().removesuffix("S")
    amount = number_from(str(length.this.this)) if isinstance(length.this, exp.Literal) else None
    if not isinstance(amount, int) or amount > _FURTHEST:
        raise NotComputed
    months = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}.get(unit)
    if months is None:
        days = {"DAY": 1, "WEEK": 7}.get(unit)
        if days is None:
            raise NotComputed
        return day + timedelta(days=sign * amount * days)
    year, month = divmod(12 * day.year + day.month - 1 + sign * amount * months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _dated(day: date, form: str) -> str:
    """A day as TO_CHAR and STRFTIME write it."""
    for short, long in _WRITTEN.items():
        form = form.replace(short, long)
    written = form
    for letters, text in (
        ("YYYY", f"{day.year:04}"),
        ("MM", f"{day.month:02}"),
        ("DD", f"{day.day:02}"),
        ("YY", f"{day.year % 100:02}"),
        ("%A", WEEKDAYS[day.weekday()]),
        ("%a", WEEKDAYS[day.weekday()][:3]),
        ("%B", MONTHS[day.month - 1]),
        ("%b", MONTHS[day.month - 1][:3]),
    ):
        form, written = form.replace(letters, ""), written.replace(letters, text)
    if any(letter.isalpha() or letter in '%"' for letter in form):
        raise NotComputed
    return written


_MOMENTS: Final = ("YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD HH24:MI:SS.MS")


def _called(node: exp.Anonymous, value: Any) -> Any:
    name, given = str(node.this).upper(), node.expressions
    if len(given) != 2:
        raise NotComputed
    if name in ("STRFTIME", "DATE_FORMAT"):
        form, day = given if isinstance(given[0], exp.Literal) else reversed(given)
        return _dated(_day(_value(day, value)), _text(_value(form, value)))
    if name == "TO_TIMESTAMP" and str(given[1].this).upper() in _MOMENTS:
        written = _text(_value(given[0], value))
        read = moment(written, "A moment", InvalidQuestion)
        return read if isinstance(read, datetime) else datetime(read.year, read.month, read.day)
    if name == "TO_DATE" and str(given[1].this).upper() == "YYYY-MM-DD":
        return _day(_value(given[0], value))
    raise NotComputed


# --- texts ------------------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NotComputed
    return value


def _of_text(node: exp.Expr, value: Any) -> str | int:
    match node:
        case exp.Upper() | exp.Lower() | exp.Length() | exp.Trim() if len(_given(node)) == 1:
            return _TEXTS[type(node)](_text(_value(node.this, value)))
        case exp.Left() | exp.Right():
            inner, letters = _text(_value(node.this, value)), _length(node.expression)
            return inner[:letters] if isinstance(node, exp.Left) else inner[max(0, len(inner) - letters) :]
        case exp.Replace() if len(_given(node)) == 3:
            inner, part, other = (
                _text(_value(node.args[name], value)) for name in ("this", "expression", "replacement")
            )
            return inner.replace(part, other) if part else inner
        case exp.StrPosition() if len(_given(node)) == 2:
            return _text(_value(node.this, value)).find(_text(_value(node.args["substr"], value))) + 1
        case exp.Substring() if node.args.get("start") is not None:
            inner, start = _text(_value(node.this, value)), _length(node.args["start"])
            length = node.args.get("length")
            if start < 1:
                raise NotComputed
            return inner[start - 1 :][: None if length is None else _length(length)]
        case exp.Concat() | exp.DPipe():
            parts = node.expressions if isinstance(node, exp.Concat) else (node.this, node.expression)
            return "".join(_text(_value(part, value)) for part in parts)
    raise NotComputed


def forgets_missing(node: exp.Expr) -> bool:
    """Whether there may be something where the column has no value: some databases join a NULL as nothing."""
    return node.find(exp.Concat) is not None


def _length(node: exp.Expr) -> int:
    letters = value_of(node)
    if isinstance(letters, bool) or not isinstance(letters, int) or letters < 0:
        raise NotComputed
    return letters


def _cast(node: exp.Cast, inner: Any) -> Any:
    """A cast that no database rounds and that cannot fail."""
    kind, plain = node.to.this, not node.to.expressions
    if kind in _LETTERS and isinstance(inner, str | int) and not isinstance(inner, bool):
        return str(inner)
    if kind == exp.DataType.Type.DATE and plain:
        return _day(inner)
    if kind in _WHOLE and Fraction(_number(inner)).denominator == 1:
        return int(inner)
    if kind in _EXACT and plain:
        return Fraction(_number(inner))
    raise NotComputed


def _given(node: exp.Expr) -> list[str]:
    return [name for name, given in node.args.items() if given]
