"""Questions that are settled on together: how each is answered, and what that costs (REUSE §2).

Each question that has to be paid for brings a task, as if it were alone. Tasks about connected columns are
then planned together (mechanisms/together.py): some releases are made with more noise or less, others not at
all, and least squares over those that are made answers every question. Whatever is made pays for what it
adds to the loss of the others, pair by pair. Never dearer than one by one, and known before a row is read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible, NotProven, TooLarge
from blowfishdb.core.workloads import Balances, Cumulative
from blowfishdb.language.short import question_text
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.filtered import plan_for_a_part
from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.mechanisms.losses import ByDistance, ReleasedRows, Tightest, kernel_by_rows
from blowfishdb.mechanisms.optimized.line_presence import beside_parts
from blowfishdb.mechanisms.plan import DataDependentPlan, Plan
from blowfishdb.mechanisms.reuse import Offer, Rows, StoredRelease, rows_of
from blowfishdb.mechanisms.together import Together, Wanted, plan_together
from blowfishdb.mechanisms.total_loss import pairwise_losses
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import Quote, QuotedTogether, TogetherQuote, Wider
from blowfishdb.service.identity import counted, identity
from blowfishdb.service.policies import lost_under, past_loss
from blowfishdb.service.prices import Prices
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import Basket
from blowfishdb.service.stacked import StackedTask, stacked
from blowfishdb.service.tasks import CountTask, Task
from blowfishdb.service.wider import wider_questions

_NOTHING = Epsilon(0)
_MOST_PARTS = 1_000
_WORTH = Fraction(3, 4)
"""A wider question is suggested where it saves a quarter."""


class Group(ABC):
    """Questions that are answered from the same releases."""

    tasks: Mapping[int, Task]
    """By question, as if it were alone."""

    @property
    @abstractmethod
    def made(self) -> Mapping[int, Task]:
        """Those whose release is made, as it is made."""

    @abstractmethod
    def offers(self, kept: Mapping[int, Any]) -> dict[int, Offer]:
        """What questions are told by what was kept of the releases, where their own does not tell it."""


@final
@dataclass(frozen=True, eq=False)
class Alone(Group):
    """One question, with a release of its own."""

    tasks: Mapping[int, Task]

    @property
    def made(self) -> Mapping[int, Task]:
        return self.tasks

    def offers(self, kept: Mapping[int, Any]) -> dict[int, Offer]:
        return {}


@final
@dataclass(frozen=True, eq=False)
class Shared(Group):
    """Questions that share releases: which of them make one, and at which ε."""

    tasks: Mapping[int, CountTask]
    wanted: tuple[Wanted, ...]
    way: Together
    rows_per_person: int

    @cached_property
    def made(self) -> dict[int, CountTask]:
        ways = zip(self.tasks.items(), self.wanted, self.way.epsilons, strict=True)
        made = {n: self._at(task, one.plan, epsilon) for (n, task), one, epsilon in ways if epsilon}
        return dict(sorted(made.items(), key=lambda entry: -entry[1].cost.nano))

    def _at(self, task: CountTask, plan: Plan, epsilon: Epsilon) -> CountTask:
        """A task whose release is made by ``plan`` at another ε."""
        choice = replace(task.choice, plan=plan, epsilon=epsilon)
        return replace(task, choice=choice, cost=epsilon * self.rows_per_person)

    def offers(self, kept: Mapping[int, Any]) -> dict[int, Offer]:
        """Decided by rows and scales, like when it was settled on."""
        made = [number for number in self.tasks if number in self.made]
        releases = [StoredRelease.from_plain({**kept[number], "number": number}) for number in made]
        offers = self.way.offers(self.wanted, releases)
        assert offers is not None
        told = zip(self.tasks, self.wanted, offers, strict=True)
        return {number: offer for number, one, offer in told if offer.meets(one.needed)}


@final
@dataclass(frozen=True, eq=False)
class Stacked(Group):
    """Questions that one release tells, which was planned for all of their counts."""

    tasks: Mapping[int, CountTask]
    whole: StackedTask

    @property
    def made(self) -> Mapping[int, Task]:
        return {self.whole.number: self.whole}

    def offers(self, kept: Mapping[int, Any]) -> dict[int, Offer]:
        return {}


@final
@dataclass(frozen=True, eq=False)
class Settled:
    """Questions that are settled on: what is made anew, and what that is charged."""

    groups: tuple[Group, ...]
    """By question; one that is there twice is in one of them once, one that is free in none."""
    due: Mapping[int, Epsilon]
    """What each release is charged."""
    entries: Sequence[DatasetEntry]
    """The dataset of every question, as it was declared when it was planned."""
    quotes: tuple[Quote, ...] = ()
    """Of every question alone."""

    @classmethod
    def alone(cls, task: Task, dataset: DatasetEntry) -> Settled:
        """One question by itself."""
        return cls((Alone({0: task}),), {0: task.cost}, (dataset,))

    @classmethod
    def of(
        cls, groups: Sequence[Group], entries: Sequence[DatasetEntry], quotes: tuple[Quote, ...]
    ) -> Settled:
        """Groups, the dearest first: each release is charged for what it adds to what those before it lose.

        They are made in this order, so that what was charged is enough wherever that ends.
        """
        order = sorted(groups, key=lambda group: -max(task.cost.nano for task in group.made.values()))
        together, due = Basket(), {}
        for number, task in ((number, task) for group in order for number, task in group.made.items()):
            kernel = task.kernel(entries[number].policy, entries[number].rows_per_person)
            due[number] = together.due(entries[number], kernel, task.cost)
        return cls(tuple(order), due, entries, quotes)

    @cached_property
    def tasks(self) -> dict[int, Task]:
        """Those whose release is made."""
        return {number: task for group in self.groups for number, task in group.made.items()}

    @property
    def cost(self) -> Epsilon:
        """What all of it costs."""
        return sum(self.due.values(), _NOTHING)

    @property
    def most(self) -> Epsilon:
        """The most that it costs under any promise, of every dataset."""
        largest = dict(self.by_dataset())
        for (dataset, _), lost in lost_under(self.by_books).items():
            largest[dataset] = max(largest.get(dataset, _NOTHING), lost)
        return sum(largest.values(), _NOTHING)

    def by_dataset(self) -> dict[str, Epsilon]:
        """What every dataset is charged."""
        due: dict[str, Epsilon] = defaultdict(lambda: _NOTHING)
        for number, more in self.due.items():
            due[self.entries[number].books] += more
        return due

    @property
    def by_books(self) -> list[tuple[str, Quote]]:
        """The quote of every question, and the dataset whose budget pays for it."""
        return [(entry.books, quote) for entry, quote in zip(self.entries, self.quotes, strict=False)]

    @property
    def quote(self) -> TogetherQuote:
        """The same for people."""
        parts = tuple(self._part(number, quote) for number, quote in enumerate(self.quotes))
        return TogetherQuote(parts, self.most)

    def _part(self, number: int, quote: Quote) -> QuotedTogether:
        epsilon = self.due.get(number, _NOTHING)
        if quote.owned:
            how = "already answered"
        elif number in self.tasks:
            shares = any(number in group.tasks and len(group.tasks) > 1 for group in self.groups)
            how = f"{self.tasks[number].mechanism}{', shared with the others' if shares else ''}"
        else:
            how = "follows from the others" if quote.most else "free"
        return QuotedTogether(quote.dataset, quote.question, quote.promise, quote.epsilon, epsilon, how)


def settle_on(prices: Prices, requests: Sequence[Request], within: float = math.inf) -> Settled:
    """How questions are answered that are asked at once. Free; nothing is read and nothing written.

    ``within``: what would cost more is of no use, so that it is not looked for.
    """
    entries = [prices.datasets(request.dataset) for request in requests]
    quotes = tuple(prices.quote(request, more=False) for request in requests)
    tasks = _tasks(prices, {number: requests[number] for number, quote in enumerate(quotes) if quote.most})
    read_off = _read_off(tasks, prices.datasets)
    fewer = {number: task for number, task in tasks.items() if number not in read_off}
    ways = [Settled.of([Alone({n: task}) for n, task in fewer.items()], entries, quotes)]
    least = _Least(within)
    for joining, release in _WAYS:
        ways += _shared_by(fewer, entries, quotes, joining, release, least)
    ways += _stacked_by(fewer, entries, quotes, prices.planner.mechanism)
    if read_off:  # what is read off could bring a release that the others share
        ways += _shared_by(tasks, entries, quotes, _joining, _cheapest, least)
    return min(ways, key=lambda settled: settled.cost)


@final
class _Least:
    """What the cheapest way so far costs, by the tasks that share releases in it."""

    def __init__(self, within: float) -> None:
        self._within = within
        self._found: dict[frozenset[int], float] = {}

    def of(self, tasks: Mapping[int, CountTask]) -> float:
        """At most the sum of what each costs alone."""
        alone = float(sum((task.cost for task in tasks.values()), _NOTHING))
        return min(self._within, self._found.get(frozenset(tasks), alone))

    def lower(self, tasks: Mapping[int, CountTask], loss: float) -> None:
        """Another way, if it is cheaper."""
        self._found[frozenset(tasks)] = min(loss, self.of(tasks))


def _shared_by(
    tasks: Mapping[int, Task],
    entries: Sequence[DatasetEntry],
    quotes: tuple[Quote, ...],
    joining: Callable[[Mapping[int, Task], DatasetEntry], dict[int, CountTask]],
    release: _Release,
    least: _Least,
) -> list[Settled]:
    """The way in which some tasks share releases, if any do."""
    shared = [
        group
        for dataset in {entry.name: entry for entry in entries}.values()
        for connected in _connected(joining(tasks, dataset))
        if (group := _share(connected, dataset, release, least.of(connected))) is not None
    ]
    for group in shared:
        least.lower(group.tasks, group.way.loss)
    joined = {number for group in shared for number in group.tasks}
    apart = [Alone({number: task}) for number, task in tasks.items() if number not in joined]
    return [Settled.of([*shared, *apart], entries, quotes)] if shared else []


def _stacked_by(
    tasks: Mapping[int, Task], entries: Sequence[DatasetEntry], quotes: tuple[Quote, ...], mechanism: Best
) -> list[Settled]:
    """The ways in which questions along a column are asked as one: all of them, or the closest."""
    ways = []
    datasets = {entry.name: entry for entry in entries}.values()
    connected = [(one, dataset) for dataset in datasets for one in _connected(_joining(tasks, dataset))]
    for choose in (dict, _closest) if connected else ():
        groups = [
            Stacked(some, whole)
            for each, dataset in connected
            if len(some := choose(each)) > 1 and (whole := stacked(some, dataset, mechanism)) is not None
        ]
        joined = {number for group in groups for number in group.tasks}
        apart = [Alone({number: task}) for number, task in tasks.items() if number not in joined]
        ways += [Settled.of([*groups, *apart], entries, quotes)] if groups else []
    return ways


def _closest(tasks: Mapping[int, CountTask]) -> dict[int, CountTask]:
    """Those that have to be as close as the closest."""
    alphas = {
        n: task.request.terms.accuracy.alpha for n, task in tasks.items() if task.request.terms.accuracy
    }
    least = min(alphas.values())
    return {number: task for number, task in tasks.items() if alphas[number] == least}


def suggest(prices: Prices, requests: Sequence[Request], settled: Settled) -> Wider | None:
    """One more question with which all of them cost much less."""
    tasks = [(n, task) for group in settled.groups for n, task in group.tasks.items()]
    by_dataset = defaultdict(list)
    for number, task in tasks:
        if isinstance(task, CountTask):
            by_dataset[settled.entries[number].name].append(task)
    domains = {entry.name: entry.domain for entry in settled.entries}
    more: list[tuple[Request, Epsilon]] = []
    within = float(settled.most.fraction * _WORTH)
    for name, some in by_dataset.items():
        for request in wider_questions(some, domains[name]):
            with suppress(NotProven, TooLarge, Infeasible):  # then it is no advice
                more.append((request, settle_on(prices, [*requests, request], within).most))
    if not more:
        return None
    request, cost = min(more, key=lambda one: one[1])
    if cost.fraction > settled.most.fraction * _WORTH:
        return None
    assert request.terms.accuracy is not None
    return Wider(question_text(request.form), request.terms.accuracy.alpha, cost)


def _tasks(prices: Prices, requests: Mapping[int, Request]) -> dict[int, Task]:
    """A task for every question that has to be paid for; no release is refined twice."""
    tasks: dict[int, Task] = {}
    names, refined = set(), set()
    for number, request in requests.items():
        dataset, task = prices.datasets(request.dataset), prices.plan(request)
        if task.refines in refined:
            task = prices.planner.task(request, task.problem, prices.standing(dataset))
        refined |= {task.refines} - {None}
        name = identity(request, dataset, task.problem)
        if name not in names:
            names.add(name)
            tasks[number] = task
    return tasks


def _read_off(tasks: Mapping[int, Task], datasets: Callable[[str], DatasetEntry]) -> set[int]:
    """Questions that are going to be read off the counts of another, which are as close as they need.

    Of several that are equally close the first one is asked.
    """
    alike: dict[str, dict[int, Accuracy]] = defaultdict(dict)
    for number, task in tasks.items():
        dataset, asked = datasets(task.request.dataset), task.request.terms.accuracy
        name = counted(dataset, task.problem)
        if name is None or asked is None or task.request.terms.mechanism is not None:
            continue
        if isinstance(task, CountTask) and dataset.kind is not SourceKind.LIVE:
            alike[name][number] = task.request.counts.kind.requirement(asked, task.problem.axes)
    return {
        number
        for needed in alike.values()
        for number, one in needed.items()
        if any(
            _keeps(other, one) and not (n > number and _keeps(one, other))
            for n, other in needed.items()
            if n != number
        )
    }


def _keeps(promised: Accuracy, needed: Accuracy) -> bool:
    """Whether counts that are as close as is promised are as close as is needed."""
    close = promised.alpha <= needed.alpha and promised.beta <= needed.beta
    return close and not promised.one_sided and (promised.simultaneous or not needed.simultaneous)


def _joining(tasks: Mapping[int, Task], dataset: DatasetEntry) -> dict[int, CountTask]:
    """Tasks that may be answered from the releases of others: nothing ties their noise, their rows stay."""
    joining = {}
    for number, task in tasks.items():
        request = task.request
        if (
            dataset.kind is SourceKind.LIVE
            or request.dataset != dataset.name
            or not isinstance(task, CountTask)
        ):
            continue
        choice, fresh = task.choice, task.refining is None and task.problem.refined is None
        plain = choice.factor == 1 and not choice.calibrated and not choice.losses
        if fresh and plain and request.terms.accuracy is not None and request.terms.mechanism is None:
            joining[number] = task
    return joining


def _parted(tasks: Mapping[int, Task], dataset: DatasetEntry) -> dict[int, CountTask]:
    """Those of them that may be asked of several parts of the rows; none where no two are."""
    joining = _joining(tasks, dataset)
    parts = sum(_cells(task) is not _cheapest(task) for task in joining.values())
    return joining if parts > 1 else {}


def _joining_as_alone(tasks: Mapping[int, Task], dataset: DatasetEntry) -> dict[int, CountTask]:
    """Those of them that give up nothing by it: the best release of each alone can be stored.

    None where that is all of them, which are looked at already.
    """
    joining = _joining(tasks, dataset)
    wanted = {number: _wanted(task, _cheapest(task)) for number, task in joining.items()}
    as_alone = {n: joining[n] for n, one in wanted.items() if one and one.plan is joining[n].choice.plan}
    return as_alone if len(as_alone) < len(joining) else {}


def _connected(tasks: Mapping[int, CountTask]) -> list[dict[int, CountTask]]:
    """Those that speak of common columns, directly or by way of others."""
    groups: list[tuple[set[str], list[int]]] = []
    for number, task in tasks.items():
        columns, numbers = {axis.column for axis in task.problem.cells.axes}, [number]
        for group in [group for group in groups if group[0] & columns]:
            groups.remove(group)
            columns, numbers = columns | group[0], [*group[1], *numbers]
        groups.append((columns, numbers))
    return [{number: tasks[number] for number in numbers} for _, numbers in groups if len(numbers) > 1]


def _share(
    tasks: Mapping[int, CountTask], dataset: DatasetEntry, release: _Release, within: float
) -> Shared | None:
    """A cheaper way than a release for each; None where there is none, or none ``within`` that loss."""
    wanted = [one for task in tasks.values() if (one := _wanted(task, release(task))) is not None]
    if len(wanted) < len(tasks):
        return None

    people, policy = dataset.rows_per_person, dataset.policy
    units = [kernel_by_rows(one.plan, Epsilon(1), one.axes, people) for one in wanted]

    given_up = [task.request.cancel for task in tasks.values() if task.request.cancel is not None]

    def losses(epsilons: Sequence[Epsilon]) -> float:
        for cancel in given_up[:1]:  # all of them are one
            cancel.check()
        made = ((unit, epsilon) for unit, epsilon in zip(units, epsilons, strict=True) if epsilon)
        kernels = tuple(
            Tightest((ByDistance(policy, epsilon * people), *(() if unit is None else (unit.at(epsilon),))))
            for unit, epsilon in made
        )
        lost = past_loss(kernels, policy).epsilon
        return math.inf if lost is None else float(lost)

    known = [unit for unit in units if unit is not None]
    lines = pairwise_losses(known, policy) if len(known) == len(units) else None
    way = plan_together(wanted, losses, lines, within)
    return None if way is None else Shared(tasks, tuple(wanted), way, people)


def _wanted(task: CountTask, preferred: Plan | DataDependentPlan) -> Wanted | None:
    """The question of a task with its best release that can be stored, so that others can follow from it."""
    problem, terms = task.problem, task.request.terms
    assert terms.accuracy is not None
    needed = task.request.counts.kind.requirement(terms.accuracy, problem.axes)
    for plan in dict.fromkeys((preferred, task.choice.plan, *task.choice.considered)):
        if not isinstance(plan, Plan):
            continue
        if ReleasedRows(plan, Epsilon(1)).stored(problem.cells.axes) is not None:
            epsilon = plan.epsilon_at(needed)
            return Wanted(problem.cells.axes, problem.workload, needed, plan, epsilon)
    return None


_Release = Callable[[CountTask], Plan | DataDependentPlan]
"""The release that a task should bring, if it can be stored."""


def _cheapest(task: CountTask) -> Plan | DataDependentPlan:
    """What it is answered by alone."""
    return task.choice.plan


def _cells(task: CountTask) -> Plan | DataDependentPlan:
    """For counts of some of the rows noise on each, if it was considered: who leaves these rows changes one.

    Alone that may be dearer. Beside others it loses half as much where rows go from one part to another as
    where they move inside, so that two parts together lose no more than one. The same for curves.
    """
    workload = task.problem.workload
    if not _of_parts(rows_of(workload)):
        curve = plan_for_a_part(workload, task.problem.graph)
        return _cheapest(task) if curve is None else curve
    counts = (plan for plan in task.choice.considered if isinstance(plan, LaplaceOnWorkload))
    return next(counts, _cheapest(task))


def _cells_or_moves(task: CountTask) -> Plan | DataDependentPlan:
    """The same for parts; for all rows beside them a curve whose noise follows moves more than presence."""
    part, problem = _cells(task), task.problem
    if part is not task.choice.plan or not isinstance(problem.workload, Cumulative | Balances):
        return part
    return beside_parts(problem.workload, problem.graph) or part


def _parted_curves(tasks: Mapping[int, Task], dataset: DatasetEntry) -> dict[int, CountTask]:
    """Those of them that may be asked of several parts and of all rows, where presence is hidden."""
    joining = _parted(tasks, dataset) if dataset.policy.hides_presence else {}
    whole = any(_cells_or_moves(task) is not _cells(task) for task in joining.values())
    return joining if whole else {}


def _of_parts(rows: Rows) -> bool:
    """Whether every row of the table counts in one question at most, and some in none."""
    if rows.count > _MOST_PARTS:
        return False
    counted = np.bincount(rows.sparse().indices, minlength=rows.size)
    return bool(counted.max(initial=0) == 1 and not counted.all())


_WAYS: Final = (
    (_joining, _cheapest),
    (_joining_as_alone, _cheapest),
    (_parted, _cells),
    (_parted_curves, _cells_or_moves),
)
"""Which tasks may share releases, and which of the releases that each could bring."""
