"""Ball: points of a k-dimensional grid within an L_p distance must stay indistinguishable ([B14] §8.2.3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, integers, whole
from blowfishdb.core.bins import LIMIT, Bins, ProductBins, single_cells, whole_bin
from blowfishdb.core.errors import InvalidGraph, InvalidInput, InvalidThreshold, TooLarge
from blowfishdb.core.graphs.base import PolicyGraph, check_size
from blowfishdb.core.graphs.explicit import Explicit
from blowfishdb.core.graphs.grid import Grid, displaced
from blowfishdb.core.graphs.product import Product
from blowfishdb.core.graphs.threshold import Threshold
from blowfishdb.core.values import number

_LARGEST_POWER = 8


@final
@dataclass(frozen=True, eq=False, init=False)
class Ball(PolicyGraph):
    """Cells of a box, row-major, that adjoin iff Σ|u_i − v_i|^p ≤ θ^p, in exact whole numbers.

    θ may be a fraction: 3/2 in two dimensions joins diagonal neighbours and nothing farther.
    """

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
    def size(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

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

    def project_closed(self, bins: Bins) -> PolicyGraph | None:
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
    found = Ball(shape, theta, int(p) if float(p).is_integer() else 0)
    if found.power == 1 and found.theta >= 1:
        return Grid(shape, math.floor(found.theta))
    return found
