"""A world is lived through twice, once with each database, and the two are compared step by step."""

from __future__ import annotations

import itertools
import math
import random
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

from blowfishdb.answers import Answer
from blowfishdb.core.errors import BlowfishError, PolicyConflict
from blowfishdb.datasets import Dataset
from blowfishdb.gateway import Gateway
from blowfishdb.mechanisms import Best, Laplace, Ordered
from blowfishdb.noise import seeded
from blowfishdb.planning import Planner
from blowfishdb.records import DatasetRecord
from blowfishdb.workspace import Workspace
from tests.neighbours import observing
from tests.neighbours.believing import Beliefs, truth_of
from tests.neighbours.columns import Column
from tests.neighbours.losing import Loss, added, joined_pairs, lost, most
from tests.neighbours.promises import Promise, Rule, domain_of
from tests.neighbours.questions import Question
from tests.neighbours.rows import Rows, in_view, joined
from tests.neighbours.sources import Located, unit, write
from tests.neighbours.watching import Noting, Released, Watch, watching
from tests.neighbours.worlds import Ask, Batch, Publish, Refresh, SetBudget, Step, Withdraw, World

QUICK = Planner(Best((Laplace(on="workload"), Laplace(on="cells"), Ordered())))
"""Mechanisms whose laws need no simulation, so that a world takes milliseconds."""
_WORN = 25  # worlds after which a workspace is replaced: its books have grown


@dataclass(frozen=True)
class Door:
    """A workspace, and how the curator and an analyst reach it."""

    workspace: Workspace
    curator: Gateway
    analyst: Gateway
    heard: list[Any] = field(default_factory=list)
    """Everything that came over the wire, if there is one, but for answers."""


def inside(path: Path) -> Door:
    """A workspace in this process."""
    workspace = Workspace(path, user="ana")
    return Door(workspace, workspace, workspace)


@dataclass
class Side:
    """One of the two databases, behind a workspace of its own."""

    workspace: Workspace
    dataset: Dataset
    asked: Dataset
    heard: list[Any]
    folder: str
    watch: Watch
    beliefs: Beliefs = field(default_factory=Beliefs)
    first: bool = True
    asked_to_confirm: bool = False

    def does(self, step: Step, world: World) -> Any:
        """What a step shows to those who may see it."""
        self.heard.clear()
        try:
            return [self._does(step, world), *self.heard]
        except BlowfishError as error:
            return [observing.refused(error), *self.heard]
        finally:
            self.watch.meanwhile, self.watch.lose = None, False

    def _does(self, step: Step, world: World) -> Any:
        dataset, columns = self.dataset, world.columns
        if isinstance(step, Ask):
            asking = step.question.asking(self.asked, columns)
            quote = asking.quote().to_plain()
            self.watch.lose = step.lose
            if step.meanwhile is not None:
                overtaking = Publish(step.meanwhile)
                self.watch.meanwhile = lambda: self._overtake(overtaking, world)
            return [quote, self._seen(step.question, world, asking.ask())]
        if isinstance(step, Batch):
            questions = [question.asking(self.asked, columns) for question in step.questions]
            batch = self.asked.gateway.batch(*questions)
            answers = zip(step.questions, batch.ask(), strict=True)
            return [
                str(batch.quote()),
                *(self._seen(question, world, answer) for question, answer in answers),
            ]
        if isinstance(step, Publish):
            return self._publish(step, world, dataset)
        if isinstance(step, Withdraw):
            kept = dataset.kept
            dataset.withdraw(kept[0].version if kept else 1)
        if isinstance(step, SetBudget):
            dataset.budget.set(step.total)
        if isinstance(step, Refresh):
            dataset.refresh()
        return None

    def _overtake(self, step: Publish, world: World) -> None:
        with suppress(BlowfishError):
            self._publish(step, world, self.workspace[self.dataset.name])

    def _publish(self, step: Publish, world: World, dataset: Dataset) -> Any:
        policy = world.promises[step.which].policy(world.columns)
        said = [dataset.past(policy).to_plain(), dataset.propose(policy).to_plain()]
        self.asked_to_confirm = False
        try:
            dataset.publish(policy, withdraw=step.withdraw)
        except PolicyConflict as conflict:
            self.asked_to_confirm = True
            said.append(observing.refused(conflict))
            if step.confirm:
                dataset.publish(policy, confirm=True, withdraw=step.withdraw)
        return said

    def _seen(self, question: Question, world: World, answer: Answer) -> Any:
        truth = truth_of(question, world, self.first)
        if truth is not None:
            self.beliefs.hear(question, world, answer, truth)
        return observing.seen(answer)

    def books(self) -> Any:
        """All that is on record by now."""
        return observing.books(self.workspace, self.dataset.name)


