"""Syntheses of small tables in memory, and the exact probability of what came out under another table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import blowfishdb as bf
from blowfishdb.core.accuracy import pmf
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.synthesis import Synthesis, SynthesisPlan, release, selection_law
from blowfishdb.mechanisms.synthesis import rounds as measuring
from blowfishdb.mechanisms.synthesis.junction_tree import Group


@dataclass(frozen=True, eq=False)
class Rows:
    """The port over rows of bins, in ``valued`` columns of values; −1 is a row that a column leaves out."""

    rows: IntArray
    bins: tuple[int, ...]
    valued: Mapping[int, bf.Bins] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: SynthesisPlan, rows: IntArray) -> Rows:
        """For a plan: kept columns are told by value."""
        return cls(rows, plan.layout.bins, {at: plan.layout.axes[at].bins for at in plan.kept})

    def counts(self, columns: Group) -> Secret[IntArray]:
        return Secret(self.true(columns))

    def kinds(self, columns: Group) -> Secret[IntArray]:
        """A line for each row, in the order of all its values, hidden ones first: as a database might."""
        rows = self.rows[np.lexsort(self.rows.T[::-1])]
        return Secret(np.column_stack((rows[:, columns], np.ones(len(rows), dtype=np.int64))))

    def true(self, columns: Group) -> IntArray:
        shape = tuple(self.bins[column] for column in columns)
        binned = self.rows.copy()
        for at, bins in self.valued.items():
            binned[:, at] = bins.assign(self.rows[:, at])
        some = binned[(binned[:, columns] >= 0).all(axis=1)]
        place = np.ravel_multi_index(tuple(some[:, column] for column in columns), shape)
        return np.bincount(place, minlength=math.prod(shape))


def axes_of(domain: bf.Domain, **bins: Any) -> tuple[Axis, ...]:
    return tuple(Axis(name, domain[name], bins.get(name, domain[name].bins())) for name in domain.names)


def made(plan: SynthesisPlan, rows: IntArray, seed: int = 0) -> Synthesis:
    return release(plan, Rows.of(plan, rows), noise=bf.noise.seeded(seed))


@dataclass(eq=False)
class Replay:
    """Noise that makes a synthesis of other rows come out the same, and how likely that is."""

    earlier: Synthesis
    rows: Rows
    parts: list[float] = field(default_factory=list)
    """The log-probability of every table with noise, and of every choice."""
    laws: list[Any] = field(default_factory=list)
    """Of every choice the log-probability of each candidate."""
    at: int = 0
    chosen: int = 0

    def discrete_laplace(self, scale: Fraction, size: int) -> IntArray:
        while not self.earlier.tables[self.at].scale:
            self.at += 1
        table = self.earlier.tables[self.at]
        self.at += 1
        assert table.scale == scale and table.values.size == size
        noise = table.values - np.asarray(table.rows.sparse() @ self.rows.true(table.columns))
        self.parts.append(float(np.log(pmf(noise, scale)).sum()))
        return np.asarray(noise, dtype=np.int64)

    def noisy_max(self, scores: IntArray, scale: Fraction, _: object) -> int:
        pairs = [table.columns for table in self.earlier.tables if table.round]
        law = np.log(selection_law(scores.tolist(), scale))
        self.laws.append(law)
        wanted = pairs[self.chosen]
        self.chosen += 1
        self.parts.append(float(law[self.candidates.index(wanted)]))
        return self.candidates.index(wanted)

    candidates: Sequence[Group] = ()


def likelihood(plan: SynthesisPlan, earlier: Synthesis, rows: IntArray, patch: Any) -> Replay:
    """How likely ``earlier`` is from these rows; every pair must be a candidate in every round."""
    replay = Replay(earlier, Rows.of(plan, rows), candidates=plan.candidates)
    with patch.context() as inside:
        inside.setattr(measuring, "noisy_max", replay.noisy_max)
        again = release(plan, replay.rows, noise=replay)  # type: ignore[arg-type]
    assert len(again.tables) == len(earlier.tables), "it ended elsewhere"
    return replay


def neighbours(rows: IntArray, moves: Callable[[IntArray], Sequence[IntArray]]) -> list[IntArray]:
    """The same rows with the first of them moved."""
    found = []
    for to in moves(rows[0]):
        other = rows.copy()
        other[0] = to
        found.append(other)
    return found
