"""How to split the budget between the groups of a shape.

Write the weight of group g as share_g / peak_g, peak_g the most its rows can change along an edge; then K ≤
Σ share_g = 1, with equality when one edge attains every peak. The total error f is homogeneous of degree −2
in the shares, so the elasticities e_g = −½ ∂log f/∂log share_g add up to one, and at the optimum share_g =
e_g. If the groups acted on separate scales, f = Σ α_g/share_g², one step share ← share^⅔·e^⅓ would be exact;
it converges in a few steps here because they nearly do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.mechanisms.line.sensitivity import peaks
from blowfishdb.mechanisms.line.shape import Shape
from blowfishdb.mechanisms.line.solver import LineSolver
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.system import System
from blowfishdb.mechanisms.line.workload import LineWorkload

_STEP = 1e-3
_SETTLED = 0.01


@dataclass(frozen=True, eq=False)
class Tuned:
    """Shares of the budget, one per group, and the total squared error at ε = 1 they lead to."""

    shares: FloatArray
    error: float


class Tuner:
    """The error of one shape as a function of the shares; the symbolic work is done once."""

    def __init__(self, shape: Shape, theta: int, workload: LineWorkload) -> None:
        self._shape, self._theta, self._workload = shape, theta, workload
        self._system = System(shape)
        self._peaks = np.array(peaks(shape, theta), dtype=np.float64)

    def error(self, shares: FloatArray) -> float:
        """The total squared error at ε = 1 if the sensitivity were the sum of the groups' own."""
        variances = np.repeat(2.0 * (self._peaks / shares) ** 2, self._shape.group_sizes)
        return LineSolver(self._shape, variances, system=self._system).total_variance(self._workload)

    def tune(self, start: FloatArray | None = None, steps: int = 8) -> Tuned:
        """The best shares found."""
        groups = self._shape.groups
        shares = np.full(groups, 1.0 / groups) if start is None else start / start.sum()
        if groups == 1:
            return Tuned(shares, self.error(shares))
        error = self.error(shares)
        for _ in range(steps):
            elastic = self._elasticities(shares, error)
            moved = shares ** (2 / 3) * elastic ** (1 / 3)
            moved /= moved.sum()
            change = float(np.abs(moved - shares).max())
            shares, error = moved, self.error(moved)
            if change < _SETTLED:
                break
        return Tuned(shares, error)

    def _elasticities(self, shares: FloatArray, error: float) -> FloatArray:
        elastic = np.empty(len(shares))
        for g in range(1, len(shares)):
            nudged = shares.copy()
            nudged[g] *= 1 + _STEP
            elastic[g] = -0.5 * math.log(self.error(nudged) / error) / math.log1p(_STEP)
        elastic[0] = 1.0 - elastic[1:].sum()
        return np.maximum(elastic, 1e-6)

    @staticmethod
    def rounded(shape: Shape, theta: int, shares: FloatArray) -> LineStrategy:
        """The strategy with these shares, rounded to integer weights."""
        return LineStrategy.rounded(shape, theta, shares / np.array(peaks(shape, theta), dtype=np.float64))
