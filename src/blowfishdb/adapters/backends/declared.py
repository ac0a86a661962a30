"""What every backend does alike: check declarations, write statements, and keep quiet about failures."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

from blowfishdb.adapters.sql import Statement, cell_statement, mentioned
from blowfishdb.adapters.sql_encode import encode
from blowfishdb.adapters.sql_engine import Engine, SqlColumn
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import QueryFailed, UnknownColumn
from blowfishdb.core.projection import CellQuery
from blowfishdb.core.secret import Secret


@final
@dataclass(frozen=True, eq=False)
class Declared:
    """A source as its curator declares it, and as the database describes it."""

    domain: Domain
    source: Source
    engine: Engine
    types: Mapping[str, SqlColumn]

    def check(self, query: CellQuery | None = None) -> None:
        """Every column (of a question, or all declared ones) is there and has a fitting type."""
        if query is not None:
            self.statement(query)
            return
        if self.source.unit is not None:
            self.source.unit.check(self.types)
        for name in self.domain:
            encode(self._column(name), self.domain[name], "unused")

    def statement(self, query: CellQuery) -> Statement:
        """The one statement of a question."""
        for name in mentioned(query, self.domain):
            self._column(name)
        return cell_statement(query, self.source, self.domain, self.types, self.engine)

    def _column(self, name: str) -> SqlColumn:
        if name in self.types:
            return self.types[name]
        close = difflib.get_close_matches(name, self.types, n=1, cutoff=0.5)
        raise UnknownColumn(
            f"There is no column {name!r} in {self.source.name}; it has: {', '.join(self.types)}.",
            fixes=tuple(f"declare {found!r}" for found in close),
        )


def columns(types: Mapping[str, str], engine: Engine) -> dict[str, SqlColumn]:
    """Columns by name, from their types in the words of the database."""
    return {name: SqlColumn(name, text, engine) for name, text in types.items()}


def counted(run: Callable[[], IntArray], timeout: float) -> Secret[IntArray]:
    """What ``run`` counts. Whatever fails here is charged, and says nothing about the data."""
    started = time.monotonic()
    try:
        return Secret(run())
    except Exception as error:
        failure = type(error).__name__
    # raised outside, so that not even the context of the exception holds the database's words
    if time.monotonic() - started >= timeout:
        raise QueryFailed(
            f"The database took longer than {timeout:g} seconds and was interrupted.",
            fixes=("fewer or wider bins", "ask the curator for a longer limit"),
        )
    raise QueryFailed(
        f"The database could not answer ({failure}).", fixes=("ask the curator to check the source",)
    )
