"""Several tables, held against what their curator says of them while a dataset is being declared.

Only the curator learns what is found. Nothing that is promised rests on it: what keys that occur twice would
do to rows later is known (``adapters/sql/joined.py``), and no more rows of a person count than may.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from blowfishdb.adapters.copies import Patience
from blowfishdb.adapters.proposal.rows import Rows, reading_rows
from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.joined import Joined
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.tables import Child, Tables, table_of
from blowfishdb.core.errors import InvalidInput, UnknownColumn

_TIMEOUT: Final = 600.0
_UNSEEN: Final = ("fewer tables", "ask whoever runs the database for an index on the keys")


def check_tables(location: object, tables: Tables) -> None:
    """Every key is a column of its own, and those that others lead to occur once."""
    led_to = {column for _, column in tables.joins()}
    unit = f"{tables.unit}.{tables[tables.unit].key}"
    for name, declared in tables.tables:
        source = Source.named(tables.stored_as(name))
        with reading_rows(location, source, Patience(_TIMEOUT, _UNSEEN), keys=True) as rows:
            for column in _columns(tables, name):
                if column not in rows.columns:
                    raise UnknownColumn(
                        f"There is no column {column!r} in the table '{name}'; it has: "
                        f"{', '.join(rows.columns)}.",
                        fixes=(f"another key of '{name}'",),
                    )
            key = f"{name}.{declared.key}"
            if declared.key is not None and key in {unit, *led_to}:
                _check_single(rows, name, declared.key)


def led_nowhere(location: object, tables: Tables, patience: Patience) -> set[str]:
    """The tables to which the keys of some rows do not lead, directly or by way of others."""
    lost: set[str] = set()
    for base in tables.asked:
        above = {f"{name}.{tables[name].key}": name for name in tables.reach(base)[1:]}
        if not above:
            continue
        source = Source(joined=Joined(tables, base, tuple(above)))
        with reading_rows(location, source, patience, keys=True) as rows:
            for key, name in above.items():
                nowhere = exp.Select(expressions=[exp.alias_(sql.whole(1), "one")])
                nowhere = nowhere.from_(rows.source.relation()).where(
                    sql.is_null(sql.column(key, sql.SOURCE))
                )
                if rows.count(nowhere):
                    lost.add(name)
    return lost


def _columns(tables: Tables, name: str) -> list[str]:
    """The key of a table, and the columns by which its rows lead to others."""
    declared = tables[name]
    own = [declared.key] if declared.key is not None else []
    own += [declared.by] if isinstance(declared, Child) else []
    leading = (column for column, _ in tables.joins() if table_of(column) == name)
    return list(dict.fromkeys((*own, *(column.partition(".")[2] for column in leading))))


def _check_single(rows: Rows, name: str, key: str) -> None:
    """No value of a key occurs twice, as the database compares them where it joins."""
    column = sql.column(key, sql.SOURCE)
    again = exp.Select(expressions=[exp.alias_(sql.whole(1), "twice")]).from_(rows.source.relation())
    again = again.where(exp.Not(this=sql.is_null(column.copy()))).group_by(column)
    again = again.having(exp.GT(this=exp.Count(this=exp.Star()), expression=sql.whole(1)))
    if rows.count(again):
        raise InvalidInput(
            f"Some values of '{key}' occur twice in '{name}', so a row would belong to several.",
            fixes=("a column in which each value occurs once", "a table without the doubles"),
        )
