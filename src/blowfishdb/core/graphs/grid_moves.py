"""GridMoves: policies on a grid in which only the displacement of a record counts.

Joint and Cartesian products of full and threshold attributes, and L1 grids, all have the same form: a
move by δ is hidden iff |δ| lies below one of a few *extreme* displacements, axis by axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.product import Grid
from blowfishdb.core.workloads import Workload

Move = tuple[int, ...]
_MANY = 20_000


@final
@dataclass(frozen=True)
class GridMoves:
    """Cells of a box of ``shape`` adjoin iff they differ by at most one of ``extremes`` along every axis.

    No extreme lies below another one. Without extremes nothing is hidden.
    """

    shape: tuple[int, ...]
    extremes: tuple[Move, ...]

    @staticmethod
    def of(graph: PolicyGraph, shape: tuple[int, ...]) -> GridMoves | None:
        """The same policy over a grid of ``shape``; None if it is not of this form."""
        if math.prod(shape) != graph.size or graph.absent:
            return None
        if graph.complete:
            return GridMoves._from(shape, [tuple(n - 1 for n in shape)])
        if graph.line_reach is not None and len(shape) == 1:
            return GridMoves._from(shape, [(graph.line_reach,)])
        if graph.axes != shape:
            return None
        if graph.factors:
            return GridMoves._of_product(graph)
        return GridMoves._of_grid(graph) if isinstance(graph, Grid) else None

    @staticmethod
    def around(graph: PolicyGraph, shape: tuple[int, ...]) -> GridMoves:
        """The policy itself where it is of this form; else one of this form that hides no less."""
        found = GridMoves.of(graph, shape)
        if found is not None:
            return found
        if graph.edgeless:
            return GridMoves(shape, ())
        if graph.axes != shape or not graph.factors:
            return GridMoves._composed(shape, [n - 1 for n in shape], joint=True)
        reaches = [0 if factor.edgeless else factor.size - 1 for factor in graph.factors]
        return GridMoves._composed(shape, reaches, joint=graph.joint)

    @staticmethod
    def _from(shape: tuple[int, ...], moves: list[Move]) -> GridMoves:
        some = [move for move in dict.fromkeys(moves) if any(move)]
        below = [any(_below(move, other) and move != other for other in some) for move in some]
        return GridMoves(shape, tuple(move for move, covered in zip(some, below, strict=True) if not covered))

    @staticmethod
    def _of_product(graph: PolicyGraph) -> GridMoves | None:
        reaches = [factor.line_reach for factor in graph.factors if factor.line_reach is not None]
        if len(reaches) < len(graph.factors):
            return None
        return GridMoves._composed(graph.axes, reaches, joint=graph.joint)

    @staticmethod
    def _composed(shape: tuple[int, ...], reaches: list[int], *, joint: bool) -> GridMoves:
        """Every axis moves up to its reach, all at once or one at a time."""
        if joint:
            return GridMoves._from(shape, [tuple(reaches)])
        alone = (tuple(r if i == axis else 0 for i, r in enumerate(reaches)) for axis in range(len(reaches)))
        return GridMoves._from(shape, list(alone))

    @staticmethod
    def _of_grid(graph: Grid) -> GridMoves | None:
        """Every choice of all axes but the last, with the last as far as the rest of θ reaches."""
        *leading, last = range(len(graph.shape))
        if math.prod(graph.axis_reach(axis) + 1 for axis in leading) > _MANY:
            return None

        def grow(axis: int, left: int) -> Iterator[Move]:
            reach = range(graph.axis_reach(axis) + 1)
            affordable = [step for step in reach if int(graph.cost(axis, step)) <= left]
            if axis == last:
                yield (affordable[-1],)
                return
            for step in affordable:
                for rest in grow(axis + 1, left - int(graph.cost(axis, step))):
                    yield (step, *rest)

        return GridMoves._from(graph.shape, list(grow(0, graph.theta)))

    @cached_property
    def together(self) -> tuple[frozenset[int], ...]:
        """The largest sets of axes that one move can change at once."""
        sets = {frozenset(axis for axis, step in enumerate(move) if step) for move in self.extremes}
        return tuple(sorted((s for s in sets if not any(s < other for other in sets)), key=sorted))

    def farthest(self, length: Callable[[Move], int | Fraction]) -> int | Fraction:
        """The largest ``length`` of a move, for a length that grows along every axis."""
        return max((length(move) for move in self.extremes), default=0)


def _below(move: Move, other: Move) -> bool:
    return all(a <= b for a, b in zip(move, other, strict=True))


def grid_shape(workload: Workload, graph: PolicyGraph) -> tuple[int, ...]:
    """The axes of a question under a policy: those of the policy, else of the workload, else one line."""
    return graph.axes or workload.axes or (graph.size,)
