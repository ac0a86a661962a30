"""Killed at any point of ``ask``: no answer without its charge, no charge twice, and everything can go on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from blowfishdb.adapters.ledger import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import AnswerInProgress
from blowfishdb.workspace import Workspace
from tests.engine.killing import STAGES, Fate, Job
from tests.engine.people import PRICE, make_data, make_workspace, question

ROOT = Path(__file__).parents[2]
KILLS_BY_TIME = 176
KILLS_BY_STAGE = 6
IN_ONE_WORKSPACE = 48

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


def check(job: Job, fate: Fate) -> str:
    """Reopen after a kill, check every invariant, go on, check again; returns how far the charge had come."""
    with Workspace(job.workspace, user="ana") as workspace:
        ledger, people = workspace._ledger, workspace["people"]
        asking = question(people, job.number)

        def books() -> None:
            status = people.budget.status
            assert workspace.verify() == []
            assert status.spent + status.held <= status.total
            charges = ledger.charges("people")
            assert all(charge.amount == PRICE for charge in charges)
            count = Counter(charge.state.spent for charge in charges if charge.state is not State.VOID)
            assert status.spent.nano == count[True] * PRICE.nano
            assert status.held.nano == count[False] * PRICE.nano

        books()
        left = [charge for charge in ledger.charges("people") if not charge.state.spent]
        left = [charge for charge in left if charge.state is not State.VOID]
        stored = {tuple(answer.raw) for answer in workspace.answers()}
        if fate.answer is not None:
            assert tuple(fate.answer) in stored, "an answer came out that nobody paid for"
        assert len(left) <= 1
        owned = asking.quote().owned
        assert not (owned and left)
        spent = people.budget.status.spent
        if left:
            assert fate.answer is None and "reserve" in fate.stages
            with pytest.raises(AnswerInProgress):
                asking.ask()
        ledger.recover()
        books()
        after = [ledger.charge(charge.id).state for charge in left]
        expected = [State.VOID if charge.state is State.RESERVED else State.LOST for charge in left]
        assert after == expected
        lost = PRICE if State.LOST in after else Epsilon(0)
        again = asking.ask()
        price = Epsilon(0) if owned else PRICE
        assert again.receipt.cost == price
        assert people.budget.status.spent == spent + lost + price
        if fate.answer is not None:
            assert again.raw.tolist() == fate.answer
        books()
        return "settled" if owned else left[0].state.value if left else "nothing"


def test_kills_at_random_points(run: Run, data: Path, tmp_path: Path) -> None:
    dice = random.Random(20)
    warm = tmp_path / "warm.blowfish"
    make_workspace(warm, data, "1")
    duration = max(run(Job(str(warm), number)).seconds for number in range(5))
    jobs: list[tuple[float | None, str | None]] = [
        (dice.uniform(0, 1.1 * duration), None) for _ in range(KILLS_BY_TIME)
    ]
    jobs += [(None, stage) for stage in STAGES for _ in range(KILLS_BY_STAGE)]
    dice.shuffle(jobs)
    reached: Counter[str] = Counter()
    killed = 0
    for number, (delay, stage) in enumerate(jobs):
        place = tmp_path / f"{number // IN_ONE_WORKSPACE}.blowfish"
        if not place.exists():
            make_workspace(place, data, "10")
        job = Job(str(place), number % IN_ONE_WORKSPACE, delay, stage)
        fate = run(job)
        killed += fate.killed
        reached[check(job, fate)] += 1
    print(killed, reached, duration)
    assert killed >= 200, reached
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
    job = Job(str(tmp_path / "w.blowfish"), 1, stage=stage)
    fate = run(job)
    assert fate.killed and fate.stages[-1] == stage and fate.answer is None
    assert check(job, fate) == left
