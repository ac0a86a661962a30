"""Questions along one column that are asked as one: all of their counts in one release (REUSE §2).

Bins that overlap, halves of a bin, ranges and a curve: over the boxes that all of them have in common they
are so many ranges of one line, and the best plan for these may cost little more than for the dearest alone.
All counts of the release are within its error at once, so every question is as close as it was asked to be,
whatever the noise is: also where no rows with noise of their own could be stored, as of edges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import CellQuery
from blowfishdb.core.errors import Infeasible, NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.readings import Release
from blowfishdb.core.workloads import Ranges
from blowfishdb.mechanisms.best import Best, Choice
from blowfishdb.mechanisms.losses import Kernel, kernel_of
from blowfishdb.mechanisms.plan import Observation
from blowfishdb.mechanisms.reuse import Intervals, Label, Partition, rows_of
from blowfishdb.messages.answers import Answer, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import stored_release
from blowfishdb.service.tasks import CountTask, ErrorBound, Outcome, Statement, Task, answer_of


@final
@dataclass(frozen=True, eq=False)
class StackedTask(Task):
    """The counts of several questions along a line, measured at once; on record as one of the questions."""

    request: Request
    problem: Projected
    cost: Epsilon
    promise: ErrorBound | None
    number: int
    """Of the question that it is on record as."""
    parts: Mapping[int, CountTask]
    """Every question, as if it were alone."""
    places: Mapping[int, IntArray]
    """Which of the counts each of them is read from."""
    cells: CellQuery
    """The boxes that all of them have in common."""
    choice: Choice

    @property
    def mechanism(self) -> str:
        return self.choice.plan.name

    @property
    def explanation(self) -> str:
        return self.choice.plan.explain()

    @property
    def free(self) -> bool:
        return not self.choice.epsilon

    def kernel(self, policy: Policy, rows_per_person: int) -> Kernel:
        return kernel_of(
            self.choice.plan, self.choice.epsilon, self.cells.axes, policy.knowing(None), rows_per_person
        )

    def prepare(self, backend: Backend) -> Statement:
        for part in self.parts.values():
            part.rehearse()
        prepared = backend.prepare(self.cells)
        return Statement(prepared.sql, partial(self.count, prepared))

    def count(self, prepared: Prepared, noise: Noise) -> Outcome:
        """Steps 5 and 6 of all questions: one statement, and noise."""
        counts = prepared.count(self.request.cancel)
        plan = self.choice.plan
        seen = plan.observe(counts, epsilon=self.choice.epsilon or Epsilon(1), noise=noise)
        if self.request.progress is not None:
            self.request.progress(1, 1)
        kept = stored_release(plan, seen, self.choice.epsilon, self.cells.axes)
        told = {number: partial(self.answer, seen, number) for number in self.parts}
        others = {number: Outcome(answer) for number, answer in told.items() if number != self.number}
        return Outcome(told[self.number], kept, others=others)

    def answer(self, seen: Observation, number: int, receipt: Receipt) -> Answer:
        """What one of the questions is told, as people read it."""
        part, places = self.parts[number], self.places[number]
        assert part.promise is not None
        values = np.asarray(seen.answers, dtype=np.float64)[places]
        release = Release(
            values, self.choice.plan.exact[places], part.promise.margin, part.promise.simultaneous
        )
        interval = Label.PLANNED.value
        return answer_of(part.request, part.problem, part.promise, release, receipt, interval=interval)


def stacked(tasks: Mapping[int, CountTask], dataset: DatasetEntry, mechanism: Best) -> StackedTask | None:
    """All questions as one, each as close as the closest; None where they are not ranges of one line."""
    partition = Partition.common([task.problem.cells.axes for task in tasks.values()])
    if partition is None or len(partition.axes) != 1 or any(partition.outside):
        return None
    lines = {number: _ranges_of(task, partition) for number, task in tasks.items()}
    needed = [_needed(task) for task in tasks.values()]
    told = [line for line in lines.values() if line is not None and (line.starts < line.stops).all()]
    if len(told) < len(tasks) or any(one.one_sided for one in needed):
        return None
    ends = np.concatenate([np.column_stack((line.starts, line.stops)) for line in told])
    asked, which = np.unique(ends, axis=0, return_inverse=True)
    places = np.split(which.ravel(), np.cumsum([line.count for line in told])[:-1])
    workload = Ranges(partition.count, asked[:, 0], asked[:, 1] - 1)
    accuracy = Accuracy(min(one.alpha for one in needed), min(one.beta for one in needed))
    try:
        choice = mechanism.for_accuracy(workload, _graph(partition, dataset.policy), accuracy)
    except (NotProven, TooLarge, Infeasible):
        return None
    first = max(tasks, key=lambda number: tasks[number].cost.nano)
    one = tasks[first]
    cost = choice.epsilon * dataset.rows_per_person
    return StackedTask(
        one.request,
        one.problem,
        cost,
        one.promise,
        first,
        tasks,
        dict(zip(tasks, places, strict=True)),
        CellQuery(partition.axes),
        choice,
    )


def _ranges_of(task: CountTask, partition: Partition) -> Intervals | None:
    """The counts of a question as ranges of the boxes that all have in common; None if they are not."""
    problem = task.problem
    return partition.intervals(rows_of(problem.workload), problem.cells.axes)


def _needed(task: CountTask) -> Accuracy:
    assert task.request.terms.accuracy is not None
    return task.request.counts.kind.requirement(task.request.terms.accuracy, task.problem.axes)


def _graph(partition: Partition, policy: Policy) -> PolicyGraph:
    """What the policy hides of these boxes, and whether a row is in one of them."""
    graph = policy.knowing(None).project({axis.column: axis.bins for axis in partition.axes})
    if any(axis.attribute.may_drop for axis in partition.axes) and not graph.absent:
        return Cone(graph, Apex.OUTSIDE)
    return graph
