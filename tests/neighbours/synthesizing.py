"""Synthetic tables of two neighbouring databases: the second is made to come out as the first did.

Everything that is not noise then has to be the same, rows and report included; and how much less likely it
was is the exact loss: of every table by its counts, of every choice by the scores that were chosen from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.mechanisms.synthesis import Synthesis, SynthesisPlan, Table, selection_law
from blowfishdb.mechanisms.synthesis import plan as planning
from blowfishdb.mechanisms.synthesis import rounds as measuring
from blowfishdb.mechanisms.synthesis.tables import every_value
from blowfishdb.service import synthesis as serving

if TYPE_CHECKING:
    from tests.neighbours.watching import Watch


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table of a synthesis, as what is measured of its boxes."""

    rows: Any
    scale: Fraction
    published = Plan.published

    @property
    def free(self) -> bool:
        """Whether there is no noise."""
        return not self.scale

    @property
    def scales(self) -> MeasuredTable:
        """As a plan has them."""
        return self

    def fractions(self, _: Epsilon) -> list[Fraction]:
        """The scale of the noise of every number."""
        return [self.scale] * self.rows.shape[0]

    def measure(self, counts: np.ndarray) -> np.ndarray:
        """All numbers, without noise."""
        return np.asarray(self.rows @ counts)

    def decode(self, measured: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """What comes out is what is measured."""
        return measured


@dataclass(frozen=True, eq=False)
class MadeChoice:
    """A choice among tables: its scores, and the scale of the noise on each."""

    scores: np.ndarray
    scale: Fraction
    weight: int
    """By how much a score may change when one row moves."""

    def lost(self, other: MadeChoice, moved: bool) -> Fraction | float:
        """Between two databases; ``moved``: whether a row is in another bin of a column."""
        if self.scale != other.scale or self.scores.size != other.scores.size:
            return math.inf
        laws = [np.log(selection_law(each.scores.tolist(), each.scale)) for each in (self, other)]
        told = Fraction(float(np.abs(laws[0] - laws[1]).max())).limit_denominator(10**12)
        return max(told - Fraction(1, 10**9), 2 * self.weight / self.scale if moved else Fraction(0))


@dataclass
class Transcript:
    """What came out of the first side, and what the second side did to come out the same."""

    watch: Watch
    earlier: Synthesis | None = None
    picks: list[int] = field(default_factory=list)
    """Which table was chosen, choice by choice."""

    def release(self, original: Callable[..., Any]) -> Callable[..., Synthesis]:
        """The mechanism, watched; the first time it draws its noise, the second time that of the first."""

        def made(plan: SynthesisPlan, port: Any, *, noise: Any, progress: Any = None) -> Synthesis:
            run = _Run(plan, port, noise, self.earlier, self.picks)
            with mock.patch.object(measuring, "noisy_max", run.noisy_max):
                found: Synthesis = original(plan, port, noise=run, progress=progress)
            assert not run.left, "it ended elsewhere"
            self.earlier, self.picks = (found, run.picks) if self.earlier is None else (None, [])
            self._noted(run, found)
            return found

        return made

    def _noted(self, run: _Run, found: Synthesis) -> None:
        from tests.neighbours.watching import Released

        plan, snapshot, epsilon = run.plan, self.watch.snapshot, run.plan.epsilon
        out = self.watch.released.append
        for table, scales in zip(found.tables, run.scales(found), strict=True):
            axes, counts = plan.layout.chosen(table.columns), run.true(table.columns)
            seen = MeasuredTable(table.rows.sparse(), table.scale)
            out(Released(seen, counts, epsilon, scales, axes, snapshot))
        for choice, (scores, scale) in zip(found.choices, run.choices, strict=True):
            seen = MadeChoice(scores, scale, 1 if plan.target is None else 2)
            axes = plan.layout.chosen(choice.columns)
            none = np.zeros(math.prod(axis.bins.count + 1 for axis in axes), dtype=np.int64)
            out(Released(seen, none, epsilon, (), axes, snapshot, dropped=True))
        if found.kept is not None:
            axes = tuple(map(every_value, plan.layout.chosen(found.kept.columns)))
            out(Released(*_kept(found, axes), epsilon, (), axes, snapshot))


def _kept(found: Synthesis, axes: tuple[Axis, ...]) -> tuple[MeasuredTable, np.ndarray]:
    """Kept rows, as the exact number of every combination."""
    assert found.kept is not None
    shape = tuple(axis.bins.count for axis in axes)
    counts = np.zeros(math.prod(shape), dtype=np.int64)
    counts[np.ravel_multi_index(tuple(found.kept.cells.T), shape)] = found.kept.counts
    return MeasuredTable(np.eye(counts.size, dtype=np.int64), Fraction(0)), counts


@dataclass
class _Run:
    """One run of the mechanism: the source of its noise, which follows ``earlier`` if there is one."""

    plan: SynthesisPlan
    port: Any
    noise: Any
    earlier: Synthesis | None
    follow: list[int]
    picks: list[int] = field(default_factory=list)
    choices: list[tuple[np.ndarray, Fraction]] = field(default_factory=list)
    drawn: list[tuple[Fraction, int]] = field(default_factory=list)
    left: list[Table] = field(init=False)
    """Of the tables with noise that have to come out those that have not yet."""

    def __post_init__(self) -> None:
        self.left = [] if self.earlier is None else [one for one in self.earlier.tables if one.scale]

    def true(self, columns: tuple[int, ...]) -> np.ndarray:
        """The counts of a table."""
        return np.asarray(self.port.counts(columns).reveal())

    def discrete_laplace(self, scale: Fraction, size: int) -> Any:
        """As it was drawn, or as it must have been for the same numbers to come out."""
        self.drawn.append((scale, size))
        if self.earlier is None:
            return self.noise.discrete_laplace(scale, size)
        assert self.left, "more was measured"
        table = self.left.pop(0)
        assert (table.scale, table.values.size) == (scale, size), "it was measured otherwise"
        return table.values - np.asarray(table.rows.sparse() @ self.true(table.columns))

    def noisy_max(self, scores: np.ndarray, scale: Fraction, noise: Any) -> int:
        """As it was chosen."""
        self.choices.append((np.asarray(scores), scale))
        if self.earlier is None:
            self.picks.append(int(np.argmax(scores + self.noise.geometric([scale] * len(scores)))))
            return self.picks[-1]
        assert len(self.choices) <= len(self.follow), "more was chosen"
        return self.follow[len(self.choices) - 1]

    def scales(self, found: Synthesis) -> Iterator[tuple[Fraction, ...]]:
        """Of the noise that was really drawn for every table."""
        drawn = iter(self.drawn)
        for table in found.tables:
            if not table.scale:
                yield ()
                continue
            scale, size = next(drawn)
            yield (scale,) * size

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)


@contextmanager
def following(watch: Watch) -> Iterator[None]:
    """Within, every second synthetic table comes out as the one before it; few rows do for rounds too."""
    transcript = Transcript(watch)
    with (
        mock.patch.object(serving, "release", transcript.release(serving.release)),
        mock.patch.object(planning, "ENOUGH", 0),
        mock.patch.object(planning, "ENOUGH_GIVEN", 0),
    ):
        yield