@dataclass(frozen=True)
class Accounts:
    """By version of the policy: what the ledger says was lost under it, and what may be."""

    used: dict[int, Loss]
    total: dict[int, Fraction]


def accounts(side: Side, endless: set[int]) -> Accounts:
    """Every promise in force."""
    workspace, name = side.workspace, side.dataset.name
    budget, version = workspace.budget(name), workspace.facts(name).policy_version
    used: dict[int, Loss] = {version: budget.used.fraction}
    total = {version: budget.total.fraction}
    for promise in workspace._policies.kept(name):
        used[promise.version] = (promise.spent + promise.held).fraction
        total[promise.version] = promise.total.fraction
    return Accounts({number: math.inf if number in endless else loss for number, loss in used.items()}, total)


def written(folder: Path, world: World, rows: Rows) -> Located:
    """The rows of one database in a file of its own."""
    return write(folder, world.place, world.columns, rows)


@dataclass
class Arena:
    """Two workspaces in a folder in memory, used for many worlds."""

    folder: Path
    planner: Planner = QUICK
    door: Callable[[Path], Door] = inside
    put: Callable[[Path, World, Rows], Located] = written
    beliefs: Beliefs = field(default_factory=Beliefs)
    watch: Watch = field(default_factory=Watch)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _doors: tuple[Door, ...] = ()
    _worlds: int = 0

    def live(self, world: World) -> Life:
        """Both databases of a world, one step after the other, compared on the way."""
        name = f"people{next(self._numbers)}"
        self.watch.taken()  # of a world that ended early
        sides = []
        with watching(self.watch) as watch:
            doors = self._fresh()
            for number, (door, rows) in enumerate(zip(doors, (world.one, world.other), strict=True)):
                folder = self.folder / f"{name}-{'ab'[number]}"
                folder.mkdir()
                located = self.put(folder, world, rows)
                with _same_salt(name):
                    door.workspace.add_dataset(
                        name,
                        located.location,
                        domain=domain_of(world.columns),
                        table=None if world.place.view else located.table,
                        view=world.place.view or None,
                        **unit(world.people),
                    )
                dataset = door.curator[name]
                dataset.budget.set(world.budget)
                side = Side(door.workspace, dataset, door.analyst[name], door.heard, str(folder), watch)
                side.beliefs, side.first = self.beliefs, not sides
                sides.append(side)
            life = Life(world, sides[0], sides[1])
            try:
                life.go()
            finally:
                for side in sides:
                    shutil.rmtree(side.folder)
        return life

    def _fresh(self) -> tuple[Door, ...]:
        if self._worlds % _WORN == 0:
            self.close()
            number = next(self._numbers)
            self._doors = tuple(self._opened(self.folder / f"{number}{side}.blowfish") for side in "ab")
        self._worlds += 1
        return self._doors

    def _opened(self, path: Path) -> Door:
        door = self.door(path)
        service = door.workspace._service

        def noting(record: DatasetRecord) -> Any:
            return Noting(service.backend(record), self.watch)

        changed = replace(service, planner=self.planner, noise=seeded(1), backend=noting)
        door.workspace._service = changed
        return door

    def close(self) -> None:
        """Let go of everything."""
        for door in self._doors:
            wrong = door.workspace.verify()
            door.workspace.close()
            assert not wrong, f"the books do not add up: {wrong}"
        self._doors, self._worlds = (), 0


