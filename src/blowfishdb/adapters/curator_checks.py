"""What a curator says about rows, held against the rows themselves while a dataset is being declared.

Only the curator learns what is found. What the data says later may differ, so nothing that is promised rests
on it: rows with equal keys stay or go together, whatever they are.
"""

from __future__ import annotations

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.curator_rows import Rows, reading_rows
from blowfishdb.adapters.patience import Patience
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_unit import Unit
from blowfishdb.core.errors import InvalidInput

_TIMEOUT = 600.0
_UNSEEN = ("no row key and no joins, so that nothing has to be looked at",)


def check_rows(location: object, source: Source) -> None:
    """The key tells the rows of a person apart, and a look-up finds one row at most."""
    joins = source.read is not None and source.read.joins and source.unit is None
    if not joins and (source.unit is None or source.unit.key is None):
        return
    with reading_rows(location, source, Patience(_TIMEOUT, _UNSEEN)) as rows:
        if source.unit is not None and source.unit.key is not None and rows.readable:
            _check_key(rows, source.unit)
        if joins:
            _check_lookups(rows, source)


def _check_key(rows: Rows, unit: Unit) -> None:
    assert unit.key is not None
    both = [rows.engine.identity(rows.columns[name]) for name in (unit.person, unit.key)]
    named = [exp.alias_(each, f"i{i}", quoted=True) for i, each in enumerate(both) if each is not None]
    known = [exp.Not(this=sql.is_null(sql.column(name, sql.SOURCE))) for name in (unit.person, unit.key)]
    each = exp.Select(expressions=named).from_(rows.source.relation()).where(*known)
    columns = [sql.column(f"i{i}", "each") for i in range(len(named))]
    again = exp.Select(expressions=[exp.alias_(sql.whole(1), "twice")]).from_(each.subquery("each"))
    again = again.group_by(*columns).having(exp.GT(this=exp.Count(this=exp.Star()), expression=sql.whole(1)))
    if rows.count(again):
        raise InvalidInput(
            f"Some rows of one person have the same {unit.key!r}, so it does not tell them apart.",
            fixes=("another row key", "no row key: whoever has more rows is then left out"),
        )


def _check_lookups(rows: Rows, source: Source) -> None:
    """Each row of the first table is one row of the view, whatever is looked up for it."""
    assert source.read is not None
    for select in source.read.query.find_all(exp.Select):
        if not select.args.get("joins"):
            continue
        if not rows.readable:
            raise InvalidInput(
                "Whether a row finds several others cannot be seen here.", fixes=("name the person",)
            )
        one = exp.alias_(sql.whole(1), "one")
        first = exp.Select(expressions=[one]).from_(select.args["from_"].this.copy())
        every = exp.Select(expressions=[one.copy()]).from_(select.args["from_"].this.copy())
        for join in select.args["joins"]:
            on, using = join.args.get("on"), join.args.get("using")
            every = every.join(
                join.this.copy(),
                on=None if on is None and using else (on.copy() if on is not None else exp.true()),
                using=[name.copy() for name in using] if using else None,
                join_type="left",
            )
        if rows.count(first) != rows.count(every):
            raise InvalidInput(
                "A row of the first table finds several rows of another in this view, so one person would "
                "be in several rows.",
                fixes=("name the person of each row", "join a column in which no value occurs twice"),
            )
