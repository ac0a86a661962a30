"""Refining: a stored release that a plan would make again with less noise, for the difference of both prices.

The rows must be the same and the noise of all of them smaller by one factor, which is the ratio of two ε: the
second release then loses between any two values exactly that many times as much as the first, and the first
is no more than a noisier copy of the second (docs/proofs/refinement.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.refinement import can_refine
from blowfishdb.mechanisms.losses import ReleasedRows
from blowfishdb.mechanisms.plan import EarlierRelease, Plan
from blowfishdb.mechanisms.reuse.stored import Rows, StoredRelease, chosen, rows_of


def earlier_release(plan: Plan, stored: StoredRelease) -> EarlierRelease | None:
    """The stored release as one that ``plan`` made, at which ε; None where it is another."""
    if plan.free or not plan.refinable:
        return None
    noisy = np.flatnonzero(~stored.exact)
    if noisy.size != np.count_nonzero(plan.scales.floats()):
        return None
    measured = _measured(plan)
    if measured is None or measured.rows.count != noisy.size:
        return None
    if measured.rows != (stored.rows if noisy.size == stored.rows.count else chosen(stored.rows, noisy)):
        return None
    scales = (stored.distinct[place] for place in stored.which[noisy].tolist())
    ratios = {unit / scale for unit, scale in set(zip(measured.units, scales, strict=True))}
    nano = ratios.pop() * NANO if len(ratios) == 1 else Fraction(1, 2)
    if nano.denominator != 1:
        return None
    return EarlierRelease(measured.written, stored.values[noisy], Epsilon.from_nano(int(nano)))


@final
@dataclass(frozen=True, eq=False)
class _Measured:
    """The noisy rows of a plan, and the scale of each at ε = 1."""

    written: csr_array
    rows: Rows
    units: tuple[Fraction, ...]


@lru_cache(maxsize=128)
def _measured(plan: Plan) -> _Measured | None:
    """What a plan measures, worked out once for all releases that it is compared with."""
    try:
        rows, units = ReleasedRows(plan, Epsilon(1)).noisy
    except (NotProven, TooLarge):
        return None
    return _Measured(csr_array(rows), rows_of(rows), tuple(units))


def can_reach(plan: Plan, earlier: EarlierRelease, epsilon: Epsilon) -> bool:
    """Whether the noise of ``earlier`` can be refined to what ``plan`` adds at ``epsilon``."""
    return epsilon > earlier.epsilon and all(
        can_refine(unit / earlier.epsilon.fraction, unit / epsilon.fraction)
        for unit in plan.scales.distinct
        if unit
    )
