"""The workspace's own database: SQLite beside the data by default, any SQLAlchemy URL otherwise.

Writers take turns: on SQLite a writing transaction begins with the write lock (``BEGIN IMMEDIATE``),
elsewhere with a lock on the row at the head of the event chain. A commit is on disk before it returns.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeVar, final
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Dialect,
    Engine,
    create_engine,
    create_mock_engine,
    event,
    func,
    inspect,
    select,
)
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.util import LRUCache

from blowfishdb.adapters.copies import private_file
from blowfishdb.adapters.store.tables import SCHEMA_VERSION, SEAL_KEY, START, heads, meta, metadata, seals
from blowfishdb.core.errors import WorkspaceError

T = TypeVar("T")


class _Look(threading.local):
    """What one thread saw when it last looked whether anything was changed."""

    inside = False
    seen: tuple[int | None] | None = None


_PATIENCE: Final = 60.0  # seconds that a writer waits for its turn
_MOST_RECALLED: Final = 2_000  # things read of one state; whoever calls can name many that are not there
_IDENTITY: Final = "identity"
_LOCK: Final = (
    0x626C6F77  # the number under which PostgreSQL lets one process at a time make or upgrade tables
)


@final
class Store:
    """An open workspace database; safe to share between threads, and usable in a forked process."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._file: tuple[int, int] | None = None
        self._watch: sqlite3.Connection | None = None
        self._watching = threading.Lock()
        self._known: tuple[int, dict[Hashable, Any]] = (0, {})
        self._look = _Look()
        self.name = name
        self.read_only = False
        """Whether it is a file that may only be read, as a backup on a medium that cannot be written."""

    @classmethod
    def open(cls, path_or_url: str | Path) -> Self:
        """Open it, and create what is missing."""
        engine, name = _engine(path_or_url)
        store = cls(engine, name)
        store.read_only = "mode" in engine.url.query
        try:
            store._prepare()
            store._file = store._identity()
        except BaseException:
            store.close()
            raise
        return store

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that has the turn to write: all of it happens, or nothing."""
        self._check_writable()
        self._leave_parent()
        self._check_there()
        try:
            with self._turn, self._explained(), self._engine.connect() as connection:
                immediate = connection.execution_options(immediate=True)
                with immediate.begin():
                    if not self.sqlite:
                        immediate.execute(select(heads.c.id).with_for_update())
                    yield immediate
        finally:
            self._look.seen = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of everything and changes nothing."""
        self._leave_parent()
        with self._explained(), self._engine.connect() as connection:
            if not self.sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def at_one_look(self) -> Iterator[None]:
        """While inside, this thread looks once whether anything was changed, and again when it has written.

        For what takes a moment: what others change meanwhile is seen by whoever looks next.
        """
        look = self._look
        if look.inside:
            yield
            return
        look.inside, look.seen = True, None
        try:
            yield
        finally:
            look.inside, look.seen = False, None

    def recalled(self, what: Hashable, read: Callable[[Connection], T]) -> T:
        """What ``read`` says in a reading transaction; asked again only when anything was changed since.

        SQLite tells at once whether any process has changed its file. Nobody may change what comes back.
        """
        state = self._state()
        if state is None:
            with self.reading() as connection:
                return read(connection)
        since, values = self._known
        if since != state or len(values) > _MOST_RECALLED:
            _, values = self._known = (state, {})
        if what not in values:
            with self.reading() as connection:
                values[what] = read(connection)
        value: T = values[what]
        return value

    def remembers(self, what: Hashable) -> bool:
        """Whether ``recalled`` has it in memory as it is now, so that nobody waits for the database."""
        since, values = self._known
        return what in values and since == self._state()

    def _state(self) -> int | None:
        """A number that is another one after every change, whoever made it; None where there is none.

        A connection does not count its own changes, so this one makes none.
        """
        self._leave_parent()
        look = self._look
        if not look.inside:
            return self._looked()
        if look.seen is None:
            look.seen = (self._looked(),)
        return look.seen[0]

    def _looked(self) -> int | None:
        if self.read_only or self.file is None:
            return None
        with self._watching:
            try:
                if self._watch is None:
                    watch = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
                    _configure_for_reading(watch, None)
                    self._watch = watch
                ((version,),) = self._watch.execute("PRAGMA data_version")
            except sqlite3.Error as error:
                raise _words(self.name, error) from error
        return int(version)

    def close(self) -> None:
        """Let go of the database."""
        with self._watching:
            watch, self._watch = self._watch, None
            if watch is not None:
                watch.close()
        self._engine.dispose()

    @property
    def identity(self) -> str:
        """A name that no other workspace has, given to it when it is first needed."""
        mine = select(meta.c.value).where(meta.c.name == _IDENTITY)
        with self.reading() as connection:
            identity = connection.execute(mine).scalar()
        if identity is not None:
            return str(identity)
        with self.writing() as connection:
            identity = connection.execute(mine).scalar()
            if identity is None:
                identity = uuid.uuid4().hex
                connection.execute(meta.insert().values(name=_IDENTITY, value=identity))
            return str(identity)

    @property
    def sqlite(self) -> bool:
        """Whether it is a file of its own."""
        return self._engine.dialect.name == "sqlite"

    @cached_property
    def file(self) -> Path | None:
        """The file that it is, in full, as it was opened; None for a database elsewhere."""
        path = self._path()
        return path if path is None or self.read_only else path.resolve()

    def _path(self) -> Path | None:
        if self.read_only:
            return Path(self.name)
        path = self._engine.url.database if self.sqlite else None
        return Path(path) if path and path != ":memory:" else None

    def _leave_parent(self) -> None:
        """A connection must not be used on both sides of a fork: the child forgets those of its parent."""
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._turn, self._watching = threading.Lock(), threading.Lock()
            self._watch, self._known, self._look = None, (0, {}), _Look()
            self._process = os.getpid()

    def _check_writable(self) -> None:
        if self.read_only:
            raise WorkspaceError(
                f"'{self.name}' may only be read here, so nothing can be changed or charged.",
                fixes=("blowfishdb restore PATH INTO, to make a workspace of a backup",),
            )

    def _check_there(self) -> None:
        """A file that was removed can still be written; what is charged there would be forgotten."""
        if self._file != self._identity():
            raise WorkspaceError(
                f"'{self.name}' was removed or replaced while it was open, so nothing can be charged to it.",
                fixes=("put it back, or restore a backup, and open it again",),
            )

    def _identity(self) -> tuple[int, int] | None:
        path = self._path()  # which may lead to another file by now
        if path is None:
            return None
        try:
            status = path.stat()
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    # --- formats --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make a new workspace, upgrade an older one, refuse a newer one; most are neither."""
        with self.reading() as connection:
            version = self._format(connection)
        if self.read_only and (version is None or version < SCHEMA_VERSION):
            raise WorkspaceError(
                f"'{self.name}' may only be read here, and it has an older format, which must be upgraded.",
                fixes=("blowfishdb restore PATH INTO, where it can be written",),
            )
        if version is None:
            with self._alone() as connection:
                version = self._format(connection)
                if version is None:
                    self._create(connection)
                    version = SCHEMA_VERSION
        if version < SCHEMA_VERSION:
            self._upgrade()

    def _format(self, connection: Connection) -> int | None:
        """The number of the format; None where there is no workspace yet."""
        present = inspect(connection).get_table_names()
        if meta.name not in present:
            if present and self.sqlite:
                raise WorkspaceError(
                    f"'{self.name}' is a database of another program.",
                    fixes=("another path for the workspace",),
                )
            return None
        written = connection.execute(select(meta.c.value).where(meta.c.name == "schema")).scalar()
        if written is None or not written.isdecimal() or int(written) < 1:
            raise WorkspaceError(
                f"'{self.name}' does not say which format it has, so it is damaged or not a workspace.",
                fixes=("restore it from a backup", "another path"),
            )
        if int(written) > SCHEMA_VERSION:
            raise WorkspaceError(
                f"'{self.name}' was written by a newer version of BlowfishDB "
                f"(format {written}, this one reads up to {SCHEMA_VERSION}). Nothing was changed.",
                fixes=("pip install --upgrade blowfishdb",),
            )
        return int(written)

    def _create(self, connection: Connection) -> None:
        if self.sqlite:  # which holds nothing yet
            for statement in _making_tables():
                connection.exec_driver_sql(statement)
        else:
            metadata.create_all(connection)
        connection.execute(meta.insert().values(name="schema", value=str(SCHEMA_VERSION)))
        connection.execute(heads.insert().values(id=1, seq=0, hash=START))
        connection.execute(seals.insert().values(place=SEAL_KEY, seal=secrets.token_hex(32)))

    def _upgrade(self) -> None:
        """All scripts in one transaction: an upgrade that fails leaves the workspace as it was."""
        from blowfishdb.adapters.store.chain import sealed_again
        from blowfishdb.adapters.store.migrations import upgrade
        from blowfishdb.adapters.store.releases import reindex

        with self._alone(rebuilding=True) as connection:
            version = self._format(connection)
            if version is None or version == SCHEMA_VERSION:
                return  # another process was faster
            with sealed_again(connection, version):
                upgrade(connection, version, SCHEMA_VERSION)
                reindex(connection)
            now = meta.update().where(meta.c.name == "schema").values(value=str(SCHEMA_VERSION))
            connection.execute(now)
            if self.sqlite and connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                raise WorkspaceError(
                    f"'{self.name}' could not be upgraded to format {SCHEMA_VERSION}. Nothing was changed.",
                    fixes=("report this, with the output of verify()",),
                )

    @contextmanager
    def _alone(self, *, rebuilding: bool = False) -> Iterator[Connection]:
        """A writing transaction that needs no table yet; ``rebuilding`` lets SQLite replace tables."""
        self._leave_parent()
        with self._turn, self._explained(), self._engine.connect() as connection:
            if rebuilding and self.sqlite:  # the setting cannot change inside a transaction
                _driver(connection).execute("PRAGMA foreign_keys = OFF").close()
            try:
                immediate = connection.execution_options(immediate=True)
                with immediate.begin():
                    if self._engine.dialect.name == "postgresql":
                        immediate.execute(select(func.pg_advisory_xact_lock(_LOCK)))
                    yield immediate
            finally:
                if rebuilding and self.sqlite:
                    _driver(connection).execute("PRAGMA foreign_keys = ON").close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What the database says, in the user's words."""
        try:
            yield
        except DBAPIError as error:
            raise _words(self.name, error.orig) from error
        except SQLAlchemyError as error:
            raise WorkspaceError(
                f"The workspace '{self.name}' could not be used ({type(error).__name__})."
            ) from error


