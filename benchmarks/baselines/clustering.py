"""Groups found in noisy cells, then counted again: AHP and DPCube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, check_split, divided
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.mechanisms.adaptive.forest import precisions

_SMALL = 0.35  # AHP's η: counts below η·√(ln n)/ε are taken as zero


@final
@dataclass(frozen=True)
class Ahp(Baseline):
    """Noisy cells, small ones set to zero, in clusters that are counted again (Zhang et al. 2014).

    Private: clusters depend on noisy cells only, and a record is in one cell and in one cluster.
    """

    split: float = 0.5
    title: ClassVar[str] = "AHP"
    axes: ClassVar[tuple[int, ...]] = tuple(range(1, 33))

    def __post_init__(self) -> None:
        check_split(self.split)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        first, second = divided(budget, [self.split, 1 - self.split])
        noisy = _cells(problem, asking, first)
        small = _SMALL * math.sqrt(math.log(max(2, problem.size))) * NANO / first
        labels = clusters(np.where(noisy < small, 0.0, noisy), 2.0 * (NANO / second) ** 2)
        counts = asking.counts(labels, np.full(int(labels.max()) + 1, second, dtype=np.int64))
        return np.asarray((counts / np.bincount(labels))[labels])

    def describe(self) -> str:
        return f"{self.split:.0%} of the budget measures all cells, the rest clusters of similar ones"


def clusters(values: FloatArray, variance: float) -> IntArray:
    """Runs of the sorted values: one joins while that costs less than a count of its own.

    A cluster costs its squared deviation and, spread over its cells, the variance of one count.
    """
    order = np.argsort(-values, kind="stable")
    labels = np.empty(values.size, dtype=np.int64)
    label, held, total, squares = 0, 0, 0.0, 0.0
    for cell, value in zip(order.tolist(), values[order].tolist(), strict=True):
        joined = squares + value**2 - (total + value) ** 2 / (held + 1)
        alone = squares - total**2 / held + variance if held else 0.0
        if held and joined + variance / (held + 1) > alone + variance / held:
            label, held, total, squares = label + 1, 0, 0.0, 0.0
        labels[cell] = label
        held, total, squares = held + 1, total + value, squares + value**2
    return labels


@final
@dataclass(frozen=True)
class DpCube(Baseline):
    """Noisy cells, cut into even boxes, which are counted again (Xiao, Gardner and Xiong 2012).

    A box's count is the mean of both answers by inverse variance, spread evenly. Private: boxes depend on
    noisy cells only, and a record is in one cell and in one box.
    """

    split: float = 0.5
    title: ClassVar[str] = "DPCube"

    def __post_init__(self) -> None:
        check_split(self.split)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        first, second = divided(budget, [self.split, 1 - self.split])
        noisy = _cells(problem, asking, first)
        rows, columns = problem.shape if len(problem.shape) == 2 else (1, problem.size)
        one = 1 / float(precisions(np.array([first]))[0])
        labels = even_boxes(noisy.reshape(rows, columns), one)
        sizes = np.bincount(labels)
        counts = asking.counts(labels, np.full(sizes.size, second, dtype=np.int64))
        trust = precisions(np.full(sizes.size, second, dtype=np.int64))
        sums, weight = np.bincount(labels, noisy), 1 / (one * sizes)
        return np.asarray(((counts * trust + sums * weight) / (trust + weight) / sizes)[labels])

    def describe(self) -> str:
        return f"{self.split:.0%} of the budget measures all cells, the rest boxes that look even in them"


def even_boxes(noisy: FloatArray, variance: float) -> IntArray:
    """Labels of boxes, cut where that lowers the squared deviation most, until noise explains the rest."""
    labels = np.zeros(noisy.shape, dtype=np.int64)
    boxes = [(0, noisy.shape[0], 0, noisy.shape[1])]
    found = 0
    while boxes:
        top, bottom, left, right = boxes.pop()
        part = noisy[top:bottom, left:right]
        deviation = float(((part - part.mean()) ** 2).sum())
        if part.size == 1 or deviation <= variance * (part.size + 3 * math.sqrt(5 * part.size)):
            labels[top:bottom, left:right] = found
            found += 1
            continue
        down, at_row = _best_cut(part.sum(axis=1), right - left)
        across, at_column = _best_cut(part.sum(axis=0), bottom - top)
        if down >= across:
            boxes += [(top, top + at_row, left, right), (top + at_row, bottom, left, right)]
        else:
            boxes += [(top, bottom, left, left + at_column), (top, bottom, left + at_column, right)]
    return labels.ravel()


def _best_cut(sums: FloatArray, width: int) -> tuple[float, int]:
    """By how much the best cut lowers the squared deviation, and where it is; none: less than nothing."""
    if sums.size < 2:
        return -1.0, 0
    before = np.cumsum(sums)[:-1]
    cells = np.arange(1, sums.size) * width
    rest = sums.sum() - before
    explained = before**2 / cells + rest**2 / (sums.size * width - cells)
    best = int(np.argmax(explained))
    return float(explained[best] - sums.sum() ** 2 / (sums.size * width)), best + 1


def _cells(problem: Problem, asking: Asking, rate: int) -> FloatArray:
    every = np.arange(problem.size, dtype=np.int64)
    return asking.counts(every, np.full(problem.size, rate, dtype=np.int64)).astype(np.float64)
