"""Places whose rows a curator of a server may declare: folders and hosts named by whoever started it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from blowfishdb.adapters.backends import addresses
from blowfishdb.adapters.backends.overlap import file_of
from blowfishdb.core.errors import InvalidInput
from blowfishdb.declaring import check_not_own

_OF_FILES: Final = ("sqlite", "duckdb", "spark-local")
_USUAL: Final = "data"
_OPTIONS: Final = {"sslmode", "sslrootcert", "options", "charset", "connect_timeout", "application_name"}
"""Options of an address that cannot lead to another host."""


def check_place(source: str, allowed: tuple[str, ...], store: str) -> None:
    """Refuse a source that is in none of the folders and on none of the hosts (nothing named: all are), and
    the workspace itself, before anything is looked at."""
    check_not_own(source, store)
    if allowed and not _is_allowed(source, allowed):
        raise InvalidInput(
            "This server reads rows only from the folders and hosts that it was started with: "
            f"{', '.join(allowed)}.",
            fixes=("rows in one of these places", "serve --sources, for whoever runs the server"),
        )


def usual_places(store: str) -> tuple[str, ...]:
    """Where rows may be if whoever starts a server names no place: a folder beside the workspace."""
    beside = Path() if "://" in store else Path(store).parent
    return (str((beside / _USUAL).resolve()),)


def _is_allowed(source: str, allowed: tuple[str, ...]) -> bool:
    scheme, address, _ = source.partition("://")
    if not address or scheme.split("+")[0] in _OF_FILES:  # the very file that would be opened
        path = None if "${" in source else file_of(source)
        return path is not None and _inside(path, allowed)
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