def _engine(path_or_url: str | Path) -> tuple[Engine, str]:
    if isinstance(path_or_url, str) and "://" in path_or_url:
        try:
            engine = create_engine(path_or_url, pool_pre_ping=True, hide_parameters=True)
        except (ImportError, SQLAlchemyError) as error:
            failure = type(error).__name__
            raise WorkspaceError(
                f"The address of the workspace cannot be used ({failure}).",
                fixes=("postgresql+psycopg://user@host/name", "pip install 'blowfishdb[postgres]'"),
            ) from None  # the address may hold a password
        name = engine.url.render_as_string(hide_password=True)
    else:
        path = Path(path_or_url)
        if not path.parent.is_dir():
            raise WorkspaceError(
                f"There is no folder '{path.parent}' for the workspace.", fixes=("create it",)
            )
        if path.is_dir():
            raise WorkspaceError(f"'{path}' is a folder.", fixes=(f"the file {path / 'workspace.db'}",))
        with suppress(OSError):  # the database says in its own words what is wrong with the place
            private_file(path)
        address = _read_only_address(path) or URL.create("sqlite", database=str(path))
        options = {"compiled_cache": _COMPILED}
        engine = create_engine(
            address, pool_timeout=_PATIENCE, hide_parameters=True, execution_options=options
        )
        engine.dialect, name = _sqlite(), str(path)
    if engine.dialect.name == "sqlite":
        read_only = "mode" in engine.url.query
        event.listen(engine, "connect", _configure_for_reading if read_only else _configure)
        event.listen(engine, "begin", _begin)
    return engine, name


