"""Source: the table or the curator's view whose rows are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.adapters.sql_engine import Engine, SqlColumn
from blowfishdb.adapters.sql_unit import Unit
from blowfishdb.adapters.sql_values import RESERVED, SOURCE
from blowfishdb.core.errors import InvalidInput

_REFUSED: tuple[tuple[type, str], ...] = (
    (exp.AggFunc, "aggregates"),
    (exp.Group, "GROUP BY"),
    (exp.Window, "window functions"),
    (exp.Distinct, "DISTINCT"),
    (exp.Limit, "LIMIT"),
    (exp.Offset, "OFFSET"),
    (exp.Fetch, "FETCH"),
    (exp.Except, "EXCEPT"),
    (exp.Intersect, "INTERSECT"),
    (exp.TableSample, "samples"),
    (exp.Rand, "random functions"),
    (exp.Uuid, "random functions"),
    (exp.Command, "commands"),
    (exp.DML, "changes of data"),
    (exp.Into, "INTO"),
)
_RANDOM = {"random", "rand", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "setseed", "nextval", "newid"}


@final
@dataclass(frozen=True)
class Source:
    """A table by name, or a view: a SELECT that makes each of its rows from one row of a person.

    The names of tables are taken literally and quoted. A view is written by the curator, in the words of the
    database; it may choose, rename, convert and join columns. A ``unit`` says whose rows they are, and how
    many of them count for one person.
    """

    table: str | None = None
    schema: str | None = None
    view: str | None = None
    dialect: str = "duckdb"
    unit: Unit | None = None
    _select: exp.Query | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if (self.table is None) == (self.view is None):
            raise InvalidInput("A source is either a table or a view.", fixes=("Source.of_table('people')",))
        if self.table is not None and not self.table.strip():
            raise InvalidInput("The name of the table is empty.")
        if self.view is not None:
            object.__setattr__(self, "_select", _parse(self.view, self.dialect))
        names = [table.name for table in self.relation().find_all(exp.Table)]
        if any(name.lower().startswith(RESERVED) for name in names):
            raise InvalidInput(
                f"Table names that begin with {RESERVED} are reserved.", fixes=("rename the table",)
            )

    @classmethod
    def of_table(cls, table: str, schema: str | None = None, *, unit: Unit | None = None) -> Self:
        """A table, perhaps in a schema."""
        return cls(table=table, schema=schema, unit=unit)

    @classmethod
    def of_view(cls, select: str, dialect: str = "duckdb", *, unit: Unit | None = None) -> Self:
        """A SELECT statement."""
        return cls(view=select, dialect=dialect, unit=unit)

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        if self.table is None:
            return "the view"
        return (
            f"the table '{self.table}'" if self.schema is None else f"the table '{self.schema}.{self.table}'"
        )

    def relation(self) -> exp.Table | exp.Subquery:
        """What stands behind FROM, with the rows of everyone."""
        alias = exp.TableAlias(this=exp.to_identifier(SOURCE, quoted=True))
        if self._select is not None:
            return exp.Subquery(this=self._select.copy(), alias=alias)
        db = None if self.schema is None else exp.to_identifier(self.schema, quoted=True)
        return exp.Table(this=exp.to_identifier(self.table, quoted=True), db=db, alias=alias)

    def rows(self, types: Mapping[str, SqlColumn], engine: Engine) -> exp.Table | exp.Subquery:
        """The rows that count: at most so many of each person, chosen before anything else happens."""
        if self.unit is None:
            return self.relation()
        return self.unit.limit(self.relation(), types, engine)


def _parse(text: str, dialect: str) -> exp.Query:
    """A row of a view must come from one row of a person, or sensitivities would not hold."""
    try:
        statements = sqlglot.parse(text, dialect=dialect)
    except SqlglotError:
        raise InvalidInput("The view is not SQL that can be read.", fixes=("SELECT * FROM people",)) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InvalidInput("A view is one SELECT statement.", fixes=("SELECT * FROM people",))
    view = statements[0]
    for node in view.walk():
        found = _refused(node)
        if found is not None:
            raise InvalidInput(
                f"A view may not use {found}: one person's change could then move other people's rows.",
                fixes=("only choose, rename, convert and join columns",),
            )
    tables = [
        (table.catalog.lower(), table.db.lower(), table.name.lower())
        for table in view.find_all(exp.Table)
        if table.name
    ]
    if len(set(tables)) < len(tables):
        raise InvalidInput("A view may use a table only once: a row could meet others of its own table.")
    return view


def _refused(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Anonymous) and node.name.lower() in _RANDOM:
        return "random functions"
    if isinstance(node, exp.Union) and node.args.get("distinct"):
        return "UNION without ALL"
    return next((words for kind, words in _REFUSED if isinstance(node, kind)), None)
