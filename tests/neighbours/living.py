"""A world is lived through twice, once with each database, and the two are compared step by step."""

from __future__ import annotations

import itertools
import math
import random
import secrets
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotProven, PolicyConflict
from blowfishdb.mechanisms import Best, Laplace, Ordered
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.quotes import Quote
from blowfishdb.noise import seeded
from blowfishdb.service.planning import Planner
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import StoredReleases
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.gateway import Gateway
from tests.neighbours import observing
from tests.neighbours.believing import Beliefs, truth_of
from tests.neighbours.exchanging import joined_pairs
from tests.neighbours.known import Known
from tests.neighbours.lawful import check_law
from tests.neighbours.losing import Loss, added, lost, most
from tests.neighbours.promises import Promise, Rule, domain_of
from tests.neighbours.purses import Purses
from tests.neighbours.questions import Question
from tests.neighbours.rows import Rows, in_view, joined
from tests.neighbours.sources import Located, keyed_tables, unit, write
from tests.neighbours.watching import Noting, Released, Watch, watching
from tests.neighbours.worlds import (
    Again,
    Ask,
    Batch,
    Grant,
    Publish,
    Refresh,
    SetBudget,
    Step,
    Synthesize,
    Withdraw,
    World,
)

QUICK = Planner(Best((Laplace(on="cells"), Laplace(on="workload"), Ordered())))
"""Mechanisms whose laws need no simulation, so that a world takes milliseconds. Of two that are as good the
one that measures more comes first: a question that is free may be answered from the cells."""
WHOLE = Planner(Best())
"""The planner that answers people: a world takes half a second and more."""
_WORN = 4  # worlds after which a workspace is as it was made: its books have grown


@dataclass(frozen=True)
class Door:
    """A workspace, and how the curator and two analysts reach it."""

    workspace: Workspace
    curator: Gateway
    analysts: Callable[[], tuple[Gateway, ...]]
    names: tuple[str, ...]
    """Of the analysts."""
    heard: list[Any] = field(default_factory=list)
    """Everything that came over the wire, if there is one, but for answers."""


def inside(path: Path) -> Door:
    """A workspace in this process."""
    workspace = Workspace(path, user="ana")
    return Door(workspace, workspace, lambda: (workspace, workspace.as_user("ben")), ("ana", "ben"))


