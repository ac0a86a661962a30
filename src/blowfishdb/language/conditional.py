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
