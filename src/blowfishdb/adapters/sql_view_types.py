"""Types in a view: where values of different types meet, a database converts them, and that can fail.

Only the database knows the types, so it is asked to describe the values, without reading a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from sqlglot import exp

from blowfishdb.adapters.sql_engine import Kind, SqlColumn
from blowfishdb.adapters.sql_view import Group, Need, View
from blowfishdb.core.errors import InvalidInput

Describe = Callable[[exp.Query], list[SqlColumn]]
"""The columns of a SELECT in the database's own words, in their order."""

_SAFE_DIGITS: Final = 18  # decimals that meet a written number without running out of digits


def check_types(view: View, describe: Describe) -> None:
    """Refuse a view in which values would have to be converted by something that can fail."""
    for select in _selects(view):
        groups = [group for group in view.groups if group.select is select]
        values = [value for group in groups for value in group.typed]
        types = iter(describe(_probe(select, values)) if values else ())
        for group in groups:
            _check(group, [next(types) for _ in group.typed])
    branches = list(view.query.find_all(exp.Select))
    if len(branches) > 1 and view.groups is not None:
        first, *others = ([column.type for column in describe(branch)] for branch in branches)
        if any(other != first for other in others):
            raise InvalidInput(
                "The SELECTs of a UNION ALL have columns of different types, which would be converted, and "
                "that can fail on some rows.",
                fixes=("TRY_CAST where they differ",),
            )


def _selects(view: View) -> Iterator[exp.Select]:
    seen: list[exp.Select] = []
    for group in view.groups:
        if not any(group.select is each for each in seen):
            seen.append(group.select)
            yield group.select


def _probe(select: exp.Select, values: list[exp.Expr]) -> exp.Select:
    """A SELECT of the values alone; it is described, never run."""
    named = [exp.alias_(value.copy(), f"p{i}", quoted=True) for i, value in enumerate(values)]
    probe = select.copy()
    probe.set("expressions", named)
    probe.set("where", None)
    return probe


def _check(group: Group, columns: list[SqlColumn]) -> None:
    if group.need is Need.FLOAT:
        if any(column.kind is not Kind.FLOAT for column in columns):
            raise InvalidInput(
                "A view computes with floating-point numbers only: others can overflow on some rows.",
                fixes=("TRY_CAST(… AS DOUBLE)",),
            )
        return
    if len({column.type for column in columns}) > 1:
        raise InvalidInput(
            "A view compares values of different types, which are converted first, and that can fail on some "
            "rows.",
            fixes=("TRY_CAST one of them", "columns of the same type"),
        )
    if columns and group.numbers and not _numeric(columns[0]):
        raise InvalidInput(
            "A view compares a written number with something that is not one, or too long, and a conversion "
            "can fail on some rows.",
            fixes=("TRY_CAST(… AS DOUBLE)", "a text in quotes"),
        )


def _numeric(column: SqlColumn) -> bool:
    if column.kind is Kind.DECIMAL:
        sizes = column.parsed.expressions if column.parsed is not None else []
        return bool(sizes) and int(sizes[0].name) <= _SAFE_DIGITS
    return column.kind is Kind.FLOAT or (column.kind is Kind.INTEGER and not column.wide)
