"""One connection: who is there, what was prepared, and what is answered to each message.

A message is handled by a generator. It yields what may take a while, gets back what came of it, and leaves
what is to be sent in ``out``; so the order of messages is kept, and nobody else waits.
"""

from __future__ import annotations

import csv
import io
import json
import secrets
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.adapters.accounts import Attempt, network
from blowfishdb.adapters.store.values import stamp, utc_now
from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WireAccount
from blowfishdb.core.errors import BlowfishError, Cancelled
from blowfishdb.entrypoints.pgwire import protocol, types
from blowfishdb.entrypoints.pgwire.asking import Asker
from blowfishdb.entrypoints.pgwire.catalogue import Reader
from blowfishdb.entrypoints.pgwire.door import Door, Inside, Running
from blowfishdb.entrypoints.pgwire.errors import (
    CANCELLED,
    NO_CURSOR,
    NO_STATEMENT,
    NOT_AUTHORIZED,
    PROTOCOL_VIOLATION,
    SHUTDOWN,
    SYNTAX,
    TOO_MANY,
    WRONG_PASSWORD,
    Refusal,
    refusal_of,
    unexpected,
)
from blowfishdb.entrypoints.pgwire.execution import Executor, Work, literal
from blowfishdb.entrypoints.pgwire.protocol import Body, Malformed, StartUp
from blowfishdb.entrypoints.pgwire.results import Column, Table, description, formats_for
from blowfishdb.entrypoints.pgwire.scram import MECHANISM, Exchange, Wrong
from blowfishdb.entrypoints.pgwire.settings import REPORTED, Settings
from blowfishdb.entrypoints.pgwire.spending import Purse
from blowfishdb.entrypoints.pgwire.statements import Statement, split
from blowfishdb.entrypoints.server.access import Caller

Handling = Generator[Work, Any, None]
MOST_PREPARED: Final = 500
"""Statements and portals that one connection may keep."""
_QUIET: Final = frozenset({"warning", "error", "log", "fatal", "panic"})


@final
@dataclass(eq=False)
class Prepared:
    """A statement that was parsed, and the types of its parameters once they are known."""

    statement: Statement | None
    oids: list[int]
    columns: tuple[Column, ...] | None = None
    described: bool = False


@final
@dataclass(eq=False)
class Portal:
    """A statement with its parameters filled in; its result, once it ran, and how far it was sent."""

    prepared: Prepared
    values: dict[int, str]
    formats: list[int]
    table: Table | None = None
    sent: int = 0


