"""Backend: the port through which counts come out of a database.

Prepared: a question that was checked and written as SQL, so that only counting is left.

PreparedClusters: points that were checked, so that only counting and adding up is left, round by round.

What every backend does alike: check declarations and write statements.

Running one statement so that it can always be stopped: in time, by a cancellation, or by Ctrl-C.

The statement has a thread of its own, because drivers wait for a database in ways that nothing interrupts.
The thread that asked waits for it, and stops the statement in the database before it goes on without it.

Cancellation: a question's way out, for whoever waits for it.
"""

from __future__ import annotations

import difflib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol, final

from sqlglot import exp

from blowfishdb.adapters.sql.clusters import ClusterSql
from blowfishdb.adapters.sql.encode import check_encodable
from blowfishdb.adapters.sql.engines import Engine, SqlColumn
from blowfishdb.adapters.sql.source import Source
from blowfishdb.adapters.sql.statement import (
    Aggregate,
    KindsStatement,
    Statement,
    cell_statement,
    kinds_statement,
    mentioned,
    sum_statement,
)
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.bins import Bins, whole_bin
from blowfishdb.core.domain.domain import CellQuery, Domain
from blowfishdb.core.errors import Cancelled, QueryFailed, SourceError, SourceMissing, UnknownColumn
from blowfishdb.core.questions.aggregate_problem import SumQuery
from blowfishdb.core.questions.clusters import Centroids, ClusterQuery
from blowfishdb.core.secret import Secret

_FIRST, _LAST = 0.05, 10.0
"""Seconds between attempts to stop a statement: one that has not begun yet cannot be stopped by the first."""


@final
class Brake:
    """How to stop the statement that another thread is running, for as long as it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self.pulled = False

    @contextmanager
    def stops_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """While inside, ``stop`` ends what runs here, and never anything that runs later."""
        with self._lock:
            if self.pulled:
                raise InterruptedError
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def pull(self) -> None:
        """Stop what runs, and let nothing more begin."""
        with self._lock:
            self.pulled = True
            if self._stop is not None:
                with suppress(Exception):  # tried again for as long as the statement runs on
                    self._stop()


@final
class _Work:
    """A statement and its thread. Of a failure only its kind is kept, because its words may quote data."""

    def __init__(self, run: Callable[[Brake], IntArray]) -> None:
        self.counts: Secret[IntArray] | None = None
        self.failure = ""
        self.lost = False
        self.wake = threading.Event()
        self._run = run
        self._brake = Brake()
        self._thread = threading.Thread(target=self._count, name="blowfishdb-count", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop it if it still runs; a database that cannot be reached any more is not waited for."""
        pause = _FIRST
        while self._thread.is_alive() and pause < _LAST:
            self._brake.pull()
            self._thread.join(pause)
            pause *= 2

    def _count(self) -> None:
        try:
            self.counts = Secret(self._run(self._brake))
        except Exception as error:
            self.failure, self.lost = type(error).__name__, isinstance(error, ConnectionError)
        finally:
            self.wake.set()


def counted(run: Callable[[Brake], IntArray], timeout: float, cancel: Cancellation) -> Secret[IntArray]:
    """What ``run`` counts. Whatever fails here is charged, and says nothing about the data.

    A ``run`` raises ConnectionError where the database was lost. An answer that comes although it was to be
    stopped is given: it is paid for.
    """
    work, started = _Work(run), time.monotonic()
    with cancel.calling(work.wake.set):
        try:
            if not cancel.requested:
                work.start()
                work.wake.wait(timeout)
        finally:
            work.end()
    if work.counts is not None:
        return work.counts
    if cancel.requested:
        raise Cancelled(
            "The question was cancelled while the database was counting. What it costs stays charged, "
            "because the data may have been seen."
        )
    if time.monotonic() - started >= timeout:
        raise QueryFailed(
            f"The database took longer than {timeout:g} seconds and was interrupted.",
            fixes=("fewer or wider bins", "ask the curator for a longer limit"),
        )
    if work.lost:
        raise QueryFailed(
            "The connection to the database was lost while it was counting.",
            fixes=("see whether the server runs", "ask again"),
        )
    raise QueryFailed(
        f"The database could not answer ({work.failure}).", fixes=("ask the curator to check the source",)
    )


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """The one statement of a question; no row is read until it is counted."""

    statement: Statement | KindsStatement
    run: Callable[[Aggregate, Brake], IntArray]
    timeout: float

    @property
    def sql(self) -> str:
        """What ``count`` sends, for the log: declarations, never data."""
        return self.statement.text

    def count(self, cancel: Cancellation | None = None) -> Secret[IntArray]:
        """How many rows are in each box, flat and row-major, or counts and sums; nothing else is read."""
        until = Cancellation() if cancel is None else cancel
        return counted(lambda brake: self.run(self.statement, brake), self.timeout, until)


