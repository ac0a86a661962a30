"""The curator's look at true rows, while a dataset is being declared.

It has connections of its own, which cannot write and are closed when the look is over. The backends that
answer analysts have no method that returns a row, so nothing that an analyst can reach leads here.

What a curator says about rows, held against the rows themselves while a dataset is being declared.

Only the curator learns what is found. What the data says later may differ, so nothing that is promised rests
on it: rows with equal keys stay or go together, whatever they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from sqlglot import exp

from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.backends.addresses import check_file
from blowfishdb.adapters.backends.base import DeclaredBackend, columns
from blowfishdb.adapters.backends.duckdb import (
    DuckDB,
    connect,
    connect_to_table,
    has_dialect,
    holds_rows,
    table_name,
)
from blowfishdb.adapters.backends.sqlalchemy import dialect_of
from blowfishdb.adapters.copies import Patience, check_columns
from blowfishdb.adapters.copies.dialects import find_dialect
from blowfishdb.adapters.copies.folder import Copies, check_parquet
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.engines import Engine, SqlColumn
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.domain.attributes import Boolean
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceError

Fetch = Callable[[str], list[tuple[Any, ...]]]

_SPARK_HERE: Final = "spark-local://"
_UNDECLARED: Final = Domain(_=Boolean())


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a source, or only the types of its columns where rows are not read."""

    source: Source
    engine: Engine
    columns: dict[str, SqlColumn]
    _fetch: Fetch | None
    _patience: Patience

    @property
    def readable(self) -> bool:
        """Whether anything but the types can be read."""
        return self._fetch is not None

    @property
    def hurried(self) -> bool:
        """Whether half of the time is gone, so that nothing is looked at that can be left out."""
        return self._patience.hurried

    def select(
        self, *values: exp.Expr, distinct: bool = False, most: int | None = None
    ) -> list[tuple[Any, ...]]:
        """The values for every row; a failure is told without the database's words, which may quote data."""
        statement = self._statement(*values)
        return self._fetched(statement.distinct(copy=False) if distinct else statement, most)

    def counts(self, value: exp.Expr, *, most: int) -> list[tuple[Any, int]]:
        """How many rows have each of the first ``most`` different values."""
        statement = self._statement(value, exp.Count(this=exp.Star()))
        grouped = statement.group_by(statement.expressions[0].this.copy(), copy=False)
        return [(each, int(count)) for each, count in self._fetched(grouped, most)]

    def _statement(self, *values: exp.Expr) -> exp.Select:
        named = [exp.alias_(value, f"v{i}", quoted=True) for i, value in enumerate(values)]
        statement = exp.Select(expressions=named).transform(self.engine.adapt, copy=False)
        assert isinstance(statement, exp.Select)
        return statement.from_(self.source.relation(), copy=False)

    def _fetched(self, statement: exp.Select, most: int | None) -> list[tuple[Any, ...]]:
        if most is not None:
            statement = statement.limit(most, copy=False)
        return self._run(statement)

    def count(self, rows: exp.Select) -> int:
        """How many rows a SELECT has."""
        counted = exp.Select(expressions=[exp.Count(this=exp.Star())]).from_(rows.subquery("counted"))
        ((number,),) = self._run(counted)
        return int(number)

    def _run(self, statement: exp.Select) -> list[tuple[Any, ...]]:
        if self._fetch is None:
            raise SourceError(f"{self.engine.title} is not read for a proposal.")
        self._patience.check()
        try:
            return self._fetch(statement.sql(dialect=self.engine.dialect))
        except Exception as error:
            failure = type(error).__name__
        self._patience.check()
        raise SourceError(
            f"{self.engine.title} could not read {self.source.name} ({failure}).",
            fixes=("declare the columns without a proposal",),
        )


@contextmanager
def opened_rows(
    location: object,
    *,
    table: str | None,
    view: str | None,
    patience: Patience,
    dialect: Dialect | None = None,
) -> Iterator[Rows]:
    """Look at a table or a view of the place, and let go of it in the end.

    A file of texts is read as it is going to be when it is declared: into a copy, which goes away afterwards.
    """
    if table is not None and view is not None:
        raise InvalidInput("The rows come from a table or from a view, not from both.")
    with (
        _readable(_files_of_spark(location, table, view), dialect, patience) as readable,
        _looked_at(readable, table, view, patience) as rows,
    ):
        yield rows


