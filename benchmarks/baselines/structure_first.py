"""StructureFirst: borders by the exponential mechanism, then a tree in every bucket (Xu et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Ballot, check_split, divided
from benchmarks.baselines.nested import Level, least_squares
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.mechanisms.hierarchical import height_for


@final
@dataclass(frozen=True)
class StructureFirst(Baseline):
    """Borders from right to left, each chosen for the least squared deviation of what is left of it.

    Borders lie on a public lattice of at most ``places`` blocks, a tenth as many buckets; counts of blocks
    are cut off at ``largest`` for the scores. Private: a record changes a squared deviation by at most
    2·largest + 1, one more is for rounding, and the borders share ``split`` of the budget; in the trees every
    node has noise, which a known implementation leaves out.
    """

    split: float = 0.5
    places: int = 256
    largest: int = 1000
    title: ClassVar[str] = "StructureFirst"
    axes: ClassVar[tuple[int, ...]] = (1,)

    def __post_init__(self) -> None:
        check_split(self.split)
        if self.places < 1 or self.largest < 1:
            raise InvalidWorkload("StructureFirst needs at least one place and a positive largest count.")

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        size = problem.size
        places = min(self.places, size)
        blocks = np.arange(size, dtype=np.int64) * places // size
        buckets = max(1, places // 10)
        starts = [0]
        second = budget
        if buckets > 1:
            first, second = divided(budget, [self.split, 1 - self.split])
            starts = self._borders(blocks, buckets, asking, divided(first, [1.0] * (buckets - 1)))
        of_blocks = np.searchsorted(starts, np.arange(places), side="right") - 1
        return trees_within(of_blocks[blocks], asking, second, problem.total)

    def _borders(self, blocks: IntArray, buckets: int, asking: Asking, rates: list[int]) -> list[int]:
        """The first block of every bucket."""
        starts: list[int] = []
        stop = int(blocks[-1]) + 1
        for index, rate in zip(range(buckets - 1, 0, -1), rates, strict=True):
            ballot = _border(blocks, self.largest, index, stop)
            stop = index + asking.choose([ballot], rate)[0]
            starts.append(stop)
        return [0, *reversed(starts)]

    def describe(self) -> str:
        return (
            f"{self.split:.0%} of the budget places borders between buckets, the rest measures a tree of "
            "counts in each"
        )


def _border(blocks: IntArray, largest: int, before: int, stop: int) -> Ballot:
    """Option p: the last bucket of the blocks up to ``stop`` starts at before + p, with ``before`` more left.

    The score is minus the least squared deviation of the whole.
    """
    cells = np.flatnonzero(blocks < stop)

    def scores(x: IntArray) -> IntArray:
        counts = np.zeros(stop, dtype=np.int64)
        np.add.at(counts, blocks[cells], x)
        costs = squared_deviations(np.minimum(counts, largest))
        return -(least_costs(costs, before)[before:stop] + costs[before:stop, stop])

    return Ballot(cells.astype(np.int64), scores, sensitivity=2 * largest + 2)


def squared_deviations(counts: IntArray) -> IntArray:
    """⌈Σ(x_i − mean)²⌉ of every interval: entry (start, stop)."""
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
    squares = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts**2)))
    places = np.arange(sums.size)
    length = np.maximum(places[None, :] - places[:, None], 1)
    total = sums[None, :] - sums[:, None]
    return np.asarray(squares[None, :] - squares[:, None] - total**2 // length)


def least_costs(costs: IntArray, pieces: int) -> IntArray:
    """The least cost of cutting the first 0, 1, 2, … places into ``pieces`` intervals."""
    size = len(costs)
    far = np.int64(2**60)
    possible = np.where(np.tri(size, k=0, dtype=np.bool_), far, costs)  # an interval holds one place at least
    best = possible[0].copy()
    for _ in range(pieces - 1):
        best = np.minimum((best[:, None] + possible).min(axis=0), far)
    return np.asarray(best)


def trees_within(buckets: IntArray, asking: Asking, rate: int, total: int | None) -> FloatArray:
    """Binary trees inside runs of cells, all levels of a tree with the same noise, by least squares."""
    lengths = np.bincount(buckets)
    place = np.arange(buckets.size) - (np.cumsum(lengths) - lengths)[buckets]
    heights = np.array([height_for(int(length), 2) for length in lengths])
    levels = [Level.unasked(np.zeros(buckets.size, dtype=np.int64))]
    for depth in range(int(heights.max()) + 1):
        parts = np.minimum(2**depth, lengths)
        first = np.cumsum(parts) - parts
        labels = first[buckets] + place * parts[buckets] // lengths[buckets]
        rates = np.repeat(np.where(depth <= heights, rate // (heights + 1), 0), parts)
        levels.append(Level(labels, asking.counts(labels, rates), rates))
    return least_squares(levels, total)
