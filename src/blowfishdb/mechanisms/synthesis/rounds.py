"""The measuring of a synthesis: the one place where its tables are opened, and gain their noise.

Whatever decides what is measured next (scores excepted, which are chosen from privately) is a function of
numbers that are out already and of public ones: bins, candidates, steps, and when it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.errors import NotProven
from blowfishdb.core.noise import Noise
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.synthesis.junction_tree import Group, JunctionTree
from blowfishdb.mechanisms.synthesis.model import Counted, Model
from blowfishdb.mechanisms.synthesis.plan import Planned, SynthesisPlan
from blowfishdb.mechanisms.synthesis.selection import noisy_max, selection_scale
from blowfishdb.mechanisms.synthesis.tables import Choice, Layout, Table, cell_rows

MOST_TREE: Final = 60_000
"""Cells of the model's cliques; more would take longer than it is worth."""
_CHOOSING: Final = Fraction(12, 100)
_STEPS_BETWEEN: Final = 60
_STEPS_LAST: Final = 300
_PASSES: Final = 3

Progress = Callable[[int, int], None]


class TableCounts(Protocol):
    """The port of a synthesis: the counts of one table at a time."""

    def counts(self, columns: Group) -> Secret[IntArray]:
        """How many rows are in each box of these columns, flat and row-major."""


@final
@dataclass(frozen=True, eq=False)
class Synthesis:
    """What left the mechanism: tables with noise, what was chosen, and the model that follows from them."""

    layout: Layout
    total: int
    tables: tuple[Table, ...]
    choices: tuple[Choice, ...]
    used: tuple[int, ...]
    """The tables that the model is fitted to."""
    model: Model


def release(
    plan: SynthesisPlan, port: TableCounts, *, noise: Noise, progress: Progress | None = None
) -> Synthesis:
    """Measure as planned. Every class of moves loses at most the ε of the plan, whatever comes out."""
    return _Measuring(plan, port, noise, progress or (lambda done, of: None)).made()


