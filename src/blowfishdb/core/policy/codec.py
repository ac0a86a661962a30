"""Domains, bins, graphs and policies as plain data and back.

What a catalogue stores and what a question's identity is made of. Every value is written as
``{"kind": …}`` with the arguments of its constructor, and read by calling that constructor, so
stored text is validated like anything a user types.

Values and conditions as plain data and back, so that a question can travel as JSON.

A condition is ``{"column": "age", "op": ">=", "value": 30}``, ``{"op": "and", "of": […]}`` and so on.
Numbers, texts and booleans are themselves; a date is ``{"date": "2024-12-31"}``, an exact fraction
``{"number": "1/3"}`` and a length of time ``{"seconds": "604800"}``. Reading calls the constructors, so what
arrives is checked like anything typed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch
from typing import Any, TypeVar

from blowfishdb.core import graphs
from blowfishdb.core.constraints.declared import Constraints, Count, Marginal, Range
from blowfishdb.core.domain import bins
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import Between, Comparison, IsIn, IsMissing, Op
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import DEEPEST, And, Everything, Not, Or, Predicate
from blowfishdb.core.domain.values import moment, number
from blowfishdb.core.domain.values import plain as python_value
from blowfishdb.core.errors import InvalidInput, InvalidPredicate, NotFinite
from blowfishdb.core.plain import of_kind, write_as
from blowfishdb.core.policy.policy import Policy


def plain_value(value: object) -> Any:
    """A value that someone typed, as JSON-ready data."""
    scalar = python_value(value)
    if isinstance(scalar, date):
        return {"date": scalar.isoformat()}
    if isinstance(scalar, Fraction | Decimal):
        return {"number": str(scalar)}
    if isinstance(scalar, timedelta):
        return {"seconds": str(Fraction(scalar // timedelta.resolution, 10**6))}
    if isinstance(scalar, float) and not math.isfinite(scalar):
        raise NotFinite(f"A value must be a finite number, not {scalar}.")
    if scalar is None or isinstance(scalar, bool | int | float | str):
        return scalar
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
        kinds = ", ".join(["everything", "and", "or", "not", *map(str, builders)])
        raise InvalidPredicate(f"A condition's 'op' is one of {kinds}.")
    return builders[op]()


def _combined(op: str, parts: Sequence[Predicate]) -> Predicate:
    if op == "not":
        if len(parts) != 1:
            raise InvalidPredicate("'not' is about one condition.")
        return Not(parts[0])
    return And(tuple(parts)) if op == "and" else Or(tuple(parts))


def _listed(stored: Mapping[str, Any], name: str) -> Sequence[Any]:
    entries = stored.get(name)
    if not isinstance(entries, list | tuple):
        raise InvalidPredicate(f"A condition's '{name}' is a list.")
    return entries


def _text(column: object) -> str:
    if not isinstance(column, str):
        raise InvalidPredicate("A condition names its 'column'.")
    return column


Plain = dict[str, Any]
T = TypeVar("T")

_ATTRIBUTES: dict[str, type[Attribute]] = {
    "integer": Integer,
    "real": Real,
    "category": Category,
    "date": Date,
    "boolean": Boolean,
}


@singledispatch
def plain(value: Any) -> Any:
    """``value`` as JSON-ready data."""
    raise InvalidInput(f"{type(value).__name__} cannot be stored.")


@plain.register
def _(value: Attribute) -> Plain:
    kind = next(kind for kind, cls in _ATTRIBUTES.items() if isinstance(value, cls))
    fields = {f.name: _scalar(getattr(value, f.name)) for f in dataclasses.fields(value) if f.init}  # type: ignore[arg-type]
    return {"kind": kind, **fields}


@plain.register
def _(value: Domain) -> Plain:
    return {name: plain(value[name]) for name in value.names}


@plain.register
def _(value: bins.Bins) -> Plain:
    return value.to_plain()


@plain.register
def _(value: graphs.PolicyGraph) -> Plain:
    return value.to_plain()


@plain.register
def _(value: Policy) -> Plain:
    stored = {"domain": plain(value.domain), "graph": plain(value.graph)}
    return stored if value.constraints is None else {**stored, "known": plain(value.constraints)}


@plain.register
def _(value: Constraints) -> Plain:
    return {
        "counts": [_plain_count(count) for count in value.counts],
        "marginals": [
            {
                "columns": list(table.columns),
                "bins": [None if group is None else plain(group) for group in table.bins],
                "answers": None if table.answers is None else list(table.answers),
            }
            for table in value.marginals
        ],
        "ranges": [
            {
                "sides": [[name, plain_value(low), plain_value(high)] for name, low, high in box.sides],
                "answer": box.answer,
            }
            for box in value.ranges
        ],
        "reading": value.reading.value,
    }


def plain_known(policy: Policy) -> Plain | None:
    """What a policy takes to be known, in its plain form; None where that is nothing."""
    return None if policy.constraints is None else plain(policy.constraints)


def _plain_count(count: Count) -> Plain:
    if isinstance(count.where, Predicate):
        return {"where": plain_condition(count.where), "answer": count.answer}
    return {"cells": list(count.where), "answer": count.answer}


def _scalar(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


# --- and back -----------------------------------------------------------------------------------


def attribute(stored: Mapping[str, Any]) -> Attribute:
    """An attribute from its plain form."""
    fields = dict(stored)
    build = of_kind(_ATTRIBUTES, fields.pop("kind", None), "column")
    return build(**fields)


def domain(stored: Mapping[str, Mapping[str, Any]]) -> Domain:
    """A domain from its plain form."""
    return Domain.of({name: attribute(body) for name, body in stored.items()})


partition = bins.Bins.from_plain
graph = graphs.PolicyGraph.from_plain


def policy(stored: Mapping[str, Any]) -> Policy:
    """A policy from its plain form."""
    stored_constraints = stored.get("known")
    return Policy(
        domain(stored["domain"]),
        graph(stored["graph"]),
        None if stored_constraints is None else constraints(stored_constraints),
    )


def constraints(stored: Mapping[str, Any]) -> Constraints:
    """What is known, from its plain form."""
    if not isinstance(stored, Mapping):
        raise InvalidInput("What is known is an object with counts, marginals and ranges.")
    try:
        return Constraints(
            [
                Count(condition_from(c["where"]) if "where" in c else tuple(c["cells"]), c.get("answer"))
                for c in stored.get("counts", ())
            ],
            [
                Marginal(
                    tuple(m["columns"]),
                    tuple(None if group is None else partition(group) for group in m.get("bins") or ()),
                    m.get("answers"),
                )
                for m in stored.get("marginals", ())
            ],
            [
                Range(
                    tuple((name, value_from(low), value_from(high)) for name, low, high in r["sides"]),
                    r.get("answer"),
                )
                for r in stored.get("ranges", ())
            ],
            stored.get("reading", "literal"),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput("Something that is known cannot be read: a part of it is missing.") from error


def canonical(data: Any) -> str:
    """One text per value: sorted keys, no spaces."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(data: Any) -> str:
    """A name for plain data that differs whenever the data does."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


write_as(Domain, plain, domain)
write_as(Policy, plain, policy)
