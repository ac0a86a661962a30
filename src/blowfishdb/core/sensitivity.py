"""Sensitivity: the one definition, exact.

    S(W, G) = max over edges (u, v) of G of ‖W(e_u − e_v)‖₁

which is by how much the answers can change when one record moves along one edge ([B14] Def. 5.1
without constraints). ``sensitivity`` tries an ordered tuple of rules, cheapest first; each is exact
or says None. The last one enumerates edges.

The sensitivity of a single number: by how much one weighted count changes along the edges of a policy.

With one weight w_u per cell it is the largest |w_u − w_v| over the edges. On a line of values, where edges
are intervals, that is a sliding minimum and maximum; the other columns of a filter matter only through which
of their cells have different weights. So sums are exact for millions of cells, whatever the filter: a
distance threshold bounds a sum only while no row can come or go.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import LIMIT, ProductBins
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.graphs import Full, Grid, Partitioned, PolicyGraph, Product
from blowfishdb.core.workloads import Marginals, Workload
from blowfishdb.core.workloads.base import Numbers, exact

_MOST_CELLS = 2 * 10**7
_MOST_WORK = 10**9
_SAFE_DOUBLED = 2**61


def one_answer(workload: Workload, graph: PolicyGraph) -> int | None:
    """The exact sensitivity of a workload of one question; None where the graph is not made of lines."""
    single = workload.count == 1 and workload.denominator == 1 and not graph.absent
    if not single or workload.size > _MOST_CELLS or workload.largest_norm >= _SAFE_DOUBLED:
        return None
    weights = np.asarray(workload.transpose(np.ones(1, dtype=np.int64)), dtype=np.int64)
    line = _line(graph)
    if line is not None:
        return line.spread(weights, weights)
    return _product(weights, graph) if graph.factors else None


def _product(weights: IntArray, graph: PolicyGraph) -> int | None:
    """The longest column as a line; the others as groups of cells with equal weights along it."""
    axis = int(np.argmax(graph.axes))
    line = _line(graph.factors[axis])
    others = [*graph.factors[:axis], *graph.factors[axis + 1 :]]
    if line is None or not others:
        return None
    rows = np.moveaxis(weights.reshape(graph.axes), axis, -1).reshape(-1, graph.axes[axis])
    kinds, groups = _alike(rows)
    beside = others[0] if len(others) == 1 else Product(*others, joint=graph.joint)
    if len(kinds) ** 2 * rows.shape[1] > _MOST_WORK:
        return None
    largest = max(line.spread(kind, kind) for kind in kinds)
    if len(kinds) == 1:
        return largest
    joined = beside.project(groups)
    for u, v in joined.edges():
        here, there = kinds[u], kinds[v]
        apart = line.spread(here, there) if graph.joint else 0
        largest = max(largest, apart, int(np.abs(here - there).max()))
    return largest


def _alike(rows: IntArray) -> tuple[list[IntArray], IntArray]:
    """The different rows, and which of them each one is."""
    seen: dict[bytes, int] = {}
    groups = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], dtype=np.int64)
    return [rows[np.argmax(groups == kind)] for kind in range(len(seen))], groups


@final
@dataclass(frozen=True, eq=False)
class _Line:
    """Each cell is joined to the interval ``left … right`` around it; one more cell may follow."""

    left: IntArray
    right: IntArray
    last: bool
    """Whether there is one cell more, joined to every other."""

    def spread(self, here: Numbers, there: Numbers) -> int:
        """The largest |here_u − there_v| over edges (u, v), and over u = v."""
        size = self.left.size
        low, high = (_over(there[:size], self.left, self.right, pick) for pick in (np.minimum, np.maximum))
        own = here[:size]
        largest = max(int((own - low).max()), int((high - own).max()))
        if here.size == size:
            return largest
        largest = max(largest, abs(int(here[-1]) - int(there[-1])))
        if self.last:
            for single, others in ((here[-1], there[:size]), (there[-1], own)):
                largest = max(largest, int(np.abs(others - single).max()))
        return largest


def _line(graph: PolicyGraph) -> _Line | None:
    """The graph as intervals, where it is made of them."""
    right, last = graph.right_ends(), False
    if right is None:
        split = graph.without_last()
        right, last = (None, False) if split is None else (split[0].right_ends(), split[1])
    if right is None:
        return None
    return _Line(np.searchsorted(right, np.arange(right.size)).astype(np.int64), right, last)


def _over(values: Numbers, left: IntArray, right: IntArray, pick: np.ufunc) -> Numbers:
    """``pick`` over values[left … right] of each cell: two overlapping stretches of a power of two."""
    picked = values.copy()
    level = np.frexp((right - left + 1).astype(np.float64))[1] - 1
    window, width = values, 1
    for power in range(int(level.max(initial=0)) + 1):
        chosen = np.flatnonzero(level == power)
        picked[chosen] = pick(window[left[chosen]], window[right[chosen] - width + 1])
        if window.size <= width:
            break
        window, width = pick(window[:-width], window[width:]), 2 * width
    return picked


STREAM_LIMIT = 10**8
_MANY_EDGES = 10**5
_SAFE = 2**62


def sensitivity(workload: Workload, graph: PolicyGraph) -> int | Fraction:
    """The exact policy-specific sensitivity of ``workload`` under ``graph``.

    A vertex that stands for "not counted" (⊥, *outside*) may be left out of the workload; its
    column is zero.
    """
    return exact(scaled_sensitivity(workload, graph), workload.denominator)


def check_sizes(workload: Workload, graph: PolicyGraph) -> None:
    """The questions and the policy speak of the same cells."""
    if workload.size != graph.counted.size:
        raise SizeMismatch(
            f"The questions are about {workload.size:,} cells, but the policy is about "
            f"{graph.counted.size:,}."
        )


def scaled_sensitivity(workload: Workload, graph: PolicyGraph) -> int:
    """The sensitivity times ``workload.denominator``, a whole number."""
    check_sizes(workload, graph)
    for rule in _RULES:
        value = rule(workload, graph)
        if value is not None:
            return int(value)
    raise TooLarge(
        f"The exact sensitivity would need all {graph.edge_count:,} edges of the policy graph.",
        fixes=("ask about fewer or larger bins",),
    )


# --- rules, cheapest first --------------------------------------------------------------------


def _without_edges(_: Workload, graph: PolicyGraph) -> int | None:
    return 0 if graph.edge_count == 0 else None


def _histogram(workload: Workload, graph: PolicyGraph) -> int | None:
    """Every move empties one cell and fills another."""
    return 2 if workload.one_per_cell and not graph.absent else None


def _within_reach(workload: Workload, graph: PolicyGraph) -> int | None:
    """Where a move costs by its length alone, only the lengths that occur matter."""
    reach = graph.span if workload.grows_with_distance else graph.reach
    return None if reach is None else workload.within_reach(reach)


def _uncounted_vertex(workload: Workload, graph: PolicyGraph) -> int | None:
    """A move from u to ⊥ costs the column norm of u."""
    if not graph.absent:
        return None
    return max(scaled_sensitivity(workload, graph.counted), workload.largest_norm)


def _marginals(workload: Workload, graph: PolicyGraph) -> int | None:
    """A marginal changes by 2 as soon as one of its attributes moves, however far."""
    if not isinstance(workload, Marginals):
        return None
    structured = _as_product(graph, workload.shape)
    if structured is not None:
        movable = [axis for axis, factor in enumerate(structured.factors) if factor.edge_count]
        return workload.moved(movable) if structured.joint else max(workload.moved([a]) for a in movable)
    if isinstance(graph, Grid) and graph.shape == workload.shape:
        movable = [axis for axis, n in enumerate(graph.shape) if n > 1]
        together = itertools.combinations(movable, min(graph.theta, len(movable)))
        return max(workload.moved(axes) for axes in together)
    return None


def _one_attribute_moves(workload: Workload, graph: PolicyGraph) -> int | None:
    """‖(a − a′) ⊗ b‖₁ = ‖a − a′‖₁·‖b‖₁, so the Cartesian product separates."""
    if graph.joint or not (graph.factors and workload.factors) or graph.axes != workload.axes:
        return None
    return max(
        scaled_sensitivity(factor, policy) * (workload.largest_norm // factor.largest_norm)
        for factor, policy in zip(workload.factors, graph.factors, strict=True)
        if factor.largest_norm
    )


def _attributes_move_jointly(workload: Workload, graph: PolicyGraph) -> int | None:
    """Fold the best (‖a_u‖, ‖a_v‖, ‖a_u − a_v‖) of each attribute; see ``_frontier``."""
    if not (workload.factors and workload.binary):
        return None
    structured = _as_product(graph, workload.axes)
    if structured is None or not structured.joint:
        return None
    best = np.array([[1, 1, 0]], dtype=object)
    for factor, policy in zip(workload.factors, structured.factors, strict=True):
        moves = _axis_moves(factor, policy)
        if moves is None or len(best) * len(moves) > LIMIT:
            return None
        best = _frontier(_combine(best, moves))
    return int(best[:, 2].max())


def _l1_moves(workload: Workload, graph: PolicyGraph) -> int | None:
    """As above, but the attributes share one L1 budget: fold per amount used."""
    if not (workload.factors and workload.binary and isinstance(graph, Grid)):
        return None
    steps_listed = sum(n * graph.axis_reach(a) for a, n in enumerate(graph.shape))
    if graph.shape != workload.axes or steps_listed > LIMIT:
        return None
    best: dict[int, Numbers] = {0: np.array([[1, 1, 0]], dtype=object)}
    for axis, factor in enumerate(workload.factors):
        steps = {int(graph.cost(axis, d)): _step_moves(factor, d) for d in range(graph.axis_reach(axis) + 1)}
        grown: dict[int, list[Numbers]] = {}
        for (used, points), (more, moves) in itertools.product(best.items(), steps.items()):
            if used + more <= graph.theta:
                grown.setdefault(used + more, []).append(_combine(points, moves))
        best = {used: _frontier(np.concatenate(points)) for used, points in grown.items()}
    return max(int(points[:, 2].max()) for points in best.values())


def _on_merged_cells(workload: Workload, graph: PolicyGraph) -> int | None:
    """Cells with equal columns can be merged: W = W*·T, and G projects along T."""
    cells = workload.cells()
    if cells.count == workload.size:
        return None
    return scaled_sensitivity(workload.merged(), graph.project(cells))


def _as_much_as_can_be(workload: Workload, graph: PolicyGraph) -> int | None:
    """No move costs more than two of the largest columns, and where cells nearby cost that, none costs more.

    So the edges of a large graph need not be listed for questions that overlap little.
    """
    if graph.edge_count < _MANY_EDGES or graph.absent or workload.size > LIMIT:
        return None
    most, cells = 2 * workload.largest_norm, np.arange(workload.size)
    axes = graph.axes or (workload.size,)
    for axis in range(len(axes)):
        step = math.prod(axes[axis + 1 :])
        here, there = cells[: workload.size - step], cells[step:]
        joined = np.flatnonzero(graph.adjacent(here, there))
        if joined.size and int(workload.moves(here[joined], there[joined]).max()) == most:
            return most
    return None


def _edge_by_edge(workload: Workload, graph: PolicyGraph) -> int | None:
    if graph.edge_count > STREAM_LIMIT:
        return None
    rows_at_once = max(1, LIMIT // max(1, workload.count if not workload.binary else 100))
    largest = 0
    for block in graph.edge_blocks():
        for start in range(0, len(block), rows_at_once):
            some = block[start : start + rows_at_once]
            largest = max(largest, int(workload.moves(some[:, 0], some[:, 1]).max()))
    return largest


_RULES: tuple[Callable[[Workload, PolicyGraph], int | None], ...] = (
    _without_edges,
    _histogram,
    _within_reach,
    _uncounted_vertex,
    _marginals,
    _one_attribute_moves,
    _attributes_move_jointly,
    _l1_moves,
    _on_merged_cells,
    one_answer,
    _as_much_as_can_be,
    _edge_by_edge,
)


# --- moves of one attribute ---------------------------------------------------------------------


def _as_product(graph: PolicyGraph, shape: tuple[int, ...]) -> PolicyGraph | None:
    """The same graph as a product over ``shape``, where it is one."""
    if graph.complete:
        return Product(*(Full(n) for n in shape))
    if isinstance(graph.cliques, ProductBins):
        graph = Product(*(Partitioned(factor) for factor in graph.cliques.factors))
    return graph if graph.factors and graph.axes == shape else None


def _axis_moves(workload: Workload, graph: PolicyGraph) -> Numbers | None:
    """The frontier of (‖a_u‖, ‖a_v‖, ‖a_u − a_v‖) over staying and over every edge, either way."""
    if workload.merged() is not workload:
        return _axis_moves(workload.merged(), graph.project(workload.cells()))
    if workload.one_per_cell:
        return np.array([[1, 1, 2 if graph.edge_count else 0]], dtype=object)
    if workload.prefixes and graph.line_reach is not None:
        u, v = np.zeros(graph.line_reach + 1, dtype=np.int64), np.arange(graph.line_reach + 1)
    elif graph.edge_count + graph.size > LIMIT:
        return None
    else:
        stay = np.repeat(np.arange(graph.size)[:, None], 2, axis=1)
        u, v = np.concatenate((stay, graph.edges())).T
    return _both_ways(workload, u, v)


def _step_moves(workload: Workload, distance: int) -> Numbers:
    """The frontier over moves of exactly ``distance`` cells along one axis."""
    u = np.arange(workload.size - distance, dtype=np.int64)
    return _both_ways(workload, u, u + distance)


def _both_ways(workload: Workload, u: IntArray, v: IntArray) -> Numbers:
    here, there, moved = workload.norms(u), workload.norms(v), workload.moves(u, v)
    points = np.column_stack(
        (np.concatenate((here, there)), np.concatenate((there, here)), np.tile(moved, 2))
    )
    return _frontier(points.astype(object))


def _combine(left: Numbers, right: Numbers) -> Numbers:
    """Norms and common parts multiply: D = A + B − 2C with C the product of (A + B − D)/2."""
    if float(left.max()) * float(right.max()) < _SAFE / 4:
        left, right = left.astype(np.int64), right.astype(np.int64)
    here = np.multiply.outer(left[:, 0], right[:, 0]).ravel()
    there = np.multiply.outer(left[:, 1], right[:, 1]).ravel()
    shared = [(side[:, 0] + side[:, 1] - side[:, 2]) // 2 for side in (left, right)]
    common = np.multiply.outer(*shared).ravel()
    return np.column_stack((here, there, here + there - 2 * common))


def _frontier(points: Numbers) -> Numbers:
    """Points (A, B, D) that no other point equals or exceeds in all three.

    The final cost A₁A₂ + B₁B₂ − 2C₁C₂ equals A₁(A₂−C₂) + B₁(B₂−C₂) + D₁C₂, which increases in each
    of A₁, B₁ and D₁ because C₂ ≤ min(A₂, B₂): a dominated point can never be part of the maximum.
    """
    values = points if points.dtype != object or int(points.max()) >= _SAFE else points.astype(np.int64)
    left = values[np.argsort(-values.sum(axis=1), kind="stable")]
    frontier = []
    while len(left):
        frontier.append(left[0])
        left = left[~(left <= left[0]).all(axis=1)]
    return np.stack(frontier).astype(object)
