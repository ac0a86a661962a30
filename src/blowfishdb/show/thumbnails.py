"""Thumbnails: an answer as a few bars, small enough for a line of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Answer

_MOST: Final = 24


def thumbnail(answer: Answer) -> tuple[int, ...]:
    """Heights from 0 to 100 of up to 24 bars; none where there is one number, or nothing to see."""
    values = np.nan_to_num(answer.values, nan=0.0)
    if len(values) < 2 or answer.measures:
        return ()
    stride = -(-len(values) // _MOST)
    means = np.add.reduceat(values, np.arange(0, len(values), stride))
    most = float(means.max(initial=0.0))
    return tuple(round(100 * max(0.0, value) / most) for value in means.tolist()) if most > 0 else ()
