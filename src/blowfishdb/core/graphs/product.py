"""Product: one policy per attribute, composed into a policy over whole records.

Grid: points of a k-dimensional grid within an L1 distance must stay indistinguishable.

Ball: points of a k-dimensional grid within an L_p distance must stay indistinguishable ([B14] §8.2.3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, ceil_div, integers, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, EqualBins, ProductBins, single_cells, whole_bin
from blowfishdb.core.domain.values import number
from blowfishdb.core.errors import InvalidGraph, InvalidInput, InvalidThreshold, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph, check_size
from blowfishdb.core.graphs.general import Explicit
from blowfishdb.core.graphs.line import Threshold, check_theta, ends_within


class BoxGraph(PolicyGraph):
    """A policy over the cells of a box, row-major."""

    shape: tuple[int, ...]
    """The number of cells of each attribute."""

    @property
    def size(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def axes(self) -> tuple[int, ...]:
        return self.shape


@final
@dataclass(frozen=True, eq=False, init=False)
class Product(BoxGraph):
    """Records adjoin when their attributes do.

    ``joint=True`` (strong product): every attribute stays or moves along an edge of its graph. With
    Full everywhere this is exactly differential privacy. ``joint=False`` (Cartesian, [BDB] Def. 3.2):
    exactly one attribute moves, which protects less.

    >>> each = bf.graphs.Threshold(10, 2), bf.graphs.Full(3)
    >>> bf.graphs.Product(*each).edge_count, bf.graphs.Product(*each, joint=False).edge_count
    (183, 81)
    """

    kind = "product"

    factors: tuple[PolicyGraph, ...]
    joint: bool

    def __init__(self, *graphs: PolicyGraph, joint: bool = True) -> None:
        if not graphs:
            raise InvalidGraph("A product needs at least one graph.")
        if any(graph.absent for graph in graphs):
            raise InvalidGraph(
                "Presence is hidden for whole records, not for one attribute.",
                fixes=("build the product first, then call hide_presence() on it",),
            )
        object.__setattr__(self, "factors", graphs)
        object.__setattr__(self, "joint", joint)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(graph.size for graph in self.factors)

    @property
    def edgeless(self) -> bool:
        return all(graph.edgeless for graph in self.factors)

    @property
    def edge_count(self) -> int:
        if self.joint:
            stay_or_move = math.prod(graph.size + 2 * graph.edge_count for graph in self.factors)
            return (stay_or_move - self.size) // 2
        return sum(graph.edge_count * (self.size // graph.size) for graph in self.factors)

    @property
    def reach(self) -> int | None:
        return self.factors[0].reach if len(self.factors) == 1 else None

    def right_ends(self) -> IntArray | None:
        return self.factors[0].right_ends() if len(self.factors) == 1 else None

    def components(self) -> Bins:
        return ProductBins(tuple(graph.components() for graph in self.factors))

    def describe(self) -> str:
        each = "; ".join(graph.describe() for graph in self.factors)
        return f"{'jointly' if self.joint else 'one attribute at a time'}: {each}"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        pairs = list(zip(self.factors, here, there, strict=True))
        moved = [np.asarray(a != b) for _, a, b in pairs]
        allowed = [np.asarray((a == b) | graph.adjacent(a, b)) for graph, a, b in pairs]
        count = sum(m.astype(np.int64) for m in moved)
        some = (count >= 1) if self.joint else (count == 1)
        return np.asarray(reduce(np.logical_and, allowed) & some)

    def steps(self, u: int, v: int) -> int | float:
        here, there = np.unravel_index(u, self.shape), np.unravel_index(v, self.shape)
        each = [g.distance(int(a), int(b)) for g, a, b in zip(self.factors, here, there, strict=True)]
        return max(each) if self.joint else sum(each)

    def edge_blocks(self) -> Iterator[IntArray]:
        """For every set of attributes that moves: the first moves upwards, the others either way."""
        axes = range(len(self.factors))
        most = len(self.factors) if self.joint else 1
        subsets = (itertools.combinations(axes, count) for count in range(1, most + 1))
        for moving in itertools.chain.from_iterable(subsets):
            choices = [self._choices(axis, moving) for axis in axes]
            if math.prod(len(choice) for choice in choices) > 10 * LIMIT:
                raise TooLarge(f"The {self.edge_count:,} edges of this product cannot be listed.")
            grids = np.meshgrid(*(np.arange(len(choice)) for choice in choices), indexing="ij")
            ends = [
                np.ravel_multi_index(
                    tuple(choice[grid.ravel(), side] for choice, grid in zip(choices, grids, strict=True)),
                    self.shape,
                )
                for side in (0, 1)
            ]
            if ends[0].size:
                yield np.column_stack(ends).astype(np.int64)

    def _choices(self, axis: int, moving: tuple[int, ...]) -> IntArray:
        graph = self.factors[axis]
        if axis not in moving:
            return np.repeat(np.arange(graph.size, dtype=np.int64)[:, None], 2, axis=1)
        edges = graph.edges()
        return edges if axis == moving[0] else np.concatenate((edges, edges[:, ::-1]))

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        """Products of bins project factor by factor; with every other attribute one bin, to attributes."""
        if len(self.factors) == 1 and not isinstance(bins, ProductBins):
            return self.factors[0].project(bins)
        boxes = _per_factor(bins.factors, self.shape) if isinstance(bins, ProductBins) else None
        if boxes is None:
            return None
        projected = (graph.project(factor) for graph, factor in zip(self.factors, boxes, strict=True))
        return Product(*projected, joint=self.joint)

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "factors": [each.to_plain() for each in self.factors], "joint": self.joint}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> Product:
        return cls(*map(PolicyGraph.from_plain, stored["factors"]), joint=stored["joint"])


def _per_factor(bins: tuple[Bins, ...], shape: tuple[int, ...]) -> list[Bins] | None:
    """Bins of attributes as one per factor; a factor that spans several attributes gets their product."""
    if tuple(b.size for b in bins) == shape:
        return list(bins)
    if 1 in shape or any(b.size == 1 for b in bins):  # whose they are would be a guess
        return None
    boxes, taken = [], 0
    for size in shape:
        start = taken
        while taken < len(bins) and math.prod(b.size for b in bins[start:taken]) < size:
            taken += 1
        group = bins[start:taken]
        if math.prod(b.size for b in group) != size:
            return None
        boxes.append(group[0] if len(group) == 1 else ProductBins(group))
    return boxes if taken == len(bins) else None


@final
@dataclass(frozen=True, eq=False, init=False)
class Grid(BoxGraph):
    """Cells of a box, row-major, that adjoin iff their L1 distance is at most θ.

    ``widths`` is how many original cells one cell spans along each axis. Binning makes it larger
    than one: bins Δ apart are then (|Δ|−1)·w + 1 original cells apart, and the distances of the
    axes in which two bins differ add up.

    >>> bf.graphs.Grid((50, 50), 10).has_edge(0, 5 * 50 + 5)
    True
    """

    kind = "grid"

    shape: tuple[int, ...]
    theta: int
    widths: tuple[int, ...]

    def __init__(self, shape: Sequence[int], theta: int, widths: Sequence[int] | None = None) -> None:
        axes = tuple(check_size(int(n)) for n in integers(shape, "The shape", InvalidGraph))
        spans = (1,) * len(axes) if widths is None else tuple(widths)
        check_size(len(axes))
        if len(spans) != len(axes) or any(check_size(span) < 1 for span in spans):
            raise InvalidGraph("A grid needs one positive width per axis.")
        object.__setattr__(self, "shape", axes)
        object.__setattr__(self, "theta", check_theta(theta))
        object.__setattr__(self, "widths", spans)

    @property
    def edgeless(self) -> bool:
        return self.size == 1

    @property
    def line_reach(self) -> int | None:
        return self.reach

    @property
    def reach(self) -> int | None:
        return self.axis_reach(0) if len(self.shape) == 1 else None

    def right_ends(self) -> IntArray | None:
        return None if self.reach is None else ends_within(self.size, self.reach)

    def axis_reach(self, axis: int) -> int:
        """How far one move can go along one axis alone."""
        return min(ceil_div(self.theta, self.widths[axis]), self.shape[axis] - 1)

    def cost(self, axis: int, steps: ArrayLike) -> IntArray:
        """What a displacement along one axis uses up of θ."""
        moved = np.abs(np.asarray(steps, dtype=np.int64))
        return np.asarray(np.where(moved > 0, (moved - 1) * self.widths[axis] + 1, 0))

    @property
    def edge_count(self) -> int:
        """By convolution over the axes of (ordered pairs of coordinates at each cost)."""
        ways: dict[int, int] = {0: 1}
        for axis, length in enumerate(self.shape):
            pairs = {0: length}
            for step in range(1, self.axis_reach(axis) + 1):
                pairs[int(self.cost(axis, step))] = 2 * (length - step)
            combined: dict[int, int] = {}
            for (used, count), (more, times) in itertools.product(ways.items(), pairs.items()):
                if used + more <= self.theta:
                    combined[used + more] = combined.get(used + more, 0) + count * times
            ways = combined
        return (sum(ways.values()) - self.size) // 2

    def components(self) -> Bins:
        return whole_bin(self.size)

    def describe(self) -> str:
        return f"points at most {self.theta:,} apart (L1) on a {'×'.join(map(str, self.shape))} grid"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        total = sum(self.cost(axis, a - b) for axis, (a, b) in enumerate(zip(here, there, strict=True)))
        return np.asarray((total > 0) & (total <= self.theta))

    def steps(self, u: int, v: int) -> int:
        here, there = np.unravel_index(u, self.shape), np.unravel_index(v, self.shape)
        gaps = tuple(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True))
        if all(width == 1 for width in self.widths):
            return ceil_div(sum(gaps), self.theta)
        return self._moves_to_cover(gaps)

    def _moves_to_cover(self, gaps: tuple[int, ...]) -> int:
        """Breadth-first search over what is left to travel; overshooting never helps."""
        if math.prod(gap + 1 for gap in gaps) > LIMIT:
            raise TooLarge("The distance of these two bins would need too long a search.")
        seen, frontier, moves = {gaps}, {gaps}, 0
        while (0,) * len(gaps) not in seen:
            moves += 1
            frontier = {
                left
                for left_over in frontier
                for step in self._displacements
                if (left := tuple(max(0, g - abs(s)) for g, s in zip(left_over, step, strict=True)))
                not in seen
            }
            seen |= frontier
        return moves

    @cached_property
    def _displacements(self) -> list[tuple[int, ...]]:
        """The moves of one edge, one of each opposite pair."""
        axes = [range(-self.axis_reach(a), self.axis_reach(a) + 1) for a in range(len(self.shape))]
        if math.prod(len(axis) for axis in axes) > LIMIT:
            raise TooLarge(f"Listing the moves of an L1 threshold of {self.theta:,} is above the limit.")
        zero = (0,) * len(self.shape)
        return [
            step
            for step in itertools.product(*axes)
            if step > zero and sum(int(self.cost(a, s)) for a, s in enumerate(step)) <= self.theta
        ]

    def edge_blocks(self) -> Iterator[IntArray]:
        return displaced(self.shape, self._displacements)

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        if len(self.shape) == 1 and not isinstance(bins, ProductBins):
            width = self.widths[0]
            return Threshold(self.size, ceil_div(self.theta, width)).project(bins)
        if not isinstance(bins, ProductBins) or tuple(f.size for f in bins.factors) != self.shape:
            return None
        if all(isinstance(factor, EqualBins) for factor in bins.factors):
            widths = tuple(w * f.cells for w, f in zip(self.widths, bins.factors, strict=True))  # type: ignore[attr-defined]
            return Grid(tuple(f.count for f in bins.factors), self.theta, widths)
        if all(f.contiguous for f in bins.factors) and bins.count**2 <= LIMIT:
            return self._project_boxes(bins)
        return None

    def _project_boxes(self, bins: ProductBins) -> PolicyGraph:
        """Unequal boxes: the nearest members decide, axis by axis."""
        total = np.zeros((1, 1), dtype=np.int64)
        for axis, factor in enumerate(bins.factors):
            every = np.arange(factor.count)
            gap = factor.first(every)[None, :] - factor.last(every)[:, None]
            nearest = self.cost(axis, np.where(every[None, :] > every[:, None], gap, 0))
            nearest = nearest + nearest.T
            grown = total[:, None, :, None] + nearest[None, :, None, :]
            total = grown.reshape(total.shape[0] * factor.count, -1)
        return Explicit(bins.count, np.argwhere(np.triu((total > 0) & (total <= self.theta), 1)))

    def to_plain(self) -> dict[str, Any]:
        shape, widths = list(self.shape), list(self.widths)
        return {"kind": self.kind, "shape": shape, "theta": self.theta, "widths": widths}


def displaced(shape: tuple[int, ...], displacements: Iterable[tuple[int, ...]]) -> Iterator[IntArray]:
    """Every pair of cells that differ by one of the displacements, a block for each of them."""
    cells = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    for step in displacements:
        here = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, shape, strict=True))
        there = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, shape, strict=True))
        yield np.column_stack((cells[here].ravel(), cells[there].ravel()))


_LARGEST_POWER = 8


@final
@dataclass(frozen=True, eq=False, init=False)
class Ball(BoxGraph):
    """Cells of a box, row-major, that adjoin iff Σ|u_i − v_i|^p ≤ θ^p, in exact whole numbers.

    θ may be a fraction: 3/2 in two dimensions joins diagonal neighbours and nothing farther.

    >>> bf.graphs.Ball((50, 50), "3/2").has_edge(0, 51)
    True
    """

    kind = "ball"

    shape: tuple[int, ...]
    theta: Fraction
    power: int

    def __init__(self, shape: Sequence[int], theta: int | str | Fraction, power: int = 2) -> None:
        axes = tuple(check_size(int(n)) for n in integers(shape, "The shape", InvalidGraph))
        check_size(len(axes))
        try:
            reach = number(theta, "A distance threshold", InvalidThreshold)
        except InvalidInput:
            raise InvalidThreshold("A distance threshold is a number, such as 3 or 3/2.") from None
        if reach <= 0:
            raise InvalidThreshold(f"A distance threshold must be positive, not {reach}.")
        if not 1 <= whole(power, "The p of an L_p distance", InvalidGraph) <= _LARGEST_POWER:
            raise InvalidGraph(f"L_p distances are known for p from 1 to {_LARGEST_POWER}, and for infinity.")
        for name, value in (("shape", axes), ("theta", reach), ("power", int(power))):
            object.__setattr__(self, name, value)

    @property
    def edgeless(self) -> bool:
        return self.size == 1 or self.theta < 1

    @cached_property
    def _most(self) -> int:
        """The largest whole Σ|d|^p that is hidden."""
        return math.floor(self.theta**self.power)

    @cached_property
    def _reaches(self) -> tuple[int, ...]:
        """How far one move can go along each axis alone."""
        return tuple(min(math.floor(self.theta), n - 1) for n in self.shape)

    @property
    def reach(self) -> int | None:
        return self._reaches[0] if len(self.shape) == 1 else None

    def right_ends(self) -> IntArray | None:
        return None if self.reach is None else ends_within(self.size, self.reach)

    @cached_property
    def _displacements(self) -> list[tuple[int, ...]]:
        """The moves of one edge, one of each opposite pair."""
        axes = [range(-reach, reach + 1) for reach in self._reaches]
        if math.prod(len(axis) for axis in axes) > LIMIT:
            raise TooLarge(f"Listing the moves within a distance of {self.theta} is above the limit.")
        zero = (0,) * len(self.shape)
        return [s for s in itertools.product(*axes) if s > zero and self._hidden(s)]

    def _hidden(self, step: Sequence[int]) -> bool:
        return bool(sum(abs(d) ** self.power for d in step) <= self._most)

    @property
    def edge_count(self) -> int:
        return sum(
            math.prod(n - abs(d) for n, d in zip(self.shape, step, strict=True))
            for step in self._displacements
        )

    def components(self) -> Bins:
        return whole_bin(self.size) if self.theta >= 1 else single_cells(self.size)

    def describe(self) -> str:
        kind = "Euclidean" if self.power == 2 else f"L{self.power}"
        return f"points at most {self.theta} apart ({kind}) on a {'×'.join(map(str, self.shape))} grid"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> BoolArray:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        return self._near([np.abs(a - b) for a, b in zip(here, there, strict=True)])

    def _near(self, gaps: Sequence[IntArray]) -> BoolArray:
        """Whether gaps along the axes are together hidden; long ones are cut first, so nothing overflows."""
        cut = [np.minimum(gap, reach + 1) for gap, reach in zip(gaps, self._reaches, strict=True)]
        short = np.all([gap <= reach for gap, reach in zip(gaps, self._reaches, strict=True)], axis=0)
        total = sum(gap.astype(object) ** self.power for gap in cut)
        return np.asarray(short & (np.asarray(total) <= self._most) & (np.asarray(total) > 0), dtype=np.bool_)

    def steps(self, u: int, v: int) -> int | float:
        return self._written_out.steps(u, v)

    @cached_property
    def _written_out(self) -> Explicit:
        return Explicit(self.size, self.edges())

    def edge_blocks(self) -> Iterator[IntArray]:
        return displaced(self.shape, self._displacements)

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        """Boxes of intervals adjoin iff their nearest members do."""
        factors = bins.factors if isinstance(bins, ProductBins) else (bins,)
        if tuple(f.size for f in factors) != self.shape or bins.count**2 > LIMIT:
            return None
        if not all(f.contiguous for f in factors):
            return None
        u, v = np.triu_indices(bins.count, 1)
        shape = tuple(f.count for f in factors)
        gaps = [
            np.maximum(f.first(np.maximum(a, b)) - f.last(np.minimum(a, b)), 0) * (a != b)
            for f, a, b in zip(factors, np.unravel_index(u, shape), np.unravel_index(v, shape), strict=True)
        ]
        joined = self._near(gaps)
        return Explicit(bins.count, np.column_stack((u[joined], v[joined])))

    def to_plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "shape": list(self.shape), "theta": str(self.theta), "power": self.power}


def Within(shape: Sequence[int], theta: int | str | Fraction, p: float = 1) -> PolicyGraph:  # noqa: N802
    """Points of a grid within an L_p distance of each other: p = 1, 2, … or ``math.inf``.

    L1 and L∞ have closed forms (a Grid, and the joint product of lines); others list their moves.
    """
    if p == math.inf:
        reach = Ball(shape, theta, 1)  # checks both
        lines = tuple(
            Threshold(n, math.floor(reach.theta)) if reach.theta >= 1 else Explicit(n, ())
            for n in reach.shape
        )
        return lines[0] if len(lines) == 1 else Product(*lines, joint=True)
    ball = Ball(shape, theta, int(p) if float(p).is_integer() else 0)
    if ball.power == 1 and ball.theta >= 1:
        return Grid(shape, math.floor(ball.theta))
    return ball
