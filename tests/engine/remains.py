"""What kills leave behind: askers that die, and every promise checked on the workspace that they leave.

A promise that does not hold is counted, not raised, so that tests and benchmarks share one judge.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Final, final

from blowfishdb.adapters.store.values import Charge, State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import AnswerInProgress
from blowfishdb.core.questions.projection import project
from blowfishdb.service.identity import identity
from blowfishdb.workspace.embedded import Workspace
from tests.engine.killing import STAGES, Fate, Job
from tests.engine.people import PRICE, make_workspace, question

ROOT = Path(__file__).parents[2]
BATCH = 20

PAID: Final = "no answer without its charge"
MARKED: Final = "no row read before the durable mark"
EXACT: Final = "no charge above its reservation, none twice"
BOOKS: Final = "books add up, chain intact, within the budget"
SPENT: Final = "what may have been read stays spent"
BACK: Final = "a settled answer comes back, equal and free"
AGAIN: Final = "any other question can be asked again"
PROMISES: Final = (PAID, MARKED, EXACT, BOOKS, SPENT, BACK, AGAIN)

Run = Callable[[Job], Fate]


# --- killing ----------------------------------------------------------------------------------


@contextmanager
def warm(data: Path) -> Iterator[Run]:
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
    if heard.readline() != "ready\n":
        raise RuntimeError("The process that forks the askers did not start.")

    def one(job: Job) -> Fate:
        sent.write(json.dumps(asdict(job)) + "\n")
        sent.flush()
        return Fate(**json.loads(heard.readline()))

    try:
        yield one
    finally:
        sent.close()
        process.wait(30)
        heard.close()


def durations(run: Run, workspace: str) -> dict[str, float]:
    """How long an ``ask`` takes from its beginning, and from its reservation."""
    return {
        since: median(run(Job(workspace, 5 * start + number, since=since)).seconds for number in range(5))
        for start, since in enumerate(("ask", "reserve"))
    }


def kills(seconds: dict[str, float], at_each_stage: int, seed: int) -> Iterator[Job]:
    """Kills at every stage, then for ever at moments spread over the whole, and over the reservation."""
    dice = random.Random(seed)
    yield from (Job("", 0, at=stage) for stage in STAGES * at_each_stage)
    while True:
        for since, duration in seconds.items():
            yield Job("", 0, delay=dice.uniform(0, duration), since=since)


def kill_many(
    run: Run, data: Path, new_workspace: Callable[[], str], number: int, *, at_each_stage: int, seed: int
) -> Findings:
    """At least ``number`` kills, some in each workspace, and all that was found there."""
    first = new_workspace()
    make_workspace(first, data, "1")
    jobs, found = kills(durations(run, first), at_each_stage, seed), Findings()
    while found.killed < number:
        place = new_workspace()
        make_workspace(place, data, "1")
        batch = [replace(next(jobs), workspace=place, number=n) for n in range(BATCH)]
        found.add(judge([(job, run(job)) for job in batch]))
    return found


# --- judging ----------------------------------------------------------------------------------


@final
@dataclass
class Findings:
    """How far each charge had come ("nothing" if there is none), and which promises held."""

    killed: int = 0
    states: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)

    def demand(self, promise: str, holds: bool) -> None:
        """Count a check, and whether it failed."""
        self.checked[promise] += 1
        if not holds:
            self.broken[promise] += 1

    def add(self, more: Findings) -> None:
        """Sum up."""
        self.killed += more.killed
        self.checked.update(more.checked)
        self.states.update(more.states)
        self.broken.update(more.broken)


def judge(done: Iterable[tuple[Job, Fate]]) -> Findings:
    """Reopen a workspace after some kills: check every promise, recover, ask again, check again."""
    jobs = list(done)
    found = Findings(killed=sum(fate.killed for _, fate in jobs))
    with Workspace(jobs[0][0].workspace, user="ana") as workspace:
        _wait_for_server(workspace)
        _books(workspace, found)
        states = [_left_behind(workspace, job, fate, found) for job, fate in jobs]
        found.states.update(states)
        _recover(workspace, Counter(states), found)
        for (job, fate), state in zip(jobs, states, strict=True):
            again = question(workspace["people"], job.number).ask()
            if state == State.SETTLED.value:
                found.demand(BACK, not again.receipt.cost and fate.answer in (None, again.raw.tolist()))
            else:
                found.demand(PAID, fate.answer is None)
                found.demand(AGAIN, again.receipt.cost == PRICE)
        _books(workspace, found)
    return found


def _books(workspace: Workspace, found: Findings) -> None:
    status, charges = workspace["people"].budget.status, workspace._ledger.charges("people")
    found.demand(BOOKS, workspace.verify() == [])
    found.demand(BOOKS, status.spent + status.held <= status.total)
    found.demand(EXACT, all(charge.amount == PRICE for charge in charges))
    found.demand(EXACT, status.spent.nano == PRICE.nano * sum(c.state.spent for c in charges))
    found.demand(EXACT, status.held.nano == PRICE.nano * sum(c.state.held for c in charges))


def _left_behind(workspace: Workspace, job: Job, fate: Fate, found: Findings) -> str:
    """How far the charge had come."""
    asking = question(workspace["people"], job.number)
    dataset = workspace._records["people"]
    request = asking.request()
    name = identity(request, dataset, project(request.counts, dataset.policy))
    mine = [charge for charge in workspace._ledger.charges("people") if charge.question == name]
    states = [charge.state for charge in mine]
    found.demand(EXACT, len(mine) <= 1)
    if fate.answer is not None or "settled" in fate.stages:
        found.demand(PAID, states == [State.SETTLED])
    if "count" in fate.stages:
        found.demand(MARKED, states in ([State.READING], [State.SETTLED]))
    if "reading" in fate.stages:
        found.demand(SPENT, bool(mine))
    if mine and mine[0].state.held:
        found.demand(EXACT, _is_refused(asking.ask, mine[0], workspace))
    return mine[0].state.value if mine else "nothing"


def _is_refused(ask: Callable[[], object], charge: Charge, workspace: Workspace) -> bool:
    """While it may still be under way, the question is not answered a second time, nor charged."""
    try:
        ask()
    except AnswerInProgress as refusal:
        return not refusal.charged and workspace._ledger.charge(charge.id) == charge
    return False


def _recover(workspace: Workspace, states: Counter[str], found: Findings) -> None:
    budget = workspace["people"].budget
    before = budget.status.spent.nano
    ended = Counter(charge.state for charge in workspace._ledger.recover())
    found.demand(SPENT, ended == Counter({State.LOST: states["reading"], State.VOID: states["reserved"]}))
    found.demand(SPENT, budget.status.spent.nano == before + PRICE.nano * states["reading"])
    found.demand(SPENT, budget.status.held == Epsilon(0))


def _wait_for_server(workspace: Workspace) -> None:
    """A database server goes on for a moment after its client has died: it may still be committing."""
    if workspace.store.sqlite:
        return
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    end = time.monotonic() + 30
    while True:
        with workspace.store.reading() as connection:
            if not connection.exec_driver_sql(others).scalar():
                return
        if time.monotonic() > end:
            raise RuntimeError("PostgreSQL still serves someone who is dead.")
        time.sleep(0.01)
