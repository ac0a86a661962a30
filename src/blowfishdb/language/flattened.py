"""The same SELECT in fewer words: without subqueries that only choose, rename and filter.

``SELECT COUNT(*) FROM (SELECT age FROM people WHERE age > 30) t WHERE …`` reads one dataset once, and so does
what a ``WITH`` names. A SELECT around groups that only chooses, orders and cuts them off is their HAVING,
ORDER BY and LIMIT. Anything else in a subquery (limits, joins) stays one, and is refused as such.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from sqlglot import exp

from blowfishdb.core.domain.attributes import Boolean
from blowfishdb.core.domain.domain import Domain
from blowfishdb.language.computed import Linear, bare, never_needed
from blowfishdb.language.conditional import multiplied
from blowfishdb.language.selected import output_name
from blowfishdb.language.text import sql_tokens

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
        return _around_groups(select, below, alias, origin.this.name)
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


def _around_groups(select: exp.Expr, below: exp.Expr, alias: str, name: str) -> exp.Expr | None:
    """Groups, as a SELECT around them shows them; None where it does more than choose, order and cut off."""
    said = {name for name, value in select.args.items() if value} - {"expressions", "from_", "kind"}
    cut = below.args.get("limit") or below.args.get("offset")
    if said - {"where", "order", "limit", "offset"} or (cut and said) or below.args.get("distinct"):
        return None
    names = Counter(map(_named, below.expressions))
    shown = {_named(item): item.unalias() for item in below.expressions if names[_named(item)] == 1}
    outside: dict[str, exp.Expr] = {}
    listed = []
    totals = not (cut or select.args.get("where") or below.args.get("having"))
    for item in select.expressions:
        column = item.unalias()
        if _every(item):
            listed += [each.copy() for each in below.expressions]
            continue
        if totals:
            column = _with_totals(column, name)
        meant = _from_groups(column, shown, alias, totals=totals)
        if meant is None:
            return None
        outside[_named(item)] = meant
        listed.append(exp.alias_(meant, item.alias or output_name(item), quoted=True))
    whole = below.copy()
    for clause in ("where", "order", "limit", "offset"):
        part = select.args.get(clause)
        if part is None:
            continue
        part = part.copy()
        for column in list(part.find_all(exp.Column)):
            meant = _of_groups(column, shown, alias)
            if meant is None and clause == "order":
                meant = outside.get(_named(column))
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


def _named(item: exp.Expr) -> str:
    """What an entry of a select list is called, by itself if nobody says it."""
    return output_name(item).casefold()


def _with_totals(node: exp.Expr, name: str) -> exp.Expr:
    """``(SELECT SUM(n) FROM c)`` of the same groups as ``SUM(n) OVER ()``."""
    whole = exp.Paren(this=node.copy())
    for inner in list(whole.find_all(exp.Subquery)):
        said = {arg: value for arg, value in inner.this.args.items() if value}
        listed, origin = said.pop("expressions", []), said.pop("from_", None)
        same = origin is not None and isinstance(origin.this, exp.Table) and origin.this.name == name
        if name and same and not said and len(listed) == 1 and isinstance(listed[0], exp.Sum):
            inner.replace(exp.Window(this=listed[0].copy(), over="OVER"))
    told: exp.Expr = whole.this
    return told


def _from_groups(
    node: exp.Expr, shown: Mapping[str, exp.Expr], alias: str, *, totals: bool
) -> exp.Expr | None:
    """What is computed from one row of the groups, ``ROUND(a, 1)``, or from their total, ``SUM(n) OVER ()``.

    None where more is needed for it, or where which groups are added up is another question.
    """
    whole = exp.Paren(this=node.copy())
    columns = list(whole.find_all(exp.Column))
    windows = list(whole.find_all(exp.Window))
    if not columns or any(whole.find_all(exp.Query)) or (windows and not totals):
        return None
    if not all(isinstance(each.parent, exp.Window) for each in whole.find_all(exp.AggFunc)):
        return None
    for column in columns:
        meant = _of_groups(column, shown, alias)
        if meant is None:
            return None
        alone = column.parent is whole
        column.replace(meant.copy() if alone or isinstance(meant, exp.Func) else exp.paren(meant.copy()))
    inner: exp.Expr = whole.this
    return inner


def _of_groups(node: exp.Expr, shown: Mapping[str, exp.Expr], alias: str) -> exp.Expr | None:
    """What a name of the groups stands for."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    known = not node.table or node.table.casefold() == alias.casefold()
    return shown.get(node.name.casefold()) if known else None


