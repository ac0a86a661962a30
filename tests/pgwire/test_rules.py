"""The rules of the door: what spends, what never does, who may, and what is the same as elsewhere."""

from __future__ import annotations

import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from blowfishdb.adapters.wire_passwords import Verifier
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import Cancelled, InvalidInput
from blowfishdb.entrypoints.pgwire import spending
from blowfishdb.entrypoints.pgwire.defaults import changed_defaults
from blowfishdb.entrypoints.pgwire.door import Limits
from blowfishdb.entrypoints.pgwire.errors import Refusal
from blowfishdb.entrypoints.pgwire.scram import Exchange, Wrong
from blowfishdb.entrypoints.pgwire.settings import Settings as ConnectionSettings
from blowfishdb.entrypoints.pgwire.spending import Purse
from blowfishdb.entrypoints.serve import PLAIN, Doors, WireDoor
from tests.entrypoints.server import SETTINGS, ok
from tests.pgwire.door import Opened, awaited, door_of, opened

OLDER = "SELECT COUNT(*) AS n FROM salaries WHERE age >= {} WITH ERROR 50"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("rules"), budget="8") as made:
        yield made


def refused(connection: psycopg.Connection[Any], statement: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as error:
        connection.execute(statement)
    return error.value.diag


# --- spending ---------------------------------------------------------------------------------------


def test_nothing_is_spent_without_a_max_cost(there: Opened) -> None:
    before = there.spent()
    with there.connect() as connection:
        for statement in (OLDER.format(20), OLDER.format(20) + " WITH MAX_COST 0.001"):
            said = refused(connection, statement)
            assert said.sqlstate == "53400" and said.message_detail == "Nothing was charged."
            assert "SET blowfishdb.max_cost = '" in str(said.message_hint)
        assert there.spent() == before
        hint = str(said.message_hint)
        connection.execute(hint[len("Try: ") : hint.index(";")])  # the hint is a statement that helps
        assert connection.execute(OLDER.format(20)).fetchone() is not None
    assert there.spent() != before


def test_parse_and_describe_spend_nothing_and_a_rollback_gives_nothing_back(there: Opened) -> None:
    asyncpg, before = pytest.importorskip("asyncpg"), there.spent()

    async def asked() -> str:
        connection = await asyncpg.connect(there.url())
        await connection.execute("SET blowfishdb.max_cost = '1'")
        prepared = await connection.prepare(OLDER.format(21))  # parsed and described
        assert [column.name for column in prepared.get_attributes()] == ["n"]
        assert there.spent() == before
        transaction = connection.transaction()
        await transaction.start()
        await prepared.fetch()
        paid = there.spent()
        await transaction.rollback()
        await connection.close()
        return paid

    assert awaited(asked()) == there.spent() != before


def test_caps_of_a_connection_and_of_a_day(there: Opened) -> None:
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        connection.execute("SET blowfishdb.connection_cap = '0.1'")
        connection.execute(OLDER.format(22))
        assert "connection_cap" in refused(connection, OLDER.format(23)).message_primary  # type: ignore[operator]
        connection.execute("SET blowfishdb.connection_cap = '5'")
        (today,) = connection.execute("SHOW blowfishdb.spent_today").fetchone()  # type: ignore[misc]
        connection.execute(f"SET blowfishdb.daily_cap = '{today}'")
        assert "daily_cap" in refused(connection, OLDER.format(23)).message_primary  # type: ignore[operator]
        connection.execute(OLDER.format(22))  # what is out stays free


def test_connections_at_the_same_time_do_not_exceed_a_cap(there: Opened) -> None:
    with there.connect("curator") as connection:
        (today,) = connection.execute("SHOW blowfishdb.spent_today").fetchone()  # type: ignore[misc]
    cap = float(today) + 0.2

    def ask(age: int) -> bool:
        with there.connect("curator") as connection:
            connection.execute("SET blowfishdb.max_cost = '1'")
            connection.execute(f"SET blowfishdb.daily_cap = '{cap}'")
            try:
                connection.execute(OLDER.format(age))
            except psycopg.errors.ConfigurationLimitExceeded:
                return False
            return True

    with ThreadPoolExecutor(4) as threads:
        assert any(not asked for asked in threads.map(ask, range(50, 56)))
    with there.connect("curator") as connection:
        (today,) = connection.execute("SHOW blowfishdb.spent_today").fetchone()  # type: ignore[misc]
    assert float(today) <= cap


def test_an_account_begins_with_what_it_was_given(there: Opened) -> None:
    passwords = there.door.passwords
    with pytest.raises(InvalidInput, match="cap for each day"):
        changed_defaults({}, {"max_cost": "0.1"})
    usual = changed_defaults({}, {"max_cost": "0.5", "daily_cap": "0.5", "error": "1%"})
    passwords.set_defaults("user curator", usual, by="curator")
    with there.connect("curator") as connection:
        assert connection.execute("SHOW blowfishdb.error").fetchone() == ("1%",)
        said = connection.execute("EXPLAIN SELECT region, COUNT(*) FROM salaries GROUP BY region").fetchall()
        assert any("within 30 people" in line for (line,) in said)  # of 3,000 rows
        connection.execute("SET blowfishdb.daily_cap = '7'")  # does not raise the cap of the account
        assert "daily_cap" in refused(connection, OLDER.format(70).replace("50", "6")).message_primary  # type: ignore[operator]
    passwords.set_defaults("user curator", {}, by="curator")


def test_what_is_said_closer_counts(there: Opened) -> None:
    asked = "EXPLAIN SELECT region, AVG(salary) FROM salaries GROUP BY region"
    with there.connect() as connection:
        connection.execute("SET blowfishdb.error = '500'")
        connection.execute("SET blowfishdb.epsilon = '0.1'")
        assert "FOR GROUPS OF" in str(refused(connection, asked).message_hint)
        connection.execute("SET blowfishdb.error = ''")  # an epsilon says of no error how large groups are
        assert "0.1" in repr(connection.execute(asked.encode()).fetchall())
    there.door.passwords.set_defaults("user analyst", {"error": "500"}, by="curator")
    try:
        with there.connect() as connection:
            assert "FOR GROUPS OF" in str(refused(connection, asked).message_hint)
            connection.execute("SET blowfishdb.epsilon = '0.1'")
            assert "0.1" in repr(connection.execute(asked.encode()).fetchall())
    finally:
        there.door.passwords.set_defaults("user analyst", {}, by="curator")


def test_a_dashboard_that_refreshes_costs_nothing(there: Opened) -> None:
    panels = [OLDER.format(20), "SELECT COUNT(*) FROM salaries", "SELECT 1"]
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        first = [connection.execute(panel).fetchall() for panel in panels]
        before, number = there.spent(), str(there.web.workspace.head())
        for _ in range(100):
            assert [connection.execute(panel).fetchall() for panel in panels] == first
    assert there.spent() == before
    assert str(there.web.workspace.head()) == number


def test_one_stored_answer_through_both_doors(there: Opened) -> None:
    asked = {"sql": OLDER.format(24).removesuffix(" WITH ERROR 50"), "error": 50}
    paid = ok(there.web.analyst.post("/api/v1/datasets/salaries/answers", json=asked))
    assert paid["receipt"]["nano_cost" if "nano_cost" in paid["receipt"] else "cost"]
    before = there.spent()
    with there.connect() as connection:
        said: list[str] = []
        connection.add_notice_handler(lambda diagnostic: said.append(str(diagnostic.message_detail)))
        row = connection.execute(OLDER.format(24)).fetchone()
    assert row == (round(paid["values"][0]),) and f"receipt {paid['id']}," in said[0]
    assert there.spent() == before
    metrics = there.web.curator.get("/metrics").text
    assert 'blowfishdb_requests_total{method="SQL",route="pgwire select",status="200"}' in metrics


# --- names ------------------------------------------------------------------------------------------


def test_a_dataset_is_named_with_and_without_its_schema(there: Opened) -> None:
    same = OLDER.format(20)
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        told, before = connection.execute(same).fetchone(), there.spent()
        for name in ("public.salaries", "salaries.salaries", '"salaries"."salaries"', "SALARIES.Salaries"):
            asked = same.replace("FROM salaries WHERE age", f"FROM {name} s WHERE s.age")
            assert connection.execute(asked).fetchone() == told, asked
        asked = same.replace("FROM salaries WHERE age", "FROM salaries.salaries WHERE salaries.salaries.age")
        assert connection.execute(asked).fetchone() == told
        assert there.spent() == before  # one question, one stored answer
        for name in ("nowhere.salaries", "salaries.nowhere", "salaries.pg_class", "pg_catalog.salaries"):
            assert refused(connection, same.replace("FROM salaries", f"FROM {name}")).sqlstate == "42P01", (
                name
            )
        assert refused(connection, same.replace("WHERE age", "WHERE other.salaries.age")).sqlstate == "0A000"
        for name, known in (
            ("salaries", True),
            ("salaries.salaries", True),
            ("public.salaries", True),
            ("x", False),
        ):
            (found,) = connection.execute("SELECT to_regclass(%s)", (name,)).fetchone()  # type: ignore[misc]
            assert (found is not None) == known
        connection.execute("SET blowfishdb.preview = 'made-up'")
        assert len(connection.execute("SELECT * FROM salaries.salaries LIMIT 3").fetchall()) == 3
        assert connection.execute("SELECT current_schema()").fetchone() == ("public",)
        connection.execute("SET search_path = salaries")
        assert connection.execute("SELECT current_schema()").fetchone() == ("salaries",)
        assert connection.execute("SELECT current_schemas(true)").fetchone() == (["pg_catalog", "salaries"],)


# --- who --------------------------------------------------------------------------------------------


def test_an_auditor_looks_around_and_asks_nothing(there: Opened) -> None:
    with there.connect("auditor") as connection:
        assert connection.execute("SELECT relname FROM pg_class").fetchone() == ("salaries",)
        assert refused(connection, OLDER.format(20)).sqlstate == "42501"


def test_a_new_password_ends_the_connections_of_the_old_one(there: Opened) -> None:
    with there.connect("auditor") as connection:
        there.passwords["auditor"] = there.door.passwords.issue("auditor", by="curator")
        assert refused(connection, "SELECT 1").sqlstate == "57P01"
    there.connect("auditor").close()
    assert there.web.workspace.verify() == []
    there.door.passwords.revoke("auditor")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        there.connect("auditor")
    there.passwords["auditor"] = there.door.passwords.issue("auditor")


def test_a_wrong_proof_is_refused_whoever_it_is(there: Opened) -> None:
    verifier = Verifier.of("right", b"salt" * 4)
    exchange = Exchange(verifier, nonce="server")
    challenge = exchange.challenge(b"n,,n=,r=client")
    assert challenge == b"r=clientserver,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096"
    for wrong in (b"", b"c=biws,r=clientserver,p=AAAA", b"c=biws,r=other,p=" + b"A" * 44):
        with pytest.raises(Wrong):
            exchange.verdict(wrong)
    salts = {there.door.passwords.stand_in("nobody").salt for _ in range(3)}
    assert len(salts) == 1  # a stranger learns nothing from asking twice


def test_too_many_connections_are_told_so(there: Opened) -> None:
    with door_of(there.web, Limits(total=3, per_user=2)) as small:
        first, second = small.connect(), small.connect()
        with pytest.raises(psycopg.OperationalError, match="2 connections of one account"):
            small.connect()
        first.close()
        second.close()
    assert small.passwords  # these are newer than those of the fixture
    there.passwords.update(small.passwords)


def test_two_hundred_connections_at_once(there: Opened) -> None:
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        wanted = connection.execute(OLDER.format(20)).fetchone()
    connections = [there.connect() for _ in range(200)]
    try:
        for connection in connections:
            assert connection.execute(OLDER.format(20)).fetchone() == wanted
    finally:
        for connection in connections:
            connection.close()


# --- giving up ----------------------------------------------------------------------------------------


def test_who_says_nothing_is_told_to_leave(tmp_path: Path) -> None:
    limits = Limits(idle_seconds=0.6, sign_in_seconds=20)
    with opened(tmp_path, limits=limits) as short, short.connect() as connection:
        for _ in range(5):  # whoever goes on asking stays
            time.sleep(0.25)
            connection.execute("SELECT 1")
        time.sleep(1.2)
        with pytest.raises(psycopg.OperationalError, match="nothing was asked for a long time"):
            connection.execute("SELECT 1")


def test_what_answers_several_messages_is_sent_together(there: Opened) -> None:
    with there.connect() as connection, connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", (number,)) for number in range(50)]
        assert [cursor.fetchone() for cursor in cursors] == [(number,) for number in range(50)]


def test_leaving_gives_up_only_what_is_not_being_read() -> None:
    cancel = Cancellation()
    cancel.leave()
    assert not cancel.requested  # a statement that runs is not interrupted
    with pytest.raises(Cancelled) as error:
        cancel.check()
    assert not error.value.charged


def test_a_cancelled_question_costs_nothing(there: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    from blowfishdb.entrypoints.pgwire.asking import Asker

    began, before, answered = threading.Event(), there.spent(), Asker._answered

    def slowly(self: Asker, asking: Any, allowed: Any, usual: Any, cancel: Cancellation) -> Any:
        began.set()
        until = time.monotonic() + 20
        while not cancel._leaving and time.monotonic() < until:
            time.sleep(0.01)
        return answered(self, asking, allowed, usual, cancel)

    monkeypatch.setattr(Asker, "_answered", slowly)
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        threading.Thread(target=lambda: (began.wait(20), connection.cancel_safe()), daemon=True).start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            connection.execute(OLDER.format(81))
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute(OLDER.format(82))
    assert there.spent() == before


def test_requests_to_give_up_are_counted_before_they_are_written_down(tmp_path: Path) -> None:
    few = replace(SETTINGS, requests_per_second=0.001, burst=8)
    with opened(tmp_path, settings=few) as there:
        for number in range(20):
            with socket.create_connection(("127.0.0.1", there.port)) as line:
                line.sendall(struct.pack("!IIII", 16, 80_877_102, number, number))
                assert line.recv(1) == b""
        noted = [there.door.server.scratch.get("wire cancels", f"{n} {n}") for n in range(20)]
    assert noted == ["stop"] * 8 + [None] * 12


def test_what_is_given_back_after_midnight_is_of_the_day_before(
    there: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    purse = Purse("night", there.door.server.scratch, ConnectionSettings("night"))
    monkeypatch.setattr(spending, "_today", lambda: "wire before")
    purse.hold(Epsilon(3), ["4"])
    monkeypatch.setattr(spending, "_today", lambda: "wire after")
    purse.give_back(Epsilon(2))
    assert purse.today() == 0
    purse.hold(Epsilon(4), ["4"])
    with pytest.raises(Refusal):
        purse.hold(Epsilon.from_nano(1), ["4"])


# --- previews -----------------------------------------------------------------------------------------


def test_previews_are_off_and_marked_where_they_are_on(there: Opened) -> None:
    before = there.spent()
    with there.connect() as connection:
        for statement in ("SELECT DISTINCT region FROM salaries", "SELECT MIN(salary) FROM salaries"):
            refused(connection, statement)
        connection.execute("SET blowfishdb.preview = 'declared'")
        values = connection.execute("SELECT DISTINCT region FROM salaries ORDER BY 1")
        assert [c.name for c in values.description or ()] == ["region (declared)"]
        assert [value for (value,) in values.fetchall()] == ["north", "south", "east", "west"]
        ends = connection.execute("SELECT MIN(salary), MAX(salary) AS most FROM salaries")
        assert [c.name for c in ends.description or ()] == ["min (declared)", "most (declared)"]
        assert ends.fetchone() == (0, 99_999)
        assert refused(connection, "SELECT * FROM salaries LIMIT 100").sqlstate == "42501"
        connection.execute("SET blowfishdb.preview = 'made-up'")
        rows = connection.execute("SELECT * FROM salaries LIMIT 7")
        assert [c.name for c in rows.description or ()] == [
            "salary (made up)",
            "age (made up)",
            "region (made up)",
        ]
        made = rows.fetchall()
        assert len(made) == 7 and made == connection.execute("SELECT * FROM salaries LIMIT 7").fetchall()
        assert refused(connection, "SELECT * FROM salaries WHERE age > 30").sqlstate == "42501"
    assert there.spent() == before


# --- TLS ----------------------------------------------------------------------------------------------


def test_from_elsewhere_only_by_tls(there: Opened, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="TLS alone"):
        WireDoor.of("0.0.0.0", 5433, PLAIN)
    assert not there.door.plain_allowed("192.0.2.7") and there.door.plain_allowed("127.0.0.1")
    with socket.create_connection(("127.0.0.1", there.port)) as plain:
        plain.sendall(b"\0\0\0\x08\x04\xd2\x16\x2f")
        assert plain.recv(1) == b"N"
        plain.sendall(b"\0\0\0\x08\x04\xd2\x16\x30")
        assert plain.recv(1) == b"N"  # nor by GSSAPI


def test_tls_with_a_certificate(there: Opened, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost"
    paths = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made.split(), *paths], check=True, capture_output=True)
    doors = Doors.of(certificate=certificate, key=key)
    assert WireDoor.from_text(WireDoor.of("0.0.0.0", 5433, doors).to_text()).certificate == str(certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    there.door.tls = context
    try:
        with psycopg.connect(there.url() + "?sslmode=require") as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        there.door.tls = None
