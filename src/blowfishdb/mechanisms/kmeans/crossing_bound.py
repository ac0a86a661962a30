"""A bound on what one move changes that does not depend on the number of cells.

Clusters are polytopes and distances to an anchor are convex and linear once their signs are chosen, so the
largest change is the largest of a few linear programs over pairs of points x and y of two clusters within one
move of each other. Points between the cells are allowed, which can only raise the maximum.

Neighbourhoods: the largest value within one hidden move of every cell, without listing the edges.

A maximum over edges (u, v) of a(u) + b(v) is then a maximum over cells. Every kind of graph has its own way:
windows for thresholds, one maximum per part, one axis after the other for products.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.domain.bins import LIMIT, Bins, ProductBins
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import Grid, Partitioned, PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves
from blowfishdb.core.questions.clusters import Centroids, PointSpace

_AT_ONCE = 48
"""Programs that are solved as one."""
_MOST_PROGRAMS = 4096
_TOLERANCE = 1e-6
_PENALTY = 100.0
"""Going beyond a move's reach costs so much of the objective: a soft limit keeps every program feasible, and
a program with one is never below the program with a hard limit."""


@final
@dataclass(frozen=True)
class Reach:
    """Moves of at most ``box[d]`` cells along axis d, and of at most ``total`` along all axes together."""

    box: tuple[int, ...]
    total: int | None = None


def reaches(graph: PolicyGraph, shape: tuple[int, ...]) -> tuple[Reach, ...]:
    """A few reaches that together cover every edge of ``graph`` over a box of ``shape``."""
    if graph.factors and tuple(n for f in graph.factors for n in _shape(f)) == shape:
        each = [reaches(factor, _shape(factor)) for factor in graph.factors]
        if graph.joint:
            return tuple(Reach(tuple(s for r in some for s in r.box)) for some in itertools.product(*each))
        return tuple(_alone(each, moving, reach) for moving, some in enumerate(each) for reach in some)
    if isinstance(graph, Grid) and graph.shape == shape:
        box = tuple(graph.axis_reach(axis) for axis in range(len(shape)))
        return (Reach(box, graph.theta if all(width == 1 for width in graph.widths) else None),)
    if graph.cliques is not None:
        parts = graph.cliques.factors if isinstance(graph.cliques, ProductBins) else (graph.cliques,)
        if tuple(part.size for part in parts) == shape:
            return (Reach(tuple(Partitioned(part).span for part in parts)),)
    if len(shape) == 1 and graph.span is not None:
        return (Reach((graph.span,)),)
    return (Reach(tuple(n - 1 for n in shape)),)


def _shape(graph: PolicyGraph) -> tuple[int, ...]:
    return graph.axes or (graph.size,)


def _alone(each: Sequence[tuple[Reach, ...]], moving: int, reach: Reach) -> Reach:
    """One factor moves and the others stay."""
    boxes = (reach.box if index == moving else (0,) * len(some[0].box) for index, some in enumerate(each))
    return Reach(tuple(itertools.chain.from_iterable(boxes)), reach.total)


def bounded_extents(centroids: Centroids) -> tuple[FloatArray, FloatArray]:
    """The box around every cluster."""
    axes = centroids.space.axes
    ways: FloatArray = np.concatenate((np.eye(axes), -np.eye(axes)))
    supports = _supports(centroids, ways)
    return -supports[:, axes:], supports[:, :axes]


def bounded_change(
    centroids: Centroids, anchors: IntArray, graph: PolicyGraph, *, leaves: bool
) -> tuple[int, int]:
    """At least the largest change of sizes and of sums over all edges of ``graph``, and over leaving."""
    space, count = centroids.space, len(centroids)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=space.axes)))
    programs = math.comb(count, 2) * len(signs) ** 2
    if programs > _MOST_PROGRAMS * _AT_ONCE:
        raise TooLarge(
            "So many clusters of so many columns are too much to calibrate.",
            fixes=("fewer clusters", "fewer columns", "wider cells"),
        )
    ways: FloatArray = signs * space.lengths.astype(np.float64)
    farthest = _supports(centroids, ways) - anchors @ ways.T
    covers = reaches(graph, space.shape) if graph.edge_count else ()
    length = max((_length(reach, space) for reach in covers), default=0)
    diameter = float((farthest + farthest[:, ::-1]).max())  # the signs are listed so that −s mirrors s
    sums = min(float(length), diameter)
    if leaves:
        sums = max(sums, float(farthest.max()))
    if count > 1:
        for reach in covers:
            sums = max(sums, _Pairs(centroids, anchors, ways, farthest, reach).largest(sums))
    crosses = 2 if covers and count > 1 else 0
    return max(crosses, int(leaves)), math.floor(sums + _TOLERANCE * max(1.0, sums))


def _length(reach: Reach, space: PointSpace) -> int:
    """The longest move in weighted lengths: the heaviest axes first."""
    left, length = sum(reach.box) if reach.total is None else reach.total, 0
    for weight, box in sorted(zip(space.weights, reach.box, strict=True), reverse=True):
        length += weight * min(left, box)
        left -= min(left, box)
    return length


# --- linear programs ----------------------------------------------------------------------------


def _walls(centroids: Centroids, index: int) -> tuple[FloatArray, FloatArray]:
    """A·x ≤ b for the points that are nowhere nearer to another centroid, in rows of length about one."""
    others = np.delete(np.arange(len(centroids)), index)
    slopes = (centroids.slopes[index] - centroids.slopes[others]).astype(np.float64)
    limits = (centroids.offsets[others] - centroids.offsets[index]).astype(np.float64)
    lengths = np.abs(slopes).max(axis=1, initial=0.0)
    apart = lengths > 0  # two centroids in one place have no wall between them
    return slopes[apart] / lengths[apart, None], limits[apart] / lengths[apart]


def _supports(centroids: Centroids, ways: FloatArray) -> FloatArray:
    """max ways[r]·x over every cluster (a row each), as one program of independent parts."""
    last = centroids.space.last.astype(np.float64)
    supports = np.empty((len(centroids), len(ways)))
    for index in range(len(centroids)):
        matrix, limits = _walls(centroids, index)
        best = _solve([matrix] * len(ways), [limits] * len(ways), list(ways), [(0.0, n) for n in last])
        supports[index] = best
    return supports


def _solve(
    matrices: list[FloatArray],
    limits: list[FloatArray],
    objectives: list[FloatArray],
    bounds: list[tuple[float, float | None]],
) -> FloatArray:
    """The maxima of independent programs with the same bounds."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag

    # scipy takes sparse constraints, but its types know only dense ones
    left: Any = block_diag(matrices, format="csr") if matrices[0].size else None
    right = np.concatenate(limits) if matrices[0].size else None
    solved = linprog(-np.concatenate(objectives), A_ub=left, b_ub=right, bounds=bounds * len(objectives))
    if solved.status != 0:
        raise TooLarge("The sensitivity of these clusters could not be computed.", fixes=("fewer clusters",))
    points = np.asarray(solved.x).reshape(len(objectives), -1)
    return np.asarray((points * np.array(objectives)).sum(axis=1))


