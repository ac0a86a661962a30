"""AdaptiveTree: a hierarchy that looks closer only where its answers say that there is something to see.

Going down a public tree of runs of cells, stopping where the answers say that little is left to learn.

A cell that stops early has budget left, which goes to a second look at its whole group: on every transcript
each cell of a tree pays exactly what its root was given.

The public tree of a grid: boxes within boxes, each one's children in the order of a Hilbert curve.

Written down in that order, every box and every group of consecutive boxes is one run of cells, so that a grid
is measured exactly as a line is.

The Hilbert curve: the cells of a grid in one row, neighbours in the row being neighbours in the grid.

Data-dependent mechanisms group cells along it: a run of the row is a compact piece of the grid.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, ceil_div
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NotProven
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.adaptive.forest import Forest, Measuring, Nodes, Noisy, downwards, upwards
from blowfishdb.mechanisms.compiled import compiled
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan

STOP = 8  # units of noise that a count must exceed to be worth a closer look; 7 to 10 behave alike


@final
@dataclass(frozen=True, eq=False)
class PublicTree:
    """Nested cuts of a line of cells: node i of level l is ``cuts[l][i] … cuts[l][i+1]``, level 0 the roots.

    ``order[p]`` is the cell at place p, where the line is not the cells' own order. ``shares[l−1]`` says how
    much of a root's budget the answers of level l take; a level without a share is not measured.
    ``stops[l−1]`` is how many units of noise a node of level l must exceed to be looked into.
    """

    cuts: tuple[IntArray, ...]
    shares: tuple[int, ...]
    stops: tuple[int, ...]
    order: IntArray | None = None

    @property
    def size(self) -> int:
        return int(self.cuts[0][-1])

    @property
    def levels(self) -> int:
        return len(self.shares)

    @cached_property
    def first_child(self) -> tuple[IntArray, ...]:
        """For every level but the last, where a node's children begin on the next one."""
        return tuple(
            np.searchsorted(finer, coarser).astype(np.int64)
            for coarser, finer in itertools.pairwise(self.cuts)
        )

    def paid_until(self, budgets: IntArray, level: int) -> IntArray:
        """What the first ``level`` levels take of each budget, rounded so that all of them take all."""
        return budgets * sum(self.shares[:level]) // sum(self.shares)


def line_levels(size: int, block: int, fanout: int, levels: int) -> tuple[IntArray, ...]:
    """Cuts of a line into blocks, and of every node into at most ``fanout`` nearly equal children."""
    cuts = [np.append(np.arange(0, size, block, dtype=np.int64), size)]
    for _ in range(levels):
        cuts.append(_divided(cuts[-1], fanout))
    return tuple(cuts)


def least_root(size: int, levels: int) -> int:
    """The least b ≥ 2 with b^levels ≥ size."""
    root = max(2, round(math.pow(size, 1 / levels)) - 1)
    while root**levels < size:
        root += 1
    return root


def _divided(cuts: IntArray, fanout: int) -> IntArray:
    lengths = np.diff(cuts)
    children = np.minimum(lengths, fanout)
    which, place = enumerated(children)
    inner = cuts[which] + lengths[which] * place // children[which]
    return np.append(inner, cuts[-1])


def enumerated(counts: IntArray) -> tuple[IntArray, IntArray]:
    """(owner, 0 … count−1) for every one of ``counts[owner]`` things, in order."""
    owner = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    return owner, np.arange(owner.size, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)


