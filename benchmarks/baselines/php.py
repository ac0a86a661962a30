"""P-HP: a partition by repeated private halving, then noisy counts of its buckets (Ács et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Ballot, check_split, divided
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.mechanisms.dawa.partition import Ranked, expand, prefix_deviations, row_order
from blowfishdb.mechanisms.hierarchical import height_for

_UNITS = 16  # of cost per record
_SAFE = 2**56  # so that no product below leaves 64 bits


@final
@dataclass(frozen=True)
class Php(Baseline):
    """Every interval is cut where its two sides are most even, or left whole; ⌈log₂ n⌉ times.

    Private: a record changes the deviation of one side by at most 2, the intervals of a round are disjoint,
    and the rounds share ``split`` of the budget; the counts get the rest.
    """

    split: float = 0.5
    title: ClassVar[str] = "P-HP"

    def __post_init__(self) -> None:
        check_split(self.split)

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        order = row_order(problem.workload)
        first, second = divided(budget, [self.split, 1 - self.split])
        row = np.arange(problem.size, dtype=np.int64) if order is None else order
        buckets = self.partition(row, asking, first, second)
        labels = np.empty(problem.size, dtype=np.int64)
        labels[row] = np.repeat(np.arange(buckets.size), np.diff(buckets, append=problem.size))
        counts = asking.counts(labels, np.full(buckets.size, second, dtype=np.int64))
        return expand(buckets, counts.astype(np.float64), order, problem.size)

    def partition(self, row: IntArray, asking: Asking, first: int, second: int) -> IntArray:
        """Where the buckets of ``row`` begin, chosen at ``first`` nano-ε for counts that get ``second``."""
        penalty = round(_UNITS * NANO / second)
        open_intervals = [(0, row.size)] if row.size > 1 else []
        found: list[int] = [0]
        rounds = height_for(row.size, 2)
        for rate in divided(first, [1.0] * rounds) if rounds else []:
            ballots = [_cuts(row[start:stop], penalty) for start, stop in open_intervals]
            chosen = asking.choose(ballots, rate)
            halves = []
            for (start, stop), cut in zip(open_intervals, chosen, strict=True):
                if cut:
                    found.append(start + cut)
                    halves += [(start, start + cut), (start + cut, stop)]
            open_intervals = [(start, stop) for start, stop in halves if stop - start > 1]
        return np.array(sorted(found), dtype=np.int64)

    def describe(self) -> str:
        return (
            f"{self.split:.0%} of the budget halves intervals again and again where both sides are even, the "
            "rest counts what is left"
        )


def _cuts(cells: IntArray, penalty: int) -> Ballot:
    """Option 0: no cut. Option t: a cut after t cells."""

    def scores(counts: IntArray) -> IntArray:
        x = np.minimum(counts, _SAFE // counts.size**2)  # moves no further than the counts do
        left = prefix_deviations(Ranked(x), _UNITS)
        right = prefix_deviations(Ranked(x[::-1].copy()), _UNITS)[::-1]
        costs = np.empty(x.size, dtype=np.int64)
        costs[0] = left[-1] + penalty
        costs[1:] = left[:-1] + right[1:] + 2 * penalty
        return -costs

    return Ballot(cells, scores, sensitivity=2 * _UNITS)