@final
class _Pairs:
    """Points x and y of two clusters within one move: variables x, y, |x − y|, and how far beyond reach."""

    def __init__(
        self, centroids: Centroids, anchors: IntArray, ways: FloatArray, farthest: FloatArray, reach: Reach
    ) -> None:
        self.axes, self.ways, self.reach = centroids.space.axes, ways, reach
        self.farthest, self.starts = farthest, anchors @ ways.T
        self.penalty = _PENALTY * float(max(centroids.space.weights))
        self.walls = [_walls(centroids, index) for index in range(len(centroids))]
        last = centroids.space.last.astype(np.float64).tolist()
        self.bounds: list[tuple[float, float | None]] = [
            *((0.0, n) for n in last),
            *((0.0, n) for n in last),
            *((0.0, None) for _ in last),
            (0.0, None),
        ]
        self.unlimited = reach.total is None and all(
            step >= n for step, n in zip(reach.box, last, strict=True)
        )

    def largest(self, floor: float) -> float:
        """The largest change; pairs that cannot exceed what was found are left out."""
        order = self._by_promise(floor)
        best = floor
        if self.unlimited:
            return max(best, order[0][0]) if order else best
        for start in range(0, len(order), _AT_ONCE):
            some = order[start : start + _AT_ONCE]
            if some[0][0] <= best:
                break
            best = max(best, float(self._solved([entry[1:] for entry in some]).max()))
        return best

    def _by_promise(self, floor: float) -> list[tuple[float, int, int, int, int]]:
        """(what it could reach at most, cluster, cluster, signs, signs), the most promising first."""
        count, pairs = len(self.walls), []
        for i, j in itertools.combinations(range(count), 2):
            most = np.add.outer(self.farthest[i], self.farthest[j])
            for s, t in np.argwhere(most > floor).tolist():
                pairs.append((float(most[s, t]), i, j, s, t))
        return sorted(pairs, reverse=True)

    def _solved(self, programs: list[tuple[int, int, int, int]]) -> FloatArray:
        matrices, limits, objectives, constants = [], [], [], []
        cached: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
        for i, j, s, t in programs:
            if (i, j) not in cached:
                cached[i, j] = self._constraints(i, j)
            matrices.append(cached[i, j][0])
            limits.append(cached[i, j][1])
            objectives.append(
                np.concatenate((self.ways[s], self.ways[t], np.zeros(self.axes), [-self.penalty]))
            )
            constants.append(self.starts[i, s] + self.starts[j, t])
        return np.asarray(_solve(matrices, limits, objectives, self.bounds) - np.array(constants))

    def _constraints(self, i: int, j: int) -> tuple[FloatArray, FloatArray]:
        n, one = self.axes, np.eye(self.axes)
        (first, first_limit), (second, second_limit) = self.walls[i], self.walls[j]
        beyond = -np.ones((n, 1))
        rows = [
            np.hstack((first, np.zeros((len(first), 2 * n + 1)))),
            np.hstack((np.zeros((len(second), n)), second, np.zeros((len(second), n + 1)))),
            np.hstack((one, -one, -one, np.zeros((n, 1)))),
            np.hstack((-one, one, -one, np.zeros((n, 1)))),
            np.hstack((np.zeros((n, 2 * n)), one, beyond)),
        ]
        limits = [first_limit, second_limit, np.zeros(2 * n), np.array(self.reach.box, dtype=np.float64)]
        if self.reach.total is not None:
            rows.append(np.concatenate((np.zeros(2 * n), np.ones(n), [-1.0]))[None, :])
            limits.append(np.array([float(self.reach.total)]))
        return np.vstack(rows), np.concatenate(limits)


