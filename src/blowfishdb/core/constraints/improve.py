"""Known counts make noisy cells better: the nearest cells that satisfy them, by least squares.

Post-processing, so it costs no privacy. The truth satisfies the known counts, and projecting onto a set
that holds the truth never moves away from it: with equal variances the squared error is never larger,
whatever the noise was; with others, that holds weighted by precision, and the variance of every linear
answer is never larger (Gauss–Markov).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lstsq
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.constraints.determined import Determined
from blowfishdb.core.errors import InvalidInput, NotFinite, SizeMismatch, TooLarge

_MOST_ROWS = 3_000


def improved_cells(noisy: ArrayLike, variance: ArrayLike, determined: Determined) -> FloatArray:
    """``noisy`` cells moved onto the known answers, each in proportion to its variance (one, or one per
    cell).
    """
    cells = np.asarray(noisy, dtype=np.float64)
    known = determined.known
    if cells.shape != (known.size,):
        raise SizeMismatch(f"Expected {known.size:,} cells, got an array of shape {cells.shape}.")
    variances = np.broadcast_to(np.asarray(variance, dtype=np.float64), cells.shape)
    if not np.isfinite(variances).all() or not np.isfinite(cells).all():
        raise NotFinite("Cells and variances must be finite numbers.")
    if (variances < 0).any():
        raise InvalidInput("A variance cannot be negative.")
    rows = determined.rows
    if not rows:
        return cells.copy()
    apart = known.disjoint and determined.total is None
    if len(rows) > _MOST_ROWS and not apart:
        raise TooLarge(f"Least squares with {len(rows):,} overlapping known counts is above the limit.")
    counts = _matrix(determined)
    missing = np.array([answer for _, answer in rows], dtype=np.float64) - counts @ cells
    weighted = csr_array(counts.multiply(variances[None, :]))
    if apart:  # each moves its own cells
        each = counts @ variances
        shares = np.divide(missing, each, out=np.zeros_like(missing), where=each > 0)
    else:
        shares = lstsq((counts @ weighted.T).toarray(), missing)[0]
    return np.asarray(cells + weighted.T @ shares)


def _matrix(determined: Determined) -> csr_array:
    """Known counts over cells, one sparse row each."""
    classes = determined.known.classes
    order = np.argsort(classes, kind="stable")
    ends = np.cumsum(np.bincount(classes))
    members = [
        np.concatenate([order[ends[c - 1] if c else 0 : ends[c]] for c in counted.tolist()] or [order[:0]])
        for counted, _ in determined.rows
    ]
    pointers = np.concatenate(([0], np.cumsum([len(found) for found in members])))
    columns = np.concatenate(members)
    return csr_array((np.ones(columns.size), columns, pointers), shape=(len(members), classes.size))