def plainer(tree: exp.Expr, domain: Domain) -> exp.Expr:
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
    for same in list(tree.find_all(exp.EQ, exp.NEQ)):
        values = _any_of(same)
        if values is not None:
            among = exp.In(this=same.this.copy(), expressions=[each.copy() for each in values])
            found = among if values else exp.false()
            same.replace(found if isinstance(same, exp.EQ) else exp.paren(exp.Not(this=found)))
    for either in list(tree.find_all(exp.Coalesce)):
        if never_needed(either, domain):
            listed = isinstance(either.parent, exp.Select) and either.arg_key == "expressions"
            column = either.this.copy()
            either.replace(exp.alias_(column, "coalesce") if listed else column)
    for inner in list(tree.find_all(exp.Paren)):
        if isinstance(inner.parent, exp.Select | exp.Group | exp.Alias):
            inner.replace(inner.unnest().copy())
    _inside_aggregates(tree, domain)
    for group in [select for select in tree.find_all(exp.Select) if select.args.get("having") is not None]:
        _having(group, domain)
    for either in list(tree.find_all(exp.Coalesce)):
        if _zero(either) and isinstance(either.this, exp.Sum | exp.Count):
            either.replace(either.this.copy())  # the sum of no rows is told as nought
    return tree


def _inside_aggregates(tree: exp.Expr, domain: Domain) -> None:
    """Aggregates of columns: without casts that say nothing, and without what is computed from one column."""
    for cast in list(tree.find_all(exp.Cast, exp.Paren)):
        if isinstance(cast.parent, exp.AggFunc) or _ordered_by(cast):
            column = bare(cast, domain)
            if isinstance(column, exp.Column):
                cast.replace(column.copy())
    for case in list(tree.find_all(exp.Case)):
        if case.this is not None and isinstance(case.parent, exp.AggFunc):
            for branch in case.args["ifs"]:
                branch.set("this", exp.EQ(this=case.this.copy(), expression=branch.this.copy()))
            case.set("this", None)
    for aggregate in list(tree.find_all(exp.Sum, exp.Avg)):
        _counted(aggregate, domain)
        _linear(aggregate)


