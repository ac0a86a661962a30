"""Selected: questions about only some of the cells, the others kept because the policy speaks of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from blowfishdb.core.arrays import IntArray, integers
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.workloads.base import Numbers, Workload, vector


@final
@dataclass(frozen=True, eq=False, init=False)
class Selected(Workload):
    """``inner`` asked about the cells with a label; ``labels[cell]`` is the inner cell, or −1 for none.

    What a WHERE clause leaves: records can move in and out of the selection, so the cells outside stay,
    with columns of zero.
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
        inside = np.flatnonzero(self.labels >= 0)
        kept = np.zeros((self.inner.size, *cells.shape[:-1]), dtype=cells.dtype)
        np.add.at(kept, self.labels[inside], np.moveaxis(cells, -1, 0)[inside])
        return self.inner.answer(np.moveaxis(kept, 0, -1))

    def transpose(self, y: ArrayLike) -> Numbers:
        return self._inside(np.asarray(self.inner.transpose(y)))

    def _inside(self, per_cell: Numbers) -> Numbers:
        """Values of inner cells at the cells that have them, zero elsewhere, along the last axis."""
        return np.where(self.labels >= 0, per_cell[..., self.labels], 0)

    def sparse(self) -> csr_array:
        inside = np.flatnonzero(self.labels >= 0)
        picked = csr_array(
            (np.ones(inside.size, dtype=np.int64), (self.labels[inside], inside)),
            shape=(self.inner.size, self.size),
        )
        return csr_array(self.inner.sparse() @ picked)

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
