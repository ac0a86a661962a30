"""Spark: folders of Parquet files and tables of a catalogue, on this machine or on a cluster.

``spark-local://folder`` starts Spark on this machine; ``spark://host:7077/folder`` asks a cluster. Without a
folder, the source names a table of Spark's catalogue. There is one Spark for each process, and for each
dataset a part of it with its own settings and temporary names.
"""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from sqlglot import exp

from blowfishdb.adapters.backends.base import Brake, DeclaredBackend, closed, listed
from blowfishdb.adapters.backends.duckdb import has_dialect, table_name
from blowfishdb.adapters.sql.engines.spark import SPARK
from blowfishdb.adapters.sql.source import Source
from blowfishdb.adapters.sql.statement import Aggregate
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[2]"
_LOCAL_SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}
_SESSION_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",  # a text such as ${x} is a text
    "spark.sql.ansi.enabled": "false",  # what cannot be computed is NULL, rather than a failure
}
_STARTING = threading.Lock()


@final
class Spark(DeclaredBackend):
    """A dataset that Spark reads; only counts are collected."""

    engine = SPARK

    def __init__(
        self, location: str, domain: Domain, source: Source | None = None, *, timeout: float = 600.0
    ) -> None:
        source_at = _place(location)
        self.domain = domain
        self.timeout = timeout
        self.path = source_at.path
        self._session: SparkSession | None = _new_session(source_at.master)
        self._own = {} if self.path is None else _views(self._session, self.path, source)
        if self._own:
            source = source if source is not None else Source.of_table(next(iter(self._own)))
        if source is None:
            raise SourceMissing("Spark was given neither a folder nor a table.", fixes=("name the table",))
        self.source = source
        self._types()

    def __repr__(self) -> str:
        return f"<Spark: {self.source.name}>"

    def close(self) -> None:
        """Let go of the session; Spark itself runs on, for other datasets, until the process ends."""
        self._session = None

    # --- statements -----------------------------------------------------------------------------

    def _open(self) -> SparkSession:
        if self._session is None:
            raise closed()
        return self._session

    def _run(self, statement: Aggregate, brake: Brake) -> IntArray:
        session, group = self._open(), uuid.uuid4().hex
        context = session.sparkContext
        # a statement may be several jobs; the group is of this thread, which runs nothing else
        context.setJobGroup(group, "counts", interruptOnCancel=True)
        lost = _network_errors()
        try:
            with brake.stops_by(lambda: context.cancelJobGroup(group)):
                rows = session.sql(statement.text).collect()
        except lost:
            raise ConnectionError from None
        return statement.fold_rows(rows)

    # --- metadata -------------------------------------------------------------------------------

    def _is_table(self, table: exp.Table) -> bool:
        """The files of this place are a view of our own making."""
        if table.name in self._own and not table.db:
            return True
        try:
            entry = self._open().catalog.getTable(f"{table.db}.{table.name}" if table.db else table.name)
            return entry.tableType in ("MANAGED", "EXTERNAL")
        except Exception as error:
            failure = type(error).__name__
        raise SourceMissing(f"Spark cannot read {self.source.name} ({failure}).", fixes=("another table",))

    def _types(self) -> dict[str, str]:
        session = self._open()
        if self.path is not None and "://" not in self.path and not Path(self.path).exists():
            raise SourceMissing(f"'{self.path}' is no longer there.", fixes=("put it back",))
        select = exp.select("*").from_(self.source.relation()).sql(dialect=SPARK.dialect)
        try:
            fields = session.sql(select).schema.fields
            return {field.name: field.dataType.simpleString() for field in fields}
        except _network_errors():
            failure = ""
        except Exception as error:
            failure = type(error).__name__
        if not failure:
            raise SourceError("Spark has ended.", fixes=("start the process again",))
        tables = [table.name for table in session.catalog.listTables()]
        raise SourceMissing(
            f"Spark cannot read {self.source.name} ({failure}); its tables: {listed(tables)}.",
            fixes=("one of these tables",),
        )


