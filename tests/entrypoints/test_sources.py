"""A server reads rows where whoever started it said, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.api.places import check_place
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
