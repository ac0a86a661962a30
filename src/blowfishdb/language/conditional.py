"""Counts of the rows for which something holds, in the ways in which people write them.

``COUNT(*) FILTER (WHERE …)``, ``SUM(CASE WHEN … THEN 1 ELSE 0 END)``, ``COUNT(CASE …)``, ``COUNT_IF(…)``; and
``AVG(CASE WHEN … THEN 1.0 ELSE 0 END)``, which is their share.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from blowfishdb.language.text import number_from


def counted_rows(node: exp.Expr) -> exp.Expr | None:
    """The condition of a count; None for anything else."""
    match node:
        case exp.Filter() if isinstance(node.this, exp.Count) and isinstance(node.this.this, exp.Star):
            return _expression(node.expression.this) if isinstance(node.expression, exp.Where) else None
        case exp.CountIf():
            return _expression(node.this)
        case exp.Sum() | exp.Count():
            return _of_case(node.this, zero=isinstance(node, exp.Sum))
    return None


def share_of_rows(node: exp.Expr) -> exp.Expr | None:
    """The condition of a share of rows; None for anything else."""
    return _of_case(node.this, zero=True) if isinstance(node, exp.Avg) else None


def aggregated_rows(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """An aggregate of a column of some rows: the aggregate, and which rows; None for anything else.

    ``AVG(salary) FILTER (WHERE …)``, ``AVG(CASE WHEN … THEN salary END)``, ``SUM(CASE … ELSE 0 END)``.
    """
    if isinstance(node, exp.Filter) and isinstance(node.expression, exp.Where):
        column = isinstance(node.this, exp.AggFunc) and isinstance(node.this.this, exp.Column)
        return (node.this, node.expression.this) if column else None
    case = node.this if isinstance(node, exp.AggFunc) else None
    if not isinstance(case, exp.Case) or case.this is not None or len(case.args["ifs"]) != 1:
        return None
    (branch,), default = case.args["ifs"], case.args.get("default")
    nothing = isinstance(default, exp.Null | None) or (isinstance(node, exp.Sum) and _number(default) == 0)
    if not isinstance(branch.args["true"], exp.Column) or not nothing:
        return None
    whole = node.copy()
    whole.set("this", branch.args["true"].copy())
    return whole, branch.this


def multiplied(node: exp.Expr) -> tuple[exp.Expr, str, exp.Expr] | None:
    """``SUM(salary * 1.1)`` as the aggregate, a sign and a number; None for anything else."""
    inner = node.this if isinstance(node, exp.Sum | exp.Avg) else None
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.Mul | exp.Div):
        return None
    left, right = inner.this, inner.expression
    if isinstance(inner, exp.Mul) and isinstance(right, exp.Column):
        left, right = right, left
    if not isinstance(left, exp.Column) or not _number(right):
        return None
    if isinstance(inner, exp.Div) and "." not in str(right.this):
        return None  # databases do not agree on what is left of whole numbers
    whole = node.copy()
    whole.set("this", left.copy())
    return whole, "*" if isinstance(inner, exp.Mul) else "/", right


def _of_case(node: object, *, zero: bool) -> exp.Expr | None:
    """When a CASE with one branch counts a row: 1 and else 0, or, where it need only be there, anything."""
    if isinstance(node, exp.Case):
        if node.this is not None or len(node.args["ifs"]) != 1:
            return None
        (branch,), default = node.args["ifs"], node.args.get("default")
        holds, then = branch.this, branch.args["true"]
    elif isinstance(node, exp.If):
        holds, then, default = node.this, node.args["true"], node.args.get("false")
    else:
        return None
    if zero:
        return holds if _number(then) == 1 and _number(default) == 0 else None
    return holds if isinstance(then, exp.Literal) and isinstance(default, exp.Null | None) else None


def _expression(node: object) -> exp.Expr | None:
    return node if isinstance(node, exp.Expr) else None


def _number(node: object) -> Decimal | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    return Decimal(str(number_from(node.this)))
