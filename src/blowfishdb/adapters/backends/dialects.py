"""Which SQL a place speaks, so that a curator's view is read in its own language."""

from __future__ import annotations

from pathlib import Path

from blowfishdb.adapters.backends.servers import is_sqlite

_NAMES = {"postgresql": "postgres", "mariadb": "mysql"}
"""What sqlglot calls the language of an address, where that differs from the beginning of the address."""


def dialect_of(location: object) -> str:
    """The language of an address, of a SQLite file, or else of DuckDB, which reads all other files."""
    scheme, address, _ = str(location).partition("://")
    if address:
        spoken = scheme.split("+")[0].removesuffix("-local")
        return _NAMES.get(spoken, spoken)
    return "sqlite" if isinstance(location, str | Path) and is_sqlite(Path(location)) else "duckdb"
