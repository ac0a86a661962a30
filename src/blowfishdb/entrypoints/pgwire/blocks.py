"""Transactions: where a connection is in one, and what becomes undone at its end.

No row is ever changed, so what a transaction holds are settings and cursors. What was spent stays spent,
whatever is rolled back. A message, or the messages up to a Sync, are a transaction by themselves where no
other one was begun.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from blowfishdb.entrypoints.pgwire.errors import NOT_SUPPORTED, Refusal, notice
from blowfishdb.entrypoints.pgwire.portals import Shelf
from blowfishdb.entrypoints.pgwire.results import Table
from blowfishdb.entrypoints.pgwire.settings import Settings, State
from blowfishdb.entrypoints.pgwire.statements import Statement, identifiers

TRANSACTIONS: Final = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"}
)
ENDING: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_MOST: Final = 100  # savepoints


class _Mark(NamedTuple):
    """How things were at a moment: the settings, and the newest portal."""

    settings: State
    portal: int


@final
class Block:
    """Where a connection is: idle, in a transaction, or in one that failed."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self.status = "I"
        self.several = False
        """Whether a message has several statements, which then are a transaction together."""
        self._settings = settings
        self._shelf = shelf
        self._begun: _Mark | None = None
        self._savepoints: list[tuple[str, _Mark]] = []

    @property
    def inside(self) -> bool:
        """Whether what a statement does lasts beyond it without being kept."""
        return self.status == "T" or self.several

    def begin(self) -> None:
        """A statement comes: if nothing was begun, something is now."""
        if self._begun is None:
            self._begun = self._mark()

    def failed(self) -> bytes:
        """A statement failed: a transaction stays failed until it ends. What settings clients are told of."""
        if self.status == "T":
            self.status = "E"
        return self._end(kept=False) if self.status == "I" else b""

    def ready(self) -> bytes:
        """The client may go on: what was a transaction by itself is over. What clients are told of."""
        self.several = False
        return self._end(kept=True) if self.status == "I" else b""

    def run(self, statement: Statement) -> Table:
        """Begin, end, or mark a place."""
        verb, words = statement.verb, statement.words
        if "PREPARED" in words[1:2]:
            raise Refusal(NOT_SUPPORTED, "Transactions in two phases are not available.")
        if verb in ("BEGIN", "START"):
            return self._opened()
        if verb in ENDING and "TO" not in words[1:4]:
            return self._ended(
                undone=verb in ("ROLLBACK", "ABORT"), again=words[-1:] == ("CHAIN",) and "NO" not in words
            )
        if not self.inside and self.status == "I":
            raise Refusal("25P01", f"{verb} can only be used in transaction blocks")
        name = identifiers(statement)[-1]
        if verb == "SAVEPOINT":
            if len(self._savepoints) >= _MOST:
                raise Refusal("54000", f"One transaction has at most {_MOST} savepoints.")
            self._savepoints.append((name, self._mark()))
            return Table((), (), "SAVEPOINT")
        return self._went_back(name, released=verb == "RELEASE")

    def _opened(self) -> Table:
        notices: tuple[bytes, ...] = ()
        if self.status == "T":
            notices = (
                notice("there is already a transaction in progress", severity="WARNING", code="25001"),
            )
        self.status = "T" if self.status == "I" else self.status
        return Table((), (), "BEGIN", notices)

    def _ended(self, *, undone: bool, again: bool) -> Table:
        if self.status == "I" and again:
            raise Refusal("25P01", "AND CHAIN can only be used in transaction blocks")
        notices: tuple[bytes, ...] = ()
        if self.status == "I":
            notices = (notice("there is no transaction in progress", severity="WARNING", code="25P01"),)
        undone = undone or self.status == "E"
        told = self._end(kept=not undone)
        self.status = "T" if again else "I"
        self.begin()
        return Table((), (), "ROLLBACK" if undone else "COMMIT", (*notices, told) if told else notices)

    def _went_back(self, name: str, *, released: bool) -> Table:
        places = [at for at, (known, _) in enumerate(self._savepoints) if known == name]
        if not places:
            raise Refusal("3B001", f'savepoint "{name[:60]}" does not exist')
        if released:
            del self._savepoints[places[-1] :]
            return Table((), (), "RELEASE")
        del self._savepoints[places[-1] + 1 :]
        told = self._undo(self._savepoints[-1][1])
        self.status = "T" if self.status == "E" else self.status
        return Table((), (), "ROLLBACK", (told,) if told else ())

    def _mark(self) -> _Mark:
        return _Mark(self._settings.state, self._shelf.number)

    def _undo(self, mark: _Mark) -> bytes:
        self._shelf.undo(mark.portal)
        return self._settings.restore(mark.settings)

    def _end(self, *, kept: bool) -> bytes:
        begun, self._begun = self._begun, None
        self._savepoints.clear()
        if begun is None:
            return b""
        told = b"" if kept else self._undo(begun)
        self._shelf.end()
        return told + self._settings.end_local()
