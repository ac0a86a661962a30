"""Workloads without a shape of their own: an explicit matrix, and sets of conditions.

Selected: questions about only some of the cells, the others kept because the policy speaks of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, IntArray, integers
from blowfishdb.core.domain.bins import Bins, EdgeBins, ProductBins, whole_bin
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import InvalidWorkload, NotFinite, TooLarge
from blowfishdb.core.workloads.base import Numbers, Workload, check_cells, vector

_SAFE = 2**62


@final
@dataclass(frozen=True, eq=False, init=False)
class Matrix(Workload):
    """Any linear questions, one row each; every entry is kept as the exact rational that it is.

    >>> bf.workloads.Matrix([[1, -1], [0.5, 0.5]]).answer([4, 2])
    array([2., 3.])
    """

    entries: Numbers
    scaled: Numbers = field(repr=False)
    common: int = field(repr=False)

    def __init__(self, array: ArrayLike) -> None:
        entries = np.atleast_2d(np.asarray(array))
        if entries.ndim != 2 or not entries.size:
            raise InvalidWorkload("A matrix workload needs rows and columns.")
        scaled, common = _over_common_denominator(entries)
        for name, value in (("entries", entries), ("scaled", scaled), ("common", common)):
            object.__setattr__(self, name, value)

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.entries.shape[1])

    @property
    def count(self) -> int:
        return int(self.entries.shape[0])

    @property
    def denominator(self) -> int:
        return self.common

    @cached_property
    def binary(self) -> bool:
        return bool(np.isin(self.entries, (0, 1)).all())

    def answer(self, x: ArrayLike) -> Numbers:
        return np.asarray(vector(x, self.size) @ self.entries.T)

    def transpose(self, y: ArrayLike) -> Numbers:
        return np.asarray(vector(y, self.count) @ self.entries)

    def matrix(self, limit: int = 10**7) -> Numbers:
        return self.entries.copy()

    def sparse(self) -> scipy.sparse.csr_array:
        if self.scaled.dtype == object:
            raise TooLarge("The common denominator of this matrix is too large for whole-number rows.")
        return scipy.sparse.csr_array(self.scaled)

    def describe(self) -> str:
        return f"{self.count:,} linear questions over {self.size:,} cells"

    def norms(self, cells: ArrayLike) -> Numbers:
        return np.asarray(np.abs(self.scaled[:, np.asarray(cells)]).sum(axis=0))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return np.asarray(np.abs(self.scaled[:, np.asarray(u)] - self.scaled[:, np.asarray(v)]).sum(axis=0))


def _over_common_denominator(entries: Numbers) -> tuple[Numbers, int]:
    """Whole numbers and what to divide them by; Python integers where 64 bits could overflow."""
    if np.issubdtype(entries.dtype, np.integer) or entries.dtype == np.bool_:
        rationals = entries.astype(object)
        common = 1
    else:
        try:
            rationals = np.vectorize(Fraction, otypes=[object])(entries)
        except (ValueError, OverflowError, TypeError) as error:
            raise NotFinite("A matrix workload needs finite numbers in every place.") from error
        common = math.lcm(*(value.denominator for value in rationals.flat))
    scaled = np.asarray(np.vectorize(lambda value: int(value * common), otypes=[object])(rationals))
    largest = max(abs(value) for value in scaled.flat)
    if 2 * largest * scaled.shape[0] < _SAFE:
        return scaled.astype(np.int64), common
    return scaled, common


@final
@dataclass(frozen=True, eq=False, init=False)
class Predicates(Workload):
    """How many records satisfy each condition. Conditions may overlap; the domain may be huge.

    >>> old = bf.workloads.Predicates(bf.Domain(age=bf.Integer(0, 99)), [bf.col("age") >= 65])
    >>> old.size, old.merged().size
    (100, 2)
    """

    domain: Domain
    predicates: tuple[Predicate, ...]

    def __init__(self, domain: Domain, predicates: Sequence[Predicate]) -> None:
        if not predicates:
            raise InvalidWorkload("A set of conditions needs at least one condition.")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "predicates", tuple(predicates))
        for predicate in predicates:
            predicate.check(domain)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.domain.size

    @property
    def count(self) -> int:
        return len(self.predicates)

    @cached_property
    def _cuts(self) -> ProductBins:
        """Per column, the union of the cuts of all conditions."""
        starts: dict[str, set[int]] = {}
        for predicate in self.predicates:
            for name, bins in predicate.cuts(self.domain).items():
                starts.setdefault(name, set()).update(bins.first(np.arange(bins.count)).tolist())
        factors = [
            EdgeBins(self.domain[name].size, np.array(sorted(starts[name]), dtype=np.int64))
            if name in starts
            else whole_bin(self.domain[name].size)
            for name in self.domain.names
        ]
        return ProductBins(tuple(factors))

    def cells(self) -> Bins:
        return self._cuts

    @cached_property
    def _merged(self) -> Matrix:
        shape = tuple(factor.count for factor in self._cuts.factors)
        boxes = np.unravel_index(np.arange(check_cells(math.prod(shape))), shape)
        cells = {
            name: factor.first(box)
            for name, factor, box in zip(self.domain.names, self._cuts.factors, boxes, strict=True)
        }
        return Matrix(self._truth(cells).astype(np.int64))

    def _truth(self, cells: dict[str, Any]) -> BoolArray:
        return np.stack([predicate.on_cells(self.domain, cells) for predicate in self.predicates])

    def merged(self) -> Workload:
        return self._merged

    def answer(self, x: ArrayLike) -> Numbers:
        return np.asarray(vector(x, self.size) @ self.sparse().T)

    def transpose(self, y: ArrayLike) -> Numbers:
        return np.asarray(vector(y, self.count) @ self.sparse())

    def sparse(self) -> scipy.sparse.csr_array:
        columns = self._cuts.assignment()
        return scipy.sparse.csr_array(self._merged.scaled[:, columns])

    def describe(self) -> str:
        return f"{self.count:,} conditions"

    def norms(self, cells: ArrayLike) -> Numbers:
        return self._merged.norms(self._cuts.assign(cells))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return self._merged.moves(self._cuts.assign(u), self._cuts.assign(v))


@final
@dataclass(frozen=True, eq=False, init=False)
class Selected(Workload):
    """``inner`` asked about the cells with a label; ``labels[cell]`` is the inner cell, or −1 for none.

    What a WHERE clause leaves: records can move in and out of the selection, so the cells outside stay,
    with columns of zero.

    >>> bf.workloads.Selected(bf.workloads.Histogram(2), [0, 1, -1]).answer([4, 0, 2])
    array([4, 0])
    """

    inner: Workload
    labels: IntArray

    def __init__(self, inner: Workload, labels: ArrayLike) -> None:
        table = integers(labels, "Labels", InvalidWorkload)
        if table.ndim != 1 or not table.size or table.min() < -1 or table.max() >= inner.size:
            raise InvalidWorkload(f"Labels must name one of {inner.size:,} cells, or −1 for none.")
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "labels", table)

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.labels.size)

    @property
    def count(self) -> int:
        return self.inner.count

    @property
    def denominator(self) -> int:
        return self.inner.denominator

    @property
    def binary(self) -> bool:
        return self.inner.binary

    def answer(self, x: ArrayLike) -> Numbers:
        cells = vector(x, self.size)
        inside, apart = self._counted
        if apart:
            alone = np.zeros((*cells.shape[:-1], self.inner.size), dtype=cells.dtype)
            alone[..., self.labels[inside]] = cells[..., inside]
            return self.inner.answer(alone)
        inner = np.zeros((self.inner.size, *cells.shape[:-1]), dtype=cells.dtype)
        np.add.at(inner, self.labels[inside], np.moveaxis(cells, -1, 0)[inside])
        return self.inner.answer(np.moveaxis(inner, 0, -1))

    @cached_property
    def _counted(self) -> tuple[IntArray, bool]:
        """The cells that belong to an inner one, and whether no two belong to the same."""
        inside = np.flatnonzero(self.labels >= 0)
        return inside, bool(np.bincount(self.labels[inside], minlength=1).max() <= 1)

    def transpose(self, y: ArrayLike) -> Numbers:
        return self._inside(np.asarray(self.inner.transpose(y)))

    def _inside(self, per_cell: Numbers) -> Numbers:
        """Values of inner cells at the cells that have them, zero elsewhere, along the last axis."""
        return np.where(self.labels >= 0, per_cell[..., self.labels], 0)

    def sparse(self) -> scipy.sparse.csr_array:
        inside = np.flatnonzero(self.labels >= 0)
        picked = scipy.sparse.csr_array(
            (np.ones(inside.size, dtype=np.int64), (self.labels[inside], inside)),
            shape=(self.inner.size, self.size),
        )
        return scipy.sparse.csr_array(self.inner.sparse() @ picked)

    def describe(self) -> str:
        return f"{self.inner.describe()}, filtered"

    def norms(self, cells: ArrayLike) -> Numbers:
        labels = self.labels[np.asarray(cells)]
        return np.where(labels >= 0, self.inner.norms(np.maximum(labels, 0)), 0)

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        """Inside, as ``inner`` has it; across the border, the whole column of the inner end."""
        here, there = self.labels[np.asarray(u)], self.labels[np.asarray(v)]
        both = (here >= 0) & (there >= 0)
        inner = self.inner.moves(np.maximum(here, 0), np.maximum(there, 0))
        return np.where(both, inner, self.norms(u) + self.norms(v))
