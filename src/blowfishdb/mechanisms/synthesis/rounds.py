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
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.kept import GivenRows, KeptRows
from blowfishdb.mechanisms.synthesis.model import Counted, Model
from blowfishdb.mechanisms.synthesis.plan import MOST_GIVEN, Planned, SynthesisPlan
from blowfishdb.mechanisms.synthesis.selection import noisy_max, selection_scale
from blowfishdb.mechanisms.synthesis.tables import Choice, Layout, Table, cell_rows

MOST_TREE: Final = 60_000
"""Cells of the model's cliques; more would take longer than it is worth."""
_STEPS_BETWEEN: Final = 60
_STEPS_GIVEN: Final = (10, 60)
"""Of a fit between rounds and of the last one, where the model has a part for every kind of row."""
_PASSES: Final = 3

AnyModel = Model | GivenRows
Progress = Callable[[int, int], None]


class TableCounts(Protocol):
    """The port of a synthesis: the counts of one table at a time."""

    def counts(self, columns: Group) -> Secret[IntArray]:
        """How many rows are in each box of these columns, flat and row-major."""

    def kinds(self, columns: Group) -> Secret[IntArray]:
        """A line for each combination of values of these columns: their cells, and how many rows have it."""


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
    model: Model | GivenRows
    kept: KeptRows | None = None
    """What rows have in columns that stay as they are."""


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
        kept = self._keep() if plan.kept else None
        alone: list[Group] = [(column,) for column in range(len(self.layout.axes))]
        true = {columns: self._read(columns) for columns in alone}
        for planned in plan.one_ways:
            self.used.append(self._measure(planned, true[planned.columns]))
        model = self._fit(self._empty(kept), self._between)
        if plan.way != "one by one" and plan.public_pairs:
            for pair in plan.public_pairs:
                self._measure(
                    Planned(pair, cell_rows(self.layout.cells(pair)), Fraction(0)), self._read(pair)
                )
            model = self._structured(model, self._room // 4)
        if plan.way == "all pairs":
            model = self._all_pairs(model)
        elif plan.way == "in rounds":
            model = self._rounds(model, true)
        model = self._fit(model, _STEPS_GIVEN[1] if plan.kept else None)
        self._check_spent()
        return Synthesis(
            self.layout, plan.total, tuple(self.tables), tuple(self.choices), tuple(self.used), model, kept
        )

    def _empty(self, kept: KeptRows | None) -> AnyModel:
        if kept is None:
            return Model.uniform(self.layout.sizes, self.plan.total)
        return GivenRows(self.layout, kept, self.plan.total)

    def _keep(self) -> KeptRows:
        """The rows of kept columns as they are. No hidden move changes them, so this tells nothing hidden."""
        if any(self.plan.hides(column) for column in self.plan.kept):
            raise NotProven("A column that is hidden is never kept as it is.")
        return KeptRows.of(self.plan.kept, self.port.kinds(self.plan.kept).reveal())

    @property
    def _between(self) -> int:
        """Steps of a fit before the last: fewer where there is a model for every row."""
        return _STEPS_GIVEN[0] if self.plan.kept else _STEPS_BETWEEN

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

    def _fit(self, model: AnyModel, steps: int | None) -> AnyModel:
        return model.fitted([self._counted_at(at) for at in self.used], steps=steps)

    # --- all pairs --------------------------------------------------------------------------------------

    def _all_pairs(self, model: AnyModel) -> AnyModel:
        plan = self.plan
        for done, pair in enumerate(plan.candidates):
            rows = cell_rows(self.layout.cells(pair))
            self._measure(Planned(pair, rows, plan.pair_rate), self._read(pair))
            self.progress(done, len(plan.candidates) + _PASSES)
        return self._structured(model, self._room, len(plan.candidates))

    def _structured(self, model: AnyModel, most: int, done: int = 0) -> AnyModel:
        """The model with those pairs that are out and tell the most: chosen from released numbers alone."""
        for number in range(_PASSES):
            gains = self._gains(model)
            added = self._add(model, gains, most, forest=number == 0)
            if not added:
                break
            model = self._fit(model, self._between)
            self.progress(done + number + 1, done + _PASSES)
        return model

    def _gains(self, model: AnyModel) -> dict[int, float]:
        """By how much each pair that is out and not in the model differs from it, beyond its own noise."""
        rows = model.drawn(max(1, self.plan.total), _stream(len(self.used)))
        gains = {}
        for at, table in enumerate(self.tables):
            if at in self.used or len(table.columns) < 2:
                continue
            drawn = self.layout.tabulated(rows, table.columns)[self.layout.inside(table.columns)]
            off = float(np.abs(table.values - drawn).sum()) / 2
            gain = off - float(table.scale) * table.values.size / 2
            if self.plan.target in table.columns:
                gain *= 2
            gains[at] = gain / math.sqrt(table.values.size)  # large tables leave less room for others
        return gains

    def _add(self, model: AnyModel, gains: Mapping[int, float], most: int, *, forest: bool) -> bool:
        """The best pairs for which the model has room; at first only those that close no loop."""
        groups = [self.tables[at].columns for at in self.used]
        joined = _Joined(len(self.layout.axes), groups)
        added = False
        for at in sorted(gains, key=lambda one: (-gains[one], one)):
            pair = self.tables[at].columns
            if gains[at] <= 0 or (forest and joined.together(pair)):
                continue
            if model.tree_over([*groups, pair]).cells <= most:
                groups.append(pair)
                joined.join(pair)
                self.used.append(at)
                added = True
        return added

    # --- in rounds --------------------------------------------------------------------------------------

    def _rounds(self, model: AnyModel, one_ways: Mapping[Group, Secret[IntArray]]) -> AnyModel:
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
            candidates = [pair for pair in plan.candidates if self._fits(model, pair)]
            if not candidates:  # the model is as large as it may get: what is left of ε is not used
                break
            number += 1
            room = math.floor(min(left))
            nano = (
                room if room < 2 * step else step
            )  # the last round takes what would be too little for one more
            choosing = max(1, math.floor(nano * plan.choosing_share)) if len(true) > 1 else 0
            rows = model.drawn(plan.total, _stream(number))
            pair = self._chosen(candidates, rows, true, choosing, nano - choosing)
            planned = self._planned(pair, nano - choosing)
            self.used.append(self._measure(planned, secret[pair], number))
            fitted = self._fit(model, self._between)
            before = self.layout.tabulated(rows, pair)
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
            off = int(np.abs(true[pair] - self.layout.tabulated(rows, pair)).sum()) // 2
            penalty = math.floor(self._planned(pair, measuring).scale * self.layout.cells(pair) / 2)
            scores.append((off - penalty) * (weight if plan.target in pair else 1))
        scale = selection_scale(choosing, weight)
        at = noisy_max(np.array(scores, dtype=np.int64), scale, self.noise)
        columns = sorted({column for pair in candidates for column in pair})
        self.choices.append(Choice(tuple(columns), choosing))
        return candidates[at]

    def _fits(self, model: AnyModel, pair: Group) -> bool:
        groups = [self.tables[at].columns for at in self.used]
        return pair in groups or model.tree_over([*groups, pair]).cells <= self._room

    @property
    def _room(self) -> int:
        """Cells that the model may have."""
        return MOST_GIVEN if self.plan.kept else MOST_TREE

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
