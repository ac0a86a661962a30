"""A proposal for the declaration of a source, computed from its true rows, for the eyes of its curator only.

Limits that follow the data tell its extreme values, so nothing here is a declaration: the curator looks at
the proposal, replaces what should not be known, and confirms the rest. Only what lets a curator import data
may import this module; questions, answers and messages do not (a test sees to it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, final

from blowfishdb.adapters.backends.duckdb import has_dialect
from blowfishdb.adapters.copies import Patience
from blowfishdb.adapters.copies.dialects import find_dialect, sheets_of
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.adapters.proposal.guesses import RARE, Guess, Measured, guess, measure
from blowfishdb.adapters.proposal.looks import counted_shape, first_values
from blowfishdb.adapters.proposal.rows import Rows, opened_rows
from blowfishdb.adapters.proposal.tables import check_tables, led_nowhere
from blowfishdb.adapters.sql.encode import encode
from blowfishdb.adapters.sql.engines import SqlColumn
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.tables import Tables
from blowfishdb.core.errors import EmptyDomain, InvalidAttribute, SourceError, UnknownColumn
from blowfishdb.core.policy import codec

TIMEOUT: Final = 3600.0
WARNING: Final = (
    "These limits (rounded outward) and values were taken from the data, and can reveal its extreme and rare "
    "values. Replace them by what was known beforehand, or confirm that they may be known."
)
_UNREADABLE: Final = Guess(None, "It could not be read: declare it yourself, or leave it out.")
_REFUSED: Final = Guess(None, "Its values do not fit what the database can count: convert it in a view.")


@final
@dataclass(frozen=True)
class ProposedColumn:
    """A column as the database describes it, and how it could be declared; None: not without the curator.

    ``note`` says in words what to look at and quotes no value. The attribute is not shown by ``repr``, so
    that it does not end up in a log.
    """

    name: str
    type_text: str
    attribute: Attribute | None = field(repr=False)
    note: str
    looks_like_id: bool
    rare: tuple[str, ...] = field(default=(), repr=False)
    """Values of so few rows that they are folded into "other" unless the curator lists them."""
    samples: tuple[str, ...] = field(default=(), repr=False)
    """What the first rows have in this column, as the source has it."""
    shape: tuple[int, ...] = field(default=(), repr=False)
    """Rows in equal parts of the proposed limits, or with each proposed value; empty if not counted."""
    proposed: bool = field(default=True, init=False)

    @property
    def some_missing(self) -> bool:
        """Whether values are missing, so that the curator has to say whether that is secret."""
        return self.attribute is not None and self.attribute.has_missing_cell

    def to_plain(self) -> dict[str, Any]:
        """As JSON-ready data; the attribute in the form that ``codec.attribute`` reads."""
        return {
            "name": self.name,
            "type": self.type_text,
            "attribute": None if self.attribute is None else codec.plain(self.attribute),
            "words": None if self.attribute is None else self.attribute.describe(),
            "note": self.note,
            "looks_like_id": self.looks_like_id,
            "rare": list(self.rare),
            "some_missing": self.some_missing,
            "samples": list(self.samples),
            "shape": list(self.shape),
            "proposed": self.proposed,
        }


@final
@dataclass(frozen=True)
class Proposal:
    """The columns of a source, in its order; ``table`` and ``view`` say which source."""

    columns: tuple[ProposedColumn, ...]
    table: str | None
    view: str | None
    dialect: Dialect | None = None
    """How a file of texts, or of Excel, is read; None for every other source."""
    sheets: tuple[str, ...] = ()
    """Those of a file of Excel, of which one is read."""
    warning: str = field(default=WARNING, init=False, repr=False)

    @property
    def person(self) -> str | None:
        """The column that most likely says whose row it is; None if none looks like it."""
        return next((column.name for column in self.columns if column.looks_like_id), None)

    def domain(self, confirmed: Mapping[str, Attribute] | None = None) -> Domain:
        """The confirmed columns, in the order of the source.

        Without ``confirmed``, everything is taken as it was proposed, and what looks like an identifier is
        left out: the caller has confirmed the proposal as a whole.
        """
        if confirmed is None:
            usable = (column for column in self.columns if not column.looks_like_id)
            chosen = {each.name: each.attribute for each in usable if each.attribute is not None}
        else:
            names = [column.name for column in self.columns]
            unknown = [name for name in confirmed if name not in names]
            if unknown:
                raise UnknownColumn(
                    f"There is no column {unknown[0]!r} in the source; it has: {', '.join(names)}."
                )
            chosen = {name: confirmed[name] for name in names if name in confirmed}
        if not chosen:
            raise EmptyDomain("No column was confirmed.", fixes=("declare at least one column",))
        return Domain.of(chosen)

    def to_plain(self) -> dict[str, Any]:
        """As JSON-ready data, for the curator's page."""
        return {
            "proposed": True,
            "warning": self.warning,
            "table": self.table,
            "view": self.view,
            "person": self.person,
            "dialect": None if self.dialect is None else self.dialect.to_plain(),
            "read_as": None if self.dialect is None else self.dialect.describe(),
            "sheets": list(self.sheets),
            "columns": [column.to_plain() for column in self.columns],
        }