MOST_WORK = 2**30
"""Single comparisons that are made rather than refused."""


def nearby_work(graph: PolicyGraph) -> int:
    """About how many comparisons ``largest_nearby`` makes."""
    return _way(graph).work


@final
@dataclass(frozen=True)
class _Way:
    """How the neighbourhoods of one kind of graph are looked through, and with how many comparisons."""

    work: int
    largest: Callable[[IntArray], IntArray]


def _way(graph: PolicyGraph) -> _Way:
    """By the structure of the graph, cheapest first; a graph that has none is gone through edge by edge."""
    size = graph.size
    if graph.line_reach is not None:
        reach = graph.line_reach
        return _Way(4 * size, lambda values: _window(values, reach))
    if graph.cliques is not None:
        parts = graph.cliques
        return _Way(4 * size, lambda values: _within_parts(values, parts))
    if graph.factors:
        each = (size // factor.size * nearby_work(factor) for factor in graph.factors)
        return _Way(sum(each), lambda values: _product(values, graph))
    split = graph.without_last()
    if split is not None and split[1]:
        return _Way(nearby_work(split[0]) + size, lambda values: _cone(values, split[0]))
    if isinstance(graph, Grid):
        return _Way(size * _grid_passes(graph), lambda values: _grid(values, graph))
    ends = graph.right_ends()
    if ends is not None:
        return _Way(2 * size * max(1, size.bit_length()), lambda values: _banded(values, ends))
    return _Way(4 * graph.edge_count, lambda values: _edge_by_edge(values, graph))


def largest_nearby(values: IntArray, graph: PolicyGraph) -> IntArray:
    """For every cell, the largest of ``values`` on the cell itself and on those that an edge joins to it.

    Cells are along the last axis. Values below zero stand for cells that do not take part.
    """
    return _way(graph).largest(values)


def _window(values: IntArray, reach: int) -> IntArray:
    if reach >= values.shape[-1] - 1:
        return np.broadcast_to(values.max(axis=-1, keepdims=True), values.shape)
    from scipy.ndimage import maximum_filter1d

    return np.asarray(maximum_filter1d(values, 2 * reach + 1, axis=-1, mode="constant", cval=-1))


def _banded(values: IntArray, high: IntArray) -> IntArray:
    """Neighbours of a cell are an interval; the maxima of all intervals of length 2^j answer any of them."""
    low = np.searchsorted(high, np.arange(high.size))
    level = np.frexp((high - low + 1).astype(np.float64))[1] - 1
    largest = np.empty_like(values)
    table = values
    for power in range(int(level.max()) + 1):
        at = level == power
        ends = high[at] - (1 << power) + 1
        largest[..., at] = np.maximum(table[..., low[at]], table[..., ends])
        if power < level.max():
            table = np.maximum(table[..., : -(1 << power)], table[..., 1 << power :])
    return largest


def _within_parts(values: IntArray, parts: Bins) -> IntArray:
    labels = parts.assignment()
    most = np.full((parts.count, *values.shape[:-1]), -1, dtype=values.dtype)
    np.maximum.at(most, labels, np.moveaxis(values, -1, 0))
    return np.moveaxis(most[labels], 0, -1)


def _product(values: IntArray, graph: PolicyGraph) -> IntArray:
    """Jointly, a neighbourhood is the product of those of the attributes; else it is their union."""
    box = values.reshape(*values.shape[:-1], *graph.axes)
    largest = box
    for axis, factor in enumerate(graph.factors, start=values.ndim - 1):
        source = np.moveaxis(largest if graph.joint else box, axis, -1)
        moved = np.moveaxis(largest_nearby(source, factor), -1, axis)
        largest = moved if graph.joint else np.maximum(largest, moved)
    return np.ascontiguousarray(largest).reshape(values.shape)


def _cone(values: IntArray, base: PolicyGraph) -> IntArray:
    apex = values[..., -1:]
    rest = np.maximum(largest_nearby(values[..., :-1], base), apex)
    return np.concatenate((rest, values.max(axis=-1, keepdims=True)), axis=-1)


# --- L1 grids -----------------------------------------------------------------------------------


def _grid_passes(graph: Grid) -> int:
    if all(width == 1 for width in graph.widths):
        return 8 if len(graph.shape) <= 2 else 2 * len(graph.shape) * min(graph.theta, sum(graph.shape))
    leading = range(len(graph.shape) - 1)
    return 4 * len(graph.shape) * math.prod(graph.axis_reach(axis) + 1 for axis in leading)


def _grid(values: IntArray, graph: Grid) -> IntArray:
    box = values.reshape(*values.shape[:-1], *graph.shape)
    if any(width > 1 for width in graph.widths):
        return _boxes(box, graph).reshape(values.shape)
    if len(graph.shape) == 2:
        return _diamond(box, graph.theta).reshape(values.shape)
    for _ in range(min(graph.theta, sum(graph.shape) - len(graph.shape))):
        box = _one_step(box, len(graph.shape))
    return box.reshape(values.shape)


def _diamond(box: IntArray, theta: int) -> IntArray:
    """In two dimensions |Δr| + |Δc| ≤ θ is a square in the coordinates r + c and r − c."""
    rows, columns = box.shape[-2:]
    r, c = np.indices((rows, columns))
    turned = np.full((*box.shape[:-2], rows + columns - 1, rows + columns - 1), -1, dtype=box.dtype)
    turned[..., r + c, r - c + columns - 1] = box
    for axis in (-2, -1):
        turned = np.moveaxis(_window(np.moveaxis(turned, axis, -1), theta), -1, axis)
    return np.asarray(turned[..., r + c, r - c + columns - 1])


def _one_step(box: IntArray, axes: int) -> IntArray:
    grown = box.copy()
    for axis in range(-axes, 0):
        along, onto = np.moveaxis(box, axis, -1), np.moveaxis(grown, axis, -1)
        np.maximum(onto[..., 1:], along[..., :-1], out=onto[..., 1:])
        np.maximum(onto[..., :-1], along[..., 1:], out=onto[..., :-1])
    return grown


def _boxes(box: IntArray, graph: Grid) -> IntArray:
    """The union of the boxes of all extreme moves."""
    moves = GridMoves.of(graph, graph.shape)
    if moves is None:
        raise TooLarge("This L1 threshold has too many kinds of moves.", fixes=("a smaller threshold",))
    largest = box.copy()
    for move in moves.extremes:
        grown = box
        for axis, reach in enumerate(move, start=box.ndim - len(move)):
            grown = np.moveaxis(_window(np.moveaxis(grown, axis, -1), reach), -1, axis)
        np.maximum(largest, grown, out=largest)
    return largest


def _edge_by_edge(values: IntArray, graph: PolicyGraph) -> IntArray:
    if graph.edge_count > LIMIT:
        raise TooLarge(f"The {graph.edge_count:,} edges of this policy cannot be listed.")
    source = np.moveaxis(values, -1, 0)
    largest = source.copy()
    for block in graph.edge_blocks():
        np.maximum.at(largest, block[:, 0], source[block[:, 1]])
        np.maximum.at(largest, block[:, 1], source[block[:, 0]])
    return np.moveaxis(largest, 0, -1)