@contextmanager
def _readable(location: object, dialect: Dialect | None, patience: Patience) -> Iterator[object]:
    if not isinstance(location, str | Path) or not has_dialect(location):
        if dialect is not None:
            raise InvalidInput("Only a file of texts has a dialect.", fixes=("leave it out",))
        if isinstance(location, str | Path) and "://" not in str(location):
            check_file(Path(location))
            if holds_rows(Path(location)):
                check_parquet(Path(location))
        yield location
        return
    with TemporaryDirectory(prefix="blowfishdb-") as folder:
        copies = Copies(Path(folder))
        text_dialect = dialect or find_dialect(Path(location), patience)
        yield copies.path(copies.take(location, text_dialect, patience))


@contextmanager
def _looked_at(location: object, table: str | None, view: str | None, patience: Patience) -> Iterator[Rows]:
    source = Source.named(table) if table is not None else None
    if view is not None:
        source = Source.of_view(view, dialect_of(location))
    with reading_rows(location, source, patience) as rows:
        yield rows


@contextmanager
def reading_rows(
    location: object, source: Source | None, patience: Patience, *, keys: bool = False
) -> Iterator[Rows]:
    """Look at a source of the place, and let go of it in the end; into Spark only for ``keys``."""
    backend = open_backend(location, _UNDECLARED, source=source, timeout=patience.left)
    try:
        assert isinstance(backend, DeclaredBackend)
        types = columns(backend.columns(), backend.engine)
        check_columns(len(types), location if isinstance(location, str | Path) else "the table in memory")
        with _reading(location, backend, patience, keys=keys) as fetch:
            yield Rows(backend.source, backend.engine, types, fetch, patience)
    finally:
        backend.close()


def _files_of_spark(location: object, table: str | None, view: str | None) -> object:
    """Files on this machine are read without starting Spark; anything else of Spark stays as it is."""
    if not isinstance(location, str) or not location.startswith(_SPARK_HERE) or view is not None:
        return location
    path = Path(location.removeprefix(_SPARK_HERE))
    plain = path.is_file() or (path.is_dir() and any(path.rglob("*.parquet")))
    return path if plain and table in (None, table_name(path)) else location


# --- connections ------------------------------------------------------------------------------


@contextmanager
def _reading(
    location: object, backend: DeclaredBackend, patience: Patience, *, keys: bool
) -> Iterator[Fetch | None]:
    if isinstance(backend, DuckDB):
        connection = connect_to_table(location) if backend.path is None else connect(backend.path)
        try:
            yield _stopped(lambda text: connection.execute(text).fetchall(), connection.interrupt, patience)
        finally:
            connection.close()
        return
    from blowfishdb.adapters.backends.sqlalchemy import SqlDatabase

    if not isinstance(backend, SqlDatabase):
        yield _spark_fetch(str(location), backend.source) if keys else None
        return
    with _database(str(location), patience) as fetch:
        yield fetch


def _spark_fetch(location: str, source: Source) -> Fetch:
    from blowfishdb.adapters.backends.spark import own_session

    session = own_session(location, source)
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


@contextmanager
def _database(location: str, patience: Patience) -> Iterator[Fetch]:
    from blowfishdb.adapters.backends import addresses, servers

    if "://" not in location:
        path: Path | None = Path(location)
    else:
        url = addresses.parse_url(location)
        sqlite = servers.server_of(url) is servers.SQLITE_SERVER
        path = addresses.sqlite_path(url) if sqlite else None
    if path is None:
        with _server(location, patience) as fetch:
            yield fetch
        return
    connection = servers.sqlite_connection(path)
    try:
        yield _stopped(lambda text: connection.execute(text).fetchall(), connection.interrupt, patience)
    finally:
        connection.close()


