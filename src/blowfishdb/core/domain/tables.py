"""Tables: several tables that belong together by keys, one of them with a row for each person.

A row of a table is asked about with the columns of the tables that it belongs to: an order with those of
whoever placed it, and with those of the region that person lives in. Which rows belong together is told by
keys alone, and keys are declared apart from columns: no policy hides them, so no hidden value decides which
rows there are, how many of them a person has, or which of these count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, UnknownColumn, UnknownDataset

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXAMPLE: Final = "Tables(people=People('id'), orders=Child('people', by='person', rows_per_person=20))"
_MOST: Final = 64


@final
@dataclass(frozen=True)
class People:
    """The table with a row for each person, who is named by ``key``.

    ``table``: what it is called in the database, perhaps with its schema, if not as it is called here.

    >>> bf.People("id").describe()
    'a row for each person, by id'
    """

    kind: ClassVar[str] = "people"
    key: str
    table: str | None = None

    def __post_init__(self) -> None:
        _check_names(key=self.key, table=self.table)

    def describe(self) -> str:
        """In words."""
        return f"a row for each person, by {self.key}"


@final
@dataclass(frozen=True)
class Child:
    """A table whose rows belong to those of another by the column ``by``, and so to people.

    At most ``rows_per_person`` of them count for one person: the first in the order of the hash of ``key``,
    which tells rows apart and never changes. Without a key, whoever has more is left out of this table.

    >>> bf.Child("people", by="person", key="order_id", rows_per_person=20).describe()
    'rows of people, by person; at most 20 of each person count'
    """

    kind: ClassVar[str] = "child"
    of: str
    by: str
    rows_per_person: int
    key: str | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        _check_names(of=self.of, by=self.by, key=self.key, table=self.table)
        if whole(self.rows_per_person, "The number of rows per person", InvalidInput) < 1:
            raise InvalidInput("At least one row of each person must count.")
        if self.key == self.by:
            raise InvalidInput(
                f"'{self.by}' says to what a row belongs, and cannot tell such rows apart.",
                fixes=("another key", "no key"),
            )

    def describe(self) -> str:
        """In words."""
        return f"rows of {self.of}, by {self.by}; at most {self.rows_per_person:,} of each person count"


@final
@dataclass(frozen=True)
class Lookup:
    """A table about nobody, which everyone may know: what the values of a column stand for.

    The column ``by`` of the table ``of`` is looked up in ``key``, in which no value occurs twice.

    >>> bf.Lookup("people", by="region", key="code").describe()
    'public; looked up for region of people, by code'
    """

    kind: ClassVar[str] = "lookup"
    of: str
    by: str
    key: str
    table: str | None = None

    def __post_init__(self) -> None:
        _check_names(of=self.of, by=self.by, key=self.key, table=self.table)

    def describe(self) -> str:
        """In words."""
        return f"public; looked up for {self.by} of {self.of}, by {self.key}"


AnyTable = People | Child | Lookup
_KINDS: Final = {each.kind: each for each in (People, Child, Lookup)}


@final
@dataclass(frozen=True, init=False, repr=False)
class Tables:
    """Tables by name, and how they belong together; columns are then called ``orders.amount``.

    One table is of ``People``; the others are ``Child`` tables, whose rows belong to people, and ``Lookup``
    tables, which are public. Every table but the first hangs on one other, so there is one way from a row to
    its person.

    >>> shop = bf.Tables(
    ...     people=bf.People("id"),
    ...     orders=bf.Child("people", by="person", key="order_id", rows_per_person=20),
    ...     regions=bf.Lookup("people", by="region", key="code"),
    ... )
    >>> shop.asked, shop.reach("orders")
    (('people', 'orders'), ('orders', 'people', 'regions'))
    >>> shop.home(["regions.name", "orders.amount"])
    'orders'
    """

    tables: tuple[tuple[str, AnyTable], ...]

    def __init__(self, /, **tables: AnyTable) -> None:
        object.__setattr__(self, "tables", tuple(tables.items()))
        self._check()

    @classmethod
    def of(cls, tables: Mapping[str, AnyTable]) -> Tables:
        """From a mapping."""
        if not isinstance(tables, Mapping):
            raise InvalidInput("Tables are declared by their names.", fixes=(_EXAMPLE,))
        return cls(**{str(name): table for name, table in tables.items()})

    def __getitem__(self, name: str) -> AnyTable:
        for known, table in self.tables:
            if known == name:
                return table
        raise UnknownDataset(f"There is no table '{name}'.", fixes=self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __repr__(self) -> str:
        return f"Tables({', '.join(f'{name}={table!r}' for name, table in self.tables)})"

    def describe(self) -> str:
        """One line for each table."""
        return "\n".join(f"{name}: {table.describe()}" for name, table in self.tables)

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, in the declared order."""
        return tuple(name for name, _ in self.tables)

    @property
    def unit(self) -> str:
        """The table with a row for each person."""
        return next(name for name, table in self.tables if isinstance(table, People))

    @property
    def asked(self) -> tuple[str, ...]:
        """The tables whose rows are people's, and can be counted."""
        return tuple(name for name, table in self.tables if not isinstance(table, Lookup))

    @property
    def lookups(self) -> tuple[str, ...]:
        """The public tables."""
        return tuple(name for name, table in self.tables if isinstance(table, Lookup))

    def stored_as(self, name: str) -> str:
        """What a table is called in the database."""
        return self[name].table or name

    def rows_per_person(self, name: str) -> int:
        """How many rows of a table count for one person."""
        table = self[name]
        return table.rows_per_person if isinstance(table, Child) else 1

    def path(self, name: str) -> tuple[str, ...]:
        """From a table of people's rows to the people."""
        table = self[name]
        return (name, *self.path(table.of)) if isinstance(table, Child) else (name,)

    def reach(self, name: str) -> tuple[str, ...]:
        """The tables whose columns a row of a table has: those it belongs to, and what is looked up."""
        reached = list(self.path(name))
        for _ in self.lookups:
            reached += [
                other
                for other, table in self.tables
                if isinstance(table, Lookup) and table.of in reached and other not in reached
            ]
        return tuple(reached)

    def columns(self, name: str, domain: Domain) -> tuple[str, ...]:
        """The declared columns that a row of a table has, in their order."""
        reached = self.reach(name)
        return tuple(column for column in domain if table_of(column) in reached)

    def domain(self, name: str, domain: Domain) -> Domain:
        """The declared columns that a row of a table has."""
        columns = self.columns(name, domain)
        if name not in self.asked:
            raise InvalidInput(
                f"'{name}' is looked up in: it is public, and nobody's rows are in it.",
                fixes=tuple(f"FROM {each}" for each in self.asked),
            )
        if not columns:
            raise InvalidInput(
                f"No column of '{name}' is declared, so nothing can be asked about its rows.",
                fixes=(f"declare one, such as '{name}.…'",),
            )
        return domain.project(*columns)

    def home(self, columns: Iterable[str]) -> str:
        """The table whose rows are counted where these columns are asked about: the nearest to people."""
        wanted = {table_of(column) for column in columns}
        for unknown in sorted(wanted - set(self.names)):
            raise UnknownColumn(f"There is no table '{unknown}'.", fixes=self.names)
        fitting = [name for name in self.asked if wanted <= set(self.reach(name))]
        if not fitting:
            raise InvalidInput(
                f"No row has columns of {_listed(sorted(wanted))} together: keys lead from a row to what it "
                "belongs to, and from there to no other rows.",
                fixes=("a question for each of these tables",),
            )
        return min(fitting, key=lambda name: len(self.path(name)))

    def joins(self) -> Iterator[tuple[str, str]]:
        """The pairs of columns by which tables belong together: ``("orders.person", "people.id")``."""
        for name, table in self.tables:
            if isinstance(table, Lookup):
                yield f"{table.of}.{table.by}", f"{name}.{table.key}"
            elif isinstance(table, Child):
                yield f"{name}.{table.by}", f"{table.of}.{self[table.of].key}"

    def promise(self) -> str:
        """What a promise about one person means here, in words."""
        most = (f"at most {self.rows_per_person(name):,} in '{name}'" for name in self.asked)
        each = " and ".join(text for name, text in zip(self.asked, most, strict=True) if name != self.unit)
        rows = f"one row of '{self.unit}'" + (f", and {each}," if each else "")
        return (
            f"Of one person {rows} count; they are hidden together, and every answer is charged for all of "
            "them. Keys are not hidden: how many rows someone who is in the data has in each table, and "
            "which of them belong together."
        )

    # --- plain data ---------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, dict[str, Any]]:
        """JSON-ready data, without what was not said."""
        return {name: _plain(table) for name, table in self.tables}

    @classmethod
    def from_plain(cls, stored: object) -> Tables:
        """From its plain form."""
        if not isinstance(stored, Mapping):
            raise InvalidInput("Tables are an object: a name for each of them.", fixes=(_EXAMPLE,))
        return cls.of({str(name): _table(str(name), said) for name, said in stored.items()})

    # --- what is declared ---------------------------------------------------------------------------

    def check(self, domain: Domain) -> None:
        """Every declared column is one of a table, and none of them is a key."""
        keys = {column.casefold(): column for column in self._keys()}
        for column in domain:
            if table_of(column) not in self:
                raise InvalidInput(
                    f"The column {column!r} is of none of the tables.",
                    fixes=tuple(f"'{name}.{column.rpartition('.')[2]}'" for name in self.names),
                )
            if column.casefold() in keys:
                raise InvalidInput(
                    f"'{column}' is a key: it says which rows belong together, so no policy can hide it.",
                    fixes=(f"leave '{column}' out of the columns",),
                )
        for name, table in self.tables:
            used = any(table_of(column) in self._below(name) for column in domain)
            if isinstance(table, Lookup) and used and f"{table.of}.{table.by}" in domain:
                raise InvalidInput(
                    f"'{table.of}.{table.by}' is looked up in '{name}', so both would change at once, and a "
                    "policy that speaks of each by itself would promise more than is true.",
                    fixes=(f"leave '{table.of}.{table.by}' out", f"leave the columns of '{name}' out"),
                )

    def is_key(self, column: str) -> bool:
        """Whether a column says which rows belong together, or by what something is looked up."""
        leading = (name for name, _ in self.joins())
        return column.casefold() in {name.casefold() for name in (*self._keys(), *leading)}

    def _keys(self) -> Iterator[str]:
        for name, table in self.tables:
            if table.key is not None:
                yield f"{name}.{table.key}"
            if isinstance(table, Child):
                yield f"{name}.{table.by}"

    def _below(self, lookup: str) -> set[str]:
        """A public table, and those that are looked up from it."""
        below = {lookup}
        for _ in self.lookups:
            below |= {name for name, each in self.tables if isinstance(each, Lookup) and each.of in below}
        return below

    def _check(self) -> None:
        for name, table in self.tables:
            if not _NAME.fullmatch(name):
                raise InvalidInput(
                    f"A table is called by letters, digits and _, not {name!r}.",
                    fixes=("another name, and table='what it is called in the database'",),
                )
            if not isinstance(table, People | Child | Lookup):
                raise InvalidInput(
                    f"The table '{name}' must be People, Child or Lookup, not {type(table).__name__}.",
                    fixes=(_EXAMPLE,),
                )
        if len({name.casefold() for name in self.names}) < len(self.tables) or len(self.tables) > _MOST:
            raise InvalidInput(f"Tables have different names, and there are at most {_MOST}.")
        people = [name for name, table in self.tables if isinstance(table, People)]
        if len(people) != 1:
            raise InvalidInput("Exactly one of the tables has a row for each person.", fixes=(_EXAMPLE,))
        for name, table in self.tables:
            if not isinstance(table, People):
                self._check_place(name, table)
        stored = [self.stored_as(name).casefold() for name in self.asked]
        if len(set(stored)) < len(stored):
            raise InvalidInput("Two tables of people's rows are the same table in the database.")

    def _check_place(self, name: str, table: Child | Lookup) -> None:
        """It hangs on a table that is there, and by some way on the people."""
        seen, at = {name}, table.of
        if isinstance(table, Child) and at in self and self[at].key is None:
            raise InvalidInput(
                f"Rows of '{name}' belong to rows of '{at}', which are told apart by no key.",
                fixes=("key='the column that tells them apart'",),
            )
        while True:
            if at not in self:
                raise InvalidInput(f"'{name}' belongs to '{at}', which is no table here.", fixes=self.names)
            above = self[at]
            if isinstance(table, Child) and isinstance(above, Lookup):
                raise InvalidInput(
                    f"Rows of '{name}' cannot belong to '{at}', which is about nobody.",
                    fixes=(f"{name}=Lookup('{at}', …)",),
                )
            if isinstance(above, People):
                return
            if at in seen:
                raise InvalidInput(f"'{name}' belongs to itself by way of others.")
            seen.add(at)
            at = above.of


