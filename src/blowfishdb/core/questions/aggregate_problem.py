"""The small problem of aggregates: what is measured in every group, how it is read, and what is promised."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.domain.domain import CellQuery
from blowfishdb.core.errors import NoGuarantee
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.laplace_sums import half_width, unit_quantile
from blowfishdb.core.questions.aggregates import (
    AggregateQuestion,
    Measure,
    inside_cells,
    several_promised,
    size_unsaid,
)
from blowfishdb.core.questions.kinds import counted_all_the_same, inside_a_cell, units_of
from blowfishdb.core.questions.promise import significant
from blowfishdb.core.questions.ratios import share_ends, spread_by_corners, spread_by_squares
from blowfishdb.core.questions.readings import Reading
from blowfishdb.core.questions.sum_rows import SumRows

Told = tuple[FloatArray, FloatArray, FloatArray]
"""The values of an aggregate in every group, and the ends of their intervals."""

_BISECTIONS: Final = 200
_SOME_CELLS: Final = 10


@final
@dataclass(frozen=True, eq=False)
class SumQuery:
    """What the database is asked: of each box of ``cells`` how many rows, and Σk and Σk² of a column."""

    cells: CellQuery
    column: str | None
    degree: int
    """The highest power of k, the cell of the column, that is added up."""
    more: tuple[tuple[str, int], ...] = ()
    """Other columns whose cells are added up too, each with its highest power."""

    @property
    def summed(self) -> tuple[tuple[str, int], ...]:
        """Every column whose cells are added up, and the highest power of each."""
        return (*(((self.column, self.degree),) if self.column is not None else ()), *self.more)

    @property
    def measures(self) -> int:
        """How many numbers come back of every box: how many rows, and the sums of every column."""
        return 1 + sum(degree for _, degree in self.summed)


class SumsProblem(ABC):
    """The sums to measure, what hides them, and the way to the database and back."""

    question: AggregateQuestion
    query: SumQuery
    graph: PolicyGraph
    """The policy over the boxes."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Which sums are measured."""

    @property
    @abstractmethod
    def change(self) -> int:
        """By how much one hidden move changes all noisy sums."""

    @property
    @abstractmethod
    def noisy(self) -> BoolArray:
        """Which of the sums of a group carry noise."""

    @property
    @abstractmethod
    def possible(self) -> BoolArray:
        """The groups that can have rows: the condition leaves no row of the others."""

    @property
    @abstractmethod
    def exact_sizes(self) -> bool:
        """Whether how many rows a group has is public."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """As what values count, and what becomes of those that are not declared."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What tells two releases of sums apart, as plain data."""

    @abstractmethod
    def measured(self, table: IntArray) -> IntArray:
        """A row of whole-number sums for every group, from what the database added up in each box."""

    @abstractmethod
    def told(self, raw: FloatArray, scale: float, beta: float) -> dict[Measure, Told]:
        """Every aggregate of all groups with its interval, each of which misses with probability ``beta``."""

    @abstractmethod
    def exactly(self, measure: Measure) -> bool:
        """Whether an aggregate carries no noise."""

    @abstractmethod
    def scale_for(self, accuracy: Accuracy) -> float:
        """The largest scale of the noise at which ``accuracy`` holds."""

    @abstractmethod
    def size_for(self, alpha: float) -> int:
        """How many rows a group has at least for which some noise is small enough."""

    @abstractmethod
    def expected(self, scale: float, rows: int, accuracy: Accuracy) -> float | None:
        """About how far off the mean of a group of so many rows is going to be; None where that is
        nothing new."""

    @property
    @final
    def groups(self) -> int:
        """How many groups are told apart."""
        return math.prod(axis.bins.count for axis in self.question.groups)

    @property
    @final
    def free(self) -> bool:
        """Whether no hidden move changes any of the sums."""
        return not self.noisy.any()

    @final
    def read(self, raw: FloatArray, scale: float, accuracy: Accuracy) -> Reading:
        """The aggregates of every group, and their noise intervals, which hold as often as ``accuracy`` says.

        ``raw`` are the sums with noise of ``scale``, a row for each group. What the sums say nothing about is
        not a number, and its interval is all that is possible.
        """
        measures, possible = self.question.measures, self.possible
        exactly = [self.exactly(each) for each in measures]
        sums = np.where(possible[:, None], raw, 0.0)
        told = self.told(sums, scale, self.each(accuracy) / max(1, len(measures) - sum(exactly)))
        columns = zip(*(told[each] for each in measures), strict=True)
        values, low, high = (np.column_stack(each) for each in columns)
        exact = np.tile(exactly, (self.groups, 1))
        empty = ~possible
        for at, each in enumerate(measures):
            if each.of in ("count", "sum"):
                low[empty, at] = high[empty, at] = values[empty, at] = 0.0
                exact[empty, at] = True
            else:
                values[empty, at] = np.nan
        values, low, high, exact = (each.ravel() for each in (values, low, high, exact))
        return Reading(self.question.labels, values, low, high, exact & ~np.isnan(values))

    @final
    def each(self, accuracy: Accuracy) -> float:
        """How often one group may fail; those of different groups have noise of their own."""
        if not accuracy.simultaneous:
            return accuracy.beta
        return -math.expm1(math.log1p(-accuracy.beta) / max(1, int(self.possible.sum())))


