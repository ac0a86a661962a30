"""What a connection keeps: prepared statements, and portals, which are statements with their values.

A cursor that SQL declares is a portal, and statements are prepared by SQL as by messages: either kind has one
name space, as in PostgreSQL. A portal is read when rows are first wanted of it, and never before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, final

from blowfishdb.entrypoints.pgwire.errors import NO_CURSOR, NO_STATEMENT, Refusal
from blowfishdb.entrypoints.pgwire.results import Column, Table
from blowfishdb.entrypoints.pgwire.statements import Statement

MOST_PREPARED: Final = 500
"""Statements, and portals, that one connection may keep."""


@final
@dataclass(eq=False)
class Prepared:
    """A statement that was parsed, and the types of its parameters once they are known."""

    statement: Statement | None
    oids: list[int]
    columns: tuple[Column, ...] | None = None
    described: tuple[tuple[str, str], ...] | None = None
    """Under which settings its columns are these; None if nobody looked yet."""


@final
@dataclass(eq=False)
class Portal:
    """A statement with its parameters filled in; its result, once it was read, and the place in it.

    The place is 0 before the first row, and one more than there are rows behind the last.
    """

    prepared: Prepared
    values: dict[int, str]
    formats: list[int] = field(default_factory=list)
    held: bool = False
    """Whether it outlives its transaction."""
    scrolls: bool = True
    """Whether it goes backwards."""
    binary: bool = False
    """Whether its rows are fetched in binary, whoever asks."""
    table: Table | None = None
    at: int = 0
    number: int = 0
    """By which it is known whether it is younger than a savepoint."""


@final
class Shelf:
    """The prepared statements and the portals of one connection."""

    def __init__(self) -> None:
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self.number = 0
        """That of the newest portal."""

    # --- statements -----------------------------------------------------------------------------

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keep a statement; only the one without a name is replaced."""
        if name and name in self._statements:
            raise Refusal("42P05", f'prepared statement "{name[:60]}" already exists')
        if len(self._statements) >= MOST_PREPARED:
            raise Refusal("54000", f"One connection keeps {MOST_PREPARED} statements at most.")
        if prepared.statement is not None and prepared.statement.parameters > 1_000:
            raise Refusal("54000", "A statement has at most 1,000 parameters.")
        self._statements[name] = prepared

    def prepared(self, name: str) -> Prepared:
        """The statement of a name; refused if there is none."""
        if name not in self._statements:
            raise Refusal(NO_STATEMENT, f'prepared statement "{name[:60]}" does not exist')
        return self._statements[name]

    def forget(self, name: str) -> None:
        """Let go of a statement, if it is there."""
        self._statements.pop(name, None)

    def forget_all(self) -> None:
        """Let go of every statement."""
        self._statements.clear()

    # --- portals --------------------------------------------------------------------------------

    def open(self, name: str, portal: Portal) -> None:
        """Keep a portal; only the one without a name is replaced."""
        if name and name in self._portals:
            raise Refusal("42P03", f'cursor "{name[:60]}" already exists')
        if len(self._portals) >= MOST_PREPARED:
            raise Refusal("54000", f"One connection keeps {MOST_PREPARED} portals at most.")
        self.number += 1
        portal.number = self.number
        self._portals[name] = portal

    def portal(self, name: str, called: str = "cursor") -> Portal:
        """The portal of a name; refused if there is none."""
        if name not in self._portals:
            raise Refusal(NO_CURSOR, f'{called} "{name[:60]}" does not exist')
        return self._portals[name]

    def close(self, name: str) -> None:
        """Let go of a portal, if it is there."""
        self._portals.pop(name, None)

    def close_all(self) -> None:
        """Let go of every portal."""
        self._portals.clear()

    def undo(self, since: int) -> None:
        """Let go of the portals that are younger than that one."""
        if self._portals:
            self._portals = {n: p for n, p in self._portals.items() if p.number <= since}

    def end(self) -> None:
        """A transaction ended well: only what is held stays."""
        if self._portals:
            self._portals = {n: p for n, p in self._portals.items() if p.held}