@final
@dataclass(frozen=True, eq=False)
class PreparedClusters:
    """The port of a clustering on a database; every call is one statement, and no row leaves."""

    statements: ClusterSql
    run: Callable[[Aggregate, Brake], IntArray]
    timeout: float
    cancel: Cancellation | None = None

    def until(self, cancel: Cancellation | None) -> PreparedClusters:
        """The same, given up when ``cancel`` says so."""
        return replace(self, cancel=cancel)

    def sql(self, centroids: Centroids) -> str:
        """What a round sends, for the log: declarations and public centroids, never data."""
        return self.statements.totals(centroids).text

    def totals(self, centroids: Centroids) -> Secret[IntArray]:
        """Row i: how many rows are nearest to centroid i, and the sum of their cells along every axis."""
        return self._of(self.statements.totals(centroids))

    def counts(self, bins: tuple[Bins, ...]) -> Secret[IntArray]:
        """How many rows are in each box of bins, row-major."""
        statement = self.statements.counts(bins)
        return self._counted(lambda brake: self.run(statement, brake)[:, 0])

    def _of(self, statement: Aggregate) -> Secret[IntArray]:
        return self._counted(lambda brake: self.run(statement, brake))

    def _counted(self, run: Callable[[Brake], IntArray]) -> Secret[IntArray]:
        return counted(run, self.timeout, Cancellation() if self.cancel is None else self.cancel)


class Backend(Protocol):
    """One dataset in one database: a source of rows and the declaration of its columns.

    Implementations are safe to share between threads and never write to the database.
    """

    source: Source

    def check(self) -> None:
        """The source is there, and has every declared column in a fitting type."""

    def prepare(self, query: CellQuery) -> Prepared:
        """The statement of a question. Everything that can fail without looking at a row fails here, before
        budget is reserved."""

    def prepare_kinds(self, query: CellQuery) -> Prepared:
        """The same for columns that nothing hides: a line for each box that holds rows, and for no other."""

    def prepare_sums(self, query: SumQuery) -> Prepared:
        """The same for aggregates: counts and sums of every box."""

    def prepare_clusters(self, query: ClusterQuery) -> PreparedClusters:
        """The same for clusters: what they are asked about, ready for one statement per round."""

    def views(self) -> list[str]:
        """The tables of the source that are views in the database, or at least not known to be tables."""

    def computed(self) -> frozenset[str]:
        """Columns of its tables that the database computes from others, in lower case."""

    def columns(self) -> dict[str, str]:
        """The columns of the source and their types in the database's own words, for the curator."""

    def close(self) -> None:
        """Let go of the database; a second call does nothing."""


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
        if self.source.joined is not None:
            self.source.joined.check(self.types)
        if self.source.unit is not None:
            self.source.unit.check(self.types)
        for name in self.domain:
            check_encodable(self._column(name), self.domain[name])

    def statement(self, query: CellQuery) -> Statement:
        """The one statement of a question."""
        for name in mentioned(query, self.domain):
            self._column(name)
        return cell_statement(query, self.source, self.domain, self.types, self.engine)

    def kinds(self, query: CellQuery) -> KindsStatement:
        """The one statement that lists the boxes that hold rows."""
        for name in mentioned(query, self.domain):
            self._column(name)
        return kinds_statement(query, self.source, self.domain, self.types, self.engine)

    def sums(self, query: SumQuery) -> Statement:
        """The one statement of aggregates."""
        for name in mentioned(query.cells, self.domain):
            self._column(name)
        return sum_statement(query, self.source, self.domain, self.types, self.engine)

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
            fixes=tuple(f"declare {near!r}" for near in close),
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
    def prepare_kinds(self, query: CellQuery) -> Prepared:
        """The statement that lists which boxes hold rows, for the columns as they are now."""
        return Prepared(self._described().kinds(query), self._run, self.timeout)

    @final
    def prepare_sums(self, query: SumQuery) -> Prepared:
        """The statement of aggregates, for the columns as they are now."""
        return Prepared(self._described().sums(query), self._run, self.timeout)

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
        names = (name for table in self._named_tables() for name in self._computed(table))
        return frozenset(name.lower() for name in names)

    def _named_tables(self) -> Sequence[exp.Table]:
        if self.source.read is not None:
            return self.source.read.tables
        if self.source.joined is not None:
            return self.source.joined.named
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


def only_table(tables: Sequence[str], where: str) -> Source:
    """The one table of a place, for those who name none."""
    if len(tables) != 1:
        raise SourceMissing(
            f"{where} has no single table to take; it has: {listed(tables)}.", fixes=("name the table",)
        )
    return Source.of_table(tables[0])


def closed() -> SourceError:
    """What a backend says that was closed."""
    return SourceError("The database was closed.", fixes=("open the dataset again",))
