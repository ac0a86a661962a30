"""Killed at any point of ``ask``: no answer without its charge, no charge twice, and everything can go on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.engine.killing import Job
from tests.engine.people import make_data, make_workspace
from tests.engine.remains import Run, judge, kill_many, warm

KILLS = (60, pytest.param(200, marks=pytest.mark.thorough))
KILLS_AT_EACH_STAGE = 5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data") / "people.duckdb")


@pytest.fixture(scope="module")
def run(data: Path) -> Iterator[Run]:
    with warm(data) as one:
        yield one


@pytest.mark.parametrize("kills", KILLS)
def test_kills_at_random_points(run: Run, data: Path, tmp_path: Path, kills: int) -> None:
    numbers = count()
    found = kill_many(
        run,
        data,
        lambda: str(tmp_path / f"{next(numbers)}.blowfish"),
        kills,
        at_each_stage=KILLS_AT_EACH_STAGE,
        seed=20,
    )
    assert not found.broken, found
    assert set(found.states) == {"nothing", "reading", "settled"}, found


@pytest.mark.parametrize(
    ("stage", "left"),
    [
        ("reserve", "nothing"),
        ("reading", "reading"),
        ("count", "reading"),
        ("counted", "reading"),
        ("settle", "reading"),
        ("settled", "settled"),
    ],
)
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_each_stage_leaves_what_it_should(
    request: pytest.FixtureRequest, run: Run, data: Path, tmp_path: Path, kind: str, stage: str, left: str
) -> None:
    sqlite = kind == "sqlite"
    place = str(tmp_path / "w.blowfish") if sqlite else request.getfixturevalue("postgres").new_workspace()
    make_workspace(place, data, "1")
    job = Job(place, 1, at=stage)
    fate = run(job)
    assert fate.killed and fate.stages[-1] == stage and fate.answer is None
    found = judge([(job, fate)])
    assert dict(found.states) == {left: 1} and not found.broken, found
