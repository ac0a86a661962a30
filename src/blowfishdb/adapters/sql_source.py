"""Source: the table or the curator's view whose rows are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.adapters.sql_values import SOURCE
from blowfishdb.core.errors import InvalidInput

_RANDOM = {"random", "rand", "uuid", "gen_random_uuid", "setseed", "nextval", "newid"}


@final
@dataclass(frozen=True)
class Source:
    """A table by name (``schema`` may qualify it), or a view: a SELECT over tables, one row in one row out."""

    table: str | None = None
    schema: str | None = None
    view: str | None = None
    dialect: str = "duckdb"

    def __post_init__(self) -> None:
        if (self.table is None) == (self.view is None):
            raise InvalidInput("A source is either a table or a view.", fixes=("Source.of_table('people')",))
        if self.table is not None and not self.table.strip():
            raise InvalidInput("The name of the table is empty.")
        if self.view is not None:
            _check_view(self._parsed())

    @classmethod
    def of_table(cls, table: str, schema: str | None = None) -> Self:
        """A table; the names are taken literally and quoted."""
        return cls(table=table, schema=schema)

    @classmethod
    def of_view(cls, select: str, dialect: str = "duckdb") -> Self:
        """A SELECT written by the curator, in the words of the database."""
        return cls(view=select, dialect=dialect)

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        if self.table is None:
            return "the view"
        return (
            f"the table '{self.table}'" if self.schema is None else f"the table '{self.schema}.{self.table}'"
        )

    def relation(self) -> exp.Table | exp.Subquery:
        """What stands behind FROM."""
        alias = exp.to_identifier(SOURCE, quoted=True)
        if self.view is not None:
            return self._parsed().subquery(alias)
        db = exp.to_identifier(self.schema, quoted=True) if self.schema is not None else None
        table = exp.Table(this=exp.to_identifier(self.table, quoted=True), db=db)
        return table.as_(alias, table=True)  # type: ignore[no-any-return]

    def _parsed(self) -> exp.Query:
        try:
            statements = sqlglot.parse(self.view or "", dialect=self.dialect)
        except SqlglotError:
            raise InvalidInput(
                "The view is not SQL that can be read.", fixes=("SELECT * FROM people",)
            ) from None
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            raise InvalidInput("A view is one SELECT statement.", fixes=("SELECT * FROM people",))
        return statements[0]


def _check_view(view: exp.Query) -> None:
    """A row of the view must come from one row of a person, or sensitivities would not hold."""
    refused: tuple[tuple[type[exp.Expression], str], ...] = (
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
    for node in view.walk():
        found = next((words for kind, words in refused if isinstance(node, kind)), None)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _RANDOM:
            found = "random functions"
        if isinstance(node, exp.Union) and node.args.get("distinct"):
            found = "UNION without ALL"
        if found is not None:
            raise InvalidInput(
                f"A view may not use {found}: one person's change could then move other people's rows.",
                fixes=("select, rename, convert and join columns only",),
            )
    tables = [table.sql() for table in view.find_all(exp.Table)]
    if len(set(tables)) < len(tables):
        raise InvalidInput("A view may use a table only once: a row could meet itself many times.")