@final
class Session:
    """The state of one connection and what it answers."""

    def __init__(self, door: Door, address: str, *, encrypted: bool) -> None:
        self.door = door
        self.address = address
        self.encrypted = encrypted
        self.out = bytearray()
        self.over = False
        self.user: str | None = None
        self.process = door.next_process()
        self.secret = secrets.randbits(31)
        self._inside: Inside | None = None
        self._known: WireAccount | None = None
        self._exchange: Exchange | None = None
        self._attempt: Attempt | None = None
        self._parameters: dict[str, str] = {}
        self._first = True
        self._executor: Executor | None = None
        self._settings: Settings | None = None
        self._statements: dict[str, Prepared] = {}
        self._portals: dict[str, Portal] = {}
        self._skipping = False

    # --- coming in ------------------------------------------------------------------------------

    def start(self, message: StartUp) -> None:
        """The first message: who wants to come in."""
        self._parameters = message.parameters
        unknown = [name for name in message.parameters if name.startswith("_pq_.")]
        if message.minor or unknown:
            self.out += protocol.negotiate(0, unknown)
        user = message.parameters.get("user", "")
        if not user:
            raise Refusal(NOT_AUTHORIZED, "no PostgreSQL user name specified in startup packet", fatal=True)
        if message.parameters.get("replication", "").lower() not in ("", "false", "off", "no", "0"):
            raise Refusal("0A000", "Nothing is replicated through this door.", fatal=True)
        if not self.encrypted and not self.door.plain_allowed(self.address):
            raise Refusal(
                NOT_AUTHORIZED,
                "Connections from other machines must be encrypted.",
                hint="Try: sslmode=require",
                fatal=True,
            )
        self.out += protocol.sasl_mechanisms(MECHANISM)

    @property
    def signed_in(self) -> bool:
        """Whether it is known who is there."""
        return self._executor is not None

    def authenticate(self, body: bytes) -> Handling:
        """The two messages by which a client shows that it knows the password."""
        name = self._parameters["user"]
        passwords = self.door.passwords
        if self._exchange is None:
            sent = Body(body)
            if sent.text() != MECHANISM:
                raise Refusal(NOT_AUTHORIZED, f"The way to come in is {MECHANISM}.", fatal=True)
            first = sent.take(sent.int32())
            sent.end()
            self.door.server.rates.take(f"address:{network(self.address)}")
            self._attempt = yield lambda: passwords.begin(name, self.address)
            self._known = yield lambda: passwords.find(name)
            stand_in = yield lambda: passwords.stand_in(name)
            self._exchange = Exchange(stand_in if self._known is None else self._known.verifier)
            try:
                self.out += protocol.sasl_continue(self._exchange.challenge(first))
            except Wrong:
                raise _wrong_password(name) from None
            return
        try:
            proof = self._exchange.verdict(body)
        except Wrong:
            raise _wrong_password(name) from None
        if self._known is None:
            raise _wrong_password(name)
        attempt = self._attempt
        assert attempt is not None
        yield lambda: passwords.succeeded(attempt)
        self.out += protocol.sasl_final(proof)
        yield self._enter

    def _enter(self) -> None:
        """Somebody is in: a workspace in their name, their settings, and what clients want to know."""
        assert self._known is not None
        account, server = self._known.account, self.door.server
        self._inside = self.door.enter(self.process, self.secret, account.user)
        if self._inside is None:
            raise Refusal(
                TOO_MANY,
                f"Through this door {self.door.limits.per_user} connections of one account may be open.",
                hint="Try: a pool of connections in the client",
                fatal=True,
            )
        self.user = account.user
        settings = self._settings = Settings(account.user)
        settings.begin_with(self.door.passwords.defaults(f"user {account.user}"))
        caller = Caller(account, server.workspace.as_user(account.user), server)
        purse = Purse(account.user, server.scratch, settings)
        asker = Asker(caller, self.door.passwords, settings, purse)
        reader = Reader(account.user, self.process, self._setting)
        self._executor = Executor(asker, reader, self.door)
        for name, value in self._parameters.items():
            if name not in ("user", "database", "options", "replication") and not name.startswith("_pq_."):
                settings.set(name, value)
        for name, value in _options(self._parameters.get("options", "")):
            settings.set(name, value)
        self.out += protocol.AUTHENTICATED
        for key, shown in REPORTED.items():
            told = "off" if key == "in_hot_standby" else settings.get(key)
            self.out += protocol.parameter_status(shown, told)
        self.out += protocol.backend_key(self.process, self.secret)
        self.out += protocol.READY["I"]

    def _setting(self, name: str, value: str | None) -> str:
        assert self._settings is not None
        if value is not None:
            self._settings.set(name, value)
        return self._settings.get(name)

    # --- messages -------------------------------------------------------------------------------

    def handle(self, letter: int, body: bytes) -> Handling:
        """Answer one message of someone who is signed in."""
        if letter == ord("X"):
            self.over = True
            return
        if letter == ord("S"):
            self._skipping = False
            self._ready()
            return
        if letter == ord("H"):
            return
        if letter in b"dcf":
            return  # left over from a COPY that nobody asked for
        if self._skipping and letter != ord("Q"):
            return
        try:
            yield from self._handled(letter, body)
        except Refusal as refusal:
            self._refuse(refusal, letter)
        except Malformed as error:  # its length was right, so the next message is found
            self._refuse(Refusal(PROTOCOL_VIOLATION, str(error)), letter)
        if letter == ord("Q"):
            self._skipping = False
            self._portals.clear()
            if not self.over:
                self._ready()

    def _handled(self, letter: int, body: bytes) -> Handling:
        sent = Body(body)
        match chr(letter):
            case "Q":
                text = sent.text()
                sent.end()
                yield from self._simple(text)
            case "P":
                self._parse(sent)
            case "B":
                yield from self._bind(sent)
            case "D":
                yield from self._describe(sent)
            case "E":
                yield from self._execute(sent)
            case "C":
                self._close(sent)
            case _:
                raise Refusal("0A000", "Functions are not called by message, only in a SELECT.")

    def _ready(self) -> None:
        status = self._executor.block.status if self._executor is not None else "I"
        if status == "I":
            self._portals.clear()
        self.out += protocol.READY[status]

    def _refuse(self, refusal: Refusal, letter: int) -> None:
        self.out += refusal.to_bytes()
        self.over |= refusal.fatal
        self._skipping = letter != ord("Q")
        if self._executor is not None:
            self._executor.block.failed()

    # --- simple queries -------------------------------------------------------------------------

    def _simple(self, text: str) -> Handling:
        statements = split(text)
        if not statements:
            self.out += protocol.EMPTY
            return
        for statement in statements:
            if statement.parameters:
                raise Refusal("42P02", f"there is no parameter ${statement.parameters}")
            table = yield from self._run(statement, {})
            self._send(table)

    def _send(self, table: Table) -> None:
        self._notices(table)
        if table.tag.startswith("COPY"):
            self._copy(table)
            return
        self.out += table.plain

    def _notices(self, table: Table) -> None:
        if not table.notices:
            return
        assert self._settings is not None
        quiet = self._settings.get("client_min_messages").lower() in _QUIET
        for said in table.notices:
            if not quiet or not said.startswith(b"N"):
                self.out += said

    def _copy(self, table: Table) -> None:
        _, form, *header = table.tag.split()
        self.out += protocol.copy_out(len(table.columns))
        rows = [
            [
                None if value is None else column.type.text(value)
                for column, value in zip(table.columns, row, strict=True)
            ]
            for row in table.rows
        ]
        if header:
            rows.insert(0, [column.name for column in table.columns])
        for row in rows:
            self.out += protocol.copy_data(_csv_line(row) if form == "csv" else _text_line(row))
        self.out += protocol.COPY_DONE + protocol.complete(f"COPY {len(table.rows)}")

    # --- running a statement ----------------------------------------------------------------------

    def _run(self, statement: Statement, values: dict[int, str]) -> Generator[Work, Any, Table]:
        """The result of a statement, counted, logged, and given up if it takes too long."""
        executor, settings, user = self._executor, self._settings, self.user
        assert executor is not None and settings is not None and user is not None
        reference, started, code = secrets.token_hex(16), time.perf_counter(), "00000"
        assert self._inside is not None
        running = self._inside.running = Running()
        timer: Any = None
        try:
            self.door.server.rates.take(f"user:{user}")
            memory = self.door.memory()
            if memory.get(user) is not self._known:
                yield lambda: self._check_still_in(user)
                memory[user] = self._known
            seconds = settings.timeout
            if seconds is not None:
                timer = self.door.later(seconds, running.cancel.leave)
            return (yield from executor.run(statement, values, running.cancel, memory))
        except Refusal as refusal:
            code = refusal.code
            raise
        except BlowfishError as error:
            told = self._refusal(error, reference, running, timed=timer is not None)
            code = told.code
            raise told from None
        except GeneratorExit:
            raise
        except Exception as error:
            code = "XX000"
            self._log(statement.verb, reference, started, code, type(error).__name__)
            raise unexpected(reference) from None
        finally:
            if timer is not None:
                timer.cancel()
            self._inside.running = None
            seconds_taken = time.perf_counter() - started
            self.door.count(_route(statement), code, seconds_taken)
            if code != "XX000":
                self._log(statement.verb, reference, started, code, None)

    def _check_still_in(self, user: str) -> None:
        known = self.door.passwords.find(user)
        if known is None or self._known is None or known.verifier.version != self._known.verifier.version:
            raise Refusal(SHUTDOWN, "This account, or its wire password, has ended.", fatal=True)
        if known.account.role is not self._known.account.role:
            raise Refusal(SHUTDOWN, "This account has another role now.", hint="Connect again.", fatal=True)

    def _refusal(
        self, error: BlowfishError, reference: str, running: Running | None = None, *, timed: bool = False
    ) -> Refusal:
        assert self._known is not None
        if isinstance(error, Cancelled) and running is not None and not error.charged:
            why = "user request" if running.asked or not timed else "statement timeout"
            return Refusal(CANCELLED, f"canceling statement due to {why}", detail="Nothing was charged.")
        curator = self._known.account.role is Role.CURATOR
        return refusal_of(error, shown_places=curator, reference=reference)

    def _log(self, verb: str, reference: str, started: float, code: str, problem: str | None) -> None:
        line: dict[str, Any] = {
            "time": stamp(utc_now),
            "id": reference,
            "method": "SQL",
            "route": f"pgwire {verb.lower()[:20]}" if verb.isalpha() else "pgwire",
            "status": code,
            "ms": round(1000 * (time.perf_counter() - started), 1),
            "user": self.user,
        }
        if problem is not None:
            line["problem"] = problem
        self.door.note(json.dumps(line))

    # --- extended queries -------------------------------------------------------------------------

    def _parse(self, sent: Body) -> None:
        name, text = sent.text(), sent.text()
        oids = [sent.int32() & 0xFFFFFFFF for _ in range(sent.count())]
        sent.end()
        if name and name in self._statements:
            raise Refusal("42P05", f'prepared statement "{name[:60]}" already exists')
        if len(self._statements) >= MOST_PREPARED:
            raise Refusal("54000", f"One connection keeps {MOST_PREPARED} statements at most.")
        statements = split(text)
        if len(statements) > 1:
            raise Refusal(SYNTAX, "cannot insert multiple commands into a prepared statement")
        statement = statements[0] if statements else None
        if statement is not None and statement.parameters > 1_000:
            raise Refusal("54000", "A statement has at most 1,000 parameters.")
        self._statements[name] = Prepared(statement, oids)
        self.out += protocol.PARSED

    def _bind(self, sent: Body) -> Handling:
        portal, name = sent.text(), sent.text()
        codes = [sent.int16() for _ in range(sent.count())]
        data: list[bytes | None] = []
        for _ in range(sent.count()):
            length = sent.int32()
            data.append(None if length == -1 else sent.take(length))
        formats = [sent.int16() for _ in range(sent.count())]
        sent.end()
        prepared = self._prepared(name)
        count = 0 if prepared.statement is None else prepared.statement.parameters
        if len(data) < count or (len(codes) not in (0, 1, len(data))):
            raise Refusal(
                PROTOCOL_VIOLATION,
                f"bind message supplies {len(data)} parameters, but the statement requires {count}",
            )
        if any(code not in (0, 1) for code in (*codes, *formats)):
            raise Refusal(WRONG_FORMAT, "Values are written as text or in binary.")
        if portal and portal in self._portals:
            raise Refusal("42P03", f'portal "{portal[:60]}" already exists')
        if len(self._portals) >= MOST_PREPARED:
            raise Refusal("54000", f"One connection keeps {MOST_PREPARED} portals at most.")
        if count and not prepared.described and any(not oid for oid in _padded(prepared.oids, count)):
            yield from self._typed(prepared)
        oids, codes = _padded(prepared.oids, count), formats_for(len(data), codes)
        values: dict[int, str] = {}

        try:
            for at in range(count):
                values[at + 1] = literal(types.parameter(oids[at], codes[at], data[at]))
        except BlowfishError as error:
            raise self._refusal(error, uuid.uuid4().hex) from None
        self._portals[portal] = Portal(prepared, values, formats)
        self.out += protocol.BOUND

    def _typed(self, prepared: Prepared) -> Handling:
        """What the parameters of a statement are."""
        executor, statement = self._executor, prepared.statement
        assert executor is not None and statement is not None
        try:
            prepared.oids = yield lambda: executor.parameter_types(statement, prepared.oids)
        except BlowfishError as error:
            raise self._refusal(error, uuid.uuid4().hex) from None

    def _look(self, prepared: Prepared) -> Handling:
        """What a statement will return, and what its parameters are."""
        if prepared.statement is None or prepared.described:
            return
        prepared.columns = yield from self._looked(prepared, None)
        prepared.described = True

    def _looked(
        self, prepared: Prepared, values: dict[int, str] | None
    ) -> Generator[Work, Any, tuple[Column, ...] | None]:
        executor, statement = self._executor, prepared.statement
        assert executor is not None and statement is not None
        columns: tuple[Column, ...] | None
        try:
            columns, oids = yield lambda: executor.described(statement, prepared.oids, values)
        except BlowfishError as error:
            raise self._refusal(error, uuid.uuid4().hex) from None
        prepared.oids = oids
        return columns

    def _describe(self, sent: Body) -> Handling:
        what, name = sent.letter(), sent.text()
        sent.end()
        if what not in ("S", "P"):
            raise Refusal(PROTOCOL_VIOLATION, "invalid DESCRIBE message subtype")
        if what == "P":
            portal = self._portal(name)
            columns = None if portal.table is None else portal.table.columns
            if portal.table is None and portal.prepared.statement is not None:
                columns = yield from self._looked(portal.prepared, portal.values)
            if not columns:
                self.out += protocol.NO_DATA
            else:
                self.out += description(columns, _checked(formats_for(len(columns), portal.formats), columns))
            return
        prepared = self._prepared(name)
        yield from self._look(prepared)
        count = 0 if prepared.statement is None else prepared.statement.parameters
        self.out += protocol.parameter_description(_padded(prepared.oids, count))
        columns = prepared.columns
        self.out += protocol.NO_DATA if not columns else description(columns, [0] * len(columns))

    def _execute(self, sent: Body) -> Handling:
        name, most = sent.text(), sent.int32()
        sent.end()
        portal = self._portal(name)
        statement = portal.prepared.statement
        if statement is None:
            self.out += protocol.EMPTY
            return
        if portal.table is None:
            portal.table = yield from self._run(statement, portal.values)
            self._notices(portal.table)
        table = portal.table
        if table.tag.startswith("COPY"):
            self._copy(table)
            return
        formats = _checked(formats_for(len(table.columns), portal.formats), table.columns)
        stop = len(table.rows) if most <= 0 else min(portal.sent + most, len(table.rows))
        if table.columns:
            self.out += table.data(formats, portal.sent, stop)
        sent_now, portal.sent = stop - portal.sent, stop
        if stop < len(table.rows):
            self.out += protocol.SUSPENDED
        else:
            self.out += protocol.complete(table.completed(sent_now))

    def _close(self, sent: Body) -> None:
        what, name = sent.letter(), sent.text()
        sent.end()
        if what == "S":
            self._statements.pop(name, None)
        elif what == "P":
            self._portals.pop(name, None)
        else:
            raise Refusal(PROTOCOL_VIOLATION, "invalid CLOSE message subtype")
        self.out += protocol.CLOSED

    def forget(self, name: str | None) -> None:
        """Let go of a prepared statement, or of all of them."""
        if name is None:
            self._statements.clear()
        elif self._statements.pop(name, None) is None:
            raise _no_statement(name)

    def _prepared(self, name: str) -> Prepared:
        if name not in self._statements:
            raise _no_statement(name)
        return self._statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise Refusal(NO_CURSOR, f'portal "{name[:60]}" does not exist')
        return self._portals[name]

    def leave(self) -> None:
        """The connection is over; what it waited for goes on only if rows are being read."""
        self.over = True
        if self._inside is not None:
            if self._inside.running is not None:
                self._inside.running.cancel.leave()
            self.door.left(self.process, self.secret)


