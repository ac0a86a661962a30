"""A server reads rows where whoever started it said, and nowhere else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.serve import serve
from blowfishdb.entrypoints.server.api.datasets import check_place, usual_places
from blowfishdb.entrypoints.server.server import Settings
from tests.entrypoints.server import SETTINGS, make_data, ok, running

PROPOSAL = "/api/v1/datasets/proposal"


def test_folders_and_hosts(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "away.csv").symlink_to(tmp_path / "other.csv")
    allowed = (str(tmp_path / "data"), "db.example", "127.0.0.1:5433")
    store = str(tmp_path / "w.blowfish")
    for good in (
        f"{tmp_path}/data/people.csv", f"sqlite:///{tmp_path}/data/x.db", "postgresql://u:pw@db.example/x",
        "postgresql://127.0.0.1:5433/x?sslmode=require", f"spark-local://{tmp_path}/data/rows",
    ):  # fmt: skip
        check_place(good, allowed, store)
    for bad in (
        f"{tmp_path}/other.csv", f"{tmp_path}/data/../other.csv", f"{tmp_path}/data/away.csv", "/etc/passwd",
        f"sqlite:///{tmp_path}/x.db", "sqlite:///${BLOWFISHDB_SOURCE_X}/x.db", "postgresql://evil.example/x",
        "postgresql://db.example/x?host=evil.example", "postgresql:///x", "postgresql://127.0.0.1/x",
        "postgresql://${BLOWFISHDB_SOURCE_X}/x", "duckdb:////etc/x.duckdb",
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="started with"):
            check_place(bad, allowed, store)
    check_place("/etc/passwd", (), store)
    with pytest.raises(InvalidInput, match="workspace itself"):
        check_place(store, (), store)


def test_the_file_that_is_opened_is_the_one_that_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address can name a folder where it names a host, and a file behind it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for place in ("sqlite://data//etc/x.db", "sqlite+pysqlite://data//etc/x.db", "sqlite://data/other.db"):
        with pytest.raises(InvalidInput, match="started with"):
            check_place(place, ("data",), "w.blowfish")
    check_place("sqlite:///data/x.db", ("data",), "w.blowfish")


def test_a_server_that_is_told_nothing_reads_beside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Settings] = []
    monkeypatch.setattr(
        "uvicorn.run", lambda *_, **__: told.append(Settings.from_text(os.environ["BLOWFISHDB_SETTINGS"]))
    )
    serve(tmp_path / "w.blowfish")
    serve(tmp_path / "w.blowfish", settings=Settings(sources=("/srv/rows", "db.example")))
    assert [each.sources for each in told] == [(str(tmp_path / "data"),), ("/srv/rows", "db.example")]
    monkeypatch.chdir(tmp_path)
    assert usual_places("postgresql://db.example/books") == (str(tmp_path / "data"),)


def test_over_http(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    settings = replace(SETTINGS, sources=(str(tmp_path / "data"),))
    inside = make_data(tmp_path / "data", 100)
    with running(tmp_path, settings=settings) as here:
        ok(here.curator.post(PROPOSAL, json={"source": str(inside)}))
        for place in (str(tmp_path / "salaries.duckdb"), str(tmp_path / "server.blowfish")):
            ok(here.curator.post(PROPOSAL, json={"source": place}), 422)
            body = {"name": "x", "source": place, "domain": {"a": {"kind": "boolean"}}}
            ok(here.curator.post("/api/v1/datasets", json=body), 422)
