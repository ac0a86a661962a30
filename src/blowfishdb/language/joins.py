"""Several tables in one SELECT: which of them is counted, and joins that say what the keys say already.

FROM names the table whose rows are counted. Each of its rows has the columns of what it belongs to, so no
join is needed; one that is written along the declared keys, from a row to what it belongs to, is let go. Any
other would count something else, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from blowfishdb.core.errors import InvalidQuestion, UnsupportedSql
from blowfishdb.language.aggregates import SelectContext
from blowfishdb.language.text import shown, sql_tree

Keys = Sequence[tuple[str, str]]
"""Pairs of columns: that of a row, and that of what it belongs to (``orders.person``, ``people.id``)."""


def counted_table(text: str, tables: Sequence[str], dataset: str) -> str:
    """The table that a statement about a dataset of several tables counts."""
    fixes = tuple(f"SELECT COUNT(*) FROM {dataset}.{name}" for name in tables)  # noqa: S608 - shown, never run
    tree = sql_tree(text, None, fixes[0])
    for table in tree.find_all(exp.Table):
        if table.find_ancestor(exp.Join) is None:
            known = {name.casefold(): name for name in tables}
            if table.name.casefold() in known and table.db.casefold() in ("", dataset.casefold()):
                return known[table.name.casefold()]
    raise InvalidQuestion(
        f"{dataset} has several tables, and FROM names the one whose rows are counted.", fixes=fixes
    )


def without_joins(tree: exp.Expr, source: SelectContext, keys: Keys) -> exp.Expr:
    """The statement about one of several tables, with full names for its columns and no joins."""
    for select in list(tree.find_all(exp.Select)):
        _name_alone(select, source, keys)
    return tree


def _name_alone(select: exp.Select, source: SelectContext, keys: Keys) -> None:
    """What does not read the table that is counted stays as it is, and is refused for what it is."""
    dataset, _, counted = source.dataset.rpartition(".")
    origin, called = select.args.get("from_"), dict[str, str]()
    joins = select.args.get("joins") or []
    tables = [] if origin is None else [origin.this, *(join.this for join in joins)]
    for table in tables:
        if not isinstance(table, exp.Table) or table.db.casefold() not in ("", dataset.casefold()):
            return
        called[table.alias_or_name.casefold()] = table.name
    if not tables or tables[0].name.casefold() != counted.casefold():
        return
    for column in select.find_all(exp.Column):
        if column.table.casefold() in called and column.db.casefold() in ("", dataset.casefold()):
            column.set("table", exp.to_identifier(called[column.table.casefold()]))
            column.set("db", None)
    reached = {counted.casefold()}
    for join in joins:
        reached.add(_along(join, source, keys, reached))
    select.set("joins", None)
    select.set("from_", exp.From(this=exp.Table(this=exp.to_identifier(source.dataset, quoted=True))))


def _along(join: exp.Join, source: SelectContext, keys: Keys, reached: set[str]) -> str:
    """The table that a join leads to, if it does so by a declared key and leaves out no row."""
    name: str = join.this.name.casefold()
    pairs = {(one.casefold(), other.casefold()) for one, other in keys}
    led = [pair for pair in pairs if pair[1].partition(".")[0] == name]
    if join.args.get("using"):
        columns = [str(column.name).casefold() for column in join.args["using"]]
        written = {(f"{table}.{column}", f"{name}.{column}") for table in reached for column in columns}
        along = len(columns) == 1 and bool(written & pairs)
    else:
        on = join.args.get("on")
        sides = [_name(side) for side in (on.this, on.expression)] if isinstance(on, exp.EQ) else []
        along = len(sides) == 2 and bool({(sides[0], sides[1]), (sides[1], sides[0])} & pairs)
    if along and led and led[0][0].partition(".")[0] in reached and join.side.upper() == "LEFT":
        return name
    if along and led and led[0][0].partition(".")[0] in reached:
        raise UnsupportedSql(
            f"{shown(join)}: each row is counted, also where its key leads nowhere, and a JOIN would leave "
            "it out.",
            fixes=(f"LEFT {shown(join)}", source.select("COUNT(*)")),
        )
    known = tuple(f"LEFT JOIN {other.partition('.')[0]} ON {one} = {other}" for one, other in keys)
    raise UnsupportedSql(
        f"{shown(join)}: rows are joined only along the declared keys, from a row to what it belongs to, and "
        "nobody has to write that.",
        fixes=(source.select("COUNT(*)"), *known),
    )


def _name(node: exp.Expr | None) -> str:
    return f"{node.table}.{node.name}".casefold() if isinstance(node, exp.Column) else ""