WRONG_FORMAT: Final = "22P03"


def _no_statement(name: str) -> Refusal:
    return Refusal(NO_STATEMENT, f'prepared statement "{name[:60]}" does not exist')


def _wrong_password(name: str) -> Refusal:
    return Refusal(
        WRONG_PASSWORD,
        f'password authentication failed for user "{name[:60]}"',
        detail="The name or the wire password is wrong; the password of the pages does not open this door.",
        hint="A curator issues a wire password: blowfishdb wire issue NAME",
        fatal=True,
    )


def _padded(oids: list[int], count: int) -> list[int]:
    return [*oids[:count], *[0] * (count - len(oids))]


def _checked(formats: list[int], columns: tuple[Column, ...]) -> list[int]:
    if len(formats) != len(columns):
        raise Refusal(
            PROTOCOL_VIOLATION,
            f"bind message has {len(formats)} result formats but query has {len(columns)} columns",
        )
    return formats


def _route(statement: Statement) -> str:
    known = ("SELECT", "WITH", "SHOW", "SET", "EXPLAIN", "COPY", "BEGIN", "COMMIT", "ROLLBACK")
    return f"pgwire {statement.verb.lower()}" if statement.verb in known else "pgwire other"


def _options(text: str) -> list[tuple[str, str]]:
    """``-c name=value`` and ``--name=value``, as libpq sends them."""
    words, found, at = text.replace("\\ ", "\x00").split(), [], 0
    while at < len(words):
        word = words[at].replace("\x00", " ")
        if word == "-c" and at + 1 < len(words):
            at += 1
            word = words[at].replace("\x00", " ")
        elif word.startswith("-c") or word.startswith("--"):
            word = word[2:]
        name, equals, value = word.partition("=")
        if equals:
            found.append((name.replace("-", "_"), value))
        at += 1
    return found


def _csv_line(row: list[str | None]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow("" if value is None else value for value in row)
    return line.getvalue().encode()


def _text_line(row: list[str | None]) -> bytes:
    marks = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return ("\t".join("\\N" if value is None else value.translate(marks) for value in row) + "\n").encode()
