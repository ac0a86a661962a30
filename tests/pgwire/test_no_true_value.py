"""What an analyst gets through the door for PostgreSQL clients, byte by byte: none of it is a true value.

The rows and the search are those of the other doors: counts that nothing else has, looked for as text and as
the bytes of a number, in either order.
"""

from __future__ import annotations

import logging
import socket
import struct
from pathlib import Path

import pytest

from blowfishdb.entrypoints.server.app import create_app
from tests.entrypoints.server import CHEAP, SETTINGS, Running, client_of
from tests.entrypoints.test_no_true_value import leaks, place, true_values
from tests.pgwire import fuzz
from tests.pgwire.door import door_of

assert place  # a fixture
WIDE = " WITH ERROR 200000"
ASKED = (
    "SELECT region, COUNT(*) FROM people GROUP BY region",
    "SELECT BIN(salary, 10), COUNT(*) FROM people GROUP BY 1",
    "SELECT region, COUNT(*) FROM people GROUP BY region ORDER BY 2 DESC LIMIT 2",
    "SELECT region, COUNT(*) FROM people GROUP BY region HAVING COUNT(*) > 1200000",
    "SELECT COUNT(*) FROM people WHERE salary >= 10",
    "SELECT COUNT(*) FILTER (WHERE salary < 10) AS a, COUNT(*) FILTER (WHERE salary < 20) AS b FROM people",
    "SELECT MEDIAN(salary) FROM people",
)
TRIED = (
    *ASKED,
    *(f"EXPLAIN {statement}{WIDE}" for statement in ASKED),
    *(f"EXPLAIN (FORMAT JSON) {statement}{WIDE}" for statement in ASKED),
    *(f"COPY ({statement}{WIDE}) TO STDOUT" for statement in ASKED),
    *(f"PREPARE q{at} AS {statement}{WIDE}" for at, statement in enumerate(ASKED)),
    *(f"EXECUTE q{at}" for at in range(len(ASKED))),
    *(f"DECLARE c{at} CURSOR WITH HOLD FOR {statement}{WIDE}" for at, statement in enumerate(ASKED)),
    *(f"FETCH ALL FROM c{at}" for at in range(len(ASKED))),
    "SELECT * FROM people LIMIT 10",
    "SELECT DISTINCT region FROM people",
    "SELECT MIN(salary), MAX(salary), COUNT(*) FROM people",
    "SELECT COUNT(*) FROM people",
    "SELECT relname, reltuples, relpages, pg_table_size(oid) FROM pg_class",
    "SELECT * FROM pg_stat_user_tables",
    "SELECT * FROM information_schema.tables",
    "SHOW ALL",
    "SHOW POLICY",
    "SHOW GUARANTEE",
    "SHOW blowfishdb.budget",
    "SELECT SUM(salary) FROM people WITH ERROR 1",
    "SELECT region, COUNT(*) FROM people GROUP BY region WITH ERROR 1",
)


def big_endian() -> list[bytes]:
    """A true value as the protocol writes numbers."""
    return [pack for value in true_values() for pack in (struct.pack("!q", value), struct.pack("!d", value))]


def everything(line: socket.socket, statement: str) -> bytes:
    """All bytes that come back to a statement, sent plainly and then with its result in binary."""
    body = b"\0\0" + struct.pack("!hhhh", 0, 0, 1, 1)  # every column in binary
    line.sendall(fuzz.message(b"Q", statement.encode() + b"\0"))
    line.sendall(fuzz.parse("", statement) + fuzz.message(b"B", body) + fuzz.message(b"D", b"P\0"))
    line.sendall(fuzz.message(b"E", b"\0\0\0\0\0") + fuzz.SYNC)
    found, ready = b"", 0
    while ready < 2:
        letter, more = fuzz.read(line)
        assert letter
        found += letter + more
        ready += letter == b"Z"
    return found


def test_nothing_that_comes_through_is_a_true_value(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    nobody = client_of(app)
    web = Running(app, app.state.server.workspace, nobody, nobody, nobody, nobody, place.parent)
    try:
        with door_of(web) as there, fuzz.enter(there) as line:
            line.settimeout(120)  # a busy machine
            settings = ("max_cost = '1'", "intervals = on", "preview = 'made-up'")
            for setting in settings:
                everything(line, f"SET blowfishdb.{setting}")
            told = [(statement, everything(line, statement)) for statement in TRIED]
            told += [(statement, everything(line, statement + WIDE)) for statement in ASKED]
            answered = [told_ for statement, told_ in told if b"This cost" in told_]
            for asked in (*ASKED, "EXECUTE", "FETCH"):  # they were asked, and paid
                assert any(b"This cost" in found for statement, found in told if statement.startswith(asked))
            assert len(answered) >= 3 * len(ASKED)
            for statement, content in told:
                assert leaks(content) == [], statement
                assert [number for number in big_endian() if number in content] == [], statement
            assert leaks(caplog.text.encode()) == []
    finally:
        web.workspace.close()
    assert leaks(b"north\0\0\0\x071000003")  # the search finds what is there
