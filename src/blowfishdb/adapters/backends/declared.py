"""What every backend does alike: check declarations and write statements."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from blowfishdb.adapters.backends.prepared import Prepared
from blowfishdb.adapters.backends.prepared_clusters import PreparedClusters
from blowfishdb.adapters.backends.running import Brake
from blowfishdb.adapters.sql import Aggregate, Statement, cell_statement, mentioned
from blowfishdb.adapters.sql_clusters import ClusterSql
from blowfishdb.adapters.sql_encode import encode
from blowfishdb.adapters.sql_engine import Engine, SqlColumn
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import whole_bin
from blowfishdb.core.cluster_projection import ClusterQuery
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import SourceError, SourceMissing, UnknownColumn
from blowfishdb.core.projection import CellQuery


@final
@dataclass(frozen=True, eq=False)
class Declared:
    """A source as its curator declares it, and as the database describes it."""

    domain: Domain
    source: Source
    engine: Engine
    types: Mapping[str, SqlColumn]

    def check(self) -> None:
        """Every declared column is there and has a fitting type."""
        if self.source.unit is not None:
            self.source.unit.check(self.types)
        for name in self.domain:
            encode(self._column(name), self.domain[name], "unused")

    def statement(self, query: CellQuery) -> Statement:
        """The one statement of a question."""
        for name in mentioned(query, self.domain):
            self._column(name)
        return cell_statement(query, self.source, self.domain, self.types, self.engine)

    def clusters(self, query: ClusterQuery) -> ClusterSql:
        """The statements of a clustering; whatever cannot be written is refused here."""
        for axis in query.columns:
            self._column(axis.column)
        statements = ClusterSql(query, self.source, self.domain, self.types, self.engine)
        _ = statements.counts(tuple(whole_bin(axis.bins.size) for axis in query.axes)).text
        return statements

    def _column(self, name: str) -> SqlColumn:
        if name in self.types:
            return self.types[name]
        close = difflib.get_close_matches(name, self.types, n=1, cutoff=0.5)
        raise UnknownColumn(
            f"There is no column {name!r} in {self.source.name}; it has: {', '.join(self.types)}.",
            fixes=tuple(f"declare {found!r}" for found in close),
        )


class DeclaredBackend(ABC):
    """The port, for a database that can list the columns of a source and run one statement."""

    domain: Domain
    source: Source
    timeout: float
    engine: Engine

    @final
    def check(self) -> None:
        """The source is there, and has every declared column in a fitting type."""
        self._described().check()

    @final
    def prepare(self, query: CellQuery) -> Prepared:
        """The statement of a question, for the columns as they are now."""
        return Prepared(self._described().statement(query), self._run, self.timeout)

    @final
    def prepare_clusters(self, query: ClusterQuery) -> PreparedClusters:
        """The statements of a clustering, for the columns as they are now."""
        return PreparedClusters(self._described().clusters(query), self._run, self.timeout)

    @final
    def views(self) -> list[str]:
        """The tables of the source that are views in the database, or at least not known to be tables."""
        return [table.name for table in self._named_tables() if not self._is_table(table)]

    @final
    def computed(self) -> frozenset[str]:
        """Columns of its tables that the database computes from others, in lower case."""
        found = (name for table in self._named_tables() for name in self._computed(table))
        return frozenset(name.lower() for name in found)

    def _named_tables(self) -> Sequence[exp.Table]:
        if self.source.read is not None:
            return self.source.read.tables
        relation = self.source.relation()
        return [relation] if isinstance(relation, exp.Table) else []

    @final
    def columns(self) -> dict[str, str]:
        """Columns and types."""
        return self._types()

    @abstractmethod
    def close(self) -> None:
        """Let go of the database; a second call does nothing."""

    @abstractmethod
    def _types(self) -> dict[str, str]:
        """The type of each column of the source, in the database's own words, without reading a row."""

    @abstractmethod
    def _is_table(self, table: exp.Table) -> bool:
        """Whether a name means a table that holds its rows itself, rather than a view of others."""

    def _computed(self, table: exp.Table) -> list[str]:
        """The columns of a table that are computed from others; none in most databases."""
        return []

    @abstractmethod
    def _run(self, statement: Aggregate, brake: Brake) -> IntArray:
        """What a statement counts or adds up; ``brake`` can stop it."""

    def _described(self) -> Declared:
        return Declared(self.domain, self.source, self.engine, columns(self._types(), self.engine))


def columns(types: Mapping[str, str], engine: Engine) -> dict[str, SqlColumn]:
    """Columns by name, from their types in the words of the database."""
    return {name: SqlColumn(name, text, engine) for name, text in types.items()}


def listed(tables: Sequence[str]) -> str:
    """The names of tables, for a message."""
    return ", ".join(repr(table) for table in tables) or "none"


def only_table(tables: Sequence[str], place: str) -> Source:
    """The one table of a place, for those who name none."""
    if len(tables) != 1:
        raise SourceMissing(
            f"{place} has no single table to take; it has: {listed(tables)}.", fixes=("name the table",)
        )
    return Source.of_table(tables[0])


def closed() -> SourceError:
    """What a backend says that was closed."""
    return SourceError("The database was closed.", fixes=("open the dataset again",))
