"""Brute force from first principles: what the fast code must agree with.

Every policy graph is drawn together with its adjacency by definition, written with plain loops
over pairs of cells and never with the code under test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from blowfishdb.core import graphs, workloads
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.lower_bound import bound

Adjacency = np.ndarray
Case = tuple[graphs.PolicyGraph, Adjacency]


def by_definition(size: int, joined: Callable[[int, int], bool]) -> Adjacency:
    table = np.zeros((size, size), dtype=bool)
    for u, v in itertools.combinations(range(size), 2):
        table[u, v] = table[v, u] = joined(u, v)
    return table


def random_partition(rng: np.random.Generator, size: int) -> np.ndarray:
    """Labels 0 … m−1, all used, contiguous or not."""
    raw = rng.integers(0, rng.integers(1, size + 1), size=size)
    if rng.random() < 0.5:
        raw = np.sort(raw)
    return np.unique(raw, return_inverse=True)[1]


def line_graph(rng: np.random.Generator, size: int) -> Case:
    """A graph on a line of cells: full, threshold, partition, banded, explicit or 1-D grid."""
    kind = rng.integers(0, 6)
    if kind == 0:
        return graphs.Full(size), by_definition(size, lambda u, v: True)
    theta = int(rng.integers(1, size + 3))
    if kind == 1:
        return graphs.Threshold(size, theta), by_definition(size, lambda u, v: abs(u - v) <= theta)
    if kind == 2:
        labels = random_partition(rng, size)
        return graphs.Partitioned(labels), by_definition(size, lambda u, v: bool(labels[u] == labels[v]))
    if kind == 3:
        reach = np.maximum.accumulate(np.minimum(np.arange(size) + rng.integers(0, 4, size), size - 1))
        return graphs.Banded(reach), by_definition(size, lambda u, v: v <= reach[u])
    if kind == 4:
        pairs = [p for p in itertools.combinations(range(size), 2) if rng.random() < 0.3]
        return graphs.Explicit(size, pairs), by_definition(size, lambda u, v: (u, v) in pairs)
    return graphs.Grid((size,), theta), by_definition(size, lambda u, v: abs(u - v) <= theta)


def apart_graph(rng: np.random.Generator, size: int) -> Case:
    """A line and, behind it, one cell that nothing is joined to: public missing values."""
    base, table = line_graph(rng, size - 1)
    return graphs.Apart(base), by_definition(size, lambda u, v: v < size - 1 and bool(table[u, v]))


def l1_grid(rng: np.random.Generator, shape: tuple[int, ...]) -> Case:
    theta = int(rng.integers(1, sum(shape) + 1))
    places = list(itertools.product(*map(range, shape)))

    def near(u: int, v: int) -> bool:
        return sum(abs(a - b) for a, b in zip(places[u], places[v], strict=True)) <= theta

    return graphs.Grid(shape, theta), by_definition(math.prod(shape), near)


def product(rng: np.random.Generator, shape: tuple[int, ...]) -> Case:
    cases = [line_graph(rng, n) for n in shape]
    joint = bool(rng.random() < 0.5)
    places = list(itertools.product(*map(range, shape)))

    def joined(u: int, v: int) -> bool:
        moved = [(t, a, b) for (_, t), a, b in zip(cases, places[u], places[v], strict=True) if a != b]
        return all(t[a, b] for t, a, b in moved) and (joint or len(moved) == 1)

    return graphs.Product(*(g for g, _ in cases), joint=joint), by_definition(math.prod(shape), joined)


def with_presence(case: Case) -> Case:
    graph, table = case
    size = table.shape[0]
    wider = np.zeros((size + 1, size + 1), dtype=bool)
    wider[:size, :size] = table
    wider[size, :size] = wider[:size, size] = True
    return graph.hide_presence(), wider


def random_shape(rng: np.random.Generator) -> tuple[int, ...]:
    if rng.random() < 0.6:
        return (int(rng.integers(2, 6)), int(rng.integers(2, 6)))
    return tuple(int(n) for n in rng.integers(1, 4, size=3))


def boxes_graph(rng: np.random.Generator, shape: tuple[int, ...]) -> Case:
    kind = rng.integers(0, 4)
    if kind == 0:
        return l1_grid(rng, shape)
    if kind == 1:
        return line_graph(rng, math.prod(shape))
    return product(rng, shape)


def line_workload(rng: np.random.Generator, size: int) -> workloads.Workload:
    kind = rng.integers(0, 7)
    if kind == 0:
        return workloads.Histogram(size)
    if kind == 1:
        return workloads.Cumulative(size)
    if kind == 2:
        return workloads.AllRanges(size)
    if kind == 3:
        ends = np.sort(rng.integers(0, size, size=(rng.integers(1, 5), 2)), axis=1)
        return workloads.Ranges(size, ends[:, 0], ends[:, 1])
    if kind == 4:
        return workloads.ValueSum(size, int(rng.integers(-9, 9)), int(rng.integers(1, 4)))
    if kind == 5:
        inner = line_workload(rng, int(rng.integers(1, size + 1)))
        return workloads.Selected(inner, rng.integers(-1, inner.size, size=size))
    if rng.random() < 0.5:
        return workloads.Matrix(rng.integers(-3, 4, size=(rng.integers(1, 4), size)))
    entries = [[Fraction(int(a), int(b)) for a, b in rng.integers(1, 5, size=(size, 2))] for _ in range(2)]
    return workloads.Matrix(np.array(entries, dtype=object))


def boxes_workload(rng: np.random.Generator, shape: tuple[int, ...]) -> workloads.Workload:
    kind = rng.integers(0, 4)
    if kind == 0:
        boxes = int(rng.integers(1, 4))
        corners = np.sort(np.stack([rng.integers(0, n, size=(boxes, 2)) for n in shape], axis=1), axis=2)
        return workloads.Rectangles(shape, corners[:, :, 0], corners[:, :, 1])
    if kind == 1:
        subsets = [
            [axis for axis in range(len(shape)) if rng.random() < 0.6] for _ in range(rng.integers(1, 4))
        ]
        return workloads.Marginals(shape, subsets)
    return workloads.Product(*(line_workload(rng, n) for n in shape))


def dense(workload: workloads.Workload) -> np.ndarray:
    """W from its answers to unit vectors alone, as exact rationals."""
    units = np.eye(workload.size, dtype=np.int64)
    columns = [[Fraction(value) for value in workload.answer(unit)] for unit in units]
    return np.array(columns, dtype=object).T


def brute_force_sensitivity(workload: workloads.Workload, table: Adjacency) -> Fraction:
    """max over adjacent pairs of ‖W(e_u − e_v)‖₁; a vertex beyond the workload counts nowhere."""
    matrix = dense(workload)
    missing = table.shape[0] - workload.size
    if missing:
        matrix = np.concatenate((matrix, np.full((matrix.shape[0], missing), Fraction(0))), axis=1)
    pairs = np.argwhere(np.triu(table))
    return max((Fraction(sum(abs(matrix[:, u] - matrix[:, v]))) for u, v in pairs), default=Fraction(0))


def brute_force_projection(table: Adjacency, labels: np.ndarray) -> Adjacency:
    """Bins adjoin iff some pair of their members does."""
    bins = int(labels.max()) + 1
    projected = np.zeros((bins, bins), dtype=bool)
    for u, v in np.argwhere(table):
        projected[labels[u], labels[v]] |= labels[u] != labels[v]
    return projected


def adjacency(graph: graphs.PolicyGraph) -> Adjacency:
    """The table that a graph's own edge list describes."""
    table = np.zeros((graph.size, graph.size), dtype=bool)
    for u, v in graph.edges():
        table[u, v] = table[v, u] = True
    return table


def random_bins(rng: np.random.Generator, size: int) -> Bins:
    kind = rng.integers(0, 3)
    if kind == 0:
        return Bins.width(size, int(rng.integers(1, size + 2)))
    if kind == 1:
        cuts = np.unique(np.append(0, rng.integers(0, size, size=rng.integers(0, size))))
        return Bins.edges(size, cuts)
    return Bins.labels(random_partition(rng, size))


def line_bound(gram: np.ndarray, theta: int, *, steps: int = 60) -> float:
    """``bound`` for the θ-line: a record moves by at most θ cells."""
    return bound(gram, graphs.Threshold(len(gram), theta).edges(), steps=steps)
