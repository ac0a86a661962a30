"""What a select list can ask for: ``COUNT(*)``, ``SUM(salary)``, ``QUANTILE(salary, 0.9)``, ``BIN(age, 5)``.

Each is read to a form or a column of one, and can be written as SQL again for a suggestion.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlglot import exp

from blowfishdb.adapters.sql_condition import condition_of
from blowfishdb.adapters.sql_refusals import Source, refuse_aggregate
from blowfishdb.adapters.sql_text import (
    column_name,
    duration,
    duration_text,
    name_text,
    number_from,
    number_text,
    shown,
)
from blowfishdb.core.errors import InvalidQuestion, UnsupportedSql
from blowfishdb.core.forms import ColumnForm, QuestionForm

_QUANTILES = (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_MORE_QUANTILES = ("QUANTILE_CONT", "QUANTILE_DISC", "APPROX_PERCENTILE")
_WORDS = {"sum": "SUM", "mean": "AVG"}


def is_key(node: object) -> bool:
    """Whether it is a column or a BIN, by which rows can be grouped."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() == "BIN"
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)


def is_count(node: exp.Expr) -> bool:
    """``COUNT(*)`` or ``COUNT(1)``, and nothing about it."""
    if not isinstance(node, exp.Count) or node.expressions:
        return False
    star = isinstance(node.this, exp.Star) and not any(node.this.args.values())
    return star or isinstance(node.this, exp.Literal)


def key(node: exp.Expr, source: Source) -> ColumnForm:
    """``age`` or ``BIN(age, 5)``."""
    if isinstance(node, exp.Column):
        if node.table or not isinstance(node.this, exp.Identifier):
            raise source.refuse(f"{shown(node)} is not a column of {source.dataset}.")
        quoted = bool(node.this.args.get("quoted"))
        return ColumnForm(column_name(node.name, source.domain, quoted=quoted))
    if len(node.expressions) != 2 or not isinstance(node.expressions[0], exp.Column):
        fix = source.counted(source.key(source.first_column(node)))
        raise InvalidQuestion("BIN is written with a column and a width: BIN(column, width).", fixes=(fix,))
    column, width = node.expressions
    name = key(column, source).name
    return ColumnForm(name, width=_width(width, name, source))


def key_text(column: ColumnForm) -> str:
    """A column of GROUP BY as SQL."""
    name, width = name_text(column.name), column.width
    if width is None:
        return name
    if isinstance(width, timedelta):
        amount, unit = duration_text(width).split()
        return f"BIN({name}, INTERVAL '{amount}' {unit.upper().removesuffix('S')})"
    return f"BIN({name}, {number_text(width)})"


def _width(node: exp.Expr, name: str, source: Source) -> Any:
    if isinstance(node, exp.Literal) and not node.is_string:
        return number_from(node.this)
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.unit is not None:
        length = duration(number_from(str(node.this.this)), node.unit.name)
        if length is not None:
            return length
    fix = source.counted(source.key(name))
    raise InvalidQuestion(f"{shown(node)} is not the width of a bin.", fixes=(fix,))


def aggregate(node: exp.Expr, source: Source) -> QuestionForm:
    """The question that one expression of the select list asks about all rows."""
    where = source.where
    match node:
        case exp.Count() if is_count(node):
            return QuestionForm("count", (), where)
        case exp.Count() if isinstance(node.this, exp.Column) and not node.expressions:
            return QuestionForm("count", (key(node.this, source),), where)
        case exp.Sum() if isinstance(node.this, exp.Column):
            return QuestionForm("sum", (key(node.this, source),), where)
        case exp.Avg() if isinstance(node.this, exp.Column):
            return QuestionForm("mean", (key(node.this, source),), where)
        case exp.Median() if is_key(node.this):
            return QuestionForm("quantiles", (key(node.this, source),), where, shares=(0.5,))
        case exp.Filter():
            raise _filtered(node, source)
    found = _quantile(node)
    if found is None or not is_key(found[0]):
        raise refuse_aggregate(node, source)
    shares = tuple(map(_share, found[1]))
    return QuestionForm("quantiles", (key(found[0], source),), where, shares=shares)


def _filtered(node: exp.Filter, source: Source) -> UnsupportedSql:
    """``COUNT(*) FILTER (WHERE …)``: the same with WHERE."""
    asked = aggregate(node.this, source).only(condition_of(node.expression.this, source.domain))
    fix = replace(source, where=asked.where).select(aggregate_text(asked))
    return source.refuse("FILTER is written as WHERE.", fix)


def aggregate_text(form: QuestionForm) -> str:
    """The expression that ``aggregate`` reads as ``form``."""
    if form.kind == "count":
        return f"COUNT({key_text(form.columns[0])})" if form.columns else "COUNT(*)"
    column = key_text(form.columns[0])
    if form.kind in _WORDS:
        return f"{_WORDS[form.kind]}({column})"
    if form.shares == (0.5,):
        return f"MEDIAN({column})"
    shares = ", ".join(str(number_text(share)) for share in form.shares)
    return f"QUANTILE({column}, {shares if len(form.shares) == 1 else f'[{shares}]'})"


def _quantile(node: exp.Expr) -> tuple[Any, list[exp.Expr]] | None:
    """What a quantile is of, and its shares, in any of the ways in which databases write it."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        order = node.args.get("expression")
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if len(ordered) != 1 or ordered[0].args.get("desc") or node.this.args.get("expression"):
            return None
        return ordered[0].this, _shares(node.this.this)
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _MORE_QUANTILES:
        return (node.expressions[0], _shares(node.expressions[1])) if len(node.expressions) == 2 else None
    if isinstance(node, _QUANTILES):
        share = node.args.get("quantile") or node.args.get("expression")
        return None if share is None else (node.this, _shares(share))
    return None


def _shares(node: exp.Expr) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Array) else [node]


def _share(node: exp.Expr) -> float:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise InvalidQuestion(f"{shown(node)} is not a share between 0 and 1.", fixes=("0.5",))
    return float(number_from(node.this))
