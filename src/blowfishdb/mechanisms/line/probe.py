"""A small workload that stands for a large one while weights are tuned.

Tuning compares shapes and shares; it needs the error to about a percent, the released strategy's own error
is always computed exactly afterwards. So a long line is replaced by a few ramp blocks (the strategy is
periodic), and a large family by ranges spread evenly over it.
"""

from __future__ import annotations

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.mechanisms.line.workload import Family, LineWorkload

EXACT_UP_TO = 3_000
_SAMPLE = 768
# The plastic number's fractions: the evenly spread sequence in two dimensions.
_PLASTIC = 1.32471795724474602596


def probe(workload: LineWorkload, cells: int, short: int, period: int) -> LineWorkload:
    """The stand-in on ``short`` ≤ ``cells`` cells for a strategy that repeats every ``period`` cells."""
    if workload.family is Family.LISTED:
        return _fold(workload, cells, short, period)
    if short < cells and workload.family is not Family.IDENTITY:
        return _middle_prefixes(short, period)
    if short <= EXACT_UP_TO:
        return workload
    index = np.arange(1, _SAMPLE + 1)
    one, two = (index / _PLASTIC) % 1.0, (index / _PLASTIC**2) % 1.0
    match workload.family:
        case Family.IDENTITY:
            cell = (one * short).astype(np.int64)
            return LineWorkload.listed(cell, cell)
        case Family.PREFIX:
            last = (one * (short - 1)).astype(np.int64)
            return LineWorkload.listed(np.zeros_like(last), last)
        case _:
            first, second = (one * short).astype(np.int64), (two * short).astype(np.int64)
            return LineWorkload.listed(np.minimum(first, second), np.maximum(first, second))


def _middle_prefixes(short: int, period: int) -> LineWorkload:
    """Prefixes that end in the middle two blocks, away from the exact ends.

    They stand for all ranges too: nearly all ranges of a long line span many blocks, so that their two ends
    err independently, like prefixes.
    """
    begin = (short // period // 2 - 1) * period
    last = np.unique(np.linspace(begin, begin + 2 * period, _SAMPLE, endpoint=False).astype(np.int64))
    return LineWorkload.listed(np.zeros_like(last), last)


def _fold(workload: LineWorkload, cells: int, short: int, period: int) -> LineWorkload:
    chosen = np.unique(np.linspace(0, len(workload.starts) - 1, _SAMPLE).astype(np.int64))
    starts, ends, weights = workload.starts[chosen], workload.ends[chosen], workload.weights[chosen]
    if short == cells:
        return LineWorkload.listed(starts, ends, weights)
    room = short - 2 * period
    lengths = ends - starts + 1
    lengths = np.where(lengths <= room, lengths, room - period + (lengths - room) % period)
    folded = _folded_starts(starts, period)
    return LineWorkload.listed(folded, np.minimum(folded + lengths, short) - 1, weights)


def _folded_starts(starts: IntArray, period: int) -> IntArray:
    """The same place within a block; the first block keeps its known left end."""
    return np.where(starts < period, starts, period + starts % period)
