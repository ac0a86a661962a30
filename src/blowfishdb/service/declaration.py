"""Declaring a dataset: what its curator has to say about the rows before anything is asked of them."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.addresses import is_own
from blowfishdb.adapters.backends.addresses import same_rows as overlap
from blowfishdb.adapters.backends.duckdb import table_name
from blowfishdb.adapters.backends.sqlalchemy import dialect_of
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, PolicyConflict
from blowfishdb.core.policy.policy import RowRules
from blowfishdb.service.records import DatasetEntry, is_copied


def declared_source(
    location: str,
    *,
    table: str | None,
    view: str | None,
    person: str | None,
    rows_per_person: int,
    row_key: str | None,
    public: Sequence[str] = (),
    rows_vary: bool | None = None,
) -> Source | None:
    """Which rows of a location are meant, and whose they are; None for the only table there."""
    if person is None and (rows_per_person != 1 or row_key is not None):
        raise InvalidInput(
            "Rows per person need to know whose row each is.", fixes=("person='the column with the id'",)
        )
    unit = None if person is None else Unit(person, rows_per_person, row_key, salt=secrets.token_hex(8))
    if view is not None and table is not None:
        raise InvalidInput("The rows come from a table or from a view, not from both.")
    if view is not None:
        made = Source.of_view(view, dialect_of(location), unit=unit)
        return replace(made, public=tuple(public), rows_vary=rows_vary)
    if table is None and unit is not None and is_copied(location):
        table = table_name(Path(location))
    if table is None and unit is not None:
        raise InvalidInput("Name the table whose rows belong to people.", fixes=("table='visits'",))
    if table is None:
        return None
    return replace(Source.named(table), unit=unit, public=tuple(public), rows_vary=rows_vary)


def place(source: str | Path) -> str:
    """An address as it is, a path in full, so that the workspace can be opened from anywhere."""
    return str(source) if "://" in str(source) else str(Path(source).resolve())


def check_not_own(location: str, store: str) -> None:
    """The books are no rows: they hold what everyone asked, and hashes of passwords."""
    if is_own(location, store):
        raise InvalidInput(
            "This is the workspace itself, or a file or database that belongs to it.",
            fixes=("a file or database with the rows",),
        )


def settled_source(
    backend: Backend, source: Source | None, domain: Domain, *, public: Sequence[str], rows_vary: bool | None
) -> Source | None:
    """The source with everything said that has to be; None for the only table of a place.

    A view in the database can be anything, so its curator is asked what its rows are.
    """
    views = backend.views()
    if views and rows_vary is None:
        raise InvalidInput(
            f"'{views[0]}' is a view in the database, or something else that shows rows of other tables or "
            "computes values while they are read. Say whether values that may be hidden decide which rows it "
            "has. In both cases each of its rows must be made from one row of a person: without DISTINCT, "
            "GROUP BY, LIMIT and the like, and without anything that fails on some rows.",
            fixes=(
                "rows_vary=True: they do, or may; how many rows there are is then hidden",
                "rows_vary=False: they do not; how many rows there are may then be known",
            ),
        )
    if source is None and (public or rows_vary is not None):
        source = replace(backend.source, public=tuple(public), rows_vary=rows_vary)
    if source is not None:
        source.check_rules(domain)
        if source.unit is not None:
            source.check_stored(backend.computed())
    return source


def sharing(records: Iterable[DatasetEntry], record: DatasetEntry) -> list[str]:
    """The other datasets that have the same rows, as far as can be seen."""
    return [each.name for each in records if each.name != record.name and _overlap(each, record)]


def _overlap(one: DatasetEntry, other: DatasetEntry) -> bool:
    if one.tables is not None or other.tables is not None:
        mine, theirs = (entry.asked_tables()[0].source for entry in (one, other))
        return overlap((one.location, mine), (other.location, theirs))
    if one.copy is not None and other.copy is not None and one.copy.sha256 == other.copy.sha256:
        return True
    return overlap((one.location, one.source), (other.location, other.source))


def check_shared(others: Sequence[str], confirmed: bool) -> None:
    """Two budgets for one row are one larger budget, and somebody has to say so."""
    if others and not confirmed:
        named = ", ".join(f"'{name}'" for name in others)
        raise InvalidInput(
            f"These rows are already in {named}. Each dataset has a budget of its own, so whoever is in both "
            "can lose as much as both together.",
            fixes=(
                f"ask about '{others[0]}' instead, unless it was deleted: what it told stays told",
                "confirm that the promises add up: same_rows=True, which is written into the ledger",
            ),
        )


def check_found_view(record: DatasetEntry, backend: Backend) -> None:
    """A view in the database about which nothing was said counts as one whose rows come and go."""
    said = record.source is not None and record.source.rows_vary is not None
    if not said and not record.policy.hides_presence and backend.views():
        raise PolicyConflict(
            f"The rows of '{record.name}' come from a view in the database, so how many there are must not "
            "be known until its curator says what they depend on.",
            fixes=("publish a policy that hides presence", "declare the dataset anew with rows_vary=False"),
        )


def about(name: str, rules: RowRules, others: Sequence[tuple[str, Epsilon]], own: Epsilon) -> tuple[str, ...]:
    """What a guarantee is about, in sentences."""
    said = [f"This promise is about the rows of '{name}', and about what is asked of this dataset."]
    if rules.vary:
        said.append("Hidden values decide which rows it has, so how many there are is hidden as well.")
    if rules.public:
        listed = ", ".join(f"'{column}'" for column in sorted(rules.public))
        said.append(f"It never hides {listed}, which decides which rows there are or whose they are.")
    if others:
        total = sum((epsilon for _, epsilon in others), own)
        named = ", ".join(f"'{other}' (ε {epsilon})" for other, epsilon in others)
        said.append(
            f"The same rows are also in {named}, with budgets of their own: whoever is in all of them can "
            f"lose up to ε {total} in all."
        )
    return tuple(said)
