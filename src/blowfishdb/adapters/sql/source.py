"""Source: the table or the curator's view whose rows are counted.

Unit: whose rows they are, and how many of them may count for one person.

The rows that count are chosen before any condition, by a row key that never changes: by a value they would
depend on what is to be hidden, and a small change of one value could exchange a row for a very different one.
The key is hashed with a salt, so that early rows are not preferred.

Types in a view: where values of different types meet, a database converts them, and that can fail.

Only the database knows the types, so it is asked to describe the values, without reading a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, final

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import ColumnKind, Engine, SqlColumn
from blowfishdb.adapters.sql.joined import Joined
from blowfishdb.adapters.sql.values import RESERVED, SOURCE
from blowfishdb.adapters.sql.view import Group, Names, Need, View, read_view, statement
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.tables import Tables
from blowfishdb.core.errors import InvalidInput, UnknownColumn
from blowfishdb.core.policy.policy import RowRules

_PLACE = f"{sql.RESERVED}place"
_ALL = "everyone"
_KEYS = (ColumnKind.INTEGER, ColumnKind.TEXT, ColumnKind.NUMBER, ColumnKind.ANY)


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
        present: list[exp.Expr] = [exp.Not(this=sql.is_null(sql.column(self.person, sql.SOURCE)))]
        rows_of_person = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[person])
        if self.key is not None:
            rows_of_person.set("order", self._order(self.key, engine))
            present.append(exp.Not(this=sql.is_null(sql.column(self.key, sql.SOURCE))))
        named = exp.Alias(this=rows_of_person, alias=exp.to_identifier(_PLACE, quoted=True))
        everything = exp.Column(this=exp.Star(), table=exp.to_identifier(sql.SOURCE, quoted=True))
        inner = exp.Select(expressions=[everything, named]).from_(relation, copy=False)
        inner = inner.where(*present, copy=False)
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@final
@dataclass(frozen=True)
class Source:
    """A table by name, a view, or one of several tables with what its rows belong to.

    A view is a SELECT that makes each of its rows from one row of each of its tables.

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
    joined: Joined | None = None

    def __post_init__(self) -> None:
        if [self.table, self.view, self.joined].count(None) != 2:
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
    def named(cls, written: str) -> Self:
        """A table as people write it: ``visits``, or ``clinic.visits`` in a schema.

        Either may stand in double quotes, which a name with a dot in it needs.
        """
        schema, table = sql.qualified(written)
        return cls(table=table, schema=schema)

    @classmethod
    def of_tables(cls, tables: Tables, base: str, domain: Domain, *, salt: str) -> Self:
        """The rows of one of several tables, each with the columns of the rows that it belongs to."""
        joined = Joined(tables, base, tables.columns(base, domain))
        unit = Unit(joined.person, tables.rows_per_person(base), joined.key, salt)
        return cls(joined=joined, unit=unit)

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
        if self.joined is not None:
            tables = self.joined.tables
            return tuple(sql.qualified(tables.stored_as(name))[1] for name in tables.asked)
        if self.view is None:
            return (self.table or "",)
        return tuple(table.name for table in statement(self.view, self.dialect).find_all(exp.Table))

    @property
    def written(self) -> str | None:
        """The table as people write it, so that ``named`` gives it back; None for a view."""
        if self.table is None:
            return None
        names = (self.table,) if self.schema is None else (self.schema, self.table)
        return ".".join(_quoted(name) if set(name) & set('".') else name for name in names)

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        if self.joined is not None:
            return f"the table '{self.joined.base}' with what its rows belong to"
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
        if self.joined is not None:
            return exp.Subquery(this=self.joined.query(), alias=alias)
        return sql.stored_table(self.schema, self.table or "", SOURCE)

    def rows(self, types: Mapping[str, SqlColumn], engine: Engine) -> exp.Table | exp.Subquery:
        """The rows that count: at most so many of each person, chosen before anything else happens."""
        if self.joined is not None:
            self.joined.check(types)
        if self.unit is None:
            return self.relation()
        return self.unit.limit(self.relation(), types, engine)

    # --- what its rows demand of policies ---------------------------------------------------------

    def rules(self, domain: Domain) -> RowRules:
        """Which declared columns no policy may hide, and whether rows come and go with hidden values.

        Whose row it is and its key are the same whatever a person hides; so is what is declared public.
        """
        public = self._known()
        unhidden = {name for name in domain if self._made_from(name) & public}
        return RowRules(frozenset(unhidden), self._varies(public), several=self.joined is not None)

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
        view, public = self.read, self._known()
        decided = Names() if view is None else view.conditions - public
        if self.rows_vary is False and decided:
            raise InvalidInput(
                f"The view leaves out rows by {_listed(decided)}, so its rows do vary with hidden values.",
                fixes=(f"public={sorted(decided)!r}, if nobody's value in it is a secret", "no WHERE"),
            )
        if self.unit is not None and self._varies(public):
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

    def _varies(self, public: Names) -> bool:
        if self.rows_vary is not None:
            return self.rows_vary
        if self.read is None:
            return False
        several = self.read.lookups if self.unit is not None else Names()
        return bool((self.read.conditions | self.read.matches | several) - public)


