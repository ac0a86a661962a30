"""Entries of the inverse of a sparse matrix near its diagonal, for matrices that are narrow bands.

Releases on a line measure neighbours, so after reordering (Cuthill–McKee) their normal equations are a narrow
band. Seen as a block tridiagonal matrix, all diagonal blocks of the inverse and the blocks beside them follow
from one sweep down and one up: with S_i = D_i − U_{i−1}ᵀS_{i−1}⁻¹U_{i−1} and K_i = S_i⁻¹U_i,

    X_{i,i+1} = −K_i·X_{i+1,i+1},     X_{i,i} = S_i⁻¹ + K_i·X_{i+1,i+1}·K_iᵀ.

Transposes are plain, so a complex symmetric matrix works too: imaginary steps give derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from blowfishdb.core.arrays import BoolArray, IntArray

WIDEST = 48
_BLOCK = 16

Entries = NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class Band:
    """A symmetric sparsity pattern, reordered into ``blocks`` blocks of ``width`` places each."""

    place: IntArray
    """Where each variable stands in the band."""
    part: IntArray
    """Which connected part it belongs to; between parts the inverse is zero."""
    width: int

    @classmethod
    def of(cls, matrix: csr_array) -> Band | None:
        """The band of a symmetric matrix; None if it is not narrow."""
        order = reverse_cuthill_mckee(matrix, symmetric_mode=True)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        entries = coo_array(matrix)
        reach = int(np.abs(place[entries.row] - place[entries.col]).max(initial=0))
        part = np.asarray(connected_components(matrix, directed=False)[1], dtype=np.int64)
        return cls(place, part, max(reach, _BLOCK)) if reach <= WIDEST else None

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.place.size // self.width)

    def near(self, a: IntArray, b: IntArray) -> BoolArray:
        """Whether an entry of the inverse is known: in a block that ``inverse`` makes, or zero."""
        apart = np.abs(self.place[a] // self.width - self.place[b] // self.width)
        return (apart <= 1) | (self.part[a] != self.part[b])

    def inverse(self, row: IntArray, column: IntArray, data: Entries) -> tuple[Entries, Entries]:
        """The diagonal blocks of the inverse of Σ data·e_row·e_columnᵀ, and the blocks right of them."""
        width, count = self.width, self.blocks
        diagonal = np.zeros((count, width, width), dtype=data.dtype)
        beside = np.zeros((count, width, width), dtype=data.dtype)
        (block, i), (other, j) = (np.divmod(self.place[index], width) for index in (row, column))
        for blocks, step in ((diagonal, 0), (beside, 1)):
            here = other == block + step
            np.add.at(blocks, (block[here], i[here], j[here]), data[here])
        spare = np.arange(self.place.size - (count - 1) * width, width)
        diagonal[-1, spare, spare] = 1
        return _sweep(diagonal, beside)

    def entries(self, inverse: tuple[Entries, Entries], a: IntArray, b: IntArray) -> Entries:
        """Single entries of the inverse, all of them ``near``."""
        first = np.minimum(self.place[a], self.place[b])
        second = np.maximum(self.place[a], self.place[b])
        block, i = np.divmod(first, self.width)
        other, j = np.divmod(second, self.width)
        found = np.where(block == other, inverse[0][block, i, j], inverse[1][block, i, j])
        return np.where(self.part[a] == self.part[b], found, 0)


def _sweep(diagonal: Entries, beside: Entries) -> tuple[Entries, Entries]:
    """One sweep down, one up; the arguments are overwritten."""
    last = len(diagonal) - 1
    pivots, steps = diagonal, np.zeros_like(beside)
    for i in range(last + 1):
        pivots[i] = np.linalg.inv(pivots[i])
        if i < last:
            steps[i] = pivots[i] @ beside[i]
            pivots[i + 1] -= beside[i].T @ steps[i]
    for i in range(last - 1, -1, -1):
        beside[i] = -steps[i] @ pivots[i + 1]
        pivots[i] = pivots[i] - beside[i] @ steps[i].T
    return pivots, beside
