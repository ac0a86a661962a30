"""Sums: the whole-number sums behind aggregates, each with noise of one scale, in one release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.errors import Infeasible, InvalidEpsilon
from blowfishdb.core.noise import Noise
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.secret import Secret

_LARGEST_SCALE: Final = 2**56
_NAMES: Final = {
    "counts": "Laplace on counts",
    "sums": "Laplace on sums",
    "squares": "Laplace on squares from both ends",
    "ends": "Laplace on sums from both ends",
    "centred": "Laplace on counts and centred sums",
    "corners": "Laplace on sums of degree two",
    "total": "Laplace on sums",
    "several": "Laplace on sums of several columns",
}


@final
@dataclass(frozen=True, eq=False)
class SumsPlan:
    """Noise of scale K/ε on every sum that a hidden move changes, K what one changes in total.

    Guarantee: ε-Blowfish for every policy without known counts (docs/proofs/aggregates.md). Sums that none
    changes are exact and free.
    """

    problem: SumsProblem

    @property
    def name(self) -> str:
        """How it is answered, by name."""
        return _NAMES[self.problem.name]

    @property
    def free(self) -> bool:
        """Whether every sum is exact, so that a release costs nothing."""
        return self.problem.free

    def scale(self, epsilon: AnyEpsilon) -> Fraction:
        """The scale of the noise at ``epsilon``."""
        return Fraction(0) if self.free else self.problem.change / positive(epsilon).fraction

    def check(self, epsilon: AnyEpsilon) -> None:
        """Refuse noise that no sampler draws, before anything is charged for it."""
        if self.scale(epsilon) > _LARGEST_SCALE:
            raise InvalidEpsilon("So small an ε needs more noise than can be drawn.", fixes=("a larger ε",))

    def epsilon_at(self, scale: float) -> Epsilon:
        """The least ε at which the noise is at most of this ``scale``."""
        if self.free or math.isinf(scale):
            return Epsilon(0) if self.free else Epsilon.from_nano(1)
        if scale <= 0:
            raise Infeasible("No noise is small enough for this error.", fixes=("allow a larger error",))
        return Epsilon.at_least(self.problem.change / Fraction(scale))

    def release(self, table: Secret[IntArray], *, epsilon: AnyEpsilon, noise: Noise) -> IntArray:
        """The sums of every group with noise: where what the database added up is opened."""
        sums = self.problem.measured(table.reveal())
        noisy = np.flatnonzero(self.problem.noisy)
        if noisy.size:
            drawn = noise.discrete_laplace(self.scale(epsilon), (len(sums), int(noisy.size)))
            sums[:, noisy] += drawn
        return sums

    def explain(self) -> str:
        """What is measured and why it costs what it costs."""
        if self.free:
            return "No pair of values that the policy hides changes any of the sums: all are exact and free."
        problem = self.problem
        told = f"One hidden move changes all sums by at most {problem.change:,} in total"
        exact = "; how many rows a group has is public and exact." if problem.exact_sizes else "."
        why = {
            "ends": "Rows come and go, so each counts at both ends of the values, wherever it lies. ",
            "corners": "Rows come and go, so squares are taken from both ends. ",
            "several": "The sums of all columns share one release, each in units of its own. ",
        }
        return f"{why.get(problem.name, '')}{told}{exact}"