def _plain_name(name: str) -> str:
    """A column without the name of its table in front."""
    return name.rpartition(".")[2].lower()


def _listed(names: Names) -> str:
    return ", ".join(repr(name) for name in sorted(names))


Describe = Callable[[exp.Query], list[SqlColumn]]
"""The columns of a SELECT in the database's own words, in their order."""

_SAFE_DIGITS: Final = 18  # decimals that meet a written number without running out of digits


def check_types(view: View, describe: Describe) -> None:
    """Refuse a view in which values would have to be converted by something that can fail."""
    for select in _selects(view):
        groups = [group for group in view.groups if group.select is select]
        values = [value for group in groups for value in group.typed]
        types = iter(describe(_probe(select, values)) if values else ())
        for group in groups:
            _check(group, [next(types) for _ in group.typed])
    branches = list(view.query.find_all(exp.Select))
    if len(branches) > 1 and view.groups is not None:
        first, *others = ([column.type for column in describe(branch)] for branch in branches)
        if any(other != first for other in others):
            raise InvalidInput(
                "The SELECTs of a UNION ALL have columns of different types, which would be converted, and "
                "that can fail on some rows.",
                fixes=("TRY_CAST where they differ",),
            )


def _selects(view: View) -> Iterator[exp.Select]:
    seen: list[exp.Select] = []
    for group in view.groups:
        if not any(group.select is each for each in seen):
            seen.append(group.select)
            yield group.select


def _probe(select: exp.Select, values: list[exp.Expr]) -> exp.Select:
    """A SELECT of the values alone; it is described, never run."""
    named = [exp.alias_(value.copy(), f"p{i}", quoted=True) for i, value in enumerate(values)]
    probe = select.copy()
    probe.set("expressions", named)
    probe.set("where", None)
    return probe


def _check(group: Group, columns: list[SqlColumn]) -> None:
    if group.need is Need.FLOAT:
        if any(column.kind is not ColumnKind.FLOAT for column in columns):
            raise InvalidInput(
                "A view computes with floating-point numbers only: others can overflow on some rows.",
                fixes=("TRY_CAST(… AS DOUBLE)",),
            )
        return
    if len({column.type for column in columns}) > 1:
        raise InvalidInput(
            "A view compares values of different types, which are converted first, and that can fail on some "
            "rows.",
            fixes=("TRY_CAST one of them", "columns of the same type"),
        )
    if columns and group.numbers and not _numeric(columns[0]):
        raise InvalidInput(
            "A view compares a written number with something that is not one, or too long, and a conversion "
            "can fail on some rows.",
            fixes=("TRY_CAST(… AS DOUBLE)", "a text in quotes"),
        )


def _numeric(column: SqlColumn) -> bool:
    if column.kind is ColumnKind.DECIMAL:
        sizes = column.parsed.expressions if column.parsed is not None else []
        return bool(sizes) and int(sizes[0].name) <= _SAFE_DIGITS
    return column.kind is ColumnKind.FLOAT or (column.kind is ColumnKind.INTEGER and not column.wide)
