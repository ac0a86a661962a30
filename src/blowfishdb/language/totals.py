"""Shares of everybody in one SELECT: ``COUNT(*) * 100.0 / (SELECT COUNT(*) FROM people)``.

A subquery that counts the rows of all groups is their total, and one that counts all rows beside some of
them is the count without the condition. Both are told from one release; as in every question, rows that a
column leaves out are in neither, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

_PLAIN: Final = frozenset({"expressions", "from_", "where", "kind"})


def in_one(tree: exp.Expr) -> exp.Expr | None:
    """The same without subqueries that count rows; None where there are none, or they do more."""
    if not isinstance(tree, exp.Select) or tree.args.get("with_") or tree.args.get("joins"):
        return None
    whole = tree.copy()
    inner = [node for node in whole.find_all(exp.Subquery) if node.parent_select is whole]
    if not inner or not all(_counts_rows(each.this, whole) for each in inner):
        return None
    where, grouped = whole.args.get("where"), whole.args.get("group") is not None
    alike = all(each.this.args.get("where") == where for each in inner)
    if grouped and alike:
        for each in inner:
            each.replace(exp.Window(this=exp.Sum(this=_rows()), over="OVER"))
        return whole
    everybody = all(each.this.args.get("where") is None for each in inner)
    outside = [node for node in whole.find_all(exp.AggFunc) if node.parent_select is whole]
    if grouped or where is None or not everybody or not all(node == _rows() for node in outside):
        return None
    for node in outside:
        node.replace(exp.Filter(this=_rows(), expression=where.copy()))
    for each in inner:
        each.replace(_rows())
    whole.set("where", None)
    return whole


def cut_before_adding(tree: exp.Expr) -> Iterator[exp.Select]:
    """Each SELECT whose HAVING leaves out groups before a window adds them up."""
    for select in tree.find_all(exp.Select):
        windows = any(window.parent_select is select for window in select.find_all(exp.Window))
        if windows and select.args.get("having") is not None:
            yield select


def _rows() -> exp.Count:
    return exp.Count(this=exp.Star(), big_int=True)


def _counts_rows(inner: exp.Expr, whole: exp.Select) -> bool:
    """Whether it counts rows of the same table, and nothing else."""
    if not isinstance(inner, exp.Select) or any(v for name, v in inner.args.items() if name not in _PLAIN):
        return False
    items = [item.unalias() for item in inner.expressions]
    tables = [select.args["from_"].this for select in (inner, whole) if select.args.get("from_")]
    same = len(tables) == 2 and all(isinstance(table, exp.Table) for table in tables)
    return items == [_rows()] and same and _called(tables[0]) == _called(tables[1])


def _called(table: exp.Table) -> tuple[str, str]:
    return table.db.casefold(), table.name.casefold()
