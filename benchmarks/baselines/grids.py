"""Grids whose fineness depends on how many records there are (Qardaji, Yang and Li 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, divided
from benchmarks.baselines.nested import Level, boxes, least_squares
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO

_FINENESS = 10.0  # the paper's c: records per unit of noise and cell
_INNER_FINENESS = 5.0  # its c₂
_COARSEST = 10
_FOR_TOTAL = 0.05  # of the budget, where the number of records is hidden


@final
@dataclass(frozen=True)
class UniformGrid(Baseline):
    """One m × m grid, m = √(N·ε/10), each box spread evenly.

    N is the public number of records or, where that is hidden, a noisy one. Private: m depends on what was
    asked before, a record is in one box, and the questions share the budget.
    """

    title: ClassVar[str] = "Uniform grid"
    axes: ClassVar[tuple[int, ...]] = (2,)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        total, whole, left = counted(problem, asking, budget)
        parts = max(_COARSEST, math.ceil(_fineness(total, left, _FINENESS)))
        return least_squares([whole, Level.asked(asking, boxes(problem.shape, parts), left)], problem.total)

    def describe(self) -> str:
        return "Counts of one grid, as fine as the number of records allows"


@final
@dataclass(frozen=True)
class AdaptiveGrid(Baseline):
    """A coarse grid at half of the budget, and in each box a finer one that suits its noisy count.

    m₁ = max(10, √(N·ε/10)/4), m₂ = √(N′·(1 − α)ε/5), α = 1/2; the two levels are combined by least squares.
    Private: m₂ depends on noisy counts only, a record is in one box of both, and they share the budget.
    """

    title: ClassVar[str] = "Adaptive grid"
    axes: ClassVar[tuple[int, ...]] = (2,)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        total, whole, left = counted(problem, asking, budget)
        first, second = divided(left, [1, 1])
        parts = max(_COARSEST, math.ceil(_fineness(total, left, _FINENESS) / 4))
        coarse = Level.asked(asking, boxes(problem.shape, parts), first)
        inner = np.array([math.ceil(_fineness(n, second, _INNER_FINENESS)) for n in coarse.answers.tolist()])
        fine = Level.asked(asking, _finer(problem.shape, parts, np.maximum(inner, 1)), second)
        return least_squares([whole, coarse, fine], problem.total)

    def describe(self) -> str:
        return "Counts of a coarse grid, then of a finer one in each box, as fine as its noisy count allows"


def counted(problem: Problem, asking: Asking, budget: int) -> tuple[int, Level, int]:
    """The number of records, the level that knows it, and the budget that is left."""
    root = boxes(problem.shape, 1)
    if problem.total is not None:
        return problem.total, Level.unasked(root), budget
    rate, left = divided(budget, [_FOR_TOTAL, 1 - _FOR_TOTAL])
    whole = Level.asked(asking, root, rate)
    return int(whole.answers[0]), whole, left


def _fineness(records: int, rate: int, constant: float) -> float:
    return math.sqrt(max(0, records) * rate / NANO / constant)


def _finer(shape: tuple[int, ...], parts: int, inner: IntArray) -> IntArray:
    """Each box of the coarse grid cut into inner × inner, or into its cells where it has fewer."""
    rows, columns = shape
    tall, wide = min(parts, rows), min(parts, columns)
    coarse = boxes(shape, parts)
    row, column = np.divmod(np.arange(rows * columns, dtype=np.int64), columns)
    down, pieces_down = _within(row, rows, tall, inner[coarse])
    across, pieces_across = _within(column, columns, wide, inner[coarse])
    counts = np.zeros(tall * wide, dtype=np.int64)
    counts[coarse] = pieces_down * pieces_across
    first = np.cumsum(counts) - counts
    return np.asarray(first[coarse] + down * pieces_across + across)


def _within(place: IntArray, length: int, parts: int, inner: IntArray) -> tuple[IntArray, IntArray]:
    """For every cell, its piece within its part of the axis, and how many pieces that part has."""
    part = place * parts // length
    start = -(-part * length // parts)
    stop = -(-(part + 1) * length // parts)
    pieces = np.minimum(inner, stop - start)
    return (place - start) * pieces // (stop - start), pieces
