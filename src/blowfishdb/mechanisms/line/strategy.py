"""A finished strategy: shape, integer weights, exact sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidScale, InvalidThreshold, SizeMismatch
from blowfishdb.mechanisms.line.sensitivity import peaks, sensitivity
from blowfishdb.mechanisms.line.shape import Shape

_UNIT = 2**20


@dataclass(frozen=True)
class LineStrategy:
    """Integer rows and integer weights for the θ-line on k cells, n public. Final.

    *Guarantee.* Adding discrete Laplace noise of scale b_r = K/(w_r·ε) to row r is ε-private: a move along an
    edge costs Σ_r |a_r·(e_u − e_v)|/b_r ≤ ε, with equality on some edge, because K is the exact maximum over
    all edges with the final integer weights (docs/proofs/optimized.md, Theorem 1).
    *Error.* Row r has variance 2(K/w_r)²/ε² in the continuous limit; decode with
    :class:`~blowfishdb.mechanisms.line.solver.LineSolver`.
    """

    shape: Shape
    theta: int
    group_weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.theta < 1:
            raise InvalidThreshold("A record must be able to move by at least one cell.")
        if len(self.group_weights) != self.shape.groups:
            raise SizeMismatch("There must be one weight per group of rows.")
        if min(self.group_weights) < 1:
            raise InvalidScale("Every weight must be a positive whole number.")

    @staticmethod
    def rounded(shape: Shape, theta: int, importance: FloatArray) -> LineStrategy:
        """Weights ⌊c·2²⁰⌋ with the smallest c equal to one: rounding moves no weight by more than 10⁻⁶."""
        scaled = np.floor(importance / importance.min() * _UNIT)
        return LineStrategy(shape, theta, tuple(max(1, int(c)) for c in scaled))

    @property
    def k(self) -> int:
        """The number of cells."""
        return self.shape.cells

    @cached_property
    def sensitivity(self) -> int:
        """K, the exact maximum over all edges of Σ_r w_r·|a_r·(e_u − e_v)|; 0 if there is no edge."""
        return sensitivity(self.shape, self.theta, self.group_weights)

    @property
    def weights(self) -> IntArray:
        """w_r for every row."""
        return np.repeat(np.array(self.group_weights, dtype=np.int64), self.shape.group_sizes)

    @property
    def groups(self) -> tuple[str, ...]:
        """What is measured, one phrase per group, with its share of the sensitivity."""
        spent = (w * p for w, p in zip(self.group_weights, peaks(self.shape, self.theta), strict=True))
        shares = (part / max(1, self.sensitivity) for part in spent)
        phrases = zip(self.shape.describe(), shares, strict=True)
        return tuple(f"{words}: {share:.1%}" for words, share in phrases)

    def rows(self, *, limit: int = 20_000_000) -> csr_array:
        """The rows over the cells; long prefix rows beyond ``limit`` entries raise ``TooLarge``."""
        return self.shape.rows(limit)

    def prefix_rows(self) -> csr_array:
        """The same rows over the cuts p_1 … p_{k−1}, always sparse; answers add ``offsets()``·n."""
        return self.shape.prefix_rows()

    def offsets(self) -> IntArray:
        """How often the public n enters each row when it is written over the cuts."""
        return self.shape.offsets()

    def answers(self, x: IntArray) -> IntArray:
        """The exact answers of all rows to a histogram (or a batch of them), without forming the matrix."""
        if x.shape[-1] != self.k:
            raise SizeMismatch(f"The strategy is for {self.k} cells, the histogram has {x.shape[-1]}.")
        return self.shape.answers(x)

    def variances(self, epsilon: float = 1.0) -> FloatArray:
        """2(K/(w_r·ε))² for every row: the noise in the continuous limit."""
        per_group = [2.0 * (self.sensitivity / (w * epsilon)) ** 2 for w in self.group_weights]
        return np.repeat(np.array(per_group), self.shape.group_sizes)