def descend(tree: PublicTree, budgets: IntArray, measuring: Measuring) -> Nodes:
    """Measure below every root whose budget (in nano-ε) is positive; a root itself is never measured.

    What is asked next depends on earlier answers and public values only. A cell lies in one question of every
    level until it stops, and then in one question about its group at all that is left.
    """
    forest = Forest.of_roots(tree.cuts[0])
    frontier = ids = np.flatnonzero(budgets > 0)
    each = budgets[frontier]
    for level in range(1, tree.levels + 1):
        first = tree.first_child[level - 1]
        family, place = enumerated(first[frontier + 1] - first[frontier])
        child = first[frontier][family] + place
        parents, runs = ids[family], (tree.cuts[level][child], tree.cuts[level][child + 1])
        if not tree.shares[level - 1]:
            frontier, ids, each = child, forest.add(*runs, parents), each[family]
            continue
        paid = tree.paid_until(each, level)
        rates = paid - tree.paid_until(each, level - 1)
        answers = measuring.ask(*runs, rates[family])
        if level == tree.levels:
            forest.note(forest.add(*runs, parents), answers, rates[family])
            break
        item, big = _group(answers, family, runs, tree.stops[level - 1] * NANO // rates, STOP * NANO // rates)
        ids = forest.add_groups(runs, parents, item, big, (each - paid)[family])
        forest.note(forest.last_children, answers, rates[family])
        frontier, each = child[big], each[family][big]
        if not frontier.size:
            break
    return forest.finished(measuring)


def _group(
    answers: IntArray, family: IntArray, runs: tuple[IntArray, IntArray], above: IntArray, limit: IntArray
) -> tuple[IntArray, BoolArray]:
    """Which children are looked into, and which item each belongs to: itself, or a group of small ones.

    Answers are whole, so thresholds rounded down decide as the exact ones would.
    """
    big = np.asarray((answers > above[family]) & (runs[1] - runs[0] > 1))
    item: IntArray = _items(answers, family, big, limit)
    return item, big


@compiled()
def _items(answers, family, big, limit):  # type: ignore[no-untyped-def]
    """The group of every answer: neighbours in a family join while they are small and the sum is too."""
    item = np.empty(answers.size, np.int64)
    current, total = -1, 0
    for i in range(answers.size):
        joins = i > 0 and family[i] == family[i - 1] and not big[i] and not big[i - 1]
        if joins and total + answers[i] <= limit[family[i]]:
            total += answers[i]
        else:
            current += 1
            total = answers[i]
        item[i] = current
    return item


_REMEMBERED = 64


@lru_cache(maxsize=_REMEMBERED)
def hilbert_order(rows: int, columns: int) -> IntArray:
    """The row-major indices of a grid's cells, in the order in which the curve visits them (read-only).

    On a grid of 2^a × 2^b cells every step is to a side neighbour. Any other grid takes the order of the
    least such grid that holds it, and steps may then be longer.
    """
    tall, wide = _power_of_two(rows), _power_of_two(columns)
    along, across = _squares_in_a_row(max(tall, wide), min(tall, wide))
    row, column = (along, across) if tall >= wide else (across, along)
    inside = (row < rows) & (column < columns)
    order = np.asarray(row * columns + column)[inside]
    order.flags.writeable = False
    return order


def _power_of_two(length: int) -> int:
    """The least power of two that is at least ``length``."""
    return 1 << (length - 1).bit_length()


def _squares_in_a_row(length: int, side: int) -> tuple[IntArray, IntArray]:
    """The curve through length/side squares: each ends beside where the next one starts."""
    along, across = _square(side)
    first = np.repeat(np.arange(0, length, side, dtype=np.int64), side * side)
    squares = length // side
    return first + np.tile(along, squares), np.tile(across, squares)


def _square(side: int) -> tuple[IntArray, IntArray]:
    """The curve from (0, 0) to (side − 1, 0): four half-size curves, the outer two turned."""
    along, across = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    half = 1
    while half < side:
        along, across = (
            np.concatenate((across, along, along + half, 2 * half - 1 - across)),
            np.concatenate((along, across + half, across + half, half - 1 - along)),
        )
        half *= 2
    return along, across


_LAST_STOP = 6  # units of noise, on the last level but one of a deep tree: what is below costs little more
_GRID_FANOUT = 64


def grid_tree(rows: int, columns: int) -> PublicTree:
    """Boxes of at most about 64 children, down to single cells."""
    levels = max(1, round(math.log(rows * columns, _GRID_FANOUT)))
    stops = [STOP] * levels
    if levels >= 3:
        stops[-2] = _LAST_STOP
    corners = np.array([[0], [0], [rows], [columns]], dtype=np.int64)
    cuts = [np.array([0, rows * columns], dtype=np.int64)]
    for fanouts in zip(_fanouts(rows, levels), _fanouts(columns, levels), strict=True):
        corners = _children(corners, *fanouts)
        areas = (corners[2] - corners[0]) * (corners[3] - corners[1])
        cuts.append(np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(areas))))
    return PublicTree(tuple(cuts), (1,) * levels, tuple(stops), corners[0] * columns + corners[1])


def _fanouts(length: int, levels: int) -> list[int]:
    """Powers of two that share out the length; what is left for the last level."""
    fanouts = []
    for level in range(1, levels):
        bits = ceil_div((length - 1).bit_length(), levels - level + 1)
        fanouts.append(min(length, 1 << bits))
        length = ceil_div(length, fanouts[-1])
    return [*fanouts, length]


def _children(corners: IntArray, down: int, right: int) -> IntArray:
    """The children of all boxes (top, left, bottom, right; one column each), box by box."""
    top, left, bottom, end = corners
    tall, wide = np.minimum(bottom - top, down), np.minimum(end - left, right)
    box, place = enumerated(tall * wide)
    across = np.empty_like(place)
    for height, width in np.unique(np.stack((tall, wide)), axis=1).T:
        own = ((tall == height) & (wide == width))[box]
        across[own] = hilbert_order(int(height), int(width))[place[own]]
    row, column = np.divmod(across, wide[box])
    return np.stack(
        (
            _cut(top, bottom, tall, box, row),
            _cut(left, end, wide, box, column),
            _cut(top, bottom, tall, box, row + 1),
            _cut(left, end, wide, box, column + 1),
        )
    )


def _cut(low: IntArray, high: IntArray, parts: IntArray, box: IntArray, place: IntArray) -> IntArray:
    return low[box] + (high - low)[box] * place // parts[box]


