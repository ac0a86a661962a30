"""Unit: whose rows they are, and how many of them may count for one person.

The rows that count are chosen before any condition, by a row key that never changes: by a value they would
depend on what is to be hidden, and a small change of one value could exchange a row for a very different one.
The key is hashed with a salt, so that early rows are not preferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_engine import Engine, Kind, SqlColumn
from blowfishdb.core.errors import InvalidInput, UnknownColumn

_PLACE = f"{sql.RESERVED}place"
_ALL = "everyone"
_KEYS = (Kind.INTEGER, Kind.TEXT, Kind.NUMBER, Kind.ANY)


@final
@dataclass(frozen=True)
class Unit:
    """At most ``rows`` rows count for everyone who is named in the column ``person``.

    With a ``key`` (unique, never changed, in no policy) the first ones in the order of its hash are kept;
    without one, everyone with more rows is left out. Rows without a person, or without a key, never count.
    """

    person: str
    rows: int
    key: str | None = None
    salt: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.person, str) or not self.person.strip():
            raise InvalidInput("The column that names a person must be a text.", fixes=("person='id'",))
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InvalidInput(f"At least one row of each person must count, not {self.rows!r}.")
        if self.key is not None and (not isinstance(self.key, str) or not self.key.strip()):
            raise InvalidInput("The row key must be the name of a column.", fixes=("leave it out",))
        if self.key == self.person:
            raise InvalidInput(
                f"The column {self.person!r} names a person and cannot tell the person's rows apart.",
                fixes=("another key", "no key"),
            )
        if not isinstance(self.salt, str) or not self.salt.isascii() or not self.salt.isprintable():
            raise InvalidInput("The salt must be a text of plain letters and digits.")
        if any(sign in self.salt for sign in "'\"\\"):
            raise InvalidInput("The salt must be without quotes and backslashes.")

    def check(self, types: Mapping[str, SqlColumn]) -> None:
        """The columns are there, and the key is one whose text is the same in every database."""
        for name, what in ((self.person, "person"), (self.key, "row key")):
            if name is not None and name not in types:
                raise UnknownColumn(
                    f"There is no column {name!r} for the {what}; it has: {', '.join(types)}."
                )
        if types[self.person].engine.identity(types[self.person]) is None:
            raise InvalidInput(
                f"{types[self.person].engine.title} is not known to compare texts byte by byte, so it could "
                f"take two people of {self.person!r} for one.",
                fixes=("a column of whole numbers", "a view with a number for each person"),
            )
        if self.key is None or types[self.key].kind in _KEYS or types[self.key].type.upper() == "UUID":
            return
        raise InvalidInput(
            f"The row key {self.key!r} holds {types[self.key].type}; only whole numbers and texts can be.",
            fixes=("another key", "no key"),
        )

    def limit(
        self, relation: exp.Table | exp.Subquery, types: Mapping[str, SqlColumn], engine: Engine
    ) -> exp.Subquery:
        """The rows of ``relation`` that count, under the same alias."""
        self.check(types)
        person = engine.identity(types[self.person])
        assert person is not None  # refused by the check
        known: list[exp.Expr] = [exp.Not(this=sql.is_null(sql.column(self.person, sql.SOURCE)))]
        place = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person])
        if self.key is not None:
            place.set("order", self._order(self.key, engine))
            known.append(exp.Not(this=sql.is_null(sql.column(self.key, sql.SOURCE))))
        named = exp.Alias(this=place, alias=exp.to_identifier(_PLACE, quoted=True))
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier(sql.SOURCE, quoted=True))
        inner = exp.Select(expressions=[everything, named]).from_(relation, copy=False)
        inner = inner.where(*known, copy=False)
        few = exp.LTE(this=sql.column(_PLACE, _ALL), expression=sql.whole(self.rows))
        outer = exp.select("*").from_(exp.Subquery(this=inner, alias=_alias(_ALL)), copy=False)
        return exp.Subquery(this=outer.where(few, copy=False), alias=_alias(sql.SOURCE))

    def _order(self, key: str, engine: Engine) -> exp.Order:
        """Rows are counted up to their key. Those with equal keys are counted together, so that they stay or
        go together: which of them came first in a file decides nothing."""
        value = sql.column(key, sql.SOURCE)
        salted = exp.Concat(
            expressions=[sql.string(f"{self.salt}:"), sql.cast(value, "TEXT")], safe=False, coalesce=False
        )
        order = [exp.Ordered(this=engine.md5(salted)), exp.Ordered(this=value.copy())]
        return exp.Order(expressions=order)


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
