"""Blocks of θ cells: what a threshold policy charges for, edge by edge.

A count that holds both ends of a move, or neither, costs nothing. So counts up to a block's border are cheap,
and budget goes into a block only where there is something in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.mechanisms.adaptive.decoding import Estimates, downwards, upwards
from blowfishdb.mechanisms.adaptive.forest import precisions
from blowfishdb.mechanisms.adaptive.measuring import Measuring
from blowfishdb.mechanisms.adaptive.tree import STOP, PublicTree, descend, least_root, line_levels

_FANOUT = 16
_WINDOW = 64
_ROUNDING = 1e-9  # of a logarithm that should be whole


@final
@dataclass(frozen=True, eq=False)
class Blocks:
    """A public tree with one root per block, and how a budget is divided between borders and blocks."""

    tree: PublicTree
    first_look: Fraction
    """Which part of ε a first look at every border gets, if there is one; at most one half."""

    single_cells: bool
    """Whether blocks are measured cell by cell, for histograms."""

    @classmethod
    def for_ranges(cls, size: int, block: int) -> Blocks:
        """Trees of fan-out about 16 inside the blocks."""
        levels = max(1, math.ceil(math.log(block, _FANOUT) - _ROUNDING))
        cuts = line_levels(size, block, least_root(block, levels), levels)
        tree = PublicTree(cuts, (1,) * levels, (STOP,) * levels)
        return cls(tree, Fraction(3, 10 * levels), single_cells=False)

    @classmethod
    def for_cells(cls, size: int, block: int) -> Blocks:
        """Single cells inside the blocks, shared out within windows of at most 64."""
        blocks, cells = line_levels(size, block, block, 1)
        if block <= _WINDOW:
            return cls(PublicTree((blocks, cells), (1,), (STOP,)), Fraction(15, 100), single_cells=True)
        begun = (blocks[:-1, None] + np.arange(0, block, _WINDOW)).ravel()
        windows = np.append(begun[begun < size], size).astype(np.int64)
        tree = PublicTree((blocks, windows, cells), (0, 1), (STOP, STOP))
        return cls(tree, Fraction(5, 100), single_cells=True)

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return self.tree.cuts[0].size - 1

    def estimate(self, measuring: Measuring, total: int, epsilon: int) -> FloatArray:
        """A private estimate of every cell; ``epsilon`` in nano-ε, ``total`` the public number of records."""
        look = math.floor(epsilon * self.first_look) if self.count > 1 else 0
        borders = _Borders(self.tree.cuts[0], measuring)
        borders.measure(np.full(self.count - 1, look, dtype=np.int64))
        budgets = self._budgets(borders.differences(total), epsilon, look)
        borders.measure(epsilon - look - budgets[:-1] - budgets[1:])
        estimates = upwards(descend(self.tree, budgets, measuring))
        return downwards(estimates, borders.shares(estimates, total), smooth=self.single_cells)

    def _budgets(self, counts: IntArray, epsilon: int, look: int) -> IntArray:
        """What the cells of every block may pay.

        Nothing where little was seen; half of what the first look left, where a neighbouring block pays too;
        half of everything where none does.
        """
        within = (epsilon - look) // 2
        above = 16 * NANO // epsilon if self.single_cells else 6 * self.tree.levels * NANO // within
        active = np.diff(self.tree.cuts[0]) > 1
        if self.count > 1:
            active &= counts > above
        beside = np.zeros_like(active)
        beside[1:] |= active[:-1]
        beside[:-1] |= active[1:]
        return np.where(active, np.where(beside, within, epsilon // 2), 0).astype(np.int64)


@final
class _Borders:
    """What was measured of the counts up to each border between two blocks."""

    def __init__(self, cuts: IntArray, measuring: Measuring) -> None:
        self._inner = cuts[1:-1]
        self._measuring = measuring
        self._weighted = np.zeros(self._inner.size)
        self._precision = np.zeros(self._inner.size)
        self._latest = np.zeros(self._inner.size, dtype=np.int64)

    def measure(self, rates: IntArray) -> None:
        """Ask about every border whose rate is positive."""
        asked = np.flatnonzero(rates > 0)
        if not asked.size:
            return
        stops = self._inner[asked]
        answers = self._measuring.ask(np.zeros_like(stops), stops, rates[asked])
        of_answers = precisions(rates[asked])
        self._weighted[asked] += of_answers * answers
        self._precision[asked] += of_answers
        self._latest[asked] = answers

    def differences(self, total: int) -> IntArray:
        """The noisy count of every block, by the latest answers."""
        return np.diff(self._latest, prepend=0, append=total)

    def shares(self, estimates: Estimates, total: int) -> FloatArray:
        """The count of every block: least squares of borders and blocks, borders in order."""
        from blowfishdb.mechanisms.adaptive.loops import chain

        blocks = self._inner.size + 1
        answers = np.pad(self._weighted / self._precision, 1)
        trust = 1 / estimates.variances[:blocks]
        values = estimates.values[:blocks]
        return np.diff(chain(answers, np.pad(self._precision, 1), values, trust, float(total)))