_FANOUT = 16
_LEAST_NANO = 100  # what can still be divided among all levels


@final
@dataclass(frozen=True)
class AdaptiveTree(DataDependentMechanism):
    """Counts of a tree from the top down; small counts stop, and what they save measures their group again.

    On one ordered attribute a tree of fan-out about 16, on two a tree of boxes along a Hilbert curve. More
    than two attributes are refused.

    *Guarantee*: ε-differential privacy where single records come and go; elsewhere, where the number of
    records is public, every cell pays ε/2, so that a move between any two cells costs at most ε. *Error*:
    depends on the data, hence no (α, β); ranges of real histograms 0.04–0.8 times a hierarchy's.
    *Theorem*: docs/proofs/adaptive_tree.md.

    >>> bf.mechanisms.AdaptiveTree().plan(bf.workloads.AllRanges(64), bf.graphs.Full(64)).name
    'Adaptive tree'
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> AdaptiveTreePlan:
        """How the tree would answer ``workload`` under ``graph``; NotProven if no proof covers it."""
        check_sizes(workload, graph)
        if graph.absent and not _add_remove(graph):
            raise NotProven(
                "The adaptive tree is proven where records come and go and nothing else is hidden, or where "
                "the number of counted records is public; this policy hides both values and presence.",
                fixes=("use Hierarchical() or Laplace()",),
            )
        shape = tuple(n for n in ordered_shape(workload, graph) if n > 1)
        if len(shape) > 2:
            raise NotProven(
                f"The adaptive tree is for one or two ordered attributes, and the question has {len(shape)}.",
                fixes=("ask about two attributes at a time", "use Best()"),
            )
        return AdaptiveTreePlan(workload, graph, shape)


def ordered_shape(workload: Workload, graph: PolicyGraph) -> tuple[int, ...]:
    """The axes of the cells: those of the workload, else of the policy, else one line."""
    return workload.axes or graph.counted.axes or (workload.size,)


def _add_remove(graph: PolicyGraph) -> bool:
    return isinstance(graph, Cone) and graph.apex is Apex.PRESENCE and graph.base.edge_count == 0


def check_divisible(epsilon: Epsilon, name: str) -> int:
    """``epsilon`` in whole nano-ε, enough of them for every part of a plan to get some."""
    if epsilon.nano < _LEAST_NANO:
        raise InvalidEpsilon(
            f"{epsilon} is too small to be divided among the levels of {name}.",
            fixes=(f"spend at least {Epsilon.from_nano(_LEAST_NANO)}",),
        )
    return epsilon.nano


@final
@dataclass(frozen=True, eq=False)
class AdaptiveTreePlan(DataDependentPlan):
    """One public tree, gone down as far as the answers lead."""

    workload: Workload
    graph: PolicyGraph
    shape: tuple[int, ...]
    name: str = "Adaptive tree"

    @cached_property
    def tree(self) -> PublicTree:
        """The tree before any data is seen."""
        if len(self.shape) == 2:
            return grid_tree(*self.shape)
        size = self.workload.size
        levels = max(1, round(math.log(size, _FANOUT)))
        cuts = line_levels(size, size, least_root(size, levels), levels)
        return PublicTree(cuts, (1,) * levels, (STOP,) * levels)

    @property
    def moves_cost(self) -> int:
        """How many cells one neighbouring step changes: what a cell pays is ε divided by this."""
        return 1 if self.graph.absent else 2

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        order = self.tree.order
        total = None if self.graph.absent else int(counts.sum())
        measuring = Noisy(counts if order is None else counts[order], noise)
        return self.estimate_through(measuring, total, epsilon=epsilon)

    def estimate_through(self, measuring: Measuring, total: int | None, *, epsilon: Epsilon) -> FloatArray:
        """The same, with the data behind ``measuring`` (in the order of the tree) and the public total."""
        each = np.array([check_divisible(epsilon, "an adaptive tree") // self.moves_cost], dtype=np.int64)
        estimates = upwards(descend(self.tree, each, measuring))
        totals = None if total is None else np.array([float(total)])
        if self.tree.order is None:
            return downwards(estimates, totals)
        totals = np.maximum(estimates.values[:1], 0.0) if totals is None else totals
        cells = np.empty(self.workload.size)
        cells[self.tree.order] = downwards(estimates, totals, sparse=True)
        return cells

    def explain(self) -> str:
        tree = self.tree
        walk = "along a Hilbert curve" if tree.order is not None else "from left to right"
        text = (
            f"Counts of a tree with {tree.levels} level{'s' if tree.levels > 1 else ''}, from the top down; "
            f"small counts stop, are grouped {walk} and measured again with what they saved, so that every "
            "cell pays "
        )
        if self.graph.absent:
            return text + "exactly ε whatever the data."
        return text + "ε/2 whatever the data: a move changes two cells. The total is public and exact."
