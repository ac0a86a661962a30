"""Passwords: named by a variable, or written down and then shown nowhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.backends.addresses import expanded, parse_url
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, QueryFailed, SourceError
from tests.adapters.counting import counts, query
from tests.adapters.places import PostgresSchema, SqliteFile
from tests.postgres import Server

NUMBER = Domain(v=Integer(0, 9))
EACH = query(NUMBER, v={})
TEN = {"v": ("INTEGER", list(range(10)))}
PASSWORD = "correct-horse"


@pytest.fixture
def schema(postgres: Server) -> Iterator[PostgresSchema]:
    yield PostgresSchema(postgres)


def test_a_variable_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_SECRET_1", "p@ss/w:rd%20${HOME}?")
    monkeypatch.setenv("BLOWFISHDB_SOURCE_WHERE_IT_IS", "db.example")
    url = parse_url(
        "postgresql://reader:${BLOWFISHDB_SOURCE_SECRET_1}@${BLOWFISHDB_SOURCE_WHERE_IT_IS}:5432/a${BLOWFISHDB_SOURCE_SECRET_1}?sslpassword=${BLOWFISHDB_SOURCE_SECRET_1}&n=1"
    )
    full = expanded(url)
    assert (full.username, full.password, full.host) == ("reader", "p@ss/w:rd%20${HOME}?", "db.example")
    assert full.database == "ap@ss/w:rd%20${HOME}?"
    assert full.query == {"sslpassword": "p@ss/w:rd%20${HOME}?", "n": "1"}
    assert (full.port, full.drivername) == (5432, "postgresql")
    plain = parse_url("mysql://u@h/d")
    assert expanded(plain) == plain


def test_a_variable_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLOWFISHDB_SOURCE_NO_SUCH_SECRET", raising=False)
    for address in (
        "postgresql://u:${BLOWFISHDB_SOURCE_NO_SUCH_SECRET}@h/d",
        "sqlite:///${BLOWFISHDB_SOURCE_NO_SUCH_SECRET}/data.db",
    ):
        with pytest.raises(
            SourceError, match=r"variable BLOWFISHDB_SOURCE_NO_SUCH_SECRET, which is not set"
        ) as caught:
            open_backend(address, NUMBER)
        assert not caught.value.charged


def test_a_variable_in_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = SqliteFile(tmp_path)
    place.make(TEN, NUMBER).close()
    monkeypatch.setenv("BLOWFISHDB_SOURCE_DATA_FOLDER", str(tmp_path))
    with closing(open_backend("sqlite:///${BLOWFISHDB_SOURCE_DATA_FOLDER}/people.sqlite", NUMBER)) as backend:
        assert counts(backend, EACH) == [1] * 10


def test_a_variable_is_looked_up_when_a_connection_is_opened(
    schema: PostgresSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.make(TEN, NUMBER).close()
    address = schema.server.url(schema.schema, password="${BLOWFISHDB_SOURCE_SECRET_1}").replace(
        "tester", "${BLOWFISHDB_SOURCE_READER}"
    )
    monkeypatch.setenv("BLOWFISHDB_SOURCE_SECRET_1", PASSWORD)
    monkeypatch.setenv("BLOWFISHDB_SOURCE_READER", "tester")
    with closing(open_backend(address, NUMBER)) as backend:
        assert counts(backend, EACH) == [1] * 10
        monkeypatch.setenv("BLOWFISHDB_SOURCE_READER", "nobody-of-this-name")
        backend._pool.dispose()  # type: ignore[attr-defined]
        with pytest.raises(SourceError, match="cannot be reached"):
            backend.check()
        monkeypatch.setenv("BLOWFISHDB_SOURCE_READER", "tester")
        assert counts(backend, EACH) == [1] * 10


# --- never shown ------------------------------------------------------------------------------


def _says(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error!s}{error!r}{error.__dict__}"
        assert error.__cause__ is None
        error = error.__context__
    return said


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://u@127.0.0.1:1/db?password={PASSWORD}",
        f"mysql://u:{PASSWORD}@127.0.0.1:1/db",
        f"postgresql://u:{PASSWORD}@127.0.0.1:notaport/db",
        f"trino://u:{PASSWORD}@127.0.0.1:1/one/two/three",
        f"nosuchdatabase://u:{PASSWORD}@127.0.0.1/db",
        f"oracle://u:{PASSWORD}@127.0.0.1/db",
        f"://u:{PASSWORD}",
        "postgresql://u:${BLOWFISHDB_SOURCE_SECRET_1}@127.0.0.1:1/db",
    ],
)
def test_a_failure_does_not_show_it(
    address: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_SECRET_1", PASSWORD)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(BlowfishError) as caught:
        open_backend(address, NUMBER)
    assert PASSWORD not in _says(caught.value) + caplog.text


@pytest.mark.parametrize("written", [PASSWORD, "${BLOWFISHDB_SOURCE_SECRET_1}"])
def test_a_working_connection_does_not_show_it(
    written: str, schema: PostgresSchema, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_SECRET_1", PASSWORD)
    caplog.set_level(logging.DEBUG)
    schema.make({"v": ("INTEGER", [1]), "word": ("VARCHAR", ["x"])}, NUMBER).close()
    with schema.server.connect(schema.schema) as admin:
        admin.execute("CREATE VIEW failing AS SELECT CAST(word AS INTEGER) AS v FROM people")
    view = Source.of_table("failing")
    address = schema.server.url(schema.schema, password=written) + f"&sslpassword={written}"
    with closing(open_backend(address, NUMBER, source=view)) as backend:
        prepared = backend.prepare(EACH)
        with pytest.raises(QueryFailed) as caught:
            prepared.count()
        pool = backend._pool  # type: ignore[attr-defined]
        shown = [
            backend,
            vars(backend),
            prepared,
            vars(prepared),
            prepared.sql,
            pool,
            vars(pool),
            vars(pool.pool),
        ]
    assert PASSWORD not in repr(shown) + _says(caught.value) + caplog.text
