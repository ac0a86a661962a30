"""Groups that are computed from one column: ``FLOOR(age / 10) * 10``, ``date_trunc('month', day)``, ``CASE``.

Which group a declared value is in follows from the declaration, so each becomes a list of edges or of named
groups of the column; no row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from typing import Any, Final

import numpy as np
from sqlglot import exp

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.bins import common_bins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.language.condition import condition_of
from blowfishdb.language.text import name_text, number_from, quoted_text, sql_value

_COMPUTED: Final = (
    exp.Floor,
    exp.IntDiv,
    exp.WidthBucket,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.Extract,
    exp.Year,
    exp.Case,
)
_MOST_EDGES: Final = 10_000
_MOST_VALUES: Final = 2_000
_SPANS: Final[dict[str, Callable[[date], date]]] = {
    "DAY": lambda day: day,
    "WEEK": lambda day: day - timedelta(days=day.weekday()),
    "MONTH": lambda day: day.replace(day=1),
    "QUARTER": lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
    "YEAR": lambda day: day.replace(month=1, day=1),
}


def is_computed(node: object) -> bool:
    """Whether it may be a group that is computed from a column."""
    if isinstance(node, exp.Mul):
        return isinstance(node.this, exp.Floor | exp.Paren | exp.IntDiv) and _inner(node) is not None
    if isinstance(node, exp.Div):
        return _inner(node) is not None
    if isinstance(node, exp.Sub):
        return isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Mod)
    return isinstance(node, _COMPUTED) and not any(node.find_all(exp.AggFunc))


def computed(node: exp.Expr, domain: Domain) -> ColumnForm | None:
    """The groups as a cut of their column; None where they are not computed here."""
    columns = {column.name.casefold(): column for column in node.find_all(exp.Column)}
    if len(columns) != 1:
        return None
    folded = {name.casefold(): name for name in domain.names}
    name = folded.get(next(iter(columns)))
    if name is None:
        return None
    attribute = domain[name]
    if isinstance(node, exp.Case):
        return _cases(node, name, domain)
    edges = _edges(node, attribute)
    return None if edges is None or len(edges) > _MOST_EDGES else ColumnForm(name, edges=edges)


def cut_text(column: ColumnForm) -> str:
    """A cut by edges or groups as SQL that reads back as the same groups."""
    name = name_text(column.name)
    if column.groups is not None:
        *first, last = column.groups.items()
        parts = [
            f"WHEN {name} IN ({', '.join(map(sql_value, values))}) THEN {quoted_text(label)}"
            for label, values in first
        ]
        return " ".join(("CASE", *parts, f"ELSE {quoted_text(last[0])} END"))
    assert column.edges is not None
    starts = [*map(sql_value, column.edges)]
    parts = [
        f"WHEN {name} < {after} THEN {quoted_text('from ' + start.strip(chr(39)))}"
        for start, after in pairwise(starts)
    ]
    last_label = quoted_text("from " + starts[-1].strip("'"))
    return " ".join(("CASE", *parts, f"ELSE {last_label} END")) if parts else name


# --- edges ----------------------------------------------------------------------------------------


def _edges(node: exp.Expr, attribute: Attribute) -> tuple[Any, ...] | None:
    """Where the groups begin, the lowest declared value first."""
    match node:
        case exp.WidthBucket():
            return _buckets(node, attribute)
        case exp.DateTrunc() | exp.TimestampTrunc() | exp.Extract() | exp.Year():
            return _spans(node, attribute)
    width = _inner(node)
    if width is None or not isinstance(attribute, Integer | Real):
        return None
    low, high = Fraction(str(attribute.at(0))), Fraction(str(attribute.at(attribute.ticks - 1)))
    plain = node.find(exp.Div) is not None and node.find(exp.Floor) is None
    if plain and not isinstance(attribute, Integer):
        return None  # of other numbers nothing is left out
    if low < 0 and (plain or node.find(exp.IntDiv, exp.Mod) is not None):
        return None  # databases do not agree on which way these are rounded
    first = low // width + 1
    if (high - low) / width > _MOST_EDGES:
        return None
    starts = [(first + step) * width for step in range(int((high - first * width) // width) + 1)]
    return _from(low, starts, attribute)


def _inner(node: exp.Expr) -> Fraction | None:
    """The width of FLOOR(x / w), x DIV w, x / w, any times w, and x - x % w; None for anything else.

    What is left when whole numbers are divided is left out, as PostgreSQL and SQLite do.
    """
    match node:
        case exp.Paren():
            return _inner(node.this)
        case exp.Floor() if isinstance(node.this, exp.Div) and isinstance(node.this.this, exp.Column):
            return _positive(node.this.expression)
        case exp.IntDiv() if isinstance(node.this, exp.Column):
            return _positive(node.expression)
        case exp.Div() if isinstance(node.this, exp.Column):
            width = _positive(node.expression)
            return width if width is not None and "." not in str(node.expression.this) else None
        case exp.Mul():
            inside, times = _inner(node.this), _positive(node.expression)
            return inside if inside is not None and inside == times else None
        case exp.Sub() if isinstance(node.expression, exp.Mod):
            same = node.this == node.expression.this and isinstance(node.this, exp.Column)
            return _positive(node.expression.expression) if same else None
    return None


def _positive(node: exp.Expr) -> Fraction | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    number = Fraction(str(number_from(node.this)))
    return number if number > 0 else None


def _buckets(node: exp.WidthBucket, attribute: Attribute) -> tuple[Any, ...] | None:
    parts = [node.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    if not isinstance(attribute, Integer | Real) or not all(isinstance(part, exp.Literal) for part in parts):
        return None
    low, high, count = (Fraction(str(number_from(part.this))) for part in parts if part is not None)
    if not low < high or count.denominator != 1 or not 1 <= count <= _MOST_EDGES:
        return None
    first, last = Fraction(str(attribute.at(0))), Fraction(str(attribute.at(attribute.ticks - 1)))
    cuts = [low + (high - low) * step / count for step in range(int(count) + 1)]
    return _from(first, [cut for cut in cuts if first < cut <= last], attribute)


def _from(low: Fraction, cuts: list[Fraction], attribute: Attribute) -> tuple[Any, ...]:
    """The lowest value and all cuts; between whole numbers the next one begins the group."""
    if isinstance(attribute, Integer):
        cuts = [Fraction(math.ceil(cut)) for cut in cuts]
    return tuple(dict.fromkeys(map(_number, (low, *cuts))))


def _spans(node: exp.Expr, attribute: Attribute) -> tuple[Any, ...] | None:
    match node:
        case exp.Year():
            unit = "YEAR"
        case exp.Extract():
            unit = node.this.name.upper()
        case _:
            unit = str(node.args["unit"].name).upper()
    begins = _SPANS.get(unit)
    if begins is None or not isinstance(attribute, Date):
        return None
    days = (attribute.at(0), attribute.at(attribute.ticks - 1))
    low, high = (day if type(day) is date else None for day in days)
    if low is None or high is None:
        return None
    if isinstance(node, exp.Extract) and unit != "YEAR" and (unit != "MONTH" or low.year != high.year):
        return None  # the same month of several years is one group, and no interval
    starts, day = [low], low
    while (day := day + timedelta(days=1)) <= high:
        if begins(day) == day:
            starts.append(day)
    return tuple(starts)


def _number(exact: Fraction) -> int | Fraction:
    return int(exact) if exact.denominator == 1 else exact


# --- CASE -----------------------------------------------------------------------------------------


def _cases(node: exp.Case, name: str, domain: Domain) -> ColumnForm | None:
    """A group for every declared value, by the first condition that holds for it."""
    attribute, default = domain[name], node.args.get("default")
    if attribute.has_missing_cell or not isinstance(default, exp.Literal):
        return None
    branches = []
    for branch in node.args["ifs"]:
        if not isinstance(branch.args["true"], exp.Literal):
            return None
        asked = branch.this
        if node.this is not None:  # CASE column WHEN value THEN …
            asked = exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        branches.append((condition_of(asked, domain), str(branch.args["true"].this)))
    if attribute.ticks > _MOST_VALUES:
        return _runs([*branches, (Everything(), str(default.this))], name, domain)
    groups: dict[str, list[Any]] = {}
    for tick in range(attribute.ticks):
        value = attribute.at(tick)
        label = next((text for holds, text in branches if holds.matches({name: value}, domain)), None)
        groups.setdefault(str(default.this) if label is None else label, []).append(value)
    return ColumnForm(name, groups={label: tuple(values) for label, values in groups.items()})


def _runs(branches: list[tuple[Predicate, str]], name: str, domain: Domain) -> ColumnForm | None:
    """Of many values: intervals, where each group is one; None where one is in several pieces."""
    attribute = domain[name]
    cuts = [holds.cuts(domain)[name] for holds, _ in branches if name in holds.columns()]
    if not attribute.ordered or not cuts:
        return None
    bins = reduce(lambda one, other: common_bins(one, other, attribute.size), cuts)
    cells = bins.first(np.arange(bins.count))
    true = [np.broadcast_to(holds.on_cells(domain, {name: cells}), cells.shape) for holds, _ in branches]
    first = np.argmax(np.stack(true), axis=0)
    labels = [branches[int(which)][1] for which in first]
    starts = [place for place, label in enumerate(labels) if not place or label != labels[place - 1]]
    if len({labels[place] for place in starts}) < len(starts):
        return None
    return ColumnForm(name, edges=tuple(attribute.lower(int(cells[place])) for place in starts))
