"""Aggregates of several columns in one release: the sums of each, side by side, and what hides all of them.

The sums of a column are those that it has alone, times a whole number that makes one hidden move change the
sums of every column by about as much. So all have noise of one scale. What a move changes in total is looked
up edge by edge: where groups are public and only one column moves at a time, several cost no more than one
(docs/proofs/aggregates.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.policy import Policy, parts_of
from blowfishdb.core.questions.aggregate_problem import AggregateProblem, SumQuery, SumsProblem, Told
from blowfishdb.core.questions.aggregates import AggregateQuestion, Measure, several_promised

_FINENESS: Final = 8
"""How finely the shares of columns are told apart; sums of squares have no room for it in 64 bits."""
_MOST_MOVES: Final = 2 * 10**7


@final
@dataclass(frozen=True, eq=False)
class ColumnsProblem(SumsProblem):
    """The sums of several columns, each the problem of one column and a whole number that multiplies it."""

    question: AggregateQuestion
    parts: tuple[tuple[AggregateProblem, int], ...]
    together: int
    """By how much one hidden move changes all of the sums, as they are multiplied."""

    @classmethod
    def of(
        cls,
        question: AggregateQuestion,
        parts: Sequence[AggregateProblem],
        labels: Sequence[IntArray],
        graph: PolicyGraph,
        policy: Policy,
    ) -> ColumnsProblem:
        """``labels`` say of each part in which of its groups every box counts; −1 in none."""
        times = _multipliers(parts)
        multiplied = list(zip(parts, times, strict=True))
        return cls(question, tuple(multiplied), _change(multiplied, labels, graph, policy))

    @property
    def query(self) -> SumQuery:  # type: ignore[override]
        """The cells of every column, in one statement."""
        summed = [each for part, _ in self.parts for each in part.query.summed]
        cells = self.parts[0][0].query.cells
        column, degree = summed[0] if summed else (None, 0)
        return SumQuery(cells, column, degree, tuple(summed[1:]))

    @property
    def graph(self) -> PolicyGraph:  # type: ignore[override]
        """The policy over the boxes, which all columns share."""
        return self.parts[0][0].graph

    @property
    def name(self) -> str:
        return "several"

    @property
    def change(self) -> int:
        return self.together

    @property
    def noisy(self) -> BoolArray:
        return np.concatenate([part.noisy for part, _ in self.parts])

    @property
    def possible(self) -> BoolArray:
        first, *others = (part.possible for part, _ in self.parts)
        return reduce(np.bitwise_or, others, first)

    @property
    def exact_sizes(self) -> bool:
        return all(part.exact_sizes for part, _ in self.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(note for part, _ in self.parts for note in part.notes))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": ["aggregates of several columns", self.together],
            "parts": [[part.identity(), times] for part, times in self.parts],
        }

    def measured(self, table: IntArray) -> IntArray:
        measures, sums, at = table.reshape(-1, self.query.measures), [], 1
        for part, times in self.parts:
            degree = sum(each for _, each in part.query.summed)
            own = np.column_stack([measures[:, :1], measures[:, at : at + degree]])
            sums.append(times * part.measured(own))
            at += degree
        return np.column_stack(sums)

    def told(self, raw: FloatArray, scale: float, beta: float) -> dict[Measure, Told]:
        told: dict[Measure, Told] = {}
        at = 0
        for part, times in self.parts:
            own = raw[:, at : at + part.noisy.size] / times
            told |= part.told(own, scale / times, beta)
            at += part.noisy.size
        return told

    def exactly(self, measure: Measure) -> bool:
        return next(part.exactly(measure) for part, _ in self.parts if measure in part.question.measures)

    def scale_for(self, accuracy: Accuracy) -> float:
        raise several_promised(self.question)

    def size_for(self, alpha: float) -> int:
        raise several_promised(self.question)

    def expected(self, scale: float, rows: int, accuracy: Accuracy) -> float | None:
        return None  # in different units


def _multipliers(parts: Sequence[AggregateProblem]) -> list[int]:
    """Whole numbers that make one hidden move change the sums of every part by about as much."""
    changes = [part.change * bool(part.noisy.any()) for part in parts]
    fine = 1 if any(part.rows.degree == 2 for part in parts) else _FINENESS
    most = max(changes)
    return [max(1, (2 * fine * most + each) // (2 * each)) if each else 1 for each in changes]


def _change(
    parts: Sequence[tuple[AggregateProblem, int]],
    labels: Sequence[IntArray],
    graph: PolicyGraph,
    policy: Policy,
) -> int:
    """By how much one hidden move changes all sums at most.

    A move between two boxes takes a row out of a group of some columns and into another, and may take other
    values along inside of theirs; one inside a box moves values alone. Where columns move one at a time, only
    one value does.
    """
    times = np.array([each for _, each in parts])
    some = np.array([bool(part.noisy.any()) for part, _ in parts])
    inside = times * some * np.array([part.rows.inside for part, _ in parts])
    across = times * some * np.array([part.rows.appearing(part.width) for part, _ in parts])
    place = np.stack(labels)
    counted = place >= 0
    along = _moving_together(parts, policy)
    staying = inside[:, None] * counted
    most = int(staying.sum(axis=0).max(initial=0)) if along else int(staying.max(initial=0))
    if graph.absent:
        most = max(most, int((across[:, None] * counted).sum(axis=0).max(initial=0)))
    seen = 0
    for block in graph.counted.edge_blocks():
        here, there = place[:, block[:, 0]], place[:, block[:, 1]]
        rows = (here >= 0).astype(np.int64) + (there >= 0)
        moved = np.where(here != there, across[:, None] * rows, 0)
        beside = np.where((here == there) & (here >= 0), inside[:, None], 0)
        if not along:  # one column moves: of a value that stays in its group, at most that one
            beside = beside.max(axis=0, keepdims=True) * _cut(parts)
        most = max(most, int((moved.sum(axis=0) + beside.sum(axis=0)).max(initial=0)))
        seen += len(block)
        if seen > _MOST_MOVES:
            break
    else:
        return most
    return math.ceil(
        sum(part.change * each for (part, each), noisy in zip(parts, some, strict=True) if noisy)
    )


def _moving_together(parts: Sequence[tuple[AggregateProblem, int]], policy: Policy) -> bool:
    """Whether one hidden move may change two of the columns."""
    taken = parts_of(policy)
    names = [part.question.values[0].column for part, _ in parts]
    return taken.joint or len({taken.of(name).columns for name in names}) < len(names)


def _cut(parts: Sequence[tuple[AggregateProblem, int]]) -> bool:
    """Whether groups or the condition tell values of one of the columns apart, so that it moves from box to
    box and stays in its group."""
    names = {part.question.values[0].column: part.question.values[0].bins.count for part, _ in parts}
    axes = parts[0][0].query.cells.axes
    return any(axis.bins.count > names[axis.column] for axis in axes if axis.column in names)
