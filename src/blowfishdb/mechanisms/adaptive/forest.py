"""Measuring: the one way in which an adaptive mechanism learns about the data.

It asks for sums over runs of cells and gets them with noise. That the questions depend on nothing but the
answers before them, and what they cost every cell, is what docs/proofs/adaptive_tree.md claims and what tests
check, on runs that are written down and played back on other data.

What a run measured, as a forest of runs of cells with noisy counts.

From noisy counts of a forest to cells: means upwards, shares downwards. Post-processing only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np

from blowfishdb.core.accuracy import variance
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.noise import Noise
from blowfishdb.mechanisms.compiled import compiled

_SMALLEST_VARIANCE = 1e-30  # of a discrete noise that is practically zero: its inverse must stay finite


class Measuring(ABC):
    """Noisy sums over runs of cells."""

    @abstractmethod
    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        """Σ x[starts[q]:stops[q]] + discrete Laplace noise of scale 10⁹/rates[q], for every q.

        Rates are positive whole numbers of nano-ε: what the answer costs each cell that it counts.
        """


@final
class Noisy(Measuring):
    """True counts, seen through fresh noise."""

    def __init__(self, counts: IntArray, noise: Noise) -> None:
        self._prefixes = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        self._noise = noise

    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        sums = self._prefixes[stops] - self._prefixes[starts]
        if not sums.size:
            return sums
        if rates.min() == rates.max():
            return sums + self._noise.discrete_laplace(Fraction(NANO, int(rates[0])), sums.size)
        distinct, which = np.unique(rates, return_inverse=True)
        scales = [Fraction(NANO, int(rate)) for rate in distinct]
        return sums + self._noise.discrete_laplace([scales[index] for index in which])


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
    values, variances = _up(*nodes.children, nodes.weighted, nodes.precision)
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
    _down(first, counts, estimates.values, estimates.variances, shares, single, sparse, smooth)
    leaves = np.flatnonzero(counts == 0)
    leaves = leaves[np.argsort(nodes.starts[leaves], kind="stable")]
    lengths = nodes.stops[leaves] - nodes.starts[leaves]
    return np.repeat(shares[leaves] / lengths, lengths)


# --- loops ----------------------------------------------------------------------------------------


@compiled()
def _up(first, counts, weighted, precision):  # type: ignore[no-untyped-def]
    """Inverse-variance means of a node's own answers and of the sum of its children, from the leaves up."""
    values = np.zeros(counts.size)
    variances = np.full(counts.size, np.inf)
    for node in range(counts.size - 1, -1, -1):
        total, weight = weighted[node], precision[node]
        if counts[node] > 0:
            below, spread = 0.0, 0.0
            for child in range(first[node], first[node] + counts[node]):
                below += values[child]
                spread += variances[child]
            total += below / spread
            weight += 1.0 / spread
        if weight > 0:
            values[node] = total / weight
            variances[node] = 1.0 / weight
    return values, variances


def _simplex(estimates: Any, spread: Any, total: Any, active: Any) -> Any:
    """The shares s ≥ 0 with Σs = total that minimise Σ(s − estimates)²/spread: one level is taken off all."""
    shares = np.zeros(estimates.size)
    if total <= 0:
        return shares
    while True:
        held, weight = 0.0, 0.0
        for i in range(estimates.size):
            if active[i]:
                held += estimates[i]
                weight += spread[i]
        if weight == 0:  # a total that rounding has swallowed
            return shares
        level = (held - total) / weight
        fits = True
        for i in range(estimates.size):
            if active[i] and estimates[i] < level * spread[i]:
                active[i] = False
                fits = False
        if fits:
            break
    for i in range(estimates.size):
        if active[i]:
            shares[i] = estimates[i] - level * spread[i]
    return shares


def _drop_small(estimates: Any, spread: Any, total: Any, active: Any) -> Any:
    """Leave out the least certain estimates while the others still make up the total."""
    held = 0.0
    for i in range(estimates.size):
        active[i] = estimates[i] > 0
        if active[i]:
            held += estimates[i]
    if held <= 0:
        active[:] = True
        return
    for i in np.argsort(estimates / np.sqrt(spread)):
        if active[i]:
            if held - estimates[i] < total:
                break
            held -= estimates[i]
            active[i] = False


def _shrunk(estimates: Any, spread: Any, total: Any) -> Any:
    """Estimates drawn to their mean as James and Stein do, by 1 − (n − 3)·spread/Σ(x − mean)²."""
    count = estimates.size
    mean = estimates.mean()
    differences = ((estimates - mean) ** 2).sum()
    share = 1.0
    if count > 3:
        share = max(0.0, 1.0 - (count - 3) * spread / differences) if differences > 0 else 0.0
    return _simplex(mean + share * (estimates - mean), np.ones(count), total, np.ones(count, np.bool_))


@compiled(_simplex, _drop_small, _shrunk)
def _down(first, counts, values, variances, shares, single, sparse, smooth):  # type: ignore[no-untyped-def]
    """What every node has is divided among its children, from the roots down; ``shares`` is filled in."""
    for node in range(counts.size):
        if counts[node] == 0:
            continue
        begin, end = first[node], first[node] + counts[node]
        if shares[node] < 0:
            for child in range(begin, end):
                shares[child] = max(0.0, values[child])
            continue
        estimates, spread = values[begin:end], variances[begin:end]
        if smooth and single[begin:end].all():
            shares[begin:end] = _shrunk(estimates, spread[0], shares[node])
            continue
        active = np.ones(end - begin, np.bool_)
        if sparse:
            _drop_small(estimates, spread, shares[node], active)
        shares[begin:end] = _simplex(estimates, spread, shares[node], active)
