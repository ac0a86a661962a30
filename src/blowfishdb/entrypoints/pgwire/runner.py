"""A statement on its way: counted, logged, given up if it takes too long, refused in PostgreSQL's words."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Generator
from typing import Any, Final, final

from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WireAccount
from blowfishdb.core.errors import BlowfishError, Cancelled
from blowfishdb.entrypoints.pgwire.door import Door, Inside, Line, Running
from blowfishdb.entrypoints.pgwire.errors import CANCELLED, SHUTDOWN, Refusal, refusal_of, unexpected
from blowfishdb.entrypoints.pgwire.execution import Executor, Work
from blowfishdb.entrypoints.pgwire.results import Table
from blowfishdb.entrypoints.pgwire.statements import Statement

_QUIET: Final = frozenset({"warning", "error", "log", "fatal", "panic"})
_ROUTES: Final = {
    verb: f"pgwire {verb.lower()}"
    for verb in (
        "SELECT",
        "WITH",
        "SHOW",
        "SET",
        "EXPLAIN",
        "COPY",
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "FETCH",
        "EXECUTE",
    )
}


@final
class Runner:
    """Runs the statements of someone who is signed in."""

    def __init__(self, door: Door, inside: Inside, known: WireAccount, executor: Executor) -> None:
        self.executor = executor
        self.settings = executor.asker.settings
        self._door = door
        self._inside = inside
        self._known = known
        self._user = known.account.user
        self._bucket = f"user:{self._user}"
        self._prefix, self._numbers = secrets.token_hex(12), itertools.count(1)

    def run(self, statement: Statement, values: dict[int, str]) -> Generator[Work, Any, Table]:
        """The result of a statement: at once if it is known and nothing was changed since."""
        reference, started = self._reference(), time.perf_counter()
        code, problem = "00000", None
        try:
            self._door.server.rates.take(self._bucket)
            memory = self.memory
            if memory.get(self._user) is self._known:
                known = self.executor.recalled(statement, values, memory)
                if known is not None:
                    return known
            else:
                yield self._check_still_in
                memory[self._user] = self._known
            return (yield from self._waited(statement, values, memory, reference))
        except Refusal as refusal:
            code = refusal.code
            raise
        except BlowfishError as error:
            told = self.refusal(error, reference)
            code = told.code
            raise told from None
        except GeneratorExit:
            raise
        except Exception as error:
            code, problem = "XX000", type(error).__name__
            raise unexpected(reference) from None
        finally:
            seconds = time.perf_counter() - started
            self._door.count(_ROUTES.get(statement.verb, "pgwire other"), code, seconds)
            self._door.note(Line(time.time(), reference, statement.verb, code, seconds, self._user, problem))

    def _waited(
        self, statement: Statement, values: dict[int, str], memory: dict[Any, Any], reference: str
    ) -> Generator[Work, Any, Table]:
        """The result of a statement that may take a while, and can be given up meanwhile."""
        running = self._inside.running = Running()
        seconds = self.settings.timeout
        timer = None if seconds is None else self._door.later(seconds, running.cancel.leave)
        try:
            return (yield from self.executor.run(statement, values, running.cancel, memory))
        except Cancelled as error:
            if error.charged:
                raise
            why = "user request" if running.asked or timer is None else "statement timeout"
            raise Refusal(
                CANCELLED, f"canceling statement due to {why}", detail="Nothing was charged."
            ) from None
        finally:
            if timer is not None:
                timer.cancel()
            self._inside.running = None

    @property
    def memory(self) -> dict[Any, Any]:
        """Where things can be kept while nothing in the workspace changes."""
        return self._door.memory()

    def said(self, table: Table) -> bytes:
        """What is said beside a result, to those who want to hear it."""
        quiet = self.settings.get("client_min_messages").lower() in _QUIET if table.notices else False
        return b"".join(said for said in table.notices if not quiet or not said.startswith(b"N"))

    def leave(self) -> None:
        """The connection is over; what it waited for goes on only if rows are being read."""
        if self._inside.running is not None:
            self._inside.running.cancel.leave()

    def refusal(self, error: BlowfishError, reference: str = "") -> Refusal:
        """An error of ours as whoever is there is told of it."""
        curator = self._known.account.role is Role.CURATOR
        return refusal_of(error, shown_places=curator, reference=reference or self._reference())

    def _reference(self) -> str:
        """By which a line of the log is found."""
        return f"{self._prefix}{next(self._numbers):08x}"

    def _check_still_in(self) -> None:
        known = self._door.passwords.find(self._user)
        if known is None or known.verifier.version != self._known.verifier.version:
            raise Refusal(SHUTDOWN, "This account, or its wire password, has ended.", fatal=True)
        if known.account.role is not self._known.account.role:
            raise Refusal(SHUTDOWN, "This account has another role now.", hint="Connect again.", fatal=True)
