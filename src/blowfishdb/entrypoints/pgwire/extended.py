"""Statements that are prepared, filled in, described and executed by messages of their own."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final, final

from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.pgwire import protocol, types
from blowfishdb.entrypoints.pgwire.copying import copied
from blowfishdb.entrypoints.pgwire.errors import (
    FAILED_BLOCK,
    NOT_SUPPORTED,
    PROTOCOL_VIOLATION,
    SYNTAX,
    Refusal,
)
from blowfishdb.entrypoints.pgwire.execution import VARYING, Work
from blowfishdb.entrypoints.pgwire.parameters import literal
from blowfishdb.entrypoints.pgwire.portals import Portal, Prepared, Shelf
from blowfishdb.entrypoints.pgwire.protocol import Body
from blowfishdb.entrypoints.pgwire.results import Column, description, formats_for
from blowfishdb.entrypoints.pgwire.runner import Runner
from blowfishdb.entrypoints.pgwire.statements import split

Handling = Generator[Work, Any, None]
WRONG_FORMAT: Final = "22P03"


@final
class Extended:
    """The messages by which one connection prepares statements and runs them."""

    def __init__(self, runner: Runner, shelf: Shelf, out: bytearray) -> None:
        self._runner = runner
        self._shelf = shelf
        self._out = out

    def handle(self, letter: int, sent: Body) -> Handling:
        """Answer one message; what is refused is raised."""
        match chr(letter):
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

    def _parse(self, sent: Body) -> None:
        name, text = sent.text(), sent.text()
        oids = [sent.int32() & 0xFFFFFFFF for _ in range(sent.count())]
        sent.end()
        statements = split(text)
        if len(statements) > 1:
            raise Refusal(SYNTAX, "cannot insert multiple commands into a prepared statement")
        self._shelf.prepare(name, Prepared(statements[0] if statements else None, oids))
        self._out += protocol.PARSED

    def _bind(self, sent: Body) -> Handling:
        portal, name = sent.text(), sent.text()
        codes = [sent.int16() for _ in range(sent.count())]
        data: list[bytes | None] = []
        for _ in range(sent.count()):
            length = sent.int32()
            data.append(None if length == -1 else sent.take(length))
        formats = [sent.int16() for _ in range(sent.count())]
        sent.end()
        prepared = self._shelf.prepared(name)
        count = 0 if prepared.statement is None else prepared.statement.parameters
        if len(data) < count or (len(codes) not in (0, 1, len(data))):
            raise Refusal(
                PROTOCOL_VIOLATION,
                f"bind message supplies {len(data)} parameters, but the statement requires {count}",
            )
        if any(code not in (0, 1) for code in (*codes, *formats)):
            raise Refusal(WRONG_FORMAT, "Values are written as text or in binary.")
        if count and any(not oid for oid in _padded(prepared.oids, count)):
            yield from self._typed(prepared)
        oids, codes = _padded(prepared.oids, count), formats_for(len(data), codes)
        values: dict[int, str] = {}
        try:
            for at in range(count):
                values[at + 1] = literal(types.parameter(oids[at], codes[at], data[at]))
        except BlowfishError as error:
            raise self._runner.refusal(error) from None
        self._runner.executor.block.begin()
        self._shelf.open(portal, Portal(prepared, values, formats))
        self._out += protocol.BOUND

    def _typed(self, prepared: Prepared) -> Handling:
        """What the parameters of a statement are."""
        assert prepared.statement is not None
        try:
            prepared.oids = yield from self._runner.executor.typed(
                prepared.statement, prepared.oids, self._runner.memory
            )
        except BlowfishError as error:
            raise self._runner.refusal(error) from None

    def _look(self, prepared: Prepared) -> Handling:
        """What a statement will return, and what its parameters are."""
        version = self._runner.settings.version
        if prepared.statement is None or prepared.described == version:
            return
        prepared.columns = yield from self._looked(prepared, None)
        prepared.described = None if prepared.statement.verb in VARYING else version

    def _looked(
        self, prepared: Prepared, values: dict[int, str] | None
    ) -> Generator[Work, Any, tuple[Column, ...] | None]:
        assert prepared.statement is not None
        try:
            columns, prepared.oids = yield from self._runner.executor.looked(
                prepared.statement, prepared.oids, values, self._runner.memory
            )
        except BlowfishError as error:
            raise self._runner.refusal(error) from None
        return columns

    def _describe(self, sent: Body) -> Handling:
        what, name = sent.letter(), sent.text()
        sent.end()
        if what not in ("S", "P"):
            raise Refusal(PROTOCOL_VIOLATION, "invalid DESCRIBE message subtype")
        if what == "P":
            portal = self._shelf.portal(name, "portal")
            columns = None if portal.table is None else portal.table.columns
            if portal.table is None and portal.prepared.statement is not None:
                columns = yield from self._looked(portal.prepared, portal.values)
            if not columns:
                self._out += protocol.NO_DATA
            else:
                self._out += description(
                    columns, _checked(formats_for(len(columns), portal.formats), columns)
                )
            return
        prepared = self._shelf.prepared(name)
        yield from self._look(prepared)
        count = 0 if prepared.statement is None else prepared.statement.parameters
        self._out += protocol.parameter_description(_padded(prepared.oids, count))
        columns = prepared.columns
        self._out += protocol.NO_DATA if not columns else description(columns, [0] * len(columns))

    def _execute(self, sent: Body) -> Handling:
        name, most = sent.text(), sent.int32()
        sent.end()
        portal = self._shelf.portal(name, "portal")
        statement = portal.prepared.statement
        if statement is None:
            self._out += protocol.EMPTY
            return
        if portal.table is None:
            yield from self._check_columns(portal.prepared)
            portal.table = yield from self._runner.run(statement, portal.values)
            self._out += self._runner.said(portal.table)
        elif self._runner.executor.block.status == "E":
            raise Refusal(FAILED_BLOCK, "current transaction is aborted, and so are its portals")
        table = portal.table
        if table.tag.startswith("COPY"):
            self._out += copied(table)
            return
        asked = [types.BINARY_FORMAT] if table.binary or portal.binary else portal.formats
        formats = _checked(formats_for(len(table.columns), asked), table.columns)
        rows, first = len(table.rows), min(portal.at, len(table.rows))
        stop = rows if most <= 0 else min(first + most, rows)
        if table.columns:
            self._out += table.data(formats, first, stop)
        if 0 < most <= stop - first:  # whether that was all, the client finds out by asking for more
            portal.at = stop
            self._out += protocol.SUSPENDED
        else:
            portal.at = rows + 1
            self._out += protocol.complete(table.completed(stop - first))

    def _check_columns(self, prepared: Prepared) -> Handling:
        """Refuse, before anything is spent, what would not look as the client was told that it does."""
        if prepared.described is None or prepared.described == self._runner.settings.version:
            return
        told = prepared.columns, prepared.described
        yield from self._look(prepared)
        if prepared.columns != told[0]:
            prepared.columns, prepared.described = told
            raise Refusal(
                NOT_SUPPORTED,
                "cached plan must not change result type",
                detail="Nothing was charged. A setting has changed what the columns are.",
                hint="Prepare the statement again.",
                routine="RevalidateCachedQuery",
            )

    def _close(self, sent: Body) -> None:
        what, name = sent.letter(), sent.text()
        sent.end()
        if what == "S":
            self._shelf.forget(name)
        elif what == "P":
            self._shelf.close(name)
        else:
            raise Refusal(PROTOCOL_VIOLATION, "invalid CLOSE message subtype")
        self._out += protocol.CLOSED


def _padded(oids: list[int], count: int) -> list[int]:
    return [*oids[:count], *[0] * (count - len(oids))]


def _checked(formats: list[int], columns: tuple[Column, ...]) -> list[int]:
    if len(formats) != len(columns):
        raise Refusal(
            PROTOCOL_VIOLATION,
            f"bind message has {len(formats)} result formats but query has {len(columns)} columns",
        )
    return formats
