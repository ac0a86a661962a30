"""Prepared: a question that was checked and written as SQL, so that only counting is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from blowfishdb.adapters.backends.cancellation import Cancellation
from blowfishdb.adapters.backends.running import Brake, counted
from blowfishdb.adapters.sql import Aggregate, Statement
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.secret import Secret


@final
@dataclass(frozen=True, eq=False)
class Prepared:
    """The one statement of a question; no row is read until it is counted."""

    statement: Statement
    run: Callable[[Aggregate, Brake], IntArray]
    timeout: float

    @property
    def sql(self) -> str:
        """What ``count`` sends, for the log: declarations, never data."""
        return self.statement.text

    def count(self, cancel: Cancellation | None = None) -> Secret[IntArray]:
        """How many rows fall into each box, flat and row-major; nothing else is read."""
        given = Cancellation() if cancel is None else cancel
        return counted(lambda brake: self.run(self.statement, brake), self.timeout, given)