_COMPILED: Final[LRUCache[Any, Any]] = LRUCache(500)
"""Our statements as texts: written once in a process, however many workspaces it opens."""


@cache
def _sqlite() -> Dialect:
    """One for all workspaces that are files: a text is kept for the dialect in which it was written."""
    engine = create_engine("sqlite://")
    with engine.connect():  # which looks up what this SQLite can do
        return engine.dialect


@cache
def _making_tables() -> tuple[str, ...]:
    """The statements that make the tables of a new file."""
    statements: list[str] = []
    made = create_mock_engine(
        "sqlite://", lambda sql, *_: statements.append(str(sql.compile(dialect=_sqlite())))
    )
    metadata.create_all(made, checkfirst=False)
    return tuple(statements)


def _read_only_address(path: Path) -> URL | None:
    """The address of a file that is there and cannot be written; None for every other one."""
    if not path.is_file() or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return None
    query = {"mode": "ro", "uri": "true"}
    wal = path.with_name(path.name + "-wal")
    if not (wal.exists() and wal.stat().st_size):
        query["immutable"] = "1"  # nobody is writing it, and SQLite makes no files beside it
    return URL.create("sqlite", database=f"file:{quote(str(path.resolve()))}", query=query)


def _configure_for_reading(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None
    connection.text_factory = _text
    connection.execute("PRAGMA query_only = ON").close()


def _configure(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # transactions begin where we say, see _begin
    connection.text_factory = _text
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE * 1000:.0f}").close()
    _use_wal(connection)
    for setting in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}").close()


