"""Several tables of one GROUP BY: ``ROLLUP``, ``CUBE`` and ``GROUPING SETS``."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations, product

from sqlglot import exp


def grouping_sets(group: exp.Expr) -> list[list[exp.Expr]] | None:
    """Which columns each table of a GROUP BY has; None where there is only one table."""
    clauses: list[list[list[exp.Expr]]] = []
    more = subtotal_clauses(group)
    behind = [each for each in more if not each.expressions]  # WITH ROLLUP is about all that stands before it
    for node in behind or [*group.args.get("expressions", ()), *more]:
        parts = [_listed(each) for each in (node.expressions or group.expressions)]
        match node:
            case exp.Rollup():
                clauses.append([_joined(parts[:stop]) for stop in range(len(parts), -1, -1)])
            case exp.Cube():
                chosen = (
                    subset for size in range(len(parts), -1, -1) for subset in combinations(parts, size)
                )
                clauses.append([_joined(subset) for subset in chosen])
            case exp.GroupingSets():
                clauses.append(parts)
            case _:
                clauses.append([[node]])
    if all(len(clause) == 1 for clause in clauses) or group.args.get("totals") or group.args.get("all"):
        return None
    return [_joined(choice) for choice in product(*clauses)]


def _joined(parts: Iterable[list[exp.Expr]]) -> list[exp.Expr]:
    return list(chain.from_iterable(parts))


def subtotal_clauses(group: exp.Expr) -> list[exp.Expr]:
    """What a GROUP BY says of subtotals."""
    return [each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or ()]


def _listed(node: exp.Expr) -> list[exp.Expr]:
    """``(a, b)``, ``(a)`` or ``a``."""
    if isinstance(node, exp.Paren):
        return [node.this]
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]