@contextmanager
def _server(location: str, patience: Patience) -> Iterator[Fetch]:
    """One read-only transaction for each statement, which the server itself ends in time."""
    from sqlalchemy import create_engine
    from sqlalchemy.pool import NullPool

    from blowfishdb.adapters.backends import addresses, servers

    url = addresses.parse_url(location)
    server = servers.server_of(url)
    pool = create_engine(
        addresses.expanded(url).set(drivername=server.driver),
        connect_args=server.arguments(patience.left),
        poolclass=NullPool,
        hide_parameters=True,
    )

    def fetch(text: str) -> list[tuple[Any, ...]]:
        with pool.connect().execution_options(no_parameters=True) as connection:
            for word in server.begin(patience.left, bool(getattr(pool.dialect, "is_mariadb", False))):
                connection.exec_driver_sql(word)
            return [tuple(row) for row in connection.exec_driver_sql(text)]

    try:
        yield fetch
    finally:
        pool.dispose()


def _stopped(fetch: Fetch, interrupt: Callable[[], object], patience: Patience) -> Fetch:
    """The same, interrupted when it takes too long."""

    def run(text: str) -> list[tuple[Any, ...]]:
        timer = threading.Timer(patience.left, interrupt)
        timer.daemon = True
        timer.start()
        try:
            return fetch(text)
        finally:
            timer.cancel()
            timer.join()

    return run


_TIMEOUT = 600.0
_UNSEEN = ("no row key and no joins, so that nothing has to be looked at",)


def check_rows(location: object, source: Source) -> None:
    """The key tells the rows of a person apart, and a look-up finds one row at most."""
    joins = source.read is not None and source.read.joins and source.unit is None
    if not joins and (source.unit is None or source.unit.key is None):
        return
    several = source.joined is not None
    with reading_rows(location, source, Patience(_TIMEOUT, _UNSEEN), keys=several) as rows:
        if source.unit is not None and source.unit.key is not None and rows.readable:
            _check_key(rows, source.unit)
        if joins:
            _check_lookups(rows, source)


def _check_key(rows: Rows, unit: Unit) -> None:
    assert unit.key is not None
    both = [rows.engine.identity(rows.columns[name]) for name in (unit.person, unit.key)]
    named = [exp.alias_(each, f"i{i}", quoted=True) for i, each in enumerate(both) if each is not None]
    present = [exp.Not(this=sql.is_null(sql.column(name, sql.SOURCE))) for name in (unit.person, unit.key)]
    each = exp.Select(expressions=named).from_(rows.source.relation()).where(*present)
    columns = [sql.column(f"i{i}", "each") for i in range(len(named))]
    again = exp.Select(expressions=[exp.alias_(sql.whole(1), "twice")]).from_(each.subquery("each"))
    again = again.group_by(*columns).having(exp.GT(this=exp.Count(this=exp.Star()), expression=sql.whole(1)))
    if rows.count(again):
        raise InvalidInput(
            f"Some rows of one person have the same {unit.key!r}, so it does not tell them apart.",
            fixes=("another row key", "no row key: whoever has more rows is then left out"),
        )


def _check_lookups(rows: Rows, source: Source) -> None:
    """Each row of the first table is one row of the view, whatever is looked up for it."""
    assert source.read is not None
    for select in source.read.query.find_all(exp.Select):
        if not select.args.get("joins"):
            continue
        if not rows.readable:
            raise InvalidInput(
                "Whether a row finds several others cannot be seen here.", fixes=("name the person",)
            )
        one = exp.alias_(sql.whole(1), "one")
        first = exp.Select(expressions=[one]).from_(select.args["from_"].this.copy())
        every = exp.Select(expressions=[one.copy()]).from_(select.args["from_"].this.copy())
        for join in select.args["joins"]:
            on, using = join.args.get("on"), join.args.get("using")
            every = every.join(
                join.this.copy(),
                on=None if on is None and using else (on.copy() if on is not None else exp.true()),
                using=[name.copy() for name in using] if using else None,
                join_type="left",
            )
        if rows.count(first) != rows.count(every):
            raise InvalidInput(
                "A row of the first table finds several rows of another in this view, so one person would "
                "be in several rows.",
                fixes=("name the person of each row", "join a column in which no value occurs twice"),
            )
