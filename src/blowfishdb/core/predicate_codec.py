"""Values and conditions as plain data and back, so that a question can travel as JSON.

A condition is ``{"column": "age", "op": ">=", "value": 30}``, ``{"op": "and", "of": […]}`` and so on.
Numbers, texts and booleans are themselves; a date is ``{"date": "2024-12-31"}``, an exact fraction
``{"number": "1/3"}`` and a length of time ``{"seconds": "604800"}``. Reading calls the constructors, so what
arrives is checked like anything typed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from blowfishdb.core.errors import InvalidInput, InvalidPredicate, NotFinite
from blowfishdb.core.predicate import DEEPEST
from blowfishdb.core.predicates import (
    And,
    Between,
    Comparison,
    Everything,
    IsIn,
    IsMissing,
    Not,
    Op,
    Or,
    Predicate,
)
from blowfishdb.core.values import moment, number
from blowfishdb.core.values import plain as python_value


def plain_value(value: object) -> Any:
    """A value that someone typed, as JSON-ready data."""
    found = python_value(value)
    if isinstance(found, date):
        return {"date": found.isoformat()}
    if isinstance(found, Fraction | Decimal):
        return {"number": str(found)}
    if isinstance(found, timedelta):
        return {"seconds": str(Fraction(found // timedelta.resolution, 10**6))}
    if isinstance(found, float) and not math.isfinite(found):
        raise NotFinite(f"A value must be a finite number, not {found}.")
    if found is None or isinstance(found, bool | int | float | str):
        return found
    raise InvalidInput(f"A value can be a number, a text, a date or a boolean, not {type(value).__name__}.")


def value_from(stored: object) -> Any:
    """A value from its plain form."""
    if isinstance(stored, Mapping):
        if set(stored) == {"date"}:
            return moment(stored["date"], "A date", InvalidInput)
        if set(stored) == {"number"}:
            return number(stored["number"], "A number", InvalidInput)
        if set(stored) == {"seconds"}:
            return _length(number(stored["seconds"], "A length of time", InvalidInput))
        raise InvalidInput(
            "A value is a number, a text, a boolean, {'date': …}, {'number': …} or {'seconds': …}."
        )
    if stored is None or isinstance(stored, bool | int | float | str):
        return stored
    raise InvalidInput(f"A value cannot be a {type(stored).__name__}.")


def _length(seconds: Fraction) -> timedelta:
    try:
        return timedelta(microseconds=int(seconds * 10**6))
    except OverflowError:
        raise InvalidInput("A length of time is longer than any column of dates.") from None


def plain_condition(predicate: Predicate) -> dict[str, Any]:
    """A condition as JSON-ready data."""
    match predicate:
        case Everything():
            return {"op": "everything"}
        case And(parts):
            return {"op": "and", "of": [plain_condition(part) for part in parts]}
        case Or(parts):
            return {"op": "or", "of": [plain_condition(part) for part in parts]}
        case Not(part):
            return {"op": "not", "of": [plain_condition(part)]}
        case Comparison(column, op, value):
            return {"column": column, "op": op.value, "value": plain_value(value)}
        case Between(column, lo, hi):
            return {"column": column, "op": "between", "low": plain_value(lo), "high": plain_value(hi)}
        case IsIn(column, values):
            return {"column": column, "op": "in", "values": [plain_value(value) for value in values]}
        case IsMissing(column):
            return {"column": column, "op": "missing"}
    raise InvalidPredicate(f"{type(predicate).__name__} cannot be sent.")


def condition_from(stored: object, depth: int = 0) -> Predicate:
    """A condition from its plain form."""
    if depth > DEEPEST:
        raise InvalidPredicate("This condition is nested too deeply.", fixes=("a flatter one",))
    if not isinstance(stored, Mapping):
        raise InvalidPredicate("A condition is an object with an 'op'.", fixes=('{"op": "everything"}',))
    op = stored.get("op")
    if op == "everything":
        return Everything()
    if op in ("and", "or", "not"):
        return _combined(op, [condition_from(part, depth + 1) for part in _listed(stored, "of")])
    column = stored.get("column")
    builders: dict[object, Callable[[], Predicate]] = {
        "between": lambda: Between(
            _text(column), value_from(stored.get("low")), value_from(stored.get("high"))
        ),
        "in": lambda: IsIn(_text(column), tuple(value_from(v) for v in _listed(stored, "values"))),
        "missing": lambda: IsMissing(_text(column)),
        **{o.value: lambda o=o: Comparison(_text(column), o, value_from(stored.get("value"))) for o in Op},  # type: ignore[misc]
    }
    if not isinstance(op, str) or op not in builders:
        known = ", ".join(["everything", "and", "or", "not", *map(str, builders)])
        raise InvalidPredicate(f"A condition's 'op' is one of {known}.")
    return builders[op]()


def _combined(op: str, parts: Sequence[Predicate]) -> Predicate:
    if op == "not":
        if len(parts) != 1:
            raise InvalidPredicate("'not' is about one condition.")
        return Not(parts[0])
    return And(tuple(parts)) if op == "and" else Or(tuple(parts))


def _listed(stored: Mapping[str, Any], name: str) -> Sequence[Any]:
    found = stored.get(name)
    if not isinstance(found, list | tuple):
        raise InvalidPredicate(f"A condition's '{name}' is a list.")
    return found


def _text(column: object) -> str:
    if not isinstance(column, str):
        raise InvalidPredicate("A condition names its 'column'.")
    return column