def propose(
    location: object,
    *,
    table: str | None = None,
    view: str | None = None,
    dialect: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    rare: int = RARE,
    tables: Tables | None = None,
) -> Proposal:
    """Look at every column of a source, and say how it could be declared.

    ``location``, ``table`` and ``view`` are as for adding a dataset. Of Spark only files on this machine are
    read; for other sources of Spark the proposal knows types, but no limits. How a file of texts is written
    is found, unless ``dialect`` says it, and is part of the proposal. Texts of fewer than ``rare`` rows are
    not proposed by name. All of it takes at most ``timeout`` seconds, or is refused.

    Of several ``tables`` every column but the keys is proposed, under its full name.
    """
    patience = Patience(timeout)
    if tables is not None:
        return _of_tables(location, tables, patience, rare)
    declared = None if dialect is None else Dialect.from_plain(dialect)
    if declared is None and isinstance(location, str | Path) and has_dialect(location):
        declared = find_dialect(Path(location), patience)
    with opened_rows(location, table=table, view=view, dialect=declared, patience=patience) as rows:
        columns = rows.columns.values()
        measured = measure(rows, columns) if rows.readable else {}
        seen = first_values(rows, columns) if rows.readable else {}
        proposals = tuple(
            _column(rows, column, measured.get(column.name), rare, seen.get(column.name, ()))
            for column in columns
        )
        if rows.readable:
            proposals = tuple(_shaped(rows, column) for column in proposals)
        sheets = () if declared is None else sheets_of(Path(str(location)))
        return Proposal(proposals, rows.source.written, rows.source.view, declared, sheets)


def _of_tables(location: object, tables: Tables, patience: Patience, rare: int) -> Proposal:
    """Every column of several tables that is no key; where keys lead nowhere, some values are missing."""
    check_tables(location, tables)
    lost, proposed = led_nowhere(location, tables, patience), list[ProposedColumn]()
    for name in tables.names:
        with opened_rows(location, table=tables.stored_as(name), view=None, patience=patience) as rows:
            columns = [each for each in rows.columns.values() if not tables.is_key(f"{name}.{each.name}")]
            measured = measure(rows, columns) if rows.readable else {}
            fewest = 1 if name in tables.lookups else rare  # what is public is nobody's
            for column in columns:
                found = _column(rows, column, measured.get(column.name), fewest, ())
                found = replace(found, name=f"{name}.{column.name}")
                proposed.append(_missing_some(found) if name in lost else found)
    return Proposal(tuple(proposed), None, None)


def _missing_some(column: ProposedColumn) -> ProposedColumn:
    """A column of a table to which some keys do not lead: keys are public, so whose do not is, too."""
    attribute: Any = column.attribute
    if attribute is None or attribute.has_missing_cell:
        return column
    note = f"{column.note} Some keys lead to no row of its table: there it is missing.".strip()
    return replace(column, attribute=replace(attribute, missing="public"), note=note)


def _column(
    rows: Rows, column: SqlColumn, measured: Measured | None, rare: int, samples: tuple[str, ...]
) -> ProposedColumn:
    """A column that cannot be read, or would be refused later, does not spoil the proposal of the others."""
    try:
        made = guess(rows, column, measured, rare)
        if made.attribute is not None:
            encode(column, made.attribute, "unused")
    except SourceError:
        made = _UNREADABLE
    except InvalidAttribute:
        made = _REFUSED
    return ProposedColumn(
        column.name, column.type, made.attribute, made.note, made.looks_like_id, made.rare, samples
    )


def _shaped(rows: Rows, column: ProposedColumn) -> ProposedColumn:
    """With roughly how many rows are where, while there is plenty of time."""
    if column.attribute is None or column.looks_like_id or rows.hurried:
        return column
    return replace(column, shape=counted_shape(rows, rows.columns[column.name], column.attribute))