@dataclass
class Side:
    """One of the two databases, behind a workspace of its own."""

    workspace: Workspace
    dataset: Dataset
    asked: tuple[Dataset, ...]
    """By each analyst."""
    names: tuple[str, ...]
    heard: list[Any]
    located: Located
    folder: str
    watch: Watch
    beliefs: Beliefs = field(default_factory=Beliefs)
    first: bool = True
    life: int = 0
    """Where its noise comes from: the same when a world is lived again."""
    asked_to_confirm: bool = False

    def does(self, step: Step, world: World) -> Any:
        """What a step shows to those who may see it."""
        self.heard.clear()
        had = self._paid()
        try:
            shown = self._does(step, world)
        except BlowfishError as error:
            shown = observing.refused(error)
            more = self._paid() - had
            assert error.charged == bool(more), f"{more} was paid, and it is said: {shown}"
        finally:
            self.watch.meanwhile = self.watch.lose = None
        left = [str(asked.gateway.left(asked.name)) for asked in self.asked] if world.granted else []
        return [shown, *left, *self.heard]

    def _does(self, step: Step, world: World) -> Any:
        """Everything that one sees on the way."""
        dataset, columns = self.dataset, world.columns
        if isinstance(step, Ask):
            asking = step.question.asking(self.asked[step.by], columns)
            quote = asking.quote()
            self.watch.lose = 0 if step.lose else None
            if step.meanwhile is not None:
                overtaking = Publish(step.meanwhile)
                self.watch.meanwhile = lambda: self._overtake(overtaking, world)
            before, had = self._lost_under(), self._paid_by(self.names[step.by])
            answer = asking.ask()
            losses = self._as_quoted(step.question, quote, answer, before)
            paid = self._paid_by(self.names[step.by]) - had
            assert paid == max(losses), f"{paid} was paid for losses of {losses}"
            assert paid == answer.receipt.debit, f"{paid} was paid, and {answer.receipt} says otherwise"
            check_law(step.question, answer, self.watch.released)
            return [quote.to_plain(), self._seen(step.question, world, answer)]
        if isinstance(step, Batch):
            asked = self.asked[step.by]
            questions = [question.asking(asked, columns) for question in step.questions]
            batch, quoted = asked.gateway.batch(*questions), None
            with suppress(BlowfishError):  # what has no price before something is asked that is free
                quoted = batch.quote()
            self.watch.lose, before = step.lose, self.workspace.budget(dataset.name).used
            had = self._paid_by(self.names[step.by])
            answers = batch.ask()
            cost = self.workspace.budget(dataset.name).used - before
            assert quoted in (None, cost), f"quoted {quoted} together, charged {cost}: {step}"
            paid, debits = self._paid_by(self.names[step.by]) - had, [each.receipt.debit for each in answers]
            assert paid == sum(debits, Epsilon(0)), f"{paid} was paid, receipts say {debits}: {step}"
            told = zip(step.questions, answers, strict=True)
            return [str(quoted), *(self._seen(question, world, answer) for question, answer in told)]
        if isinstance(step, Synthesize):
            return self._synthesize(step, world)
        if isinstance(step, Publish):
            return self._publish(step, world, dataset)
        if isinstance(step, Again):
            return self._again(step, world)
        if isinstance(step, Withdraw):
            kept = dataset.kept
            dataset.withdraw(kept[0].version if kept else 1)
        if isinstance(step, SetBudget):
            dataset.budget.set(step.total)
        if isinstance(step, Grant):
            dataset.budget.grant(self.names[step.to], step.amount)
        if isinstance(step, Refresh):
            dataset.refresh()
        return None

    def _synthesize(self, step: Synthesize, world: World) -> list[Any]:
        """All there is to see of a synthetic table: its noise is the same on both sides."""
        names = [column.name for column in world.columns]
        keep = [names[place] for place in step.keep]
        if keep:  # what the curator is told are true numbers
            with suppress(NotProven, InvalidInput):
                self.dataset.keep_rows(keep, confirm=True)
        target = None if step.target is None else names[step.target]
        asked = self.asked[step.by]
        wanted = asked.synthesize(step.epsilon, columns=names, keep=keep, target=target)
        with suppress(NotProven):  # where it is public how many rows there are, that is free
            wanted.asking.counting().ask(max_cost=0)
        quote, before, had = wanted.quote(), self._lost_under(), self._paid_by(self.names[step.by])
        table = wanted.ask()
        cost, paid = table.receipt.cost, self._paid_by(self.names[step.by]) - had
        assert paid == table.receipt.debit, f"{paid} was paid, and {table.receipt} says otherwise"
        assert cost == quote.epsilon and cost <= Epsilon(step.epsilon), f"{cost} for {step}"
        for version, now in self._lost_under().items():
            more = now - before.get(version, now)
            assert more <= Epsilon(step.epsilon), f"version {version} lost {more} by {step}"
        plain = {**table.to_plain(), "receipt": {**table.receipt.to_plain(), "settled": ""}}
        return [quote.to_plain(), plain, str(table.report()), table.sample(5).to_arrow().to_pylist()]

    def _overtake(self, step: Publish, world: World) -> None:
        with suppress(BlowfishError):
            self._publish(step, world, self.workspace[self.dataset.name])

    def _publish(self, step: Publish, world: World, dataset: Dataset) -> Any:
        policy = world.promises[step.which].policy(world.columns)
        said: list[Any] = []
        if dataset.gateway is not self.workspace:  # in the process, publishing takes the same way
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

    def _lost_under(self) -> dict[int, Epsilon]:
        """What promises that are kept have lost."""
        kept = self.workspace._policies.kept(self.dataset.name)
        return {promise.version: promise.spent + promise.held for promise in kept}

    def _paid_by(self, name: str) -> Epsilon:
        """What is in the account of an analyst."""
        accounts = self.workspace.grants(self.dataset.name)
        return sum((one.spent + one.held for one in accounts if one.user == name), Epsilon(0))

    def _paid(self) -> Epsilon:
        """What is in all accounts."""
        return sum(map(self._paid_by, self.names), Epsilon(0))

    def _as_quoted(
        self, question: Question, quote: Quote, answer: Answer, before: dict[int, Epsilon]
    ) -> list[Epsilon]:
        """An answer costs what was quoted, under every promise, and no more than was to be spent.

        The losses: under the policy of today, and under every promise.
        """
        cost, terms = answer.receipt.cost, question.terms
        assert cost == quote.epsilon, f"quoted {quote.epsilon}, charged {cost}: {question}"
        assert terms.epsilon is None or cost <= Epsilon(terms.epsilon), f"{cost} for {question}"
        quoted, losses = {promise.version: promise.epsilon for promise in quote.promises}, [cost]
        for version, now in self._lost_under().items():
            if version in before:
                more = now - before[version]
                assert more == quoted.get(version, Epsilon(0)), f"version {version} lost {more}: {quoted}"
                assert terms.epsilon is None or more <= Epsilon(terms.epsilon), f"{more} for {question}"
                losses.append(more)
        return losses

    def _again(self, step: Again, world: World) -> str:
        """Whoever is in both datasets can lose as much as both together: that is confirmed, and said."""
        name = self.dataset.name
        with _same_salt(name):
            declare(self.workspace, f"{name} again", self.located, world, same_rows=step.confirm)
        assert step.confirm, "the same rows were declared again without a word"
        together = self.workspace.budget(name).total + self.workspace.budget(f"{name} again").total
        said = str(self.workspace.guarantee(name))
        assert f"up to ε {together} in all" in said, f"two budgets of {together} in all, but: {said}"
        return said

    def _seen(self, question: Question, world: World, answer: Answer) -> Any:
        truth = truth_of(question, world, self.first)
        if truth is not None:
            self.beliefs.hear(question, world, answer, truth, life=self.life)
        return observing.seen(answer)

    def books(self) -> Any:
        """All that is on record by now."""
        return observing.books(self.workspace, self.dataset.name, self.names)

    def has_picked(self) -> bool:
        """Whether bins were picked by their counts."""
        return any(answer.kind in observing.PICKED for answer in self.workspace.answers(self.dataset.name))


