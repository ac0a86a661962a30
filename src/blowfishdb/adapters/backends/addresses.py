"""Addresses of databases, and the environment variables that they may name instead of a password."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from blowfishdb.adapters.backends.files import check_file
from blowfishdb.core.errors import InvalidInput, SourceError, SourceMissing

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
    said = [] if url.password is None else [str(url.password)]
    for name, value in url.query.items():
        if any(sign in name.lower() for sign in _SECRET):
            said += [value] if isinstance(value, str) else value
    if all(_REFERENCE.fullmatch(text) for text in said):
        return
    raise InvalidInput(
        "This address holds a password, which would lie in the clear in the workspace.",
        fixes=("set BLOWFISHDB_SOURCE_PASSWORD, and write ${BLOWFISHDB_SOURCE_PASSWORD} in its place",),
    )
