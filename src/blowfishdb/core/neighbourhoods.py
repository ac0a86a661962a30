"""Neighbourhoods: the largest value within one hidden move of every cell, without listing the edges.

A maximum over edges (u, v) of a(u) + b(v) is then a maximum over cells. Every kind of graph has its own way:
windows for thresholds, one maximum per part, one axis after the other for products.
"""

from __future__ import annotations

import math

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import Banded, Cone, Full, Grid, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.grid_moves import GridMoves

MOST_WORK = 2**30
"""Single comparisons that are made rather than refused."""


def nearby_work(graph: PolicyGraph) -> int:
    """About how many comparisons ``largest_nearby`` makes."""
    match graph:
        case Full() | Threshold() | Partitioned():
            return 4 * graph.size
        case Banded():
            return 2 * graph.size * max(1, graph.size.bit_length())
        case Product():
            return sum(graph.size // factor.size * nearby_work(factor) for factor in graph.factors)
        case Cone():
            return nearby_work(graph.base) + graph.size
        case Grid():
            return graph.size * _grid_passes(graph)
    return 4 * graph.edge_count


def largest_nearby(values: IntArray, graph: PolicyGraph) -> IntArray:
    """For every cell, the largest of ``values`` on the cell itself and on those that an edge joins to it.

    Cells are along the last axis. Values below zero stand for cells that do not take part.
    """
    match graph:
        case Full():
            return np.broadcast_to(values.max(axis=-1, keepdims=True), values.shape)
        case Threshold():
            return _window(values, graph.reach)
        case Banded():
            return _banded(values, graph)
        case Partitioned():
            return _within_parts(values, graph)
        case Product():
            return _product(values, graph)
        case Cone():
            return _cone(values, graph)
        case Grid():
            return _grid(values, graph)
    return _edge_by_edge(values, graph)


def _window(values: IntArray, reach: int) -> IntArray:
    if reach >= values.shape[-1] - 1:
        return np.broadcast_to(values.max(axis=-1, keepdims=True), values.shape)
    from scipy.ndimage import maximum_filter1d

    return np.asarray(maximum_filter1d(values, 2 * reach + 1, axis=-1, mode="constant", cval=-1))


def _banded(values: IntArray, graph: Banded) -> IntArray:
    """Neighbours of a cell are an interval; the maxima of all intervals of length 2^j answer any of them."""
    cells = np.arange(graph.size)
    low, high = np.searchsorted(graph.right, cells), graph.right
    level = np.frexp((high - low + 1).astype(np.float64))[1] - 1
    found = np.empty_like(values)
    table = values
    for power in range(int(level.max()) + 1):
        at = level == power
        ends = high[at] - (1 << power) + 1
        found[..., at] = np.maximum(table[..., low[at]], table[..., ends])
        if power < level.max():
            table = np.maximum(table[..., : -(1 << power)], table[..., 1 << power :])
    return found


def _within_parts(values: IntArray, graph: Partitioned) -> IntArray:
    labels = graph.parts.assignment()
    most = np.full((graph.parts.count, *values.shape[:-1]), -1, dtype=values.dtype)
    np.maximum.at(most, labels, np.moveaxis(values, -1, 0))
    return np.moveaxis(most[labels], 0, -1)


def _product(values: IntArray, graph: Product) -> IntArray:
    """Jointly, a neighbourhood is the product of those of the attributes; else it is their union."""
    box = values.reshape(*values.shape[:-1], *graph.shape)
    found = box
    for axis, factor in enumerate(graph.factors, start=values.ndim - 1):
        source = np.moveaxis(found if graph.joint else box, axis, -1)
        moved = np.moveaxis(largest_nearby(source, factor), -1, axis)
        found = moved if graph.joint else np.maximum(found, moved)
    return np.ascontiguousarray(found).reshape(values.shape)


def _cone(values: IntArray, graph: Cone) -> IntArray:
    apex = values[..., -1:]
    rest = np.maximum(largest_nearby(values[..., :-1], graph.base), apex)
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
    if len(graph.shape) == 1:
        return _window(values, graph.axis_reach(0))
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
    found = box.copy()
    for move in moves.extremes:
        grown = box
        for axis, reach in enumerate(move, start=box.ndim - len(move)):
            grown = np.moveaxis(_window(np.moveaxis(grown, axis, -1), reach), -1, axis)
        np.maximum(found, grown, out=found)
    return found


def _edge_by_edge(values: IntArray, graph: PolicyGraph) -> IntArray:
    if graph.edge_count > LIMIT:
        raise TooLarge(f"The {graph.edge_count:,} edges of this policy cannot be listed.")
    found = np.moveaxis(values, -1, 0).copy()
    source = np.moveaxis(values, -1, 0)
    for block in graph.edge_blocks():
        np.maximum.at(found, block[:, 0], source[block[:, 1]])
        np.maximum.at(found, block[:, 1], source[block[:, 0]])
    return np.moveaxis(found, 0, -1)
