"""Addresses of databases, and the environment variables that they may name instead of a password.

Files that may be read: a pipe or a device could keep whoever opens it waiting for good.

Whether two sources show the same rows: the same place, by whatever name, and a table in common.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.errors import BlowfishError, InvalidInput, SourceError, SourceMissing

_MOST_FILES = 100_000


def check_file(path: Path) -> None:
    """Refuse pipes, sockets and devices, also inside a folder, before anything is opened."""
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise SourceError("No file has a name as long as that.", fixes=("check the path",)) from None
        return  # whoever opens it says that it is not there
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise _not_a_file(path)
    if stat.S_ISDIR(kind):
        _check_folder(path)


def is_there(path: Path) -> bool:
    """Whether there is something; a text that is longer than any path, such as an address, names nothing."""
    try:
        return path.exists()
    except OSError:
        return False


def _check_folder(path: Path) -> None:
    seen = 0
    for folder, _, names in os.walk(path):
        for name in names:
            seen += 1
            inside = Path(folder) / name
            if seen > _MOST_FILES:
                raise SourceError(f"'{path}' holds more than {_MOST_FILES:,} files.", fixes=("fewer files",))
            if name.endswith(".parquet") and inside.exists() and not inside.is_file():
                raise _not_a_file(inside)


def _not_a_file(path: Path) -> SourceError:
    return SourceError(
        f"'{path}' is a pipe, a socket or a device, and not a file.", fixes=("a file with the rows",)
    )


_REFERENCE = re.compile(r"\$\{(\w*)\}")
VARIABLES = "BLOWFISHDB_SOURCE_"
"""How the names of variables begin that an address may name: no other secret of the process can be sent."""
_SECRET = ("pass", "pwd", "secret", "token")
"""What the names of options have in them that hold a password."""


def parse_url(location: str) -> URL:
    """An address, in its parts."""
    try:
        return make_url(location)
    except (ArgumentError, ValueError):
        pass
    raise unreadable()


def unreadable() -> InvalidInput:
    """An address that cannot be read is not repeated, because it may hold a password."""
    fix = f"postgresql://user:${{{VARIABLES}PASSWORD}}@host:5432/database"
    return InvalidInput("This is not the address of a database.", fixes=(fix,))


def expanded(url: URL) -> URL:
    """The address with the values of the variables that it names, such as ``${BLOWFISHDB_SOURCE_PW}``.

    For the moment of connecting only: what is kept and shown names the variable. Values are taken as they
    are, whatever signs they contain.
    """
    options = {
        name: _filled(value) if isinstance(value, str) else tuple(map(_filled, value))
        for name, value in url.query.items()
    }
    parts = (url.username, url.password, url.host, url.database)
    user, password, host, database = (None if part is None else _filled(part) for part in parts)
    return URL.create(url.drivername, user, password, host, url.port, database, options)


def unlocked(url: URL) -> URL:
    """The address without a password, and without options, which can hold one."""
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database)


def _filled(text: str) -> str:
    return _REFERENCE.sub(_value, text)


def _value(reference: re.Match[str]) -> str:
    name = reference[1]
    if not name.startswith(VARIABLES):
        raise InvalidInput(
            f"An address names variables that begin with {VARIABLES}, and no others.",
            fixes=(f"${{{VARIABLES}PASSWORD}}, set where BlowfishDB is started",),
        )
    value = os.environ.get(name)
    if value is None:
        raise SourceError(
            f"The address names the environment variable {name}, which is not set.",
            fixes=(f"set {name} where BlowfishDB is started",),
        )
    return value


def sqlite_path(url: URL) -> Path:
    """The file of an SQLite address."""
    if not url.database or url.database == ":memory:":
        raise SourceMissing("An SQLite address needs a file.", fixes=("sqlite:///people.sqlite",))
    path = Path(expanded(url).database or "")
    check_file(path)
    if not path.is_file():
        shown = url.database  # as it was written: a variable stays a variable
        raise SourceMissing(f"There is no file '{shown}'.", fixes=("check the path and the working folder",))
    return path


def check_no_secret(location: str) -> None:
    """An address to keep names its password; one that holds it would have it in the clear in the store."""
    url = parse_url(location)
    secrets = [] if url.password is None else [str(url.password)]
    for name, value in url.query.items():
        if any(sign in name.lower() for sign in _SECRET):
            secrets += [value] if isinstance(value, str) else value
    if all(_REFERENCE.fullmatch(text) for text in secrets):
        return
    raise InvalidInput(
        "This address holds a password, which would lie in the clear in the workspace.",
        fixes=("set BLOWFISHDB_SOURCE_PASSWORD, and write ${BLOWFISHDB_SOURCE_PASSWORD} in its place",),
    )


Placed = tuple[str, Source | None]

_HERE: Final = {"", "localhost", "127.0.0.1", "::1"}
_FAMILIES: Final = {"postgres": "postgresql", "mariadb": "mysql"}
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "trino": 8080}


def same_rows(one: Placed, other: Placed) -> bool:
    """Whether a row of one may be a row of the other."""
    if not one[0] or not other[0]:  # a table in memory is no place
        return False
    return _same_place(one[0], other[0]) and _same_tables(one[1], other[1])


def is_own(location: str, store: str) -> bool:
    """Whether a place is the workspace itself, or one of the files beside it: the books are no rows."""
    if "://" in store:
        return file_of(location) is None and _server(location) == _server(store)
    file, own = file_of(location), Path(store)
    if file is None:
        return False
    beside = [own, *own.parent.glob(f"{glob.escape(own.name)}[-.]*")]
    return any(_same_file(file, each) for each in beside) or own.resolve() in file.resolve().parents


def _same_tables(one: Source | None, other: Source | None) -> bool:
    """A view in the database may show any table of it, and no name at all means the only one."""
    unclear = any(each is None or each.rows_vary is not None for each in (one, other))
    if unclear or one is None or other is None:
        return True
    return bool({name.lower() for name in one.table_names} & {name.lower() for name in other.table_names})


def _same_place(one: str, other: str) -> bool:
    paths = file_of(one), file_of(other)
    if paths[0] is not None and paths[1] is not None:
        return _same_file(paths[0], paths[1])
    return paths == (None, None) and _server(one) == _server(other)


def _same_file(one: Path, other: Path) -> bool:
    real = one.resolve(), other.resolve()
    if real[0] == real[1] or real[0] in real[1].parents or real[1] in real[0].parents:
        return True
    with suppress(OSError):
        return one.samefile(other)
    return False


def file_of(location: str) -> Path | None:
    """The file or folder of a location; None for a server."""
    scheme, address, rest = location.partition("://")
    if not address:
        return Path(location)
    if scheme in ("duckdb", "spark-local"):
        return Path(rest.removeprefix("/") if scheme == "duckdb" else rest)
    if scheme.split("+")[0] == "sqlite":
        with suppress(BlowfishError):
            return Path(expanded(parse_url(location)).database or "")
    return None


def _server(location: str) -> tuple[object, ...]:
    """A server and a database of it, without who asks and how."""
    try:
        url = expanded(parse_url(location))
    except BlowfishError:
        return (location,)
    name = url.drivername.split("+")[0]
    family = _FAMILIES.get(name, name)
    host = (url.host or "").lower()
    return (family, "" if host in _HERE else host, url.port or _PORTS.get(family), url.database)
