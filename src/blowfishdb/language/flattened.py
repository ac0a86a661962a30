"""The same SELECT in fewer words: without subqueries that only choose, rename and filter.

``SELECT COUNT(*) FROM (SELECT age FROM people WHERE age > 30) t WHERE …`` reads one dataset once, and so does
what a ``WITH`` names. A SELECT around groups that only chooses, orders and cuts them off is their HAVING,
ORDER BY and LIMIT. Anything else in a subquery (limits, joins) stays one, and is refused as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

_TRIVIAL: Final = frozenset({"expressions", "from_", "where", "kind"})
_DEEPEST: Final = 8


def flattened(tree: exp.Expr) -> exp.Expr:
    """The statement without trivial subqueries; as it is where one of them is not."""
    if not isinstance(tree, exp.Select):
        return tree
    whole = tree.copy()
    named = whole.args.get("with_")
    tables: dict[str, exp.Expr] = {}
    if named is not None:
        if named.args.get("recursive"):
            return tree
        for common in named.expressions:
            if common.args.get("alias") is None or common.args["alias"].args.get("columns"):
                return tree
            tables[common.alias.casefold()] = common.this
        whole.set("with_", None)
    flat = _flat(whole, tables, 0)
    return tree if flat is None else flat


def _flat(select: exp.Expr, tables: Mapping[str, exp.Expr], depth: int) -> exp.Expr | None:
    """One level after the other, from the outside; None where a level is not trivial."""
    origin = select.args.get("from_")
    if origin is None or depth > _DEEPEST or select.args.get("joins") or select.args.get("laterals"):
        return None
    inner, alias = _inside(origin.this, tables)
    if inner is None:
        return select
    below = _flat(inner, tables, depth + 1) if isinstance(inner, exp.Select) else None
    if below is not None and (below.args.get("group") or any(below.find_all(exp.AggFunc))):
        return _around_groups(select, below, alias)
    if below is None or any(value for name, value in below.args.items() if name not in _TRIVIAL):
        return None
    shown = _shown(below)
    if shown is None or not _renamed(select, shown, alias):
        return None
    conditions = [
        part.this for part in (below.args.get("where"), select.args.get("where")) if part is not None
    ]
    if conditions:
        together = exp.and_(*(exp.paren(each) for each in conditions), copy=False)
        select.set("where", exp.Where(this=together if len(conditions) > 1 else conditions[0]))
    select.set("from_", below.args["from_"])
    return select


def _around_groups(select: exp.Expr, below: exp.Expr, alias: str) -> exp.Expr | None:
    """Groups, as a SELECT around them shows them; None where it does more than choose, order and cut off."""
    said = {name for name, value in select.args.items() if value} - {"expressions", "from_", "kind"}
    cut = below.args.get("limit") or below.args.get("offset")
    if said - {"where", "order", "limit", "offset"} or (cut and said) or below.args.get("distinct"):
        return None
    shown = {item.alias_or_name.casefold(): item.unalias() for item in below.expressions}
    if not all(shown) or len(shown) < len(below.expressions):
        shown = {name: node for name, node in shown.items() if name}
    listed = []
    for item in select.expressions:
        column = item.unalias()
        if isinstance(column, exp.Star) and len(select.expressions) == 1:
            listed = [each.copy() for each in below.expressions]
            break
        meant = _of_groups(column, shown, alias)
        if meant is None:
            return None
        listed.append(exp.alias_(meant.copy(), item.alias_or_name, quoted=True))
    whole = below.copy()
    for clause in ("where", "order", "limit", "offset"):
        part = select.args.get(clause)
        if part is None:
            continue
        part = part.copy()
        for column in list(part.find_all(exp.Column)):
            meant = _of_groups(column, shown, alias)
            if meant is None or (clause == "where" and not any(meant.find_all(exp.AggFunc))):
                return None
            column.replace(meant.copy())
        if clause == "where":
            having = below.args.get("having")
            both = part.this if having is None else exp.and_(exp.paren(having.this), exp.paren(part.this))
            whole.set("having", exp.Having(this=both))
        else:
            whole.set(clause, part)
    whole.set("expressions", listed)
    return whole


def _of_groups(node: exp.Expr, shown: Mapping[str, exp.Expr], alias: str) -> exp.Expr | None:
    """What a name of the groups stands for."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    known = not node.table or node.table.casefold() == alias.casefold()
    return shown.get(node.name.casefold()) if known else None


def plainer(tree: exp.Expr) -> exp.Expr:
    """``IF(a, b, c)`` as CASE, ``DATE_PART('year', day)`` as EXTRACT, as everything else is written."""
    for node in list(tree.find_all(exp.If)):
        if isinstance(node.parent, exp.Case) and node.arg_key == "ifs":
            continue
        branch = exp.If(this=node.this.copy(), true=node.args["true"].copy())
        default = node.args.get("false")
        node.replace(exp.Case(ifs=[branch], default=None if default is None else default.copy()))
    for call in list(tree.find_all(exp.Anonymous)):
        named = str(call.this).upper() in ("DATE_PART", "DATEPART") and len(call.expressions) == 2
        if named and isinstance(call.expressions[0], exp.Literal) and call.expressions[0].is_string:
            unit, day = call.expressions
            call.replace(exp.Extract(this=exp.Var(this=str(unit.this).upper()), expression=day.copy()))
    return tree


def _inside(source: exp.Expr, tables: Mapping[str, exp.Expr]) -> tuple[exp.Expr | None, str]:
    """The SELECT that stands in FROM, by itself or by its name, and what it is called."""
    if isinstance(source, exp.Subquery) and not source.args.get("joins"):
        return source.this, source.alias
    named = isinstance(source, exp.Table) and not source.db and tables.get(source.name.casefold())
    return (named.copy(), source.alias or source.name) if named else (None, "")


def _shown(select: exp.Expr) -> dict[str, exp.Expr] | None:
    """What each name of a subquery stands for; empty for a star, which renames nothing."""
    items = select.expressions
    if len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values()):
        return {}
    shown: dict[str, exp.Expr] = {}
    for item in items:
        bare = item.unalias()
        if not item.alias_or_name or any(bare.find_all(exp.AggFunc, exp.Window, exp.Star, exp.Query)):
            return None
        if item.alias_or_name.casefold() in shown:
            return None
        shown[item.alias_or_name.casefold()] = bare
    return shown


def _renamed(select: exp.Expr, shown: Mapping[str, exp.Expr], alias: str) -> bool:
    """Put what names stand for in their place; False if one stands for nothing."""
    outer = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    for column in list(select.find_all(exp.Column)):
        if column.find_ancestor(exp.From) is not None:
            continue
        if column.table and column.table.casefold() != alias.casefold():
            return False
        meant = shown.get(column.name.casefold()) if shown else exp.Column(this=column.this.copy())
        if meant is None and column.name.casefold() not in outer:
            return False
        if meant is not None:
            listed = column.parent is select and column.arg_key == "expressions"
            column.replace(exp.alias_(meant.copy(), column.name) if listed else meant.copy())
    return True
