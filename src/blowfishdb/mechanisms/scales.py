"""Noise scales of many rows, few of them distinct, exact."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.discrete_laplace import variance
from blowfishdb.core.noise import Noise


@final
@dataclass(frozen=True, eq=False)
class UnitScales:
    """Row r gets discrete Laplace noise of scale c_r/ε; c_r = 0 means that the row is exact.

    ``distinct[which[r]]`` is c_r.
    """

    distinct: tuple[Fraction, ...]
    which: IntArray

    @classmethod
    def uniform(cls, scale: int | Fraction, rows: int) -> UnitScales:
        """The same scale for every row."""
        return cls((Fraction(scale),), np.zeros(rows, dtype=np.int64))

    @classmethod
    def from_weights(cls, cost: int | Fraction, weights: IntArray) -> UnitScales:
        """c_r = cost / weight_r: if Σ weight_r·|Δ_r| ≤ cost on every edge, the loss is at most ε."""
        values, which = np.unique(weights, return_inverse=True)
        return cls(tuple(Fraction(cost) / int(value) for value in values), which.astype(np.int64))

    def __len__(self) -> int:
        return int(self.which.size)

    def floats(self) -> FloatArray:
        """c_r as floats, for planning."""
        return np.array([float(scale) for scale in self.distinct])[self.which]

    def fractions(self, epsilon: Epsilon) -> list[Fraction]:
        """The exact scale of every row."""
        at = [scale / epsilon.fraction for scale in self.distinct]
        return [at[index] for index in self.which]

    def variances(self, epsilon: Epsilon) -> FloatArray:
        """The exact variance of the discrete noise of every row."""
        of = [variance(float(c / epsilon.fraction)) if c else 0.0 for c in self.distinct]
        return np.array(of)[self.which]

    def draw(self, noise: Noise, epsilon: Epsilon) -> IntArray:
        """Fresh noise for every row."""
        drawn = np.zeros(len(self), dtype=np.int64)
        for index, scale in enumerate(self.distinct):
            rows = np.flatnonzero(self.which == index)
            if scale and rows.size:
                drawn[rows] = noise.discrete_laplace(scale / epsilon.fraction, rows.size)
        return drawn
