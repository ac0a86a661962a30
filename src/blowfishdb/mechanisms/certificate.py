"""Certificate: a release in a form that anyone can check, edge by edge, in exact arithmetic.

A linear release is A·x + N·η with independent η_r of discrete Laplace scale b_r. It is ε-private if
for every edge (u, v) some z has N·z = A(e_u − e_v) and Σ |z_r|/b_r ≤ ε: moving a record from v to
u is then undone by shifting the noise by z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from scipy.sparse import csr_array, eye_array

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph


@final
@dataclass(frozen=True, eq=False)
class Certificate:
    """A, N and b, with a witness z for every edge."""

    released: csr_array
    mixing: csr_array
    scales: list[Fraction]
    witness: Callable[[int, int], IntArray]

    @classmethod
    def of_rows(cls, rows: csr_array, scales: list[Fraction]) -> Certificate:
        """Independent noise on integer rows: N is the identity and z the change of the rows."""
        padded = csr_array(rows)
        columns = csr_array(padded.T)

        def change(u: int, v: int) -> IntArray:
            zero = np.zeros(padded.shape[0], dtype=np.int64)
            sides = [columns[[w]].toarray()[0] if w < columns.shape[0] else zero for w in (u, v)]
            return np.asarray(sides[0] - sides[1])

        return cls(padded, csr_array(eye_array(padded.shape[0], dtype=np.int64)), scales, change)

    def loss(self, u: int, v: int) -> Fraction:
        """The exact loss on one edge; NotProven if the witness does not undo the move."""
        z = self.witness(u, v)
        move = np.zeros(self.released.shape[1], dtype=np.int64)
        for vertex, sign in ((u, 1), (v, -1)):
            if vertex < move.size:  # a vertex beyond the cells counts nowhere
                move[vertex] += sign
        if (self.mixing @ z != self.released @ move).any():
            raise NotProven(f"The noise cannot undo a move between cells {u} and {v}.")
        return sum((Fraction(abs(int(z[r]))) / self.scales[r] for r in np.flatnonzero(z)), start=Fraction(0))

    def worst_loss(self, graph: PolicyGraph) -> Fraction:
        """The largest loss over all edges of ``graph``."""
        return max((self.loss(int(u), int(v)) for u, v in graph.edges()), default=Fraction(0))
