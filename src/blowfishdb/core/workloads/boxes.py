"""Workloads on products of attributes: Kronecker products, rectangles, marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import IntArray, integers, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, EdgeBins, ProductBins
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.workloads.base import Numbers, Workload, check_cells, vector
from blowfishdb.core.workloads.line import Histogram, Ranges


class BoxWorkload(Workload):
    """Questions over the cells of a box, row-major."""

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
class Product(BoxWorkload):
    """Every combination of one question per attribute: W₁ ⊗ W₂ ⊗ …, last attribute fastest.

    >>> w = bf.workloads
    >>> w.Product(w.Histogram(2), w.Cumulative(3)).answer([1, 2, 3, 4, 5, 6])
    array([ 1,  3,  6,  4,  9, 15])
    """

    factors: tuple[Workload, ...]

    def __init__(self, *workloads: Workload) -> None:
        if not workloads:
            raise InvalidWorkload("A product needs at least one workload.")
        object.__setattr__(self, "factors", workloads)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return tuple(factor.size for factor in self.factors)

    @property
    def one_per_cell(self) -> bool:
        return all(factor.one_per_cell for factor in self.factors)

    @property
    def count(self) -> int:
        return math.prod(factor.count for factor in self.factors)

    @property
    def denominator(self) -> int:
        return math.prod(factor.denominator for factor in self.factors)

    @property
    def binary(self) -> bool:
        return all(factor.binary for factor in self.factors)

    def answer(self, x: ArrayLike) -> Numbers:
        cells = vector(x, self.size)
        box = cells.reshape(*cells.shape[:-1], *self.shape)
        for axis, factor in enumerate(self.factors, start=-len(self.factors)):
            box = np.moveaxis(factor.answer(np.moveaxis(box, axis, -1)), -1, axis)
        return box.reshape(*cells.shape[:-1], self.count)

    def transpose(self, y: ArrayLike) -> Numbers:
        rows = vector(y, self.count)
        box = rows.reshape(*rows.shape[:-1], *(factor.count for factor in self.factors))
        for axis, factor in enumerate(self.factors, start=-len(self.factors)):
            box = np.moveaxis(factor.transpose(np.moveaxis(box, axis, -1)), -1, axis)
        return box.reshape(*rows.shape[:-1], self.size)

    def sparse(self) -> scipy.sparse.csr_array:
        return kronecker([factor.sparse() for factor in self.factors])

    def _gram(self) -> Numbers:
        return np.asarray(reduce(np.kron, (factor.gram() for factor in self.factors)))

    def describe(self) -> str:
        return " × ".join(factor.describe() for factor in self.factors)

    def norms(self, cells: ArrayLike) -> Numbers:
        parts = np.unravel_index(np.asarray(cells), self.shape)
        return np.asarray(math.prod(f.norms(part) for f, part in zip(self.factors, parts, strict=True)))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        """For 0/1 columns ‖a − b‖₁ = ‖a‖₁ + ‖b‖₁ − 2·a·b, and all three multiply over attributes."""
        if not self.binary:
            return super().moves(u, v)
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        common = [
            (factor.norms(a) + factor.norms(b) - factor.moves(a, b)) // 2
            for factor, a, b in zip(self.factors, here, there, strict=True)
        ]
        return np.asarray(self.norms(u) + self.norms(v) - 2 * math.prod(common))

    @property
    def largest_norm(self) -> int:
        return math.prod(factor.largest_norm for factor in self.factors)

    def within_reach(self, reach: int) -> int | None:
        return self.factors[0].within_reach(reach) if len(self.factors) == 1 else None

    def cells(self) -> Bins:
        return ProductBins(tuple(factor.cells() for factor in self.factors))

    def merged(self) -> Workload:
        merged = tuple(factor.merged() for factor in self.factors)
        unchanged = all(a is b for a, b in zip(merged, self.factors, strict=True))
        return self if unchanged else Product(*merged)


@final
@dataclass(frozen=True, eq=False, init=False)
class Rectangles(BoxWorkload):
    """Given boxes of a product domain; ``lows`` and ``highs`` have one row per box, ends included.

    >>> bf.workloads.Rectangles((2, 3), [[0, 0]], [[1, 1]]).answer([1, 2, 3, 4, 5, 6])
    array([12])
    """

    shape: tuple[int, ...]
    lows: IntArray
    highs: IntArray

    def __init__(self, shape: Sequence[int], lows: ArrayLike, highs: ArrayLike) -> None:
        axes = check_shape(shape)
        low = integers(lows, "Lower corners", InvalidWorkload)
        high = integers(highs, "Upper corners", InvalidWorkload)
        if low.ndim != 2 or low.shape != high.shape or low.shape[1] != len(axes) or not low.size:
            raise InvalidWorkload(f"Rectangles need corners with {len(axes)} coordinates each, at least one.")
        if (low > high).any() or low.min() < 0 or (high >= np.asarray(axes)).any():
            raise InvalidWorkload(f"Each rectangle must lie within the grid of shape {axes}.")
        object.__setattr__(self, "shape", axes)
        object.__setattr__(self, "lows", low)
        object.__setattr__(self, "highs", high)

    @property
    def count(self) -> int:
        return int(self.lows.shape[0])

    def answer(self, x: ArrayLike) -> Numbers:
        """By inclusion and exclusion over the corners of a summed-area table."""
        cells = vector(x, self.size)
        table = cells.reshape(*cells.shape[:-1], *self.shape)
        for axis in range(-len(self.shape), 0):
            table = np.cumsum(table, axis=axis)
        table = np.pad(table, [(0, 0)] * (cells.ndim - 1) + [(1, 0)] * len(self.shape))
        total = np.zeros((*cells.shape[:-1], self.count), dtype=table.dtype)
        for corner in itertools.product((0, 1), repeat=len(self.shape)):
            at = np.where(np.asarray(corner, dtype=bool), self.lows, self.highs + 1)
            total = total + (-1) ** sum(corner) * table[(..., *at.T)]
        return np.asarray(total)

    def transpose(self, y: ArrayLike) -> Numbers:
        rows = vector(y, self.count)
        by_box = np.moveaxis(rows, -1, 0)
        table = np.zeros((*(n + 1 for n in self.shape), *rows.shape[:-1]), dtype=rows.dtype)
        for corner in itertools.product((0, 1), repeat=len(self.shape)):
            at = np.where(np.asarray(corner, dtype=bool), self.highs + 1, self.lows)
            np.add.at(table, tuple(at.T), (-1) ** sum(corner) * by_box)
        for axis in range(len(self.shape)):
            table = np.cumsum(table, axis=axis)
        inside = table[(slice(0, -1),) * len(self.shape)]
        return np.moveaxis(inside.reshape(self.size, *rows.shape[:-1]), 0, -1)

    def sparse(self) -> scipy.sparse.csr_array:
        volumes = math.prod((self.highs - self.lows + 1).T)
        if int(np.sum(volumes)) > 10 * LIMIT:
            raise TooLarge(
                f"Writing out rectangles with {int(np.sum(volumes)):,} entries is above the limit."
            )
        axes = [Ranges(n, self.lows[:, a], self.highs[:, a]).sparse() for a, n in enumerate(self.shape)]
        boxes = [kronecker([axis[row : row + 1] for axis in axes]) for row in range(self.count)]
        return scipy.sparse.csr_array(scipy.sparse.vstack(boxes))

    def describe(self) -> str:
        return f"{self.count:,} rectangles on a {'×'.join(map(str, self.shape))} grid"

    def cells(self) -> Bins:
        return ProductBins(
            tuple(Ranges(n, self.lows[:, a], self.highs[:, a]).cells() for a, n in enumerate(self.shape))
        )

    def merged(self) -> Workload:
        cuts: list[Bins] = list(self.cells().factors)  # type: ignore[attr-defined]
        if math.prod(cut.count for cut in cuts) == self.size:
            return self
        corners = (
            np.column_stack([cut.assign(ends[:, axis]) for axis, cut in enumerate(cuts)])
            for ends in (self.lows, self.highs)
        )
        return Rectangles(tuple(cut.count for cut in cuts), *corners)


@final
@dataclass(frozen=True, eq=False, init=False)
class Marginals(BoxWorkload):
    """The histograms of several subsets of attributes, each summed over the others.

    >>> bf.workloads.Marginals((2, 3), [[0], [1]]).answer([1, 2, 3, 4, 5, 6])
    array([ 6, 15,  5,  7,  9])
    """

    shape: tuple[int, ...]
    subsets: tuple[tuple[int, ...], ...]

    def __init__(self, shape: Sequence[int], subsets: Iterable[Iterable[int]]) -> None:
        axes = check_shape(shape)
        wanted = tuple(
            tuple(sorted({whole(axis, "An attribute number", InvalidWorkload) for axis in subset}))
            for subset in subsets
        )
        if not wanted or any(not 0 <= axis < len(axes) for subset in wanted for axis in subset):
            raise InvalidWorkload(
                f"Marginals need subsets of the attributes 0 … {len(axes) - 1}, at least one."
            )
        object.__setattr__(self, "shape", axes)
        object.__setattr__(self, "subsets", wanted)

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts())

    def parts(self) -> tuple[Product, ...]:
        """One product workload per subset: cells of the subset, the total of everything else."""
        return tuple(
            Product(
                *(
                    Histogram(n) if axis in subset else Ranges(n, [0], [n - 1])
                    for axis, n in enumerate(self.shape)
                )
            )
            for subset in self.subsets
        )

    def answer(self, x: ArrayLike) -> Numbers:
        return np.concatenate([part.answer(x) for part in self.parts()], axis=-1)

    def transpose(self, y: ArrayLike) -> Numbers:
        rows = vector(y, self.count)
        ends = np.cumsum([part.count for part in self.parts()])[:-1]
        pieces = np.split(rows, ends, axis=-1)
        return np.asarray(
            sum(part.transpose(piece) for part, piece in zip(self.parts(), pieces, strict=True))
        )

    def sparse(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(scipy.sparse.vstack([part.sparse() for part in self.parts()]))

    def describe(self) -> str:
        return f"{len(self.subsets):,} marginals of a {'×'.join(map(str, self.shape))} table"

    def norms(self, cells: ArrayLike) -> Numbers:
        return np.full(np.shape(cells), len(self.subsets), dtype=np.int64)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        here, there = np.unravel_index(np.asarray(u), self.shape), np.unravel_index(np.asarray(v), self.shape)
        moved = np.stack([np.asarray(a != b) for a, b in zip(here, there, strict=True)])
        return np.asarray(sum(2 * moved[list(subset)].any(axis=0) for subset in self.subsets))

    def moved(self, axes: Iterable[int]) -> int:
        """‖W(e_u − e_v)‖₁ when exactly these attributes differ: 2 for each subset that sees one."""
        changed = set(axes)
        return 2 * sum(not changed.isdisjoint(subset) for subset in self.subsets)

    @property
    def largest_norm(self) -> int:
        return len(self.subsets)

    def cells(self) -> Bins:
        seen = set(itertools.chain.from_iterable(self.subsets))
        return ProductBins(
            tuple(
                EdgeBins(n, np.arange(n) if axis in seen else np.zeros(1, dtype=np.int64))
                for axis, n in enumerate(self.shape)
            )
        )

    def merged(self) -> Workload:
        seen = set(itertools.chain.from_iterable(self.subsets))
        shape = tuple(n if axis in seen else 1 for axis, n in enumerate(self.shape))
        return self if shape == self.shape else Marginals(shape, self.subsets)


def one_per_cell(workload: Workload) -> bool:
    """Whether the questions are the cells themselves, in their order."""
    return workload.one_per_cell


def kronecker(matrices: Sequence[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    """The Kronecker product of sparse matrices, last fastest."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = scipy.sparse.csr_array(scipy.sparse.kron(product, matrix))
    return product


def check_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """At least one axis, each with at least one cell."""
    axes = tuple(check_cells(n) for n in shape)
    if not axes:
        raise InvalidWorkload("A grid needs at least one axis.")
    return axes
