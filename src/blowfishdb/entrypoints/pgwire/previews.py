"""What tools look at before anybody asks: declared values and limits, or made-up rows, where that is wanted.

Off unless it is set. None of it has seen a row: it follows from the declarations, and from a seed that all
know. It is marked in the names of its columns as well, because tools hide notices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlglot import exp

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import UnknownColumn
from blowfishdb.entrypoints.pgwire.errors import notice
from blowfishdb.entrypoints.pgwire.results import Column, Table, typed
from blowfishdb.language.selected import declared, output_name
from blowfishdb.language.text import column_name
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.made_up import table_of

_USUAL_ROWS: Final = 100
_MOST_ROWS: Final = 1_000
_KNOWN: Final = frozenset({"expressions", "from_", "order", "limit", "offset", "distinct"})


def preview(tree: exp.Expr, dataset: Dataset, kind: str) -> Table | None:
    """What a statement shows without asking anything; None where it is a question, or has nothing to show."""
    if kind == "off" or not isinstance(tree, exp.Select):
        return None
    origin = tree.args.get("from_")
    if origin is None or not isinstance(origin.this, exp.Table):
        return None
    if any(value and name not in _KNOWN for name, value in tree.args.items()):
        return None
    items, domain = list(tree.expressions), dataset.schema
    if items and all(isinstance(item.unalias(), exp.Min | exp.Max) for item in items):
        return _limits(items, domain)
    columns = _columns(items, domain)
    if columns is None:
        return None
    if tree.args.get("distinct"):
        return _values(columns, domain, _limit(tree)) if len(columns) == 1 else None
    return _rows(columns, domain, _limit(tree)) if kind == "made-up" else None


def _columns(items: Sequence[exp.Expr], domain: Domain) -> list[tuple[str, str]] | None:
    """The columns that are selected, by the names under which they are shown; None if anything else is."""
    found: list[tuple[str, str]] = []
    for item in items:
        node = item.unalias()
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            found += [(name, name) for name in domain.names]
        elif isinstance(node, exp.Column):
            try:
                quoted = bool(node.this.args.get("quoted"))
                found.append((column_name(node.name, domain, quoted=quoted), output_name(item)))
            except UnknownColumn:
                return None
        else:
            return None
    return found


def _limits(items: Sequence[exp.Expr], domain: Domain) -> Table | None:
    columns, row = [], []
    for item in items:
        node = item.unalias()
        named = _columns([node.this], domain)
        if named is None or len(named) != 1:
            return None
        attribute = domain[named[0][0]]
        tick = 0 if isinstance(node, exp.Min) else attribute.ticks - 1
        if not attribute.ordered:
            return None
        columns.append(Column(f"{output_name(item)} (declared)", typed(declared(attribute))))
        row.append(_plain(attribute.at(tick)))
    return Table(tuple(columns), [tuple(row)], notices=(_said("declared limits, not those of the rows"),))


def _values(columns: list[tuple[str, str]], domain: Domain, limit: int) -> Table | None:
    ((name, shown),) = columns
    attribute = domain[name]
    if attribute.ticks > _MOST_ROWS:
        return None
    values = [(_plain(attribute.at(tick)),) for tick in range(attribute.ticks)][:limit]
    column = Column(f"{shown} (declared)", typed(declared(attribute)))
    return Table((column,), values, notices=(_said("the declared values, whether or not they occur"),))


def _rows(columns: list[tuple[str, str]], domain: Domain, limit: int) -> Table:
    made = table_of(domain, min(limit, _USUAL_ROWS) or 1, 0)
    listed = [[_plain(value) for value in made.column(name).to_pylist()] for name, _ in columns]
    rows = list(zip(*listed, strict=True))[:limit]
    shown = tuple(Column(f"{shown} (made up)", typed(declared(domain[name]))) for name, shown in columns)
    return Table(shown, rows, notices=(_said("made-up rows, about nobody"),))


def _said(what: str) -> bytes:
    return notice(
        f"These are {what}.",
        detail="Nothing was read or charged.",
        hint="SET blowfishdb.preview = off; and they are not shown.",
        severity="WARNING",
        code="01000",
    )


def _limit(tree: exp.Select) -> int:
    limit = tree.args.get("limit")
    number = None if limit is None else limit.expression
    if isinstance(number, exp.Literal) and not number.is_string and str(number.this).isdecimal():
        return min(int(number.this), _MOST_ROWS)
    return _MOST_ROWS


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str) or value is None else _number(value)


def _number(value: Any) -> Any:
    return float(value) if hasattr(value, "numerator") else value
