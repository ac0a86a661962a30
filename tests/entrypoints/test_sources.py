"""A server reads rows where whoever started it said, and nowhere else."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import codec
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


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_a_file_is_copied_for_no_longer_than_it_may_be_looked_at(tmp_path: Path, name: str) -> None:
    pd.DataFrame({"v": [1, 2, 3]}).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame({"v": [1, 2, 3]}).to_parquet(tmp_path / "people.parquet")
    domain = bf.Domain(v=bf.Integer(0, 9))
    body = {"name": "people", "source": str(tmp_path / name), "domain": codec.plain(domain)}
    with running(tmp_path, settings=replace(SETTINGS, proposal_seconds=1e-6)) as here:
        refused = here.curator.post("/api/v1/datasets", json=body)
        assert refused.status_code == 422, refused.text
        assert "Copying these rows takes longer than 1e-06 seconds" in refused.text
        assert "command line" in refused.text and "Parquet" in refused.text
        assert "people" not in here.workspace.datasets() and here.workspace.copies().used == 0
        here.workspace.limit_copies(60)
        assert here.curator.post("/api/v1/datasets", json=body).status_code == 201
        here.workspace.limit_copies(1e-6)
        again = here.curator.post("/api/v1/datasets/people/refresh")
        assert again.status_code == 422 and "Copying these rows" in again.text
        assert here.workspace["people"].count().spend("0.1").ask().values.tolist() == [3]
