"""Tidy answers: what people see instead of negative counts. Post-processing, so it costs nothing.

The unbiased release stays available; these forms keep the promise that was made for it: pulling a
cumulative answer to the nearest increasing one never increases its largest error, and neither does
cutting off what is certainly impossible (below zero, or above the public number of rows).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.workloads.base import Numbers


def tidy_counts(raw: Numbers, most: float | None) -> FloatArray:
    """Counts, each cut to what is possible."""
    return np.clip(np.asarray(raw, dtype=np.float64), 0.0, most)


def tidy_cumulative(raw: Numbers, most: float | None) -> FloatArray:
    """The nearest increasing answer, cut to what is possible."""
    return tidy_counts(isotonic_regression(np.asarray(raw, dtype=np.float64)).x, most)