def _network_errors() -> tuple[type[Exception], ...]:
    """How it shows that Spark itself has gone."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    return (Py4JNetworkError, ConnectionError)


class _Place(NamedTuple):
    master: str
    path: str | None


def _place(location: str) -> _Place:
    scheme, _, rest = location.partition("://")
    if scheme == "spark-local":
        return _Place(LOCAL, rest or None)
    host, slash, path = rest.partition("/")
    if scheme != "spark" or not host:
        raise InvalidInput(
            "This is not an address of Spark.", fixes=("spark-local://folder", "spark://host:7077/folder")
        )
    return _Place(f"spark://{host}", (path if "://" in path else f"/{path}") if slash and path else None)


def _session(master: str) -> SparkSession:
    """The one Spark of this process, started if it is not running yet."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        missing = SourceError("PySpark is not installed.", fixes=("pip install 'blowfishdb[spark]'",))
        raise missing from None
    with _STARTING:
        running = SparkSession.getActiveSession()
        if running is None:
            running = _start(SparkSession, master)
    if running.sparkContext.master != master:
        raise SourceError(
            f"This process already runs Spark on {running.sparkContext.master}, and there can be only one.",
            fixes=("another process",),
        )
    return running


def _start(spark: type[SparkSession], master: str) -> SparkSession:
    builder = spark.builder.master(master).appName("blowfishdb").config("spark.ui.enabled", "false")
    if master == LOCAL:
        for name, value in _LOCAL_SETTINGS.items():
            builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # a log of a failure may quote the row it failed on
        return session
    except Exception as error:
        failure = type(error).__name__
    raise SourceError(
        f"Spark does not start on {master} ({failure}).",
        fixes=("install Java 17 or newer", "check the address"),
    )


def _new_session(master: str) -> SparkSession:
    session = _session(master).newSession()
    for name, value in _SESSION_SETTINGS.items():
        session.conf.set(name, value)
    return session


def own_session(location: str, source: Source) -> SparkSession:
    """A part of Spark in which the tables of a source are there, for the curator's look at keys."""
    place = _place(location)
    session = _new_session(place.master)
    if place.path is not None:
        _views(session, place.path, source)
    return session


def _views(session: SparkSession, path: str, source: Source | None) -> dict[str, str]:
    """Temporary views of the files of a place: of the folders in it that a source names, or of itself."""
    named = [] if source is None or source.schema else [source.table] if source.table else []
    if source is not None and source.joined is not None:
        named = [table.name for table in source.joined.named if not table.db]
    inside = {name: place for name in named if name and (place := _inside(path, name)) is not None}
    if not inside:
        return {_view(session, path, table_name(Path(path))): path}
    return {_view(session, place, name): place for name, place in inside.items()}


def _inside(path: str, name: str) -> str | None:
    """The files of a table in a folder of several; None if there are none, or nobody can tell."""
    if "://" in path or name == table_name(Path(path)):
        return None
    found = (Path(path) / each for each in (name, f"{name}.parquet"))
    return next((str(each) for each in found if each.exists()), None)


def _view(session: SparkSession, path: str, name: str) -> str:
    """A temporary view of a file or folder, with its name."""
    local = "://" not in path
    if local and not Path(path).exists():
        raise SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    if has_dialect(Path(path).name) or (local and any(Path(path).glob("*.csv*"))):
        raise SourceError(
            "Spark reads no files of texts: how many rows they have would depend on what is in them.",
            fixes=("give the path alone, and the file is copied", "Parquet files"),
        )
    try:
        session.read.parquet(path).createOrReplaceTempView(f"`{name.replace('`', '``')}`")
        return name
    except Exception as error:
        failure = type(error).__name__
    raise SourceCorrupt(f"Spark cannot read '{path}' ({failure}).", fixes=("a folder of Parquet files",))