def _any_of(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of ``= ANY (ARRAY[…])`` and ``<> ALL (ARRAY[…])``; None for anything else."""
    right = node.expression
    if isinstance(node, exp.EQ):
        listed = right.this.unnest() if isinstance(right, exp.Any) else None
    else:
        every = isinstance(right, exp.Anonymous) and str(right.this).upper() == "ALL"
        listed = right.expressions[0].unnest() if every and len(right.expressions) == 1 else None
    return list(listed.expressions) if isinstance(listed, exp.Array) else None


def without_top(typed: str) -> str:
    """``SELECT TOP 3 region …`` with the LIMIT that other databases write."""
    tokens = sql_tokens(typed)
    words = [token.text.upper() for token in tokens[:4]]
    if (
        words[:2] != ["SELECT", "TOP"]
        or len(words) < 4
        or not words[2].isdecimal()
        or words[3] in (",", "FROM")
    ):
        return typed
    last = tokens[-1]
    end = last.start if last.text == ";" else len(typed)
    return f"SELECT{typed[tokens[2].end + 1 : end]} LIMIT {words[2]}"


def _ordered_by(node: exp.Expr) -> bool:
    """Whether quantiles are of it: ``WITHIN GROUP (ORDER BY salary::float)``."""
    inside = node.parent.parent if isinstance(node.parent, exp.Ordered) else None
    return inside is not None and isinstance(inside.parent, exp.WithinGroup)


def _linear(call: exp.Expr) -> None:
    """``AVG(2 * hours + 1)`` as ``AVG(hours) * 2 + 1``, which is computed from what is released."""
    inner = call.this.unnest()
    told = Linear.of(inner) if isinstance(inner, exp.Binary | exp.Neg) else None
    if (
        multiplied(call) is not None
        or told is None
        or told.column is None
        or not told.times
        or isinstance(call.parent, exp.Filter)
    ):
        return
    alone = type(call)(this=told.column.copy())
    many = exp.Count(this=told.column.copy()) if isinstance(call, exp.Sum) else None
    plus = _exact(told.plus) if many is None else exp.Mul(this=many, expression=_exact(told.plus))
    whole = exp.Mul(this=alone, expression=_exact(told.times)) if told.times != 1 else alone
    whole = exp.Add(this=whole, expression=plus) if told.plus else whole
    listed = isinstance(call.parent, exp.Select) and call.arg_key == "expressions"
    call.replace(exp.alias_(whole, output_name(call)) if listed else exp.paren(whole))


def _exact(number: Fraction) -> exp.Expr:
    top, bottom = (exp.Literal.number(each) for each in (number.numerator, number.denominator))
    return top if number.denominator == 1 else exp.paren(exp.Div(this=top, expression=bottom))


def _having(select: exp.Select, domain: Domain) -> None:
    """What HAVING says of the groups themselves is a condition on rows; and one row of all rows is there."""
    group = select.args.get("group")
    parts = (
        list(select.args["having"].this.flatten())
        if isinstance(select.args["having"].this, exp.And)
        else [select.args["having"].this]
    )
    folded = {name.casefold() for name in domain.names}
    keys = set() if group is None else {each.name.casefold() for each in group.expressions}
    renamed = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    kept: list[exp.Expr] = []
    for part in parts:
        named = {column.name.casefold() for column in part.find_all(exp.Column)}
        plain = not any(part.find_all(exp.AggFunc, exp.Window, exp.Query))
        if group is None and part.unnest() in _SOME_ROWS:
            continue
        if named and plain and named <= keys & folded - renamed:
            select.where(part.copy(), copy=False)
        else:
            kept.append(part)
    if len(kept) < len(parts):
        select.set("having", exp.Having(this=exp.and_(*kept, copy=False)) if kept else None)


def _zero(call: exp.Coalesce) -> bool:
    return len(call.expressions) == 1 and call.expressions[0] == exp.Literal.number(0)


def _counted(call: exp.Expr, domain: Domain) -> None:
    """``SUM(employed::int)`` with CASE; what is missing as nothing, where it is said to be nought."""
    inner = call.this.unnest()
    if isinstance(inner, exp.Coalesce) and _zero(inner) and isinstance(inner.this, exp.Column):
        total = exp.Sum(this=inner.this.copy())
        share = exp.Div(this=total, expression=exp.Count(this=exp.Star()))
        call.replace(total if isinstance(call, exp.Sum) else exp.paren(share))
        return
    inner = inner.this.unnest() if isinstance(inner, exp.Cast) and inner.to.this in _NUMBERS else inner
    folded = {name.casefold(): domain[name] for name in domain.names}
    columns = [folded.get(column.name.casefold()) for column in inner.find_all(exp.Column)]
    flag = isinstance(inner, exp.Column) and isinstance(columns[0], Boolean) and columns[0].has_missing_cell
    if flag and inner is not call.this and not isinstance(call.parent, exp.Filter):
        known = exp.Not(this=exp.Is(this=inner.copy(), expression=exp.Null()))
        those, all_ = (_rows_where(each) for each in (inner.copy(), known))
        share = exp.Div(this=exp.Mul(this=those, expression=exp.Literal.number("1.0")), expression=all_)
        listed = isinstance(call.parent, exp.Select) and call.arg_key == "expressions"
        whole = those if isinstance(call, exp.Sum) else exp.paren(share)
        call.replace(exp.alias_(whole, output_name(call)) if listed else whole)
        return
    kept = not any(column is None or column.has_missing_cell for column in columns)
    true = isinstance(inner, exp.Predicate | exp.Connector | exp.Not)
    if columns and kept and (true or (isinstance(inner, exp.Column) and isinstance(columns[0], Boolean))):
        branch = exp.If(this=inner.copy(), true=exp.Literal.number(1))
        call.set("this", exp.Case(ifs=[branch], default=exp.Literal.number(0)))


def _rows_where(holds: exp.Expr) -> exp.Filter:
    return exp.Filter(this=exp.Count(this=exp.Star(), big_int=True), expression=exp.Where(this=holds))


_SOME_ROWS: Final = [
    sign(this=exp.Count(this=counted, big_int=True), expression=exp.Literal.number(number))
    for counted in (exp.Star(), exp.Literal.number(1))
    for sign, number in ((exp.GT, 0), (exp.GTE, 1))
]
"""That there is a row at all, as some tools ask of everything."""
_NUMBERS: Final = {
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.FLOAT,
}


def _inside(source: exp.Expr, tables: Mapping[str, exp.Expr]) -> tuple[exp.Expr | None, str]:
    """The SELECT that stands in FROM, by itself or by its name, and what it is called."""
    if isinstance(source, exp.Subquery) and not source.args.get("joins"):
        return source.this, source.alias
    named = isinstance(source, exp.Table) and not source.db and tables.get(source.name.casefold())
    return (named.copy(), source.alias or source.name) if named else (None, "")


def _shown(select: exp.Expr) -> dict[str, exp.Expr] | None:
    """What each name of a subquery stands for; a star, which renames nothing, for itself."""
    items = select.expressions
    shown: dict[str, exp.Expr] = {}
    for item in items:
        bare = item.unalias()
        if _every(item):
            shown["*"] = item
            continue
        if not item.alias_or_name or any(bare.find_all(exp.AggFunc, exp.Window, exp.Star, exp.Query)):
            return None
        if item.alias_or_name.casefold() in shown:
            return None
        shown[item.alias_or_name.casefold()] = bare
    return shown


def _every(item: exp.Expr) -> bool:
    """``*`` or ``people.*``, without exceptions."""
    star = item.this if isinstance(item, exp.Column) else item
    return isinstance(star, exp.Star) and not any(star.args.values())


def _renamed(select: exp.Expr, shown: Mapping[str, exp.Expr], alias: str) -> bool:
    """Put what names stand for in their place; False if one stands for nothing."""
    outer = {item.alias.casefold() for item in select.expressions if isinstance(item, exp.Alias)}
    for column in list(select.find_all(exp.Column)):
        if column.find_ancestor(exp.From) is not None:
            continue
        if column.table and column.table.casefold() != alias.casefold():
            return False
        meant = shown.get(column.name.casefold())
        if meant is None and "*" in shown and not isinstance(column.this, exp.Star):
            meant = exp.Column(this=column.this.copy())
        if meant is None and column.name.casefold() not in outer:
            return False
        if meant is not None:
            listed = column.parent is select and column.arg_key == "expressions"
            column.replace(exp.alias_(meant.copy(), column.name) if listed else meant.copy())
    return True
