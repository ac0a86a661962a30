"""Many independent noise vectors at once, drawn exactly as a release draws them."""

from __future__ import annotations

import numpy as np

from blowfishdb import noise
from blowfishdb.core.budget import positive
from blowfishdb.mechanisms.linear.strategy import UnitScales


def draws(plan, epsilon, runs, seed):
    """``runs`` rows of noise for ``plan`` at ``epsilon``."""
    scales = UnitScales(plan.scales.distinct, np.tile(plan.scales.which, runs))
    return scales.draw(noise.seeded(seed), positive(epsilon)).reshape(runs, -1)
