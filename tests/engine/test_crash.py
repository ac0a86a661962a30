"""Killed at any point of ``ask``: no answer without its charge, no charge twice, and everything can go on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import pytest

from blowfishdb.adapters.ledger import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import AnswerInProgress
from blowfishdb.core.projection import project
from blowfishdb.service import identity
from blowfishdb.workspace import Workspace
from tests.engine.killing import STAGES, Fate, Job
from tests.engine.people import PRICE, make_data, make_workspace, question

ROOT = Path(__file__).parents[2]
KILLS = 200
KILLS_AT_EACH_STAGE = 5
BATCH = 10

Run = Callable[[Job], Fate]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data") / "people.duckdb")


@pytest.fixture(scope="module")
def run(data: Path) -> Iterator[Run]:
    """Jobs, done by a process that is warm and may be forked."""
    paths = os.pathsep.join([str(ROOT), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.killing", str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert process.stdin is not None and process.stdout is not None
    sent, heard = process.stdin, process.stdout
    assert heard.readline() == "ready\n"

    def one(job: Job) -> Fate:
        sent.write(json.dumps(asdict(job)) + "\n")
        sent.flush()
        return Fate(**json.loads(heard.readline()))

    yield one
    sent.close()
    assert process.wait(30) == 0
    heard.close()


@dataclass(frozen=True)
class Remains:
    """What a kill left behind: the state of its charge, or "nothing", or the answer that was settled."""

    job: Job
    fate: Fate
    state: str


def check_books(workspace: Workspace) -> None:
    """Whatever happened, the books add up, and every charge is exactly what was reserved."""
    assert workspace.verify() == []
    status, charges = workspace["people"].budget.status, workspace._ledger.charges("people")
    assert status.spent + status.held <= status.total
    assert all(charge.amount == PRICE for charge in charges)
    assert status.spent.nano == PRICE.nano * sum(charge.state.spent for charge in charges)
    assert status.held.nano == PRICE.nano * sum(charge.state.held for charge in charges)


def check(jobs: list[tuple[Job, Fate]]) -> list[Remains]:
    """Reopen after some kills; check every invariant, recover, ask again, check again."""
    with Workspace(jobs[0][0].workspace, user="ana") as workspace:
        check_books(workspace)
        remains = [Remains(job, fate, left_behind(workspace, job, fate)) for job, fate in jobs]
        before, people = workspace["people"].budget.status, workspace["people"]
        ended = [charge.state for charge in workspace._ledger.recover()]
        assert ended.count(State.LOST) == sum(r.state == "reading" for r in remains)
        assert ended.count(State.VOID) == sum(r.state == "reserved" for r in remains)
        assert people.budget.status.spent.nano == before.spent.nano + PRICE.nano * ended.count(State.LOST)
        assert not people.budget.status.held
        for remain in remains:
            again = question(people, remain.job.number).ask()
            assert again.receipt.cost == (Epsilon(0) if remain.state == "settled" else PRICE)
            assert remain.fate.answer in (None, again.raw.tolist())
        check_books(workspace)
        return remains


def left_behind(workspace: Workspace, job: Job, fate: Fate) -> str:
    """How far the charge had come. An answer that came out is one that was paid for."""
    asking = question(workspace["people"], job.number)
    dataset = workspace._record("people")
    name = identity(asking._request(), dataset, project(asking.question, dataset.policy))
    mine = [c for c in workspace._ledger.charges("people") if c.question == name]
    assert len(mine) <= 1
    if fate.answer is not None or "settled" in fate.stages:
        assert [charge.state for charge in mine] == [State.SETTLED]
    if "count" in fate.stages:
        assert mine and mine[0].state in (State.READING, State.SETTLED), "read before the durable mark"
    if not mine:
        assert "reserved" not in fate.stages
        return "nothing"
    if mine[0].state.held:
        with pytest.raises(AnswerInProgress, match="Nothing was charged"):
            asking.ask()
    return mine[0].state.value


def plans(durations: dict[str, float]) -> Iterator[Job]:
    """Kills at every stage, and at times spread over the whole, and over what follows the reservation."""
    dice = random.Random(20)
    yield from (Job("", 0, at=stage) for stage in STAGES * KILLS_AT_EACH_STAGE)
    while True:
        for since, seconds in durations.items():
            yield Job("", 0, delay=dice.uniform(0, seconds), since=since)


def test_kills_at_random_points(run: Run, data: Path, tmp_path: Path) -> None:
    warm = tmp_path / "warm.blowfish"
    make_workspace(warm, data, "1")
    durations = {
        since: median(run(Job(str(warm), 5 * start + number, since=since)).seconds for number in range(5))
        for start, since in enumerate(("ask", "reserve"))
    }
    jobs, reached, killed = plans(durations), Counter[str](), 0
    while killed < KILLS:
        place = tmp_path / f"{killed}.blowfish"
        make_workspace(place, data, "1")
        batch = [replace(next(jobs), workspace=str(place), number=number) for number in range(BATCH)]
        done = [(job, run(job)) for job in batch]
        killed += sum(fate.killed for _, fate in done)
        reached.update(remain.state for remain in check(done))
    assert set(reached) == {"nothing", "reserved", "reading", "settled"}, reached


@pytest.mark.parametrize(
    ("stage", "left"),
    [
        ("reserve", "nothing"),
        ("reserved", "reserved"),
        ("reading", "reading"),
        ("counted", "reading"),
        ("settled", "settled"),
    ],
)
def test_each_stage_leaves_what_it_should(
    run: Run, data: Path, tmp_path: Path, stage: str, left: str
) -> None:
    make_workspace(tmp_path / "w.blowfish", data, "1")
    job = Job(str(tmp_path / "w.blowfish"), 1, at=stage)
    fate = run(job)
    assert fate.killed and fate.stages[-1] == stage and fate.answer is None
    assert [remain.state for remain in check([(job, fate)])] == [left]