@final
@dataclass(frozen=True, eq=False)
class AggregateProblem(SumsProblem):
    """The sums of one column."""

    question: AggregateQuestion
    query: SumQuery
    graph: PolicyGraph
    """The policy over the boxes."""
    part: IntArray
    """For every box the group in which its rows have a value; k more where they have none; −1 if they do not
    count."""
    rows: SumRows
    lowest: int
    width: int
    all_rows: str = ""
    """How all rows of a group are told where some have no value: "exact", "noisy", or not at all."""

    @property
    def name(self) -> str:
        return self.rows.name

    @property
    def exact_sizes(self) -> bool:
        return not self.rows.noisy[0]

    @property
    def possible(self) -> BoolArray:
        told = np.zeros(2 * self.groups, dtype=np.bool_)
        told[self.part[self.part >= 0]] = True
        return told[: self.groups] | told[self.groups :]

    def identity(self) -> dict[str, Any]:
        rows = self.rows
        return {
            "kind": ["aggregates", rows.name, [list(each) for each in rows.polynomials], self.all_rows],
            "value": [self.query.column, self.lowest],
            "selected": self.part.tolist(),
        }

    @property
    def change(self) -> int:
        """By how much one hidden move changes all noisy sums."""
        return self.rows.change

    @property
    def noisy(self) -> BoolArray:
        """Which of the sums of a group carry noise."""
        extra = [self.all_rows == "noisy"] if self.all_rows else []
        return np.array([*self.rows.noisy, *extra]) & (self.change > 0)

    @property
    def notes(self) -> tuple[str, ...]:
        value, notes = self.question.value, (*self._folded, *self.query.cells.notes)
        off = inside_a_cell(value) if value is not None and self.query.column is not None else 0
        if value is None or not off:
            return notes
        wide, each = f"{value.attribute.ticks_per_cell:,}", significant(float(off), 9)
        middle = (
            f"{value.column}: a value counts as the middle of its cell of {wide}, so it may be {each} off; "
        )
        return (f"{middle}the noise intervals include that.", *notes)

    @property
    def _folded(self) -> tuple[str, ...]:
        """Whose values are counted though they have none, where nothing else is asked of the column."""
        value = self.question.value
        if value is None or any(each.of != "count" for each in self.question.measures):
            return ()
        named = any(each.column for each in self.question.measures)
        said = counted_all_the_same(value) if named else None
        return () if said is None else (said,)

    def measured(self, table: IntArray) -> IntArray:
        """A row of whole-number sums for every group, from what the database added up in each box."""
        summed = np.zeros((2 * self.groups, 3), dtype=np.int64)
        inside = self.part >= 0
        measures = table.reshape(self.part.size, -1)
        np.add.at(summed[:, : measures.shape[1]], self.part[inside], measures[inside])
        (n, first, second), low = summed[: self.groups].T, self.lowest
        powers = np.stack([n, first - low * n, second - 2 * low * first + low**2 * n])
        sums: IntArray = (np.array(self.rows.polynomials, dtype=np.int64) @ powers).T
        if not self.all_rows:
            return sums
        without = summed[self.groups :, 0]
        more = n + without if self.all_rows == "exact" else self.rows.weight * without
        return np.column_stack([sums, more])

    # --- reading --------------------------------------------------------------------------------------------

    def told(self, raw: FloatArray, scale: float, beta: float) -> dict[Measure, Told]:
        return {each: self._told(each, raw, scale, beta) for each in self.question.measures}

    def exactly(self, measure: Measure) -> bool:
        if measure.of == "count":
            if measure.column is None and self.all_rows:
                return self.free or self.all_rows == "exact"
            return self.free or not self.rows.noisy[0]
        return self.free and not self._off

    @property
    def _off(self) -> float:
        """How far a value may be from the middle of its cell."""
        return 0.0 if self.question.value is None else float(inside_a_cell(self.question.value))

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The lowest value that counts, as the middle of its cell, and the length of a cell."""
        assert self.question.value is not None
        _, first, step = units_of(self.question.value)
        return float(first + step * self.lowest) + self._off, float(step)

    def _told(
        self, measure: Measure, raw: FloatArray, scale: float, beta: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        match measure.of:
            case "count":
                return self._counted(raw, scale, beta, every=measure.column is None)
            case "sum":
                return self._summed(raw, scale, beta)
            case "mean":
                return self._averaged(raw, scale, beta)
        return self._spread(raw, scale, beta, root=measure.of == "stddev")

    def _combined(
        self, weights: FloatArray, raw: FloatArray, scale: float, beta: float
    ) -> tuple[FloatArray, float]:
        """A combination of the sums, and how far it is off."""
        noisy = weights[self.noisy[: weights.size]]
        return raw[:, : weights.size] @ weights, half_width(noisy, scale, beta) if noisy.any() else 0.0

    def _counted(
        self, raw: FloatArray, scale: float, beta: float, *, every: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        assert self.rows.count is not None
        weights = np.array(self.rows.count)
        if every and self.all_rows == "exact":
            return raw[:, -1], raw[:, -1], raw[:, -1]
        if every and self.all_rows:
            weights = np.array([*weights, 1 / self.rows.weight])
        values, off = self._combined(weights, raw, scale, beta)
        low, high = np.maximum(values - off, 0.0), np.maximum(values + off, 0.0)
        return np.maximum(values, 0.0), low, high

    def _summed(
        self, raw: FloatArray, scale: float, beta: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        first, step = self._line
        if self.rows.name == "total":
            unit = step / self.rows.polynomials[0][1]
            values, off = self._combined(np.array([unit]), raw, scale, beta)
            return self._possible(values), self._possible(values - off), self._possible(values + off)
        share = beta / 2 if self._off else beta
        values, off = self._combined(self.rows.sum_weights(first, step), raw, scale, share)
        inside: FloatArray | float = 0.0
        if self._off:
            inside = self._off * self._counted(raw, scale, share, every=False)[2]
        return (
            self._possible(values),
            self._possible(values - off - inside),
            self._possible(values + off + inside),
        )

    def _possible(self, sums: FloatArray) -> FloatArray:
        """Sums of values that are all of one sign have it too."""
        first, step = self._line
        lowest, highest = first - self._off, first + self._off + step * self.width
        return np.clip(sums, 0.0 if lowest >= 0 else None, 0.0 if highest <= 0 else None)

    def _averaged(
        self, raw: FloatArray, scale: float, beta: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        first, step = self._line
        if not self.width:
            same = np.full(self.groups, first)
            return same, same - self._off, same + self._off
        assert self.rows.count is not None and self.rows.above is not None
        count, above = np.array(self.rows.count), np.array(self.rows.above)
        counts, sums = (raw[:, : count.size] @ weights for weights in (count, above))
        whole_sums = self.width * counts
        noisy = self.noisy[: count.size]
        if count[noisy].any():
            rest = (above - self.width * count)[noisy]
            low, high = share_ends(sums, whole_sums, above[noisy], rest, scale, beta)
        else:
            off = half_width(above[noisy], scale, beta) if noisy.any() else 0.0
            some = np.where(whole_sums > 0, whole_sums, 1)
            low, high = (np.clip((sums + side * off) / some, 0.0, 1.0) for side in (-1, 1))
            low, high = np.where(whole_sums > 0, low, 0.0), np.where(whole_sums > 0, high, 1.0)
        shares = np.clip(
            np.divide(sums, whole_sums, out=np.zeros_like(sums), where=whole_sums > 0), low, high
        )
        shares = np.where((low <= 0) & (high >= 1), np.nan, shares)
        length = step * self.width
        return first + length * shares, first + length * low - self._off, first + length * high + self._off

    def _spread(
        self, raw: FloatArray, scale: float, beta: float, *, root: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """From standard deviations: those move by no more than values do, once √(n/(n−1)) ≤ √2 is paid
        for."""
        if not self.width:
            nothing = np.zeros(self.groups)
            return nothing, nothing, nothing + 2 * self._off ** (1 if root else 2)
        count = int(self.noisy[: len(self.rows.noisy)].sum())
        off = half_width(np.ones(1), scale, beta / count) if count else 0.0
        read = spread_by_corners if self.rows.name == "corners" else spread_by_squares
        each = [read(row[: len(self.rows.noisy)], self.width, off) for row in raw]
        values, low, high = self._line[1] * np.sqrt(np.array(each).T)
        low, high = np.maximum(low - math.sqrt(2) * self._off, 0.0), high + math.sqrt(2) * self._off
        return (values, low, high) if root else (values**2, low**2, high**2)

    # --- promises -------------------------------------------------------------------------------------------

    def scale_for(self, accuracy: Accuracy) -> float:
        """The largest scale of the noise at which ``accuracy`` holds.

        Of the mean of every group of ``group_size`` rows or more, or of every sum.
        """
        measure = self.question.promised
        if measure is None:
            raise several_promised(self.question)
        beta = self.each(accuracy)
        if measure.of != "mean":
            return self._scale_of_sums(measure, accuracy.alpha, beta)
        rows = self.question.group_size
        if rows is None:
            raise size_unsaid()
        _, step = self._line
        if accuracy.alpha <= self._off:
            raise inside_cells(self.question, self._off)
        off = (accuracy.alpha - self._off) / step * rows
        if not self.width:
            return math.inf
        count, above = np.array(self.rows.count), np.array(self.rows.above)
        if not self.rows.noisy[0]:
            return _largest(lambda scale: half_width(np.ones(1), scale, beta) <= off, off)
        ends = [np.abs(above - p * self.width * count) for p in (0, 1)]
        discrete = max(float(each.sum()) for each in ends)
        return (off - discrete) / max(unit_quantile(each, beta) for each in ends)

    def _scale_of_sums(self, measure: Measure, alpha: float, beta: float) -> float:
        if measure.of == "sum" and self._off:
            raise NoGuarantee(
                f"How much rows add inside their cells of '{measure.column}' depends on how many there are, "
                "so no error of their sum is promised.",
                fixes=("state an ε instead of an error",),
            )

        def holds(scale: float) -> bool:
            raw = np.zeros((1, len(self.noisy)))
            _, _, high = self._told(measure, raw, scale, beta)
            return bool(high[0] <= alpha)

        return _largest(holds, alpha)

    def size_for(self, alpha: float) -> int:
        """How many rows a group has at least for which some noise is small enough."""
        return math.ceil(_SOME_CELLS * self._line[1] / (alpha - self._off))

    def expected(self, scale: float, rows: int, accuracy: Accuracy) -> float | None:
        """About how far off the mean of a group of so many rows is going to be; None where that is
        nothing new."""
        if not self.width or not any(each.of == "mean" for each in self.question.measures):
            return None
        _, step = self._line
        beta = self.each(accuracy) / sum(not self.exactly(each) for each in self.question.measures)
        count, above = np.array(self.rows.count), np.array(self.rows.above)
        weights = (above - 0.5 * self.width * count)[self.noisy[: count.size]]
        off = step * half_width(weights, scale, beta) / rows + self._off
        return off if off < step * self.width / 2 else None


def _largest(holds: Callable[[float], bool], guess: float) -> float:
    """The largest scale at which something monotone holds, rounded down."""
    low, high = 0.0, max(guess, 1.0)
    while holds(high) and high < 1e300:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if middle > 0 and holds(middle) else (low, middle)
    return low
