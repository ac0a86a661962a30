"""Everybody wants the last of the budget: as many answers as it pays for, and not one more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from blowfishdb.core.budget import Epsilon
from blowfishdb.workspace.embedded import Workspace
from tests.engine.people import PRICE, make_data, make_workspace
from tests.engine.racing import attempts

ROOT = Path(__file__).parents[2]
BUDGET = "0.235"
ATTEMPTS = 64
PAID_FOR = Epsilon(BUDGET) // PRICE  # 23


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data") / "people.duckdb")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def place(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> str:
    at = (
        str(tmp_path / "w.blowfish")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres").new_workspace()
    )
    make_workspace(at, data, BUDGET)
    return at


def check(workspace: Workspace, outcomes: list[str]) -> None:
    assert Counter(outcomes) == {str(PRICE): PAID_FOR, "refused": ATTEMPTS - PAID_FOR}
    status = workspace["people"].budget.status
    assert status.spent.nano == PAID_FOR * PRICE.nano and not status.held
    assert len(workspace.answers()) == PAID_FOR
    assert workspace.verify() == []


def test_threads(place: str) -> None:
    with Workspace(place, user="ana") as workspace:
        check(workspace, attempts(workspace, range(ATTEMPTS), ATTEMPTS))


def test_processes(place: str, data: Path) -> None:
    paths = os.pathsep.join([str(ROOT), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", "tests.engine.racing", str(data), place],
        stdout=subprocess.PIPE,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        timeout=120,
    )
    with Workspace(place, user="ana") as workspace:
        check(workspace, json.loads(ended.stdout))
