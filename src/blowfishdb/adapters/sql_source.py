"""Source: the table or the curator's view whose rows are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self, final

from sqlglot import exp

from blowfishdb.adapters.sql_engine import Engine, SqlColumn
from blowfishdb.adapters.sql_unit import Unit
from blowfishdb.adapters.sql_values import RESERVED, SOURCE
from blowfishdb.adapters.sql_view import Names, View, read_view, statement
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.row_rules import RowRules


@final
@dataclass(frozen=True)
class Source:
    """A table by name, or a view: a SELECT that makes each of its rows from one row of each of its tables.

    The names of tables are taken literally and quoted. A view is written by the curator, in the words of the
    database; it may choose, rename, compare and join columns. A ``unit`` says whose rows they are, and how
    many of them count for one person. ``public`` names columns that no policy may hide. ``rows_vary`` says
    whether hidden values decide which rows there are; None: what the view itself tells.
    """

    table: str | None = None
    schema: str | None = None
    view: str | None = None
    dialect: str = "duckdb"
    unit: Unit | None = None
    public: tuple[str, ...] = ()
    rows_vary: bool | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.view is None):
            raise InvalidInput("A source is either a table or a view.", fixes=("Source.of_table('people')",))
        if self.table is not None and not self.table.strip():
            raise InvalidInput("The name of the table is empty.")
        if any(name.lower().startswith(RESERVED) for name in self.table_names):
            raise InvalidInput(
                f"Table names that begin with {RESERVED} are reserved.", fixes=("rename the table",)
            )

    @classmethod
    def of_table(cls, table: str, schema: str | None = None, *, unit: Unit | None = None) -> Self:
        """A table, perhaps in a schema."""
        return cls(table=table, schema=schema, unit=unit)

    @classmethod
    def of_view(cls, select: str, dialect: str = "duckdb", *, unit: Unit | None = None) -> Self:
        """A SELECT statement, of which everything is allowed; one from an older store is only found out to
        be refused when rows are asked for."""
        made = cls(view=select, dialect=dialect, unit=unit)
        _ = made.read
        return made

    @cached_property
    def read(self) -> View | None:
        """The view, as far as it is allowed; None for a table."""
        return None if self.view is None else read_view(self.view, self.dialect)

    @cached_property
    def table_names(self) -> tuple[str, ...]:
        """The tables that rows come from, without their schemas."""
        if self.view is None:
            return (self.table or "",)
        return tuple(table.name for table in statement(self.view, self.dialect).find_all(exp.Table))

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
        if self.read is not None:
            return exp.Subquery(this=self.read.query.copy(), alias=alias)
        db = None if self.schema is None else exp.to_identifier(self.schema, quoted=True)
        return exp.Table(this=exp.to_identifier(self.table, quoted=True), db=db, alias=alias)

    def rows(self, types: Mapping[str, SqlColumn], engine: Engine) -> exp.Table | exp.Subquery:
        """The rows that count: at most so many of each person, chosen before anything else happens."""
        if self.unit is None:
            return self.relation()
        return self.unit.limit(self.relation(), types, engine)

    # --- what its rows demand of policies ---------------------------------------------------------

    def rules(self, domain: Domain) -> RowRules:
        """Which declared columns no policy may hide, and whether rows come and go with hidden values.

        Whose row it is and its key are the same whatever a person hides; so is what is declared public.
        """
        known = self._known()
        kept = {name for name in domain if self._made_from(name) & known}
        return RowRules(frozenset(kept), self._varies(known))

    def check_rules(self, domain: Domain) -> None:
        """Whose row it is, its key, and what leaves rows out must not be something that a policy may hide."""
        stated = Names(map(_plain_name, self.public))
        for column, what in self._ids():
            hidden = [
                name
                for name in domain
                if self._made_from(name) & self._made_from(column)
                and not self._made_from(name) & self._made_from(column) <= stated
            ]
            if hidden:
                raise InvalidInput(
                    f"The column {hidden[0]!r} is declared, so a policy hides it, and it is also {what}: "
                    "where its value changes, other rows would count.",
                    fixes=(f"leave {hidden[0]!r} out of the columns", f"public=[{hidden[0]!r}]"),
                )
        view, known = self.read, self._known()
        decided = Names() if view is None else view.conditions - known
        if self.rows_vary is False and decided:
            raise InvalidInput(
                f"The view leaves out rows by {_listed(decided)}, so its rows do vary with hidden values.",
                fixes=(f"public={sorted(decided)!r}, if nobody's value in it is a secret", "no WHERE"),
            )
        if self.unit is not None and self._varies(known):
            raise InvalidInput(
                "At most so many rows of each person count, and they are chosen before anything is left out; "
                "this source leaves out rows by values that may be hidden.",
                fixes=("public=[…] with the columns in WHERE and ON", "a filter in the question instead"),
            )

    def check_stored(self, computed: Names) -> None:
        """Whose row it is and its key are not computed by the database from what a policy may hide."""
        for column, what in self._ids():
            made = sorted(self._made_from(column) & computed)
            if made:
                raise InvalidInput(
                    f"The database computes {made[0]!r} from other columns, and it is {what}: where a hidden "
                    "value changes, other rows would count.",
                    fixes=("a column with values of its own",),
                )

    def _ids(self) -> list[tuple[str, str]]:
        if self.unit is None:
            return []
        key = [] if self.unit.key is None else [(self.unit.key, "the key that tells rows apart")]
        return [(self.unit.person, "what says whose row it is"), *key]

    def _made_from(self, column: str) -> Names:
        return Names({column.lower()}) if self.read is None else self.read.made_from(column)

    def _known(self) -> Names:
        """The columns of tables that no policy can hide."""
        ids = Names().union(*(self._made_from(column) for column, _ in self._ids()))
        return ids | Names(map(_plain_name, self.public))

    def _varies(self, known: Names) -> bool:
        if self.rows_vary is not None:
            return self.rows_vary
        if self.read is None:
            return False
        several = self.read.lookups if self.unit is not None else Names()
        return bool((self.read.conditions | self.read.matches | several) - known)


def _plain_name(name: str) -> str:
    """A column without the name of its table in front."""
    return name.rpartition(".")[2].lower()


def _listed(names: Names) -> str:
    return ", ".join(repr(name) for name in sorted(names))
