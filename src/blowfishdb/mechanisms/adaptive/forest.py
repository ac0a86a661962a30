"""What an adaptive run measured, as a forest of runs of cells with noisy counts.

From noisy counts of a forest to cells: means upwards, shares downwards. Post-processing only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from blowfishdb.core.accuracy import variance
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.mechanisms.adaptive.loops import down, up
from blowfishdb.mechanisms.adaptive.measuring import Measuring

_SMALLEST_VARIANCE = 1e-30  # of a discrete noise that is practically zero: its inverse must stay finite


@final
@dataclass(frozen=True, eq=False)
class Nodes:
    """Roots first; the children of a node stand side by side, after it.

    ``precision`` is Σ of the precisions of the answers about a node, ``weighted`` Σ precision·answer.
    """

    starts: IntArray
    stops: IntArray
    parent: IntArray
    weighted: FloatArray
    precision: FloatArray

    @cached_property
    def children(self) -> tuple[IntArray, IntArray]:
        """For every node, its first child and how many it has."""
        counts = np.bincount(self.parent[self.parent >= 0], minlength=self.parent.size).astype(np.int64)
        first = np.zeros_like(counts)
        new = np.flatnonzero(np.diff(self.parent, prepend=-1))
        first[self.parent[new]] = new
        return first, counts


@final
@dataclass(eq=False)
class Forest:
    """Nodes as they are found, and what was answered about them."""

    size: int = 0
    last_children: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Of the last ``add_groups``: the node of every child."""

    def __post_init__(self) -> None:
        self._runs: list[tuple[IntArray, IntArray, IntArray]] = []
        self._notes: list[tuple[IntArray, IntArray, IntArray]] = []
        self._unfinished: list[tuple[IntArray, IntArray]] = []

    @classmethod
    def of_roots(cls, cuts: IntArray) -> Forest:
        """Roots that lie between the cuts."""
        forest = cls()
        forest.add(cuts[:-1], cuts[1:], np.full(cuts.size - 1, -1, dtype=np.int64))
        return forest

    def add(self, starts: IntArray, stops: IntArray, parents: IntArray) -> IntArray:
        """New nodes, in the order of their parents; their numbers."""
        self._runs.append((starts, stops, parents))
        self.size += starts.size
        return np.arange(self.size - starts.size, self.size, dtype=np.int64)

    def add_groups(
        self,
        runs: tuple[IntArray, IntArray],
        parents: IntArray,
        item: IntArray,
        big: BoolArray,
        left: IntArray,
    ) -> IntArray:
        """Children that form items: a node per item, below it its members if there are several.

        Items that are not big get what is ``left`` of their budget, at the end. The numbers of the big ones.
        """
        first = np.flatnonzero(np.diff(item, prepend=-1))
        sizes = np.diff(first, append=item.size)
        nodes = self.add(runs[0][first], runs[1][first + sizes - 1], parents[first])
        inside = (sizes > 1)[item]
        self.last_children = nodes[item]
        self.last_children[inside] = self.add(runs[0][inside], runs[1][inside], nodes[item[inside]])
        stopped = ~big[first]
        self._unfinished.append((nodes[stopped], left[first[stopped]]))
        return nodes[~stopped]

    def note(self, nodes: IntArray, answers: IntArray, rates: IntArray) -> None:
        """Answers about nodes, each at most once in a call."""
        self._notes.append((nodes, answers, rates))

    def finished(self, measuring: Measuring) -> Nodes:
        """Every group is asked about once more, at what is left of its budget; then all is known."""
        starts, stops, parents = (np.concatenate(parts) for parts in zip(*self._runs, strict=True))
        if self._unfinished:
            nodes, rates = (np.concatenate(parts) for parts in zip(*self._unfinished, strict=True))
            self.note(nodes, measuring.ask(starts[nodes], stops[nodes], rates), rates)
        weighted, precision = np.zeros(self.size), np.zeros(self.size)
        for nodes, answers, rates in self._notes:
            of_answers = precisions(rates)
            weighted[nodes] += of_answers * answers
            precision[nodes] += of_answers
        return Nodes(starts, stops, parents, weighted, precision)


def precisions(rates: IntArray) -> FloatArray:
    """One over the variance of the noise at every rate."""
    if not rates.size or rates.min() == rates.max():
        return np.full(rates.size, _precision(int(rates[0])) if rates.size else 0.0)
    distinct, which = np.unique(rates, return_inverse=True)
    return np.array([_precision(int(rate)) for rate in distinct])[which]


@lru_cache(maxsize=1024)
def _precision(rate: int) -> float:
    return 1 / max(variance(Fraction(NANO, rate)), _SMALLEST_VARIANCE)


@final
@dataclass(frozen=True, eq=False)
class Estimates:
    """The best unbiased estimate of every node from itself and what is below, and its variance.

    A node about which nothing is known has an infinite variance.
    """

    nodes: Nodes
    values: FloatArray
    variances: FloatArray


def upwards(nodes: Nodes) -> Estimates:
    """Inverse-variance means of a node's own answers and the sum of its children."""
    values, variances = up(*nodes.children, nodes.weighted, nodes.precision)
    return Estimates(nodes, values, variances)


def downwards(
    estimates: Estimates, totals: FloatArray | None, *, sparse: bool = False, smooth: bool = False
) -> FloatArray:
    """The cells: each family shares out its parent's count, nearest to its estimates and never negative.

    ``totals`` are the counts of the roots; without them the children of a root are only kept from being
    negative. ``sparse`` first takes children that hardly differ from zero as zero, while the others can hold
    the parent's count; ``smooth`` lets families of single cells shrink towards an even share, by as much as
    their noise explains their differences. A leaf of several cells is spread evenly.
    """
    nodes = estimates.nodes
    first, counts = nodes.children
    roots = int(np.count_nonzero(nodes.parent < 0))
    shares = np.zeros(nodes.starts.size)
    if totals is None:
        shares[:roots] = -1.0
    else:
        shares[:roots] = np.maximum(totals, 0.0)
    single = np.asarray((nodes.stops - nodes.starts == 1) & (counts == 0))
    down(first, counts, estimates.values, estimates.variances, shares, single, sparse, smooth)
    leaves = np.flatnonzero(counts == 0)
    leaves = leaves[np.argsort(nodes.starts[leaves], kind="stable")]
    lengths = nodes.stops[leaves] - nodes.starts[leaves]
    return np.repeat(shares[leaves] / lengths, lengths)