@contextmanager
def arena(
    planner: Planner = QUICK,
    door: Callable[[Path], Door] = inside,
    put: Callable[[Path, World, Rows], Located] = written,
) -> Iterator[Arena]:
    """A place for worlds, in memory where the machine has such a folder."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        made = Arena(Path(folder), planner, door, put)
        try:
            yield made
        finally:
            made.close()


@contextmanager
def _same_salt(name: str) -> Iterator[None]:
    """Both sides choose the rows of a person with the same salt, as one database would in both states."""
    source = random.Random(name)
    with mock.patch.object(secrets, "token_hex", lambda size=32: source.randbytes(size).hex()):
        yield


@dataclass
class Life:
    """The two sides of a world, and what was lost between them so far."""

    world: World
    one: Side
    other: Side
    loss: Loss = Fraction(0)
    releases: list[Released] = field(default_factory=list)
    told: bool = False
    """Whether something that is not noisy has differed, so that everything is lost between the two."""
    now: Accounts = field(init=False)
    versions: dict[int, Promise] = field(default_factory=dict)
    endless: set[int] = field(default_factory=set)
    """Versions that were published although what they hide had been told: the curator said so."""

    def go(self) -> None:
        """Every step on both sides; AssertionError where a promise does not hold."""
        self.now = accounts(self.one, self.endless)
        for step in (Publish(0, confirm=False), *self.world.steps):
            self._both(step)
        if not self.told and self._hidden():
            books = [self._alike(side.books(), side) for side in (self.one, self.other)]
            assert books[0] == books[1], f"books differ:\n{observing.difference(*books)}"

    def _both(self, step: Step) -> None:
        hidden, before = self._hidden(), self.now
        shown, released = [], []
        for side in (self.one, self.other):
            shown.append(self._alike(side.does(step, self.world), side))
            released.append(side.watch.taken())
        self.loss = added([self.loss, lost(*released)])
        self.releases += released[0]
        differs = shown[0] != shown[1]
        if hidden and not self.told:
            assert not differs, f"differs and is free, at {step}:\n{observing.difference(*shown)}"
        if differs:
            self.told, self.loss = True, math.inf
        self._published(step, before)
        self._audit(step, before)

    def _promised(self, version: int) -> Promise:
        return self.versions.get(version) or before_any(self.world.columns)

    def _hidden(self) -> bool:
        """Whether a promise in force joins the two databases."""
        return any(self._joined(version) for version in self.now.used)

    def _joined(self, version: int) -> bool:
        promise, world = self._promised(version), self.world
        one, other = (in_view(rows, bool(world.place.view)) for rows in (world.one, world.other))
        return joined(promise, world.columns, one, other, world.people)

    def _published(self, step: Step, before: Accounts) -> None:
        """Which policy is in force now, and whether it is said that what it hides is told already."""
        overtaken = isinstance(step, Ask) and step.meanwhile is not None
        if not overtaken and not isinstance(step, Publish):
            return
        version = self.one.workspace.facts(self.one.dataset.name).policy_version
        if version == 1 or version in self.versions:
            return
        which = step.which if isinstance(step, Publish) else step.meanwhile  # type: ignore[union-attr]
        assert which is not None
        self.versions[version] = self.world.promises[which]
        said = [event for event in self.one.workspace.events(self.one.dataset.name) if event.kind == "policy"]
        if said[-1].facts["past"]["epsilon"] is None:
            self.endless.add(version)
        if not (isinstance(step, Publish) and step.withdraw):
            self._kept(version, before)
        if not self.one.asked_to_confirm:
            assert not self._lost(version), f"published without a word after a loss, at {step}"

    def _kept(self, version: int, before: Accounts) -> None:
        """What was promised, and is not hidden any more, still binds once something was lost under it."""
        hidden = set(joined_pairs(self.versions[version], self.world.columns))
        in_force = accounts(self.one, set()).used
        for earlier in before.used.keys() - in_force.keys():
            promised = joined_pairs(self._promised(earlier), self.world.columns)
            relied_on = 0 < before.used[earlier] < math.inf
            forgotten = relied_on and bool(self._lost(earlier)) and not hidden.issuperset(promised)
            assert not forgotten, f"version {earlier} was promised and binds no longer"

    def _lost(self, version: int) -> Loss:
        """What was lost under a version: between the two databases, and between the worst there can be."""
        world, promise = self.world, self._promised(version)
        people = 1 if world.people is None else world.people.rows
        worst = most(promise, world.columns, self.releases, people)
        return max(worst, self.loss) if self._joined(version) else worst

    def _audit(self, step: Step, before: Accounts) -> None:
        """No promise in force lost more than its account says, nor more than it may."""
        self.now = now = accounts(self.one, self.endless)
        for version, used in now.used.items():
            lost = self._lost(version)
            assert lost <= used, f"lost {float(lost)}, accounted for {float(used)} by {version}, at {step}"
            grown = used > before.used.get(version, used)
            if grown and isinstance(step, Ask | Batch) and not math.isinf(used):
                assert used <= now.total[version], f"overspent: {float(used)} at {step}"

    def _alike(self, shown: Any, side: Side) -> str:
        return observing.alike(shown, side.folder)


def before_any(columns: tuple[Column, ...]) -> Promise:
    """What is in force before anything is published: everything is hidden, but for what is public."""
    return Promise((Rule("full"),) * len(columns))
