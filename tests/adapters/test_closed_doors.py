"""A source reaches nothing but its rows: no other file, no variable of the process, nothing endless."""

from __future__ import annotations

import os
import socket
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.backends.duckdb import connect
from blowfishdb.adapters.proposal import propose
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput, SourceError
from tests.adapters.counting import counts, query

NUMBER = Domain(v=Integer(0, 9))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("7")
    path = tmp_path / "rows.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT 3 AS v")
        made.execute(
            f"CREATE VIEW leak AS SELECT CAST(content AS INT) AS v FROM read_text('{tmp_path}/secret.txt')"
        )
    return path


def test_a_view_in_a_file_reaches_no_other_file(file: Path) -> None:
    with (
        pytest.raises(BlowfishError),
        closing(open_backend(file, NUMBER, source=Source.of_table("leak"))) as leaking,
    ):
        counts(leaking, query(NUMBER, v={}))
    with closing(open_backend(file, NUMBER, source=Source.of_table("t"))) as backend:
        assert sum(counts(backend, query(NUMBER, v={}))) == 1


def test_nothing_opens_it_again(file: Path) -> None:
    with closing(connect(file)) as first, closing(connect(file)) as second:
        for connection in (first, second):
            for way in (
                "SET enable_external_access = true", "SELECT * FROM read_text('/etc/hostname')",
                "COPY t TO 'out.csv'", "SELECT * FROM glob('/*')", "INSTALL httpfs",
            ):  # fmt: skip
                with pytest.raises(duckdb.Error):
                    connection.execute(way).fetchall()


@pytest.mark.parametrize("name", ["HOME", "PATH", "BLOWFISHDB_SETTINGS", ""])
def test_an_address_names_only_variables_that_are_meant_for_it(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name:
        monkeypatch.setenv(name, "hunter2")
    for address in (f"sqlite:///${{{name}}}/x.db", f"postgresql://u:${{{name}}}@127.0.0.1:1/db"):
        with pytest.raises(InvalidInput, match="BLOWFISHDB_SOURCE_") as caught:
            open_backend(address, NUMBER)
        assert "hunter2" not in str(caught.value)


def test_the_value_of_a_variable_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_FOLDER", "/hunter2")
    with pytest.raises(SourceError) as caught:
        open_backend("sqlite:///${BLOWFISHDB_SOURCE_FOLDER}/x.db", NUMBER)
    assert "hunter2" not in str(caught.value) and "BLOWFISHDB_SOURCE_FOLDER" in str(caught.value)


@pytest.mark.parametrize("name", ["pipe.csv", "pipe.parquet", "pipe.duckdb", "pipe.db", "folder"])
def test_what_never_ends_is_not_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        os.mkfifo(path / "part.parquet")
    else:
        os.mkfifo(path)
    began = time.monotonic()
    with bf.open(tmp_path / "w.blowfish") as workspace:
        for way in (lambda: propose(str(path)), lambda: workspace.add_dataset("x", path, domain=NUMBER)):
            with pytest.raises(SourceError, match="pipe"):
                way()
    assert time.monotonic() - began < 10


def test_sockets_devices_and_long_names(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s.csv"))
        with pytest.raises(SourceError, match="socket"):
            propose(str(tmp_path / "s.csv"))
    with pytest.raises(SourceError, match="device"):
        open_backend("/dev/zero", NUMBER)
    endless = (
        "x" * 5_000,
        "x" * 300 + ".csv",
        "x" * 300,
        "/".join(["y" * 200] * 40),
        f"sqlite:///{'x' * 300}",
        f"sqlite://x/{'x' * 300}",
    )
    with bf.open(tmp_path / "w.blowfish") as workspace:
        for path in endless:
            with pytest.raises(BlowfishError):
                propose(path)
            with pytest.raises(BlowfishError):
                workspace.add_dataset("x", path, domain=NUMBER)


def test_the_workspace_itself_is_no_source(tmp_path: Path) -> None:
    place = tmp_path / "w.blowfish"
    with bf.open(place) as workspace:
        (tmp_path / "link.db").symlink_to(place)
        for source in (place, f"sqlite:///{place}", tmp_path / "link.db", tmp_path / "w.blowfish-wal"):
            with pytest.raises(InvalidInput, match="the workspace itself"):
                workspace.add_dataset("x", source, domain=NUMBER, table="events")