def table_of(column: str) -> str:
    """The table of a column that is called ``orders.amount``."""
    return column.partition(".")[0]


def _plain(table: AnyTable) -> dict[str, Any]:
    said = {name: getattr(table, name) for name in table.__dataclass_fields__}
    return {"kind": table.kind, **{name: value for name, value in said.items() if value is not None}}


def _table(name: str, said: object) -> AnyTable:
    if not isinstance(said, Mapping) or said.get("kind") not in _KINDS:
        raise InvalidInput(f"The table '{name}' needs a kind.", fixes=tuple(_KINDS))
    kind = _KINDS[said["kind"]]
    known = kind.__dataclass_fields__
    for unknown in (str(each) for each in said if each not in known and each != "kind"):
        raise InvalidInput(f"A table of kind {kind.kind} has no '{unknown}'.", fixes=tuple(known))
    try:
        return kind(**{str(field): value for field, value in said.items() if field != "kind"})
    except TypeError:
        missing = [field for field in ("of", "by", "key", "rows_per_person") if field not in said]
    wanted = [field for field in missing if field in known and not (kind is Child and field == "key")]
    raise InvalidInput(f"The table '{name}' needs {_listed(wanted)}.")


def _check_names(**said: object) -> None:
    for field, name in said.items():
        if name is None and field in ("key", "table"):
            continue
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise InvalidInput(f"'{field}' is the name of a column or of a table.", fixes=(_EXAMPLE,))


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)
