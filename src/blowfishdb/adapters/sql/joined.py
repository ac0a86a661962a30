"""Joined: the rows of one table, each with the columns of the rows that it belongs to.

The join is written here and by nobody else, so that what it does to rows is known: each row of the table of
FROM is in it, whether or not its keys lead anywhere, and what they do not lead to is missing. A public table
in which a key occurs twice has nothing to say about that key: a look-up by a hidden value must not decide how
many rows there are. Where keys of people's rows occur twice, rows are doubled, but only by keys, which no
policy hides, and then no more of them count for each person than may (``Unit``), because that is decided
afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, SqlColumn
from blowfishdb.core.domain.tables import Child, Lookup, Tables, table_of
from blowfishdb.core.errors import InvalidInput, UnknownColumn

PERSON: Final = f"{sql.RESERVED}person"
"""Whose row it is, in a table whose rows belong to people."""
_ALIKE: Final = (ColumnKind.INTEGER, ColumnKind.TEXT, ColumnKind.NUMBER, ColumnKind.ANY)
_OFTEN: Final = f"{sql.RESERVED}often"
_EACH: Final = f"{sql.RESERVED}each"


@final
@dataclass(frozen=True)
class Joined:
    """The rows of the table ``base``, with some ``columns`` of the tables in its reach."""

    tables: Tables
    base: str
    columns: tuple[str, ...]

    @property
    def named(self) -> tuple[exp.Table, ...]:
        """The tables of the database that it reads, each once."""
        written = dict.fromkeys(map(self.tables.stored_as, self._used))
        return tuple(sql.stored_table(*sql.qualified(each)) for each in written)

    @property
    def person(self) -> str:
        """The column that says whose row it is."""
        unit = self.tables.unit
        return f"{unit}.{self.tables[unit].key}" if self.base == unit else PERSON

    @property
    def key(self) -> str | None:
        """The column that tells the rows of a person apart; None where a person has one."""
        declared = self.tables[self.base]
        return f"{self.base}.{declared.key}" if isinstance(declared, Child) and declared.key else None

    def query(self) -> exp.Select:
        """The rows, with the columns under their full names and the keys beside them."""
        names = dict.fromkeys((*self.columns, *self._keys()))
        values = [exp.alias_(self._value(name), name, quoted=True) for name in names]
        if self.person == PERSON:
            values.append(exp.alias_(self._whose(), PERSON, quoted=True))
        select = exp.Select(expressions=values).from_(self._stored(self.base), copy=False)
        for below, name, own in self._joins():
            on = exp.EQ(this=self._value(below), expression=self._value(own))
            select = select.join(self._joined(name, own), on=on, join_type="left", copy=False)
        return select

    def check(self, types: Mapping[str, SqlColumn]) -> None:
        """Keys that meet are of one kind, so that no comparison has to convert anything."""
        for below, _, own in self._joins():
            for name in (below, own):
                if name not in types:
                    raise UnknownColumn(f"There is no column {name!r}, which is declared as a key.")
            one, other = types[below], types[own]
            alike = one.kind is other.kind and one.kind in _ALIKE and not (one.wide or other.wide)
            if not alike and one.type != other.type:
                raise InvalidInput(
                    f"'{below}' holds {one.type} and '{own}' {other.type}: keys that meet are of one type.",
                    fixes=("a view in the database that converts one of them, with all of its rows",),
                )

    # --- parts --------------------------------------------------------------------------------------

    @property
    def _used(self) -> tuple[str, ...]:
        """The way to the people, and what is looked up for a column that is wanted."""
        wanted = {table_of(column) for column in self.columns}
        for name in reversed(self.tables.reach(self.base)):
            declared = self.tables[name]
            if name in wanted and isinstance(declared, Lookup):
                wanted.add(declared.of)
        path = self.tables.path(self.base)
        return tuple(name for name in self.tables.reach(self.base) if name in path or name in wanted)

    def _joins(self) -> Iterator[tuple[str, str, str]]:
        """Every table but the first, with the column that leads to it and its own."""
        path = self.tables.path(self.base)
        for name in self._used[1:]:
            declared = self.tables[name]
            if isinstance(declared, Lookup):
                yield f"{declared.of}.{declared.by}", name, f"{name}.{declared.key}"
                continue
            below = path[path.index(name) - 1]
            leads = self.tables[below]
            assert isinstance(leads, Child)
            yield f"{below}.{leads.by}", name, f"{name}.{declared.key}"

    def _keys(self) -> Iterator[str]:
        yield self.person if self.base == self.tables.unit else self.key or self.columns[0]
        for below, _, own in self._joins():
            yield below
            yield own

    def _whose(self) -> exp.Expr:
        """The key of the person; where it leads nowhere, the key itself still says whose row it is."""
        path, unit = self.tables.path(self.base), self.tables.unit
        last = self.tables[path[-2]]
        assert isinstance(last, Child)
        found = self._value(f"{unit}.{self.tables[unit].key}")
        return exp.Coalesce(this=found, expressions=[self._value(f"{path[-2]}.{last.by}")])

    def _joined(self, name: str, own: str) -> exp.Table | exp.Subquery:
        if not isinstance(self.tables[name], Lookup):
            return self._stored(name)
        key = sql.column(_column(own), _EACH)
        often = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[key])
        every = exp.Column(this=exp.Star(), table=exp.to_identifier(_EACH, quoted=True))
        counted = exp.Select(expressions=[every, exp.alias_(often, _OFTEN, quoted=True)])
        counted = counted.from_(self._stored(name, _EACH), copy=False)
        once = exp.EQ(this=sql.column(_OFTEN, _EACH), expression=sql.whole(1))
        single = exp.select("*").from_(exp.Subquery(this=counted, alias=_alias(_EACH))).where(once)
        return exp.Subquery(this=single, alias=_alias(self._alias(name)))

    def _stored(self, name: str, alias: str | None = None) -> exp.Table:
        return sql.stored_table(*sql.qualified(self.tables.stored_as(name)), alias or self._alias(name))

    def _value(self, name: str) -> exp.Column:
        return sql.column(_column(name), self._alias(table_of(name)))

    def _alias(self, name: str) -> str:
        return f"{sql.RESERVED}{name}"


def _column(name: str) -> str:
    return name.partition(".")[2]


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