def _text(stored: bytes) -> str:
    """A text; where someone put other bytes into the file, one that differs from what was there."""
    return stored.decode("utf-8", "replace")


def _use_wal(connection: sqlite3.Connection) -> None:
    """While others open or close the file, SQLite refuses to change its journal without waiting: we wait."""
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > patience:
                raise
        time.sleep(0.005)


def _driver(connection: Connection) -> sqlite3.Connection:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("immediate", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:  # which only says that statements belong together, waits for nobody and cannot fail
        _driver(connection).execute("BEGIN").close()


@contextmanager
def explain(name: str) -> Iterator[None]:
    """What SQLite says about the file ``name``, in the user's words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _words(name, error) from error


_SQLITE_WORDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("not a database", "is not a workspace: the file is not a SQLite database", "another path"),
    ("malformed", "is damaged", "restore it from a backup, and do not reset the budget"),
    ("readonly", "may not be written", "check the permissions of the file and its folder"),
    ("read-only", "may not be written", "check the permissions of the file and its folder"),
    ("unable to open", "cannot be opened", "check the permissions of the file and its folder"),
    ("locked", "is busy: another program has held it for too long", "try again"),
    ("disk is full", "cannot grow: the disk is full", "free some space"),
    ("disk i/o", "could not be read or written: the disk refused", "free some space, and check the disk"),
)


def _words(name: str, error: BaseException | None) -> WorkspaceError:
    text = str(error).lower()
    for sign, what, fix in _SQLITE_WORDS:
        if sign in text:
            return WorkspaceError(f"'{name}' {what}.", fixes=(fix,))
    return WorkspaceError(
        f"The workspace '{name}' could not be used ({type(error).__name__}).",
        fixes=("check that its database is running and reachable", "verify()"),
    )
