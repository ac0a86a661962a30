"""Groups that are computed from one column: ``FLOOR(age / 10) * 10``, ``date_trunc('month', day)``, ``CASE``.

Which group a declared value is in follows from the declaration, so each becomes a list of edges or of named
groups of the column; no row is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import reduce
from typing import Any, Final

import numpy as np
from sqlglot import exp

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Category
from blowfishdb.core.domain.bins import common_bins
from blowfishdb.core.domain.conditions import IsMissing
from blowfishdb.core.domain.dates import PARTS, Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import InvalidBins
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.language.condition import condition_of
from blowfishdb.language.expressions import NotComputed, forgets_missing, increasing, value_of
from blowfishdb.language.text import LONGEST, name_text, quoted_text, sql_value

_MOST_GROUPS: Final = 10_000
_MOST_VALUES: Final = 2_000
_MOST_CELLS: Final = 50_000
_NO_GROUP: Final = (exp.Column, exp.Literal, exp.Star, exp.Alias, exp.Boolean, exp.Null)
_ACROSS_ROWS: Final = (exp.AggFunc, exp.Window, exp.Query, exp.Star, exp.Distinct)
"""What is not computed from one row."""


def is_computed(node: object) -> bool:
    """Whether it may be a group that is computed from a column."""
    if not isinstance(node, exp.Condition) or isinstance(node, (*_NO_GROUP, *_ACROSS_ROWS)):
        return False
    if isinstance(node, exp.Anonymous) and str(node.this).upper() not in _CALLS:
        return False
    return node.find(exp.Column) is not None and node.find(*_ACROSS_ROWS) is None


_CALLS: Final = ("STRFTIME", "DATE_FORMAT")


def is_condition(node: exp.Expr) -> bool:
    """Whether it is true or false."""
    return isinstance(node, exp.Predicate | exp.Connector | exp.Not) or (
        isinstance(node, exp.Paren) and is_condition(node.this)
    )


def computed(node: exp.Expr, domain: Domain) -> ColumnForm | None:
    """The groups as a cut of their column; None where they are not computed here."""
    columns = {column.name.casefold(): column for column in node.find_all(exp.Column)}
    if len(columns) != 1:
        return None
    folded = {name.casefold(): name for name in domain.names}
    name = folded.get(next(iter(columns)))
    if name is None:
        return None
    if isinstance(node, exp.Case):
        return _cases(node, name, domain)
    if missing_name(node, domain[name]) is not None:
        return ColumnForm(name)
    if is_condition(node):
        return _by_condition(condition_of(node, domain), name, domain)
    return together([node], name, domain)


def missing_name(node: exp.Expr, attribute: Attribute) -> str | None:
    """What ``COALESCE(name, 'unknown')`` calls those without a value, if it calls nobody else so."""
    constants = node.expressions if isinstance(node, exp.Coalesce) else []
    texts = isinstance(attribute, Category) and attribute.has_missing_cell
    if not texts or len(constants) != 1 or not isinstance(node.this, exp.Column):
        return None
    said = str(constants[0].this) if constants[0].is_string else None
    return None if said in {attribute.at(tick) for tick in range(attribute.ticks)} else said


def missing_truth(node: exp.Expr, attribute: Attribute, domain: Domain) -> bool | None:
    """Whether a condition is true of what is missing; None where that is unknown."""
    true, false = condition_of(node, domain).truth(lambda atom: atom.on_value(None, attribute))
    return bool(true) if true or false else None


def together(nodes: Sequence[exp.Expr], name: str, domain: Domain) -> ColumnForm | None:
    """The groups that are alike in every one of the expressions; None where they are not computed here."""
    try:
        return _by_value(nodes, name, domain[name])
    except NotComputed:
        return None


_LEADING: Final = re.compile("^(DATE|TIMESTAMP) ")


def cut_text(column: ColumnForm) -> str:
    """A cut by edges or groups as SQL that reads back as the same groups; what is missing is in none."""
    name = name_text(column.name)
    if column.groups is not None:
        parts = [
            f"WHEN {name} IN ({', '.join(map(sql_value, values))}) THEN {quoted_text(label)}"
            for label, values in column.groups.items()
        ]
        return " ".join(("CASE", *parts, "END"))
    assert column.edges is not None
    starts = [*map(sql_value, column.edges)]
    named = [quoted_text("from " + _LEADING.sub("", start).strip("'")) for start in starts]
    parts = [
        f"WHEN {name} < {after} THEN {label}" for after, label in zip(starts[1:], named[:-1], strict=True)
    ]
    return " ".join(("CASE", *parts, f"WHEN {name} >= {starts[-1]} THEN {named[-1]} END"))


# --- by what is computed ------------------------------------------------------------------------------


def _by_value(nodes: Sequence[exp.Expr], name: str, attribute: Attribute) -> ColumnForm | None:
    """A group for everything that expressions are: intervals where each is one, else lists of values."""

    def told_at(tick: int) -> tuple[Any, ...]:
        return tuple(value_of(node, attribute.at(tick)) for node in nodes)

    if attribute.has_missing_cell and any(map(forgets_missing, nodes)):
        return None
    if all(map(increasing, nodes)) and attribute.ordered:
        starts = _starts(told_at, attribute.ticks)
        return None if starts is None else _from(starts, name, attribute)
    if isinstance(attribute, Date) and len(nodes) == 1 and (parts := _parts(nodes[0], name, attribute)):
        return parts
    if attribute.ticks > _MOST_GROUPS:
        return None
    told = [told_at(tick) for tick in range(attribute.ticks)]
    if attribute.ordered and told == _sorted(told):
        starts = [tick for tick, value in enumerate(told) if not tick or value != told[tick - 1]]
        return _from(starts, name, attribute)
    labels = labels_in_order([value for (value,) in told]) if len(nodes) == 1 else None
    if labels is None:
        return None
    named = sorted(zip((str(attribute.at(tick)) for tick in range(attribute.ticks)), labels, strict=True))
    if [label for _, label in named] == sorted(set(labels)):
        return ColumnForm(name)  # the same groups in the same order, by other names
    return _listed(labels, name, attribute)


def _parts(node: exp.Expr, name: str, attribute: Date) -> ColumnForm | None:
    """The part of dates that an expression tells apart, in whatever words; None where it is none of them."""
    if attribute.value_count > _MOST_CELLS:
        return None
    told = [value_of(node, attribute.lower(cell)) for cell in range(attribute.value_count)]
    found = _constant_on_parts(told, attribute)
    if found is None:
        return None
    part, named = found
    if len(set(named.values())) == len(named):
        return ColumnForm(name, part=part)
    labels = labels_in_order(list(named.values()))
    return None if labels is None else _groups_of_parts(name, part, dict(zip(named, labels, strict=True)))


def _constant_on_parts(told: Sequence[Any], attribute: Date) -> tuple[str, dict[int, Any]] | None:
    """The part of dates with the fewest values by which cells are told apart, and what each is told."""
    parts = []
    for part in PARTS:
        try:
            parts.append((part, attribute.parts(part)))
        except InvalidBins:
            continue  # cells that lie in two
    for part, bins in sorted(parts, key=lambda each: each[1].count):
        starts = bins.first(np.arange(bins.count - attribute.has_missing_cell)).tolist()
        places = bins.assign(np.arange(attribute.value_count)).tolist()
        if not bins.contiguous and all(
            told[starts[place]] == each for each, place in zip(told, places, strict=True)
        ):
            return part, {PARTS[part](_first_day(attribute, start)): told[start] for start in starts}
    return None


def _first_day(attribute: Date, cell: int) -> date:
    return attribute.at(cell * attribute.ticks_per_cell)


def _groups_of_parts(name: str, part: str, labels: dict[int, str]) -> ColumnForm:
    """Values of a part by what they are called."""
    groups = {
        label: tuple(v for v, each in labels.items() if each == label)
        for label in sorted(set(labels.values()))
    }
    return ColumnForm(name, part=part, groups=groups)


def labelled_parts(told: Sequence[str | None], name: str, attribute: Attribute) -> ColumnForm | None:
    """Named groups of dates that are groups of a part of them; None where they are none."""
    if not isinstance(attribute, Date) or None in told or len(told) != attribute.value_count:
        return None
    found = _constant_on_parts(told, attribute)
    return None if found is None else _groups_of_parts(name, *found)


def part_text(column: ColumnForm) -> str:
    """A part of dates as SQL."""
    unit = {"weekday": "ISODOW"}.get(column.part or "", (column.part or "").upper())
    part = f"EXTRACT({unit} FROM {name_text(column.name)})"
    if column.groups is None:
        return part
    named = (
        f"WHEN {part} IN ({', '.join(map(str, values))}) THEN {quoted_text(label)}"
        for label, values in column.groups.items()
    )
    return " ".join(("CASE", *named, "END"))


def _starts(told: Callable[[int], Any], ticks: int) -> list[int] | None:
    """Where a function that never falls has another value than before; None where that is too often."""
    starts, last = [0], told(ticks - 1)
    while (value := told(starts[-1])) != last:
        low, step = starts[-1], 1
        while told(min(low + step, ticks - 1)) == value:
            low, step = low + step, 2 * step
        high = min(low + step, ticks - 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if told(middle) == value else (low, middle)
        starts.append(high)
        if len(starts) > _MOST_GROUPS:
            return None
    return starts


def _from(starts: list[int], name: str, attribute: Attribute) -> ColumnForm:
    if len(starts) == attribute.ticks:
        return ColumnForm(name)
    return ColumnForm(name, edges=tuple(attribute.at(tick) for tick in starts))


def _sorted(told: list[tuple[Any, ...]]) -> list[tuple[Any, ...]] | None:
    for values in zip(*told, strict=True):
        kinds = {type(value) for value in values}
        if len(kinds) > 1 and kinds & {str, bool, date, datetime}:
            return None
    return sorted(told)


def labels_in_order(told: list[Any]) -> list[str] | None:
    """What groups are called, so that their names are in the order of what they are."""
    if all(isinstance(value, str) for value in told):
        return told
    if all(isinstance(value, date) for value in told):
        return [value.isoformat() for value in told]
    if all(value == int(value) and value >= 0 for value in told if not isinstance(value, str | date)):
        numbers = [int(value) for value in told if not isinstance(value, str | date)]
        digits = len(str(max(numbers, default=0)))
        return [f"{number:0{digits}}" for number in numbers] if len(numbers) == len(told) else None
    return None


def _listed(labels: list[str], name: str, attribute: Attribute) -> ColumnForm | None:
    """Named groups of values; None where a cell would be in two, or there is more than people could type."""
    cells: dict[int, str] = {}
    for tick, label in enumerate(labels):
        if cells.setdefault(tick // attribute.ticks_per_cell, label) != label:
            return None
    groups: dict[str, list[Any]] = {label: [] for label in sorted(set(labels))}
    for cell, label in cells.items():
        groups[label].append(attribute.lower(cell))
    if sum(len(sql_value(value)) + 2 for values in groups.values() for value in values) > LONGEST // 2:
        return None
    return ColumnForm(name, groups={label: tuple(values) for label, values in groups.items()})


def _by_condition(holds: Predicate, name: str, domain: Domain) -> ColumnForm | None:
    """Two groups: where something is true and where it is not."""
    attribute = domain[name]
    missing = holds.truth(lambda atom: atom.on_value(None, attribute))
    alone = (
        not attribute.has_missing_cell or not bool(missing[0] | missing[1]) or isinstance(holds, IsMissing)
    )
    if not alone:
        return None  # missing values have a place of their own, and would be in a group with others
    branches: Branches = [(holds, "true"), (Everything(), "false")]
    parts = labelled_parts(_told_apart(branches, name, domain), name, attribute)
    if parts is not None or attribute.ticks > _MOST_VALUES:
        return parts or _runs(branches, name, domain)
    told = [holds.matches({name: attribute.at(tick)}, domain) for tick in range(attribute.ticks)]
    listed = _listed([str(value).lower() for value in told], name, attribute)
    return listed or _runs(branches, name, domain)


# --- CASE -----------------------------------------------------------------------------------------


def _cases(node: exp.Case, name: str, domain: Domain) -> ColumnForm | None:
    """A group for every declared value, by the first condition that holds for it."""
    attribute, branches = domain[name], _branches(node, domain)
    if branches is None:
        return None
    *named, (_, rest) = branches
    if any(_on_missing(holds, attribute) for holds, _ in named) or (attribute.has_missing_cell and rest):
        return None  # what is missing would be in a group with others
    parts = labelled_parts(_told_apart(branches, name, domain), name, attribute)
    if parts is not None or attribute.ticks > _MOST_VALUES:
        return parts or _runs(branches, name, domain)
    groups: dict[str, list[Any]] = {}
    for tick in range(attribute.ticks):
        label = _label(branches, {name: attribute.at(tick)}, domain)
        if label is None:
            return None  # a group of what is left, which has no name
        groups.setdefault(label, []).append(attribute.at(tick))
    return ColumnForm(name, groups={label: tuple(values) for label, values in groups.items()})


def without_rest(node: exp.Expr, domain: Domain) -> exp.Case | None:
    """CASE whose ELSE is said of those that have a value, where that makes it one that is answered."""
    rest = node.args.get("default") if isinstance(node, exp.Case) and node.this is None else None
    column = None if rest is None else node.find(exp.Column)
    if column is None or isinstance(rest, exp.Null):
        return None
    known = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
    case = exp.Case(ifs=[*node.args["ifs"], exp.If(this=known, true=rest)]).copy()
    return case if computed(case, domain) is not None else None


Branches = list[tuple[Predicate, str | None]]
"""Conditions with what they are called; the last holds for all that is left."""


def _branches(node: exp.Case, domain: Domain) -> Branches | None:
    default = node.args.get("default")
    rest = None if default is None or isinstance(default, exp.Null) else default
    branches: Branches = []
    for branch in node.args["ifs"]:
        asked = branch.this
        if node.this is not None:  # CASE column WHEN value THEN …
            asked = exp.EQ(this=node.this.copy(), expression=branch.this.copy())
        if not isinstance(branch.args["true"], exp.Literal):
            return None
        branches.append((condition_of(asked, domain), str(branch.args["true"].this)))
    if rest is not None and not isinstance(rest, exp.Literal):
        return None
    named = [*branches, (Everything(), None if rest is None else str(rest.this))]
    if not told_as_numbers(node):
        return named
    digits = max(len(label) for _, label in named if label is not None)
    return [(holds, None if label is None else label.zfill(digits)) for holds, label in named]


def told_as_numbers(node: exp.Case) -> bool:
    """Whether CASE calls its groups by whole numbers, which come in the order of what they are."""
    default = node.args.get("default")
    told = [branch.args["true"] for branch in node.args["ifs"]]
    told += [] if default is None or isinstance(default, exp.Null) else [default]
    return all(isinstance(each, exp.Literal) and not each.is_string for each in told) and all(
        str(each.this).isdecimal() for each in told
    )


def _label(branches: Branches, row: dict[str, Any], domain: Domain) -> str | None:
    return next(label for holds, label in branches if holds.matches(row, domain))


def case_labels(node: exp.Case, column: ColumnForm, starts: Sequence[Any], domain: Domain) -> list[str]:
    """What CASE calls the groups that begin with these values."""
    branches = _branches(node, domain)
    assert branches is not None
    return [str(_label(branches, {column.name: start}, domain)) for start in starts]


def _on_missing(holds: Predicate, attribute: Attribute) -> bool | None:
    """Whether something is true where the column has no value; None where that is unknown or cannot be."""
    if not attribute.has_missing_cell:
        return None
    true, false = holds.truth(lambda atom: atom.on_value(None, attribute))
    return bool(true) if true or false else None


def _told_apart(branches: Branches, name: str, domain: Domain) -> list[str | None]:
    """What each cell of a column of dates is called; nothing of other columns, or of too many."""
    attribute = domain[name]
    if not isinstance(attribute, Date) or attribute.value_count > _MOST_CELLS:
        return []
    cells = np.arange(attribute.value_count)
    true = [np.broadcast_to(holds.on_cells(domain, {name: cells}), cells.shape) for holds, _ in branches]
    return [branches[int(which)][1] for which in np.argmax(np.stack(true), axis=0)]


def _runs(branches: Branches, name: str, domain: Domain) -> ColumnForm | None:
    """Of many values: intervals, where each group is one; None where one is in several pieces."""
    attribute = domain[name]
    cuts = [holds.cuts(domain)[name] for holds, _ in branches if name in holds.columns()]
    if not attribute.ordered or not cuts:
        return None
    bins = reduce(lambda one, other: common_bins(one, other, attribute.size), cuts)
    cells = bins.first(np.arange(bins.count))
    cells = cells[cells < attribute.value_count]  # missing values have a place of their own
    true = [np.broadcast_to(holds.on_cells(domain, {name: cells}), cells.shape) for holds, _ in branches]
    first = np.argmax(np.stack(true), axis=0)
    labels = [branches[int(which)][1] for which in first]
    if None in labels:
        return None
    starts = [place for place, label in enumerate(labels) if not place or label != labels[place - 1]]
    if len({labels[place] for place in starts}) < len(starts):
        return None
    return ColumnForm(name, edges=tuple(attribute.lower(int(cells[place])) for place in starts))
