"""What leaves the trust boundary is written down as it happens: the plan, the counts it saw, its ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import single_cells
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import QueryFailed
from blowfishdb.core.questions.aggregate_problem import SumQuery, SumsProblem
from blowfishdb.core.questions.projection import CellQuery
from blowfishdb.core.refinement import refined
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms import plan as plans
from blowfishdb.mechanisms.losses import ReleasedRows
from blowfishdb.mechanisms.plan import DataDependentPlan, EarlierRelease, Observation, Plan
from blowfishdb.mechanisms.reuse.stored import plain_axes
from blowfishdb.mechanisms.sums import SumsPlan
from tests.neighbours.columns import DROPPED, Column
from tests.neighbours.known import every_record
from tests.neighbours.synthesizing import MadeChoice, MeasuredTable, following

EXACT = 1e9
"""What an exact number counts for beside noisy ones."""


@dataclass(frozen=True)
class MeasuredSums:
    """The sums behind aggregates, as what is measured of single values: of cells, and of what is there.

    Counts are of every value by itself, and after them what the database counted and added up in each box.
    """

    problem: SumsProblem
    noise: tuple[Fraction, ...]
    """The scale of the noise of every sum, zero for exact ones."""
    free: bool
    published = Plan.published

    @property
    def scales(self) -> MeasuredSums:
        """As a plan has them."""
        return self

    def fractions(self, _: Epsilon) -> list[Fraction]:
        """The scales at the ε of the release."""
        return list(self.noise)

    def measure(self, counts: np.ndarray) -> np.ndarray:
        """All sums of all groups, without noise."""
        query = self.problem.query
        fine = values_alone(query)
        shape = tuple(axis.bins.count for axis in fine)
        cells = math.prod(shape)
        table = counts[cells:].reshape(query.cells.count, -1).copy()
        for cell in np.flatnonzero(counts[:cells]):
            at = np.unravel_index(cell, shape)
            first = [int(axis.bins.first(place)) for axis, place in zip(fine, at, strict=True)]
            boxes = zip(query.cells.axes, first, strict=True)
            box = np.ravel_multi_index([int(axis.bins.assign(one)) for axis, one in boxes], query.cells.shape)
            values = {axis.column: one for axis, one in zip(fine, first, strict=True)}
            powers = [values[name] ** power for name, most in query.summed for power in range(1, most + 1)]
            table[box] += counts[cell] * np.array([1, *powers])
        return self.problem.measured(table).ravel()

    def decode(self, measured: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """What comes out is what is measured."""
        return measured


def values_alone(query: SumQuery) -> tuple[Axis, ...]:
    """The boxes of aggregates, with every value of the aggregated columns in one of its own."""
    return tuple(
        Axis(axis.column, axis.attribute, single_cells(axis.bins.size))
        if axis.column in dict(query.summed)
        else axis
        for axis in query.cells.axes
    )


@dataclass(frozen=True)
class Released:
    """One release."""

    plan: Plan | DataDependentPlan | MeasuredSums | MeasuredTable | MadeChoice
    counts: np.ndarray
    epsilon: Epsilon
    scales: tuple[Fraction, ...]
    """Of the noise that was really drawn."""
    axes: tuple[Axis, ...]
    """What the counts are about."""
    snapshot: int = 0
    """Of the rows; whoever is in them may have other values in the next."""
    values: tuple[int, ...] = ()
    """What came out of the noisy rows."""
    whole: Epsilon | None = None
    """The ε of its noise where it refines an earlier release: ``epsilon`` is what it adds to that one."""
    dropped: bool = False
    """Whether rows that a declaration leaves out are in a box of their own."""

    moved: dict[tuple[int, ...], Fraction | float] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """What it loses about a row that moves between two boxes, as far as somebody asked for it."""

    def places_of(self, columns: tuple[Column, ...]) -> tuple[int, ...]:
        """The box of every record, −1 for what is in none; nobody comes last."""
        return _places(columns, self.axes, self.dropped)

    @property
    def noise(self) -> Epsilon:
        """The ε that its noise is for."""
        return self.whole or self.epsilon

    @property
    def noise_scales(self) -> tuple[Fraction, ...]:
        """Of the noise in what came out, which for a refined release is not what was drawn last."""
        if self.whole is None or not isinstance(self.plan, Plan):
            return self.scales
        return tuple(_scales(self.plan, self.whole))

    @cached_property
    def each(self) -> np.ndarray:
        """By how much one row more in a box changes what is measured, over its noise: a line for each box."""
        plan, nothing = self.plan, np.zeros_like(self.counts)
        if isinstance(plan, DataDependentPlan):
            return np.eye(nothing.size) * float(self.epsilon)
        scales = np.array([float(scale) for scale in plan.scales.fractions(self.epsilon)])
        weights = np.divide(1, scales, out=np.full(scales.size, EXACT), where=scales > 0)
        before = np.asarray(plan.measure(nothing), dtype=np.float64)
        decoded = np.asarray(plan.decode(before, nothing), dtype=np.float64)
        lines = []
        for box in range(nothing.size):
            one = nothing.copy()
            one[box] = 1
            change = (np.asarray(plan.measure(one), dtype=np.float64) - before) * weights
            used = np.asarray(plan.decode(before, one), dtype=np.float64) - decoded
            lines.append(np.concatenate((change, used * EXACT)))
        return np.array(lines)


@dataclass
class Drawn:
    """A source of noise that writes down its scales."""

    noise: Any
    scales: list[Fraction] = field(default_factory=list)

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """As the source has it."""
        each = np.asarray(scale, dtype=object)
        each = each if size is None else np.broadcast_to(each, size)
        self.scales += [Fraction(one) for one in each.ravel()]
        return self.noise.discrete_laplace(scale, size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)


@dataclass
class Watch:
    """The releases of one step, and what is to happen in the middle of the next one."""

    released: list[Released] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None
    lose: int | None = None
    """How many more answers come out before one does not."""
    within: bool = False
    """Whether a release is just being made: the releases that some mechanisms make of it are its own."""
    axes: tuple[Axis, ...] = ()
    snapshot: int = 0
    unrefined: list[Released] = field(default_factory=list)
    """Every release so far that has not been made more accurate."""

    def refine(self, plan: Plan, earlier: EarlierRelease, counts: np.ndarray) -> bool:
        """Whether what is made more accurate is a release of the same rows of which that is done once.

        If so, both together lose what the second loses alone; otherwise the second is one more.
        """
        for place, before in enumerate(self.unrefined):
            about = before.snapshot == self.snapshot and plain_axes(before.axes) == plain_axes(self.axes)
            if about and np.array_equal(before.counts, counts) and before.values == tuple(earlier.values):
                del self.unrefined[place]
                return _noisy_rows(before.plan, before.noise) == _noisy_rows(plan, earlier.epsilon)
        return False

    def taken(self) -> list[Released]:
        """What was released since the last time."""
        found, self.released = self.released, []
        return found


@dataclass
class Noting:
    """A database that notes what is going to be counted."""

    backend: Any
    watch: Watch
    snapshot: int

    def prepare(self, query: CellQuery) -> Any:
        """As the database has it."""
        return NotingCounts(self.backend.prepare(query), self.watch, query.axes, self.snapshot)

    def prepare_kinds(self, query: CellQuery) -> Any:
        """As the database has it."""
        return self.backend.prepare_kinds(query)

    def prepare_sums(self, query: SumQuery) -> Any:
        """As the database has it."""
        return NotingCounts(self.backend.prepare_sums(query), self.watch, values_alone(query), self.snapshot)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)


@lru_cache(maxsize=256)
def _places(columns: tuple[Column, ...], axes: tuple[Axis, ...], dropped: bool) -> tuple[int, ...]:
    shape = tuple(axis.bins.count + dropped for axis in axes)
    names = [column.name for column in columns]
    asked = [(names.index(axis.column), axis.bins) for axis in axes]
    places = []
    for record in every_record(columns):
        cells = [record[place] for place, _ in asked]
        if DROPPED in cells and not dropped:
            places.append(-1)
            continue
        bins = [
            cut.count if cell == DROPPED else int(cut.assign(np.array([cell]))[0])
            for cell, (_, cut) in zip(cells, asked, strict=True)
        ]
        places.append(int(np.ravel_multi_index(bins, shape)) if bins else 0)
    return (*places, -1)


@dataclass
class NotingCounts:
    """A statement that notes what is counted when it is."""

    prepared: Any
    watch: Watch
    axes: tuple[Axis, ...]
    snapshot: int

    def count(self, *given: Any) -> Any:
        """As the database has it."""
        self.watch.axes, self.watch.snapshot = self.axes, self.snapshot
        return self.prepared.count(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.prepared, name)


def _noisy_rows(plan: Plan | DataDependentPlan, epsilon: Epsilon) -> Any:
    """Rows over the cells and the scales of their noise."""
    if not isinstance(plan, Plan):
        return None
    rows, scales = ReleasedRows(plan, epsilon).noisy
    return rows.toarray().tolist(), scales


def _scales(plan: Plan, epsilon: Epsilon) -> list[Fraction]:
    return [scale for scale in plan.scales.fractions(epsilon) if scale]


def _values(plan: Plan | DataDependentPlan, epsilon: Epsilon, seen: Observation) -> tuple[int, ...]:
    if not isinstance(plan, Plan) or plan.free or not plan.refinable:
        return ()
    return tuple(ReleasedRows(plan, epsilon).noisy_values(seen).tolist())


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Within, every release is written down; nothing about it is changed."""
    originals: list[tuple[type, Callable[..., Any]]] = [
        (Plan, Plan.observe),
        (DataDependentPlan, DataDependentPlan.observe),
    ]

    def noted(original: Callable[..., Any]) -> Callable[..., Any]:
        def observe(self: Any, x: Any, *, epsilon: Any, noise: Any) -> Any:
            if watch.within:
                return original(self, x, epsilon=epsilon, noise=noise)
            if watch.meanwhile is not None:
                happens, watch.meanwhile = watch.meanwhile, None
                happens()
            counts = x.reveal() if isinstance(x, Secret) else np.asarray(x)
            drawn = Drawn(noise)
            watch.within = True
            try:
                found = original(self, x, epsilon=epsilon, noise=drawn)
            finally:
                watch.within = False
            values = _values(self, Epsilon(epsilon), found)
            assert drawn.scales or not np.any(found.measured), "measured without noise, and kept"
            scales = tuple(drawn.scales)
            out(Released(self, counts, Epsilon(epsilon), scales, watch.axes, watch.snapshot, values))
            return found

        return observe

    def release(self: SumsPlan, table: Any, *, epsilon: Any, noise: Any) -> Any:
        if watch.meanwhile is not None:
            happens, watch.meanwhile = watch.meanwhile, None
            happens()
        drawn, problem = Drawn(noise), self.problem
        found = released(self, table, epsilon=epsilon, noise=drawn)
        each = [self.scale(epsilon) if noisy else Fraction(0) for noisy in problem.noisy]
        seen = MeasuredSums(problem, tuple(each * problem.groups), self.free)
        cells = math.prod(axis.bins.count for axis in watch.axes)
        counts = np.concatenate((np.zeros(cells, dtype=np.int64), table.reveal().ravel()))
        scales = tuple(drawn.scales)
        out(Released(seen, counts, Epsilon(epsilon), scales, watch.axes, watch.snapshot))
        return found

    def out(told: Released) -> None:
        watch.released.append(told)
        watch.unrefined.append(told)
        if watch.lose is not None:
            watch.lose -= 1
            if watch.lose < 0:  # whoever looked at the machine then has seen it
                raise QueryFailed("The database went away.", fixes=("ask again",))

    def refine(self: Plan, x: Any, earlier: EarlierRelease, *, epsilon: Any, noise: Any) -> Any:
        counts = x.reveal() if isinstance(x, Secret) else np.asarray(x)
        given: list[tuple[list[Fraction], list[Fraction]]] = []

        def noted_noise(old: Any, coarse: Any, fine: Any, source: Any) -> Any:
            given.append((list(coarse), list(fine)))
            return refined(old, coarse, fine, source)

        plans.refined = noted_noise  # type: ignore[attr-defined]
        try:
            found = originally(self, x, earlier, epsilon=epsilon, noise=noise)
        finally:
            plans.refined = refined  # type: ignore[attr-defined]
        whole, before = Epsilon(epsilon), earlier.epsilon
        right = [tuple(_scales(self, at) for at in (before, whole))] == given
        once = watch.refine(self, earlier, counts)
        adds = whole - before if once else whole
        scales = tuple(_scales(self, adds)) if right else ()
        values = _values(self, whole, found)
        out(Released(self, counts, adds, scales, watch.axes, watch.snapshot, values, whole))
        return found

    originally, Plan.refine = Plan.refine, refine  # type: ignore[method-assign, misc]
    released, SumsPlan.release = SumsPlan.release, release  # type: ignore[method-assign]
    for owner, original in originals:
        owner.observe = noted(original)  # type: ignore[attr-defined]
    try:
        with following(watch):
            yield watch
    finally:
        Plan.refine = originally  # type: ignore[method-assign, misc]
        SumsPlan.release = released  # type: ignore[method-assign]
        for owner, original in originals:
            owner.observe = original  # type: ignore[attr-defined]
