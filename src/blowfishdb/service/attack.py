"""Attack me: a real attacker on made-up people, to see what a budget does and does not let anyone find out.

The people follow from a fixed rule, so there is nobody to be found; no dataset can be attacked. What is
released is what the Ordered mechanism measures for a cumulative histogram, with the noise that real answers
have. The attacker knows every other row and all released numbers, and computes by Bayes' rule which of two
salaries somebody has.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.protection import certainty_at
from blowfishdb.core.workloads import Cumulative
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.messages.attack import Attack

STEP: Final = 1_000
"""Salaries that are no further apart are hidden from each other."""
MOST_ANSWERS: Final = 10
APART: Final = (1_000, 2_000, 5_000)
TARGETS: Final = 12
BUDGET: Final = Epsilon(1)
_CELLS: Final = 100
_PEOPLE: Final = 400


def people() -> list[int]:
    """The salaries of the made-up people who can be attacked."""
    return [int(cell) * STEP for cell in _rows()[:TARGETS]]


def attack(*, person: int, apart: int, answers: int, noise: Noise | None) -> Attack:
    """Attack one of the made-up people, with so many answers; without ``noise``, on the true counts."""
    if not 1 <= person <= TARGETS:
        raise InvalidInput(f"There are {TARGETS} made-up people.", fixes=("person 1",))
    if apart not in APART:
        raise InvalidInput(
            f"The two salaries are {', '.join(map(str, APART))} apart.", fixes=(str(APART[0]),)
        )
    if not 1 <= answers <= MOST_ANSWERS:
        raise InvalidInput(f"Between 1 and {MOST_ANSWERS} answers are attacked.", fixes=("10",))
    cell, away = int(_rows()[person - 1]), apart // STEP
    other = cell + away if cell + away < _CELLS else cell - away
    each = Epsilon.from_nano(BUDGET.nano // MOST_ANSWERS)
    matrix, scales = _measured(each)
    counts = np.bincount(_rows(), minlength=_CELLS)
    moved = np.zeros(_CELLS, dtype=np.int64)
    moved[cell], moved[other] = -1, 1
    truth, change = matrix @ counts, matrix @ moved
    odds, sure = 0.0, [0.5]
    for _ in range(answers):
        if noise is None:
            odds = math.inf if change.any() else odds
        else:
            released = truth + noise.discrete_laplace(scales)
            odds += _evidence(released - truth, change, scales)
        sure.append(1.0 / (1.0 + math.exp(-min(odds, 700.0))))
    steps = range(answers + 1)
    most = [certainty_at(away, Epsilon.from_nano(each.nano * n)) if noise is not None else 1.0 for n in steps]
    return Attack(
        person=person,
        salary=cell * STEP,
        other=other * STEP,
        noisy=noise is not None,
        epsilon=Epsilon.from_nano(each.nano * answers),
        sure=tuple(round(each, 6) for each in sure),
        most=tuple(round(each, 6) for each in most),
    )


def _evidence(noise: IntArray, change: IntArray, scales: Any) -> float:
    """The logarithm of how much more likely the released numbers are if the truth is the truth.

    P(noise = z) falls by exp(−|z| / scale); under the other salary those numbers need the noise z − change.
    """
    widths = np.array([float(scale) for scale in scales])
    return float(((np.abs(noise - change) - np.abs(noise)) / widths).sum())


@cache
def _rows() -> IntArray:
    """Salaries in cells, a hill with a long tail to the right; the same for everyone, for ever."""
    draw = np.random.Generator(np.random.Philox(key=20_14))
    return np.minimum((draw.beta(2.0, 4.5, size=_PEOPLE) * _CELLS).astype(np.int64), _CELLS - 7)


@cache
def _measured(epsilon: Epsilon) -> tuple[Any, Any]:
    """What one answer measures, and with how much noise on each number."""
    plan = Ordered().plan(Cumulative(_CELLS), Threshold(_CELLS, 1))
    return plan.rows(epsilon=epsilon)
