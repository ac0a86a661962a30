"""Whether two sources show the same rows: the same place, by whatever name, and a table in common."""

from __future__ import annotations

import glob
from contextlib import suppress
from pathlib import Path
from typing import Final

from blowfishdb.adapters.backends import addresses
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.errors import BlowfishError

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
    place, own = file_of(location), Path(store)
    if place is None:
        return False
    beside = [own, *own.parent.glob(f"{glob.escape(own.name)}[-.]*")]
    return any(_same_file(place, each) for each in beside) or own.resolve() in place.resolve().parents


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
            return Path(addresses.expanded(addresses.parse_url(location)).database or "")
    return None


def _server(location: str) -> tuple[object, ...]:
    """A server and a database of it, without who asks and how."""
    try:
        url = addresses.expanded(addresses.parse_url(location))
    except BlowfishError:
        return (location,)
    name = url.drivername.split("+")[0]
    family = _FAMILIES.get(name, name)
    host = (url.host or "").lower()
    return (family, "" if host in _HERE else host, url.port or _PORTS.get(family), url.database)
