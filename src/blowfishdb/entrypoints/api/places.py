"""Places whose rows a curator of a server may declare: folders and hosts named by whoever started it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from blowfishdb.adapters.backends import addresses
from blowfishdb.core.errors import InvalidInput
from blowfishdb.declaring import check_not_own

_OF_FILES: Final = ("sqlite", "duckdb", "spark-local")
_OPTIONS: Final = {"sslmode", "sslrootcert", "options", "charset", "connect_timeout", "application_name"}
"""Options of an address that cannot lead to another host."""


def check_place(source: str, allowed: tuple[str, ...], store: str) -> None:
    """Refuse a source that is in none of the folders and on none of the hosts (nothing named: all are), and
    the workspace itself, before anything is looked at."""
    check_not_own(source, store)
    if allowed and not _is_allowed(source, allowed):
        raise InvalidInput(
            "This server reads rows only from the folders and hosts that it was started with.",
            fixes=("a file in one of these folders", "serve --sources, for whoever runs the server"),
        )


def _is_allowed(source: str, allowed: tuple[str, ...]) -> bool:
    scheme, address, rest = source.partition("://")
    if not address:
        return _inside(Path(source), allowed)
    if scheme.split("+")[0] in _OF_FILES:
        path = rest if scheme == "spark-local" else rest.partition("?")[0].removeprefix("/")
        return "${" not in path and _inside(Path(path), allowed)
    url = addresses.parse_url(source)
    if "${" in (url.host or "") or not set(url.query) <= _OPTIONS:
        return False
    host = (url.host or "").lower()
    return bool(host) and (host in allowed or f"{host}:{url.port}" in allowed)


def _inside(path: Path, allowed: tuple[str, ...]) -> bool:
    """Symbolic links are followed first."""
    real = path.resolve()
    folders = [Path(each).resolve() for each in allowed]
    return any(real == folder or folder in real.parents for folder in folders)
