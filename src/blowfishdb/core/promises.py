"""What is promised about an answer, in words: one sentence for each kind of question, said by every door.

What α counts depends on the kind. Of bars and numbers it is how far they may be from the truth; of quantiles
it is people in rank, and the values are promised by their intervals; of the fullest bins and of those above a
limit it is how far a bin may be out of place. ``Kind.promise`` says why each sentence holds.
"""

from __future__ import annotations

import math
from typing import Final

from blowfishdb.core.accuracy import NO_PROMISE

EXACT: Final = "Exact: the policy does not hide this."
"""What is said where nothing is noisy."""

_AROUND: Final = {"quantiles": " in rank", "top": " around the last place", "above": " around the limit"}
_BARS: Final = ("histogram", "cumulative", "ranges")


def sentence(kind: str, alpha: float | None, beta: float | None, simultaneous: bool) -> str:
    """What α and β promise about an answer of this kind."""
    if alpha is None or beta is None:
        return NO_PROMISE
    return f"In {often(beta)} {_kept(kind, significant(alpha, 6), 'every' if simultaneous else 'each')}."


def _kept(kind: str, off: str, every: str) -> str:
    match kind:
        case "count":
            return f"the number is within {off} people of the truth"
        case "sum" | "mean":
            return f"the {kind} is within {off} of the truth"
        case "quantiles":
            return f"every quantile lies in its noise interval, with ranks off by at most {off} people"
        case "top":
            return (
                f"no bin is listed that is more than {off} people short of the last place, "
                f"and none is missed that is more than {off} above it"
            )
        case "above":
            return (
                f"no bin is listed that is more than {off} people below the limit, "
                f"and none is missed that is more than {off} above it"
            )
    return f"{every} bar is within {off} people of the truth"


def ranks_alone(alpha: float | None, beta: float) -> str:
    """Of quantiles that were answered before their intervals held for values."""
    off = significant(alpha or 0.0, 6)
    return f"In {often(beta)} the bin that ends with each value reaches its rank, give or take {off} people."


def brief(kind: str, alpha: float | None, beta: float | None, simultaneous: bool, places: int) -> str:
    """The same in a line of a table: ``±50 all bars, 95 %``, for an answer of so many values."""
    if alpha is None or beta is None:
        return "not promised"
    where = {"quantiles": " in rank", "top": " around the last place", "above": " around the limit"}.get(
        kind, ""
    )
    if kind in _BARS and places > 1:
        where = " all bars" if simultaneous else " each bar"
    return f"±{significant(alpha, 6)}{where}, {significant(100 * (1 - beta), 6)} %"


def often(beta: float) -> str:
    """How many of 100 runs keep a promise that fails with probability beta."""
    return f"{significant(100 * (1 - beta), 6)} of 100 runs"


def significant(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands set apart, no trailing zeros and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    shown = f"{round(value, places):,.{max(0, places)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
