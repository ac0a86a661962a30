"""Refining: a stored release that a plan would make again with less noise, for the difference of both prices.

The rows must be the same and the noise of all of them smaller by one factor, which is the ratio of two ε: the
second release then loses between any two values exactly that many times as much as the first, and the first
is no more than a noisier copy of the second (docs/proofs/refinement.md).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.refinement import can_refine
from blowfishdb.mechanisms.losses import ReleasedRows
from blowfishdb.mechanisms.plan import EarlierRelease, Plan
from blowfishdb.mechanisms.reuse.stored import StoredRelease, chosen, rows_of


def earlier_release(plan: Plan, stored: StoredRelease) -> EarlierRelease | None:
    """The stored release as one that ``plan`` made, at which ε; None where it is another."""
    if plan.free or not plan.refinable:
        return None
    noisy = np.flatnonzero(~stored.exact)
    if noisy.size != np.count_nonzero(plan.scales.floats()):
        return None
    try:
        rows, units = ReleasedRows(plan, Epsilon(1)).noisy
    except (NotProven, TooLarge):
        return None
    if rows.shape[0] != noisy.size or rows_of(rows) != chosen(stored.rows, noisy):
        return None
    scales = (stored.distinct[place] for place in stored.which[noisy].tolist())
    ratios = {unit / scale for unit, scale in set(zip(units, scales, strict=True))}
    nano = ratios.pop() * NANO if len(ratios) == 1 else Fraction(1, 2)
    if nano.denominator != 1:
        return None
    return EarlierRelease(csr_array(rows), stored.values[noisy], Epsilon.from_nano(int(nano)))


def can_reach(plan: Plan, earlier: EarlierRelease, epsilon: Epsilon) -> bool:
    """Whether the noise of ``earlier`` can be refined to what ``plan`` adds at ``epsilon``."""
    return epsilon > earlier.epsilon and all(
        can_refine(unit / earlier.epsilon.fraction, unit / epsilon.fraction)
        for unit in plan.scales.distinct
        if unit
    )
