"""Selection: which table tells the most, chosen privately, and what choosing loses.

Every candidate has a whole number as its score, and one record that moves changes each score by at most
``sensitivity``. The winner is the largest of score + Z, Z ≥ 0 geometric with ratio e^{−1/b}; of equals the
first. With b = 2·sensitivity/ε that loses exactly ε at most: fix the noise of the others; candidate i wins
iff Z_i ≥ t for a whole number t that moves by at most twice the sensitivity (its own score falls while that
of a rival rises), and P(Z ≥ t + 1) = e^{−1/b}·P(Z ≥ t) (docs/proofs/synthesis.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import Kernel, Loss


def selection_scale(nano: int, sensitivity: int = 1) -> Fraction:
    """The scale of the noise on every score, so that choosing loses ``nano`` billionths."""
    return Fraction(2 * sensitivity * NANO, nano)


def noisy_max(scores: IntArray, scale: Fraction, noise: Noise) -> int:
    """The place of the largest score with noise on each; the first of equals."""
    return int(np.argmax(scores + noise.geometric([scale] * len(scores))))


def selection_law(scores: Sequence[int], scale: Fraction, *, tail: float = 1e-14) -> FloatArray:
    """The probability with which each candidate wins, to within ``tail``: what tests compare draws with."""
    q = math.exp(-1 / scale)
    top = max(scores) + math.ceil(math.log(tail) / math.log(q))
    places = np.arange(min(scores), top + 1)
    own = np.array([np.where(places >= s, (1 - q) * q ** np.maximum(places - s, 0), 0.0) for s in scores])
    below = np.array([np.where(places >= s, 1 - q ** np.maximum(places - s + 1, 0), 0.0) for s in scores])
    chances = []
    for at in range(len(scores)):
        before = np.prod(below[:at] - own[:at], axis=0) if at else 1.0  # an equal in front would win
        after = np.prod(below[at + 1 :], axis=0) if at + 1 < len(scores) else 1.0
        chances.append(float((own[at] * before * after).sum()))
    return np.array(chances)


@final
@dataclass(frozen=True, eq=False)
class Chosen(Kernel):
    """What choosing among tables of ``axes`` lost: ε between values in different bins of one of them, else 0.

    It holds for any two values, whatever policy it was chosen under: a record that moves anywhere changes
    half the distance of two tables by at most one.
    """

    axes: tuple[Axis, ...]
    loss: Fraction

    def worst(self, policy: Policy) -> Loss:
        if not one_at_a_time(policy, self.axes):
            return math.inf
        return self.loss if any(told_apart(policy, axis) for axis in self.axes) else Fraction(0)


def one_at_a_time(policy: Policy, axes: Sequence[Axis]) -> bool:
    """Whether a policy is about these columns, and nothing that is known moves several records at once."""
    domain = policy.domain
    return policy.constraints is None and all(
        axis.column in domain and domain[axis.column] == axis.attribute for axis in axes
    )


def told_apart(policy: Policy, axis: Axis) -> bool:
    """Whether a record that the policy hides can move from one bin of a column to another, or out of them."""
    return axis.attribute.may_drop or policy.project({axis.column: axis.bins}).edge_count > 0
