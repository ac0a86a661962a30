"""HybridTree: private medians near the root, a quadtree below (Cormode et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Ballot, check_split, divided
from benchmarks.baselines.nested import Level, least_squares
from benchmarks.baselines.plan import Baseline, Problem
from benchmarks.baselines.trees import geometric
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.mechanisms.hierarchical import height_for

Box = tuple[int, int, int, int]
"""Top, bottom, left, right; the ends are not included."""


@final
@dataclass(frozen=True)
class HybridTree(Baseline):
    """``switch`` levels of four boxes cut at medians, then halves; finer levels get more of the budget.

    ``split`` of the budget chooses medians. Private: left minus right changes by at most one with a record,
    boxes of a level are disjoint, and all levels share the budget.
    """

    split: float = 0.3
    switch: int = 3
    title: ClassVar[str] = "Hybrid tree"
    axes: ClassVar[tuple[int, ...]] = (2,)

    def __post_init__(self) -> None:
        check_split(self.split)
        if self.switch < 1:
            raise InvalidWorkload("A hybrid tree has at least one level of medians.")

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        choosing, counting = divided(budget, [self.split, 1 - self.split])
        rows, columns = problem.shape
        partitions = [[(0, rows, 0, columns)]]
        for axis, rate in enumerate(divided(choosing, [1.0] * (2 * self.switch))):
            partitions.append(_halved(partitions[-1], axis % 2, columns, asking, rate))
        labels = [_painted(boxes, rows, columns) for boxes in partitions[::2]]
        labels += _quarters(partitions[-1], labels[-1], rows, columns)
        if problem.total is None:
            rates = divided(counting, geometric(len(labels)))
            levels = [Level.asked(asking, part, rate) for part, rate in zip(labels, rates, strict=True)]
        else:
            rates = divided(counting, geometric(len(labels))[1:])
            levels = [Level.unasked(labels[0])]
            levels += [Level.asked(asking, part, rate) for part, rate in zip(labels[1:], rates, strict=True)]
        return least_squares(levels, problem.total)

    def describe(self) -> str:
        return (
            f"{self.split:.0%} of the budget cuts boxes at medians, the rest counts them and a quadtree below"
        )


def _halved(boxes: list[Box], axis: int, columns: int, asking: Asking, rate: int) -> list[Box]:
    """Every box cut across ``axis`` at a noisy median; a box of one row or column stays as it is."""
    wide = [box for box in boxes if box[2 * axis + 1] - box[2 * axis] > 1]
    cuts = dict(zip(wide, asking.choose([_median(box, axis, columns) for box in wide], rate), strict=True))
    found: list[Box] = []
    for box in boxes:
        if box not in cuts:
            found.append(box)
            continue
        top, bottom, left, right = box
        at = box[2 * axis] + 1 + cuts[box]
        if axis == 0:
            found += [(top, at, left, right), (at, bottom, left, right)]
        else:
            found += [(top, bottom, left, at), (top, bottom, at, right)]
    return found


def _median(box: Box, axis: int, columns: int) -> Ballot:
    """Option p: a cut after p + 1 rows or columns. The score is minus how uneven the two sides are."""
    top, bottom, left, right = box
    cells = (np.arange(top, bottom)[:, None] * columns + np.arange(left, right)).ravel()

    def scores(x: IntArray) -> IntArray:
        along = x.reshape(bottom - top, right - left).sum(axis=1 - axis)
        before = np.cumsum(along)[:-1]
        return np.asarray(-np.abs(2 * before - along.sum()))

    return Ballot(cells, scores, sensitivity=1)


def _painted(boxes: list[Box], rows: int, columns: int) -> IntArray:
    labels = np.empty((rows, columns), dtype=np.int64)
    for index, (top, bottom, left, right) in enumerate(boxes):
        labels[top:bottom, left:right] = index
    return labels.ravel()


def _quarters(boxes: list[Box], owner: IntArray, rows: int, columns: int) -> list[IntArray]:
    """Both axes of every box cut into 2, 4, 8, … parts, down to the cells."""
    top, bottom, left, right = np.array(boxes, dtype=np.int64).T
    row, column = np.divmod(np.arange(rows * columns, dtype=np.int64), columns)
    tall, wide = (bottom - top)[owner], (right - left)[owner]
    found = []
    for level in range(1, height_for(int(max(tall.max(), wide.max())), 2) + 1):
        down, across = np.minimum(2**level, tall), np.minimum(2**level, wide)
        parts = (row - top[owner]) * down // tall * across + (column - left[owner]) * across // wide
        found.append(np.unique(owner * (4**level) + parts, return_inverse=True)[1].astype(np.int64))
    return found