@final
@dataclass(eq=False)
class _Measuring:
    """A synthesis under way."""

    plan: SynthesisPlan
    port: TableCounts
    noise: Noise
    progress: Progress
    tables: list[Table] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    used: list[int] = field(default_factory=list)
    _counted: dict[int, Counted] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return self.plan.layout

    def made(self) -> Synthesis:
        plan = self.plan
        true = {planned.columns: self._read(planned.columns) for planned in plan.one_ways}
        for planned in plan.one_ways:
            self.used.append(self._measure(planned, true[planned.columns]))
        model = self._fit(Model.uniform(self.layout.sizes, plan.total), _STEPS_BETWEEN)
        if plan.way != "one by one" and plan.public_pairs:
            for pair in plan.public_pairs:
                self._measure(
                    Planned(pair, cell_rows(self.layout.cells(pair)), Fraction(0)), self._read(pair)
                )
            model = self._structured(model, MOST_TREE // 4)
        if plan.way == "all pairs":
            model = self._all_pairs(model)
        elif plan.way == "in rounds":
            model = self._rounds(model, true)
        model = self._fit(model, _STEPS_LAST)
        self._check_spent()
        return Synthesis(
            self.layout, plan.total, tuple(self.tables), tuple(self.choices), tuple(self.used), model
        )

    # --- measuring ------------------------------------------------------------------------------------

    def _read(self, columns: Group) -> Secret[IntArray]:
        return self.port.counts(columns)

    def _measure(self, planned: Planned, counts: Secret[IntArray], round_: int = 0) -> int:
        """A table with its noise; its place among those that are out. Exact only where nothing moves."""
        if not planned.scale and any(self.plan.costs(planned.columns)):
            raise NotProven("A table that a hidden move changes is never given without noise.")
        values = np.asarray(planned.rows.sparse() @ counts.reveal(), dtype=np.int64)
        if planned.scale:
            values = values + self.noise.discrete_laplace(planned.scale, values.size)
        self.tables.append(Table(planned.columns, planned.rows, planned.scale, values, round_))
        return len(self.tables) - 1

    def _counted_at(self, at: int) -> Counted:
        if at not in self._counted:
            self._counted[at] = self.tables[at].counted(self.layout)
        return self._counted[at]

    def _fit(self, model: Model, steps: int) -> Model:
        return model.fitted([self._counted_at(at) for at in self.used], steps=steps)

    # --- all pairs --------------------------------------------------------------------------------------

    def _all_pairs(self, model: Model) -> Model:
        plan = self.plan
        for done, pair in enumerate(plan.candidates):
            rows = cell_rows(self.layout.cells(pair))
            self._measure(Planned(pair, rows, plan.pair_rate), self._read(pair))
            self.progress(done, len(plan.candidates) + _PASSES)
        return self._structured(model, MOST_TREE, len(plan.candidates))

    def _structured(self, model: Model, most: int, done: int = 0) -> Model:
        """The model with those pairs that are out and tell the most: chosen from released numbers alone."""
        for number in range(_PASSES):
            gains = self._gains(model)
            added = self._add(gains, most, forest=number == 0)
            if not added:
                break
            model = self._fit(model, _STEPS_BETWEEN)
            self.progress(done + number + 1, done + _PASSES)
        return model

    def _gains(self, model: Model) -> dict[int, float]:
        """By how much each pair that is out and not in the model differs from it, beyond its own noise."""
        rows = model.drawn(max(1, self.plan.total), _stream(len(self.used)))
        gains = {}
        for at, table in enumerate(self.tables):
            if at in self.used or len(table.columns) < 2:
                continue
            drawn = _tabulated(rows, table.columns, self.layout)[self.layout.inside(table.columns)]
            off = float(np.abs(table.values - drawn).sum()) / 2
            gain = off - float(table.scale) * table.values.size / 2
            if self.plan.target in table.columns:
                gain *= 2
            gains[at] = gain / math.sqrt(table.values.size)  # large tables leave less room for others
        return gains

    def _add(self, gains: Mapping[int, float], most: int, *, forest: bool) -> bool:
        """The best pairs for which the model has room; at first only those that close no loop."""
        groups = [self.tables[at].columns for at in self.used]
        joined = _Joined(len(self.layout.axes), groups)
        added = False
        for at in sorted(gains, key=lambda one: (-gains[one], one)):
            pair = self.tables[at].columns
            if gains[at] <= 0 or (forest and joined.together(pair)):
                continue
            if JunctionTree.over(self.layout.sizes, [*groups, pair]).cells <= most:
                groups.append(pair)
                joined.join(pair)
                self.used.append(at)
                added = True
        return added

    # --- in rounds --------------------------------------------------------------------------------------

    def _rounds(self, model: Model, one_ways: Mapping[Group, Secret[IntArray]]) -> Model:
        plan = self.plan
        secret = {}
        for done, pair in enumerate(plan.candidates):
            secret[pair] = self._read(pair)
            self.progress(done, len(plan.candidates) + plan.rounds)
        true = {
            pair: _completed(
                counts.reveal(), pair, [one_ways[(c,)].reveal() for c in pair], plan.total, self.layout
            )
            for pair, counts in secret.items()
        }
        left = self._left()
        step, number = math.floor(min(left)) // max(1, plan.rounds), 0
        while math.floor(min(left)) >= 2 and step >= 2:
            candidates = [pair for pair in plan.candidates if self._fits(pair)]
            if not candidates:  # the model is as large as it may get: what is left of ε is not used
                break
            number += 1
            room = math.floor(min(left))
            nano = (
                room if room < 2 * step else step
            )  # the last round takes what would be too little for one more
            choosing = max(1, math.floor(nano * _CHOOSING)) if len(true) > 1 else 0
            rows = model.drawn(plan.total, _stream(number))
            pair = self._chosen(candidates, rows, true, choosing, nano - choosing)
            planned = self._planned(pair, nano - choosing)
            self.used.append(self._measure(planned, secret[pair], number))
            fitted = self._fit(model, _STEPS_BETWEEN)
            before = _tabulated(rows, pair, self.layout)
            after = plan.total * fitted.marginal(pair).ravel()
            if np.abs(after - before).sum() < float(planned.scale) * before.size:
                step *= 2
            model, left = fitted, self._left()
            self.progress(
                min(len(plan.candidates) + number, len(true) + plan.rounds), len(true) + plan.rounds
            )
        return model

    def _planned(self, pair: Group, nano: int) -> Planned:
        """A pair that loses so many billionths in the class that it costs most."""
        return Planned(pair, cell_rows(self.layout.cells(pair)), Fraction(nano, max(self.plan.costs(pair))))

    def _chosen(
        self,
        candidates: Sequence[Group],
        rows: IntArray,
        true: Mapping[Group, IntArray],
        choosing: int,
        measuring: int,
    ) -> Group:
        """The pair on which the model is furthest off, beyond the noise that measuring it would have.

        Half the distance of two tables with equally many rows is a whole number, and one record that moves
        changes it by at most one; so does rounding down what a public number is taken off.
        """
        plan = self.plan
        if not choosing:
            return candidates[0]
        weight = 1 if plan.target is None else 2
        scores = []
        for pair in candidates:
            off = int(np.abs(true[pair] - _tabulated(rows, pair, self.layout)).sum()) // 2
            penalty = math.floor(self._planned(pair, measuring).scale * self.layout.cells(pair) / 2)
            scores.append((off - penalty) * (weight if plan.target in pair else 1))
        scale = selection_scale(choosing, weight)
        at = noisy_max(np.array(scores, dtype=np.int64), scale, self.noise)
        columns = sorted({column for pair in candidates for column in pair})
        self.choices.append(Choice(tuple(columns), choosing))
        return candidates[at]

    def _fits(self, pair: Group) -> bool:
        groups = [self.tables[at].columns for at in self.used]
        return pair in groups or JunctionTree.over(self.layout.sizes, [*groups, pair]).cells <= MOST_TREE

    # --- what it lost -------------------------------------------------------------------------------------

    def spent(self) -> list[Fraction]:
        """What every class of moves has lost so far, in billionths."""
        forms = {planned.columns: planned for planned in self.plan.one_ways}
        lost = []
        for at, each in enumerate(self.plan.every):
            total = Fraction(0)
            for table in self.tables:
                if not table.scale:
                    continue
                if len(table.columns) == 1:
                    (column,) = table.columns
                    crossing = forms[table.columns].rows.count < self.layout.bins[column]
                    cost = each.prefixes(column) if crossing else each.cells(table.columns)
                else:
                    cost = self.plan.costs(table.columns)[at]
                total += cost * NANO / table.scale
            for choice in self.choices:
                total += choice.nano * each.chosen([(column,) for column in choice.columns])
            lost.append(total)
        return lost

    def _left(self) -> list[Fraction]:
        touched = [any(each.cells(pair) for pair in self.plan.candidates) for each in self.plan.every]
        spent = self.spent()
        return [
            self.plan.epsilon.nano - lost for lost, matters in zip(spent, touched, strict=True) if matters
        ]

    def _check_spent(self) -> None:
        assert all(lost <= self.plan.spent.nano for lost in self.spent()), "more was lost than reserved"


@final
class _Joined:
    """Which columns are connected by pairs."""

    def __init__(self, columns: int, groups: Sequence[Group]) -> None:
        self._part = list(range(columns))
        for group in groups:
            if len(group) > 1:
                self.join(group)

    def together(self, pair: Group) -> bool:
        return self._part[pair[0]] == self._part[pair[1]]

    def join(self, pair: Group) -> None:
        old, new = self._part[pair[0]], self._part[pair[1]]
        self._part = [new if part == old else part for part in self._part]


def _stream(number: int) -> np.random.Generator:
    """For rows that are drawn to compare with: public, and the same whatever the data is."""
    return np.random.Generator(np.random.Philox(key=number + 1))


def _tabulated(rows: IntArray, columns: Group, layout: Layout) -> IntArray:
    """How many rows are in each cell of the model's table of some columns, flat."""
    shape = layout.shape(columns)
    place = np.ravel_multi_index(tuple(rows[:, column] for column in columns), shape)
    return np.bincount(place, minlength=math.prod(shape)).astype(np.int64)


def _completed(
    counts: IntArray, columns: Group, alone: Sequence[IntArray], total: int, layout: Layout
) -> IntArray:
    """A table of two columns with the rows that one of them does not count, so that it has ``total`` rows."""
    first, second = (layout.axes[column].attribute.may_drop for column in columns)
    table = counts.reshape([layout.bins[column] for column in columns])
    if second:
        table = np.concatenate((table, (alone[0] - table.sum(axis=1))[:, None]), axis=1)
    if first:
        there = alone[1] if not second else np.append(alone[1], total - int(alone[1].sum()))
        table = np.concatenate((table, (there - table.sum(axis=0))[None, :]), axis=0)
    return np.asarray(table, dtype=np.int64).ravel()


__all__ = ["Progress", "Synthesis", "TableCounts", "release"]