@dataclass(frozen=True)
class Accounts:
    """By version of the policy: what the ledger says was lost under it, and what may be."""

    used: dict[int, Fraction]
    total: dict[int, Fraction]
    version: int
    """Of the policy in force."""


def accounts(side: Side) -> Accounts:
    """Every promise in force."""
    workspace, name = side.workspace, side.dataset.name
    budget, version = workspace.budget(name), workspace.facts(name).policy_version
    used = {version: budget.used.fraction}
    total = {version: budget.total.fraction}
    for promise in workspace._policies.kept(name):
        used[promise.version] = (promise.spent + promise.held).fraction
        total[promise.version] = promise.total.fraction
    return Accounts(used, total, version)


def declare(
    workspace: Workspace, name: str, located: Located, world: World, *, same_rows: bool = False
) -> None:
    """A dataset over the rows of one side."""
    if world.place.tables:
        domain, tables = domain_of(world.columns), keyed_tables(world.people)
        workspace.add_dataset(name, located.location, domain=domain, tables=tables, same_rows=same_rows)
        return
    workspace.add_dataset(
        name,
        located.location,
        domain=domain_of(world.columns),
        table=None if world.place.view else located.table,
        view=world.place.view or None,
        public=("a",) if world.public else (),
        same_rows=same_rows,
        **unit(world.people),
    )


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
    audits: bool = True
    """Whether the books are asked now and then what is wrong with them."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _doors: tuple[Door, ...] = ()
    _new: tuple[sqlite3.Connection, ...] = ()
    """The two workspaces as they were made."""
    _worlds: int = 0

    def live(self, world: World) -> Life | None:
        """Both databases of a world, one step after the other, compared on the way.

        None where the curator is told that such rows cannot be declared.
        """
        name = f"people{next(self._numbers)}"
        self.watch.taken()  # of a world that ended early
        folders = [self.folder / f"{name}-{side}" for side in "ab"]
        try:
            with watching(self.watch):
                life = Life(world, *self._declared(name, world, folders))
                life.go()
        except InvalidInput:
            if world.people is None or not (world.people.told or world.place.view):
                raise
            return None
        finally:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        return life

    def _declared(self, name: str, world: World, folders: list[Path]) -> list[Side]:
        sides = []
        for folder, door, rows in zip(folders, self._fresh(), (world.one, world.other), strict=True):
            folder.mkdir()
            located = self.put(folder, world, rows)
            with _same_salt(name):
                declare(door.workspace, name, located, world)
            life = zlib.crc32(repr((world, len(sides))).encode())
            door.workspace._service = replace(door.workspace._service, noise=seeded(life))
            dataset = door.curator[name]
            dataset.budget.set(world.budget)
            counted = f"{name}.visits" if world.place.tables else name
            asked = tuple(analyst[counted] for analyst in door.analysts())
            side = Side(
                door.workspace, dataset, asked, door.names, door.heard, located, str(folder), self.watch
            )
            side.beliefs, side.first, side.life = self.beliefs, not sides, life
            sides.append(side)
        return sides

    def _fresh(self) -> tuple[Door, ...]:
        """The two workspaces, emptied now and then: what is in them slows every world after it."""
        if not self._doors:
            self._doors = tuple(self._opened(path) for path in self._paths)
            self._new = tuple(_copied(path) for path in self._paths)
        elif self._worlds % _WORN == 0:
            self._check_books()
            for path, new, door in zip(self._paths, self._new, self._doors, strict=True):
                door.workspace._rows.close()  # a server has room for so many connections
                with closing(sqlite3.connect(path)) as connection:
                    new.backup(connection)
                service = door.workspace._service  # which remembers answers by their numbers
                door.workspace._service = replace(service, owned=StoredReleases(service.ledger))
        self._worlds += 1
        return self._doors

    @property
    def _paths(self) -> tuple[Path, ...]:
        return tuple(self.folder / f"{side}.blowfish" for side in "ab")

    def _opened(self, path: Path) -> Door:
        door = self.door(path)
        service = door.workspace._service

        def noting(record: DatasetEntry) -> Any:
            return Noting(service.backend(record), self.watch, record.snapshot)

        changed = replace(service, planner=self.planner, backend=noting)
        door.workspace._service = changed
        return door

    def close(self) -> None:
        """Let go of everything."""
        try:
            self._check_books()
        finally:
            for opened in (*self._new, *(door.workspace for door in self._doors)):
                opened.close()
            self._new = self._doors = ()

    def _check_books(self) -> None:
        for door in self._doors if self.audits else ():
            wrong = door.workspace.verify()
            assert not wrong, f"the books do not add up: {wrong}"


def _copied(path: Path) -> sqlite3.Connection:
    """A database as it is now, in memory."""
    copy = sqlite3.connect(":memory:")
    with closing(sqlite3.connect(path)) as connection:
        connection.backup(copy)
    return copy


@contextmanager
def arena(
    planner: Planner = QUICK,
    door: Callable[[Path], Door] = inside,
    put: Callable[[Path, World, Rows], Located] = written,
    *,
    audits: bool = True,
) -> Iterator[Arena]:
    """A place for worlds, in memory where the machine has such a folder."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        made = Arena(Path(folder), planner, door, put, audits=audits)
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
    losses: list[Loss] = field(default_factory=list)
    """Between the two databases, step by step."""
    releases: list[Released] = field(default_factory=list)
    told: bool = False
    """Whether something that is not noisy has differed where it is seen, or on record, to be seen later."""
    now: Accounts = field(init=False)
    versions: dict[int, Promise] = field(default_factory=dict)
    purses: Purses = field(default_factory=Purses)
    endless: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Versions that were published although what they hide had been told: the curator said so, and they are
    about what came then. How many steps and releases there had been."""

    def go(self) -> None:
        """Every step on both sides; AssertionError where a promise does not hold."""
        self.now = accounts(self.one)
        self.purses.look(self.one)
        self.one.watch.unrefined.clear()
        self.other.watch.unrefined.clear()
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
        more = lost(*released)
        self.releases += released[0]
        differs = shown[0] != shown[1]
        if hidden and not self.told:
            assert not differs, f"differs and is free, at {step}:\n{observing.difference(*shown)}"
            assert len(released[0]) == len(released[1]), f"only one of the two was read, at {step}"
        self.losses.append(math.inf if differs and not self.told else more)
        if differs or (math.isinf(more) and self._differs_on_record()):
            self.told = True
        self._published(step, before)
        self._audit(step, before)
        self._purses(step, before.version, released[0], math.inf if differs else more)

    def _purses(self, step: Step, version: int, released: list[Released], more: Loss) -> None:
        """Whoever asked paid for what was lost, out of a grant where there are any."""
        if isinstance(step, Ask | Batch | Synthesize):
            self.purses.asked(self.one.names[step.by], version, released, more)
        elif not isinstance(step, Grant | SetBudget):
            return  # nobody paid, and nobody may spend anything else
        self.purses.look(self.one)
        self.purses.check(self.one, step)
        if version not in self.endless:
            world, promise, together = self.world, self._promised(version), self._joined(version)
            people = 1 if world.people is None else world.people.rows
            for name, purse in self.purses.under(version).items():
                worst = most(promise, world.columns, purse.releases, people)
                lost = max(worst, purse.loss) if together else worst
                assert lost <= purse.paid, (
                    f"{name} lost {float(lost)} and paid {float(purse.paid)}, at {step}"
                )

    def _promised(self, version: int) -> Promise:
        return self.versions.get(version) or before_any(self.world)

    def _hidden(self) -> bool:
        """Whether a promise in force joins the two databases."""
        return any(self._joined(version) for version in self.now.used)

    def _joined(self, version: int) -> bool:
        """By what the tables hold, or by what a view shows of them."""
        promise, world = self._promised(version), self.world
        shown = tuple(in_view(rows, bool(world.place.view)) for rows in (world.one, world.other))
        return any(
            joined(promise, world.columns, *both, world.people, public=world.public)
            for both in ((world.one, world.other), shown)
        )

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
            self.endless[version] = len(self.losses), len(self.releases)
        if not (isinstance(step, Publish) and step.withdraw):
            self._kept(version, before)
        if not self.one.asked_to_confirm:
            assert not self._lost(version), f"published without a word after a loss, at {step}"

    def _known(self, known: Known | None) -> Any:
        """What is known, whatever its words."""
        return None if known is None else known.meaning(self.world.columns)

    def _kept(self, version: int, before: Accounts) -> None:
        """What was promised, and is not hidden any more, still binds once something was lost under it."""
        hidden = set(joined_pairs(self.versions[version], self.world.columns))
        ties = self.versions[version].known
        in_force = accounts(self.one).used
        for earlier in before.used.keys() - in_force.keys():
            promised = joined_pairs(self._promised(earlier), self.world.columns)
            relied_on = before.used[earlier] > 0 and earlier not in self.endless
            known = self._promised(earlier).known
            told = not hidden.issuperset(promised) or self._known(known) != self._known(ties)
            forgotten = relied_on and bool(self._lost(earlier)) and told
            assert not forgotten, f"version {earlier} was promised and binds no longer"

    def _lost(self, version: int, since: tuple[int, int] = (0, 0)) -> Loss:
        """What was lost under a version: between the two databases, and between the worst there can be.

        ``since``: only what came after so many steps and releases.
        """
        world, promise = self.world, self._promised(version)
        steps, releases = since
        people = 1 if world.people is None else world.people.rows
        worst = most(promise, world.columns, self.releases[releases:], people)
        return max(worst, added(self.losses[steps:])) if self._joined(version) else worst

    def _differs_on_record(self) -> bool:
        """An exact answer that was not shown yet may be stored, and is then shown to whoever asks.

        What was picked is on record with all the counts behind it, which the books here leave out.
        """
        one, other = (self._alike(side.books(), side) for side in (self.one, self.other))
        return one != other or self.one.has_picked()

    def _audit(self, step: Step, before: Accounts) -> None:
        """No promise in force lost more than its account says, nor more than it may."""
        self.now = now = accounts(self.one)
        for version, used in now.used.items():
            lost = self._lost(version, self.endless.get(version, (0, 0)))
            assert lost <= used, f"lost {float(lost)}, accounted for {float(used)} by {version}, at {step}"
            grown = used > before.used.get(version, used)
            if grown and isinstance(step, Ask | Batch | Synthesize):
                assert used <= now.total[version], f"overspent: {float(used)} at {step}"

    def _alike(self, shown: Any, side: Side) -> str:
        return observing.alike(shown, side.folder)


def before_any(world: World) -> Promise:
    """What is in force before anything is published: everything is hidden, but for what is public."""
    first = Rule("public" if world.public else "full")
    varies = bool(world.place.view) and not world.public
    return Promise((first, *(Rule("full"),) * (len(world.columns) - 1)), presence=varies)
