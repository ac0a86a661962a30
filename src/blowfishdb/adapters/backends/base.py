"""Backend: the port through which counts come out of a database."""

from __future__ import annotations

from typing import Protocol

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.projection import CellQuery
from blowfishdb.core.secret import Secret


class Backend(Protocol):
    """One dataset in one database: a source of rows and the declaration of its columns.

    Implementations are safe to share between threads and never write to the database.
    """

    def check(self, query: CellQuery | None = None) -> None:
        """Everything that can fail without looking at a row fails here, before budget is reserved.

        Without a question, every declared column is checked.
        """

    def count(self, query: CellQuery) -> Secret[IntArray]:
        """How many rows fall into each box, flat and row-major; one statement, and nothing else is read."""

    def sql(self, query: CellQuery) -> str:
        """The statement that ``count`` sends, for the log: declarations, never data."""

    def columns(self) -> dict[str, str]:
        """The columns of the source and their types in the database's own words, for the curator."""

    def close(self) -> None:
        """Let go of the database; a second call does nothing."""
