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
_SYNTHETIC: Final = (
    "In 95 of 100 runs each measured number lies in its noise interval. Nothing is promised of counts in "
    "synthetic rows."
)
_BARS: Final = ("histogram", "cumulative", "ranges")


def sentence(
    kind: str,
    alpha: float | None,
    beta: float | None,
    simultaneous: bool,
    group_size: int | None = None,
    *,
    columns: int = 1,
) -> str:
    """What α and β promise about an answer of this kind; of a mean, about groups of ``group_size`` rows.

    Counts along one column are bars, along several they are cells.
    """
    if kind == "synthetic":
        return _SYNTHETIC
    if kind == "aggregates" and beta is not None:
        return _aggregated(alpha, beta, "every" if simultaneous else "each", group_size)
    if alpha is None or beta is None:
        return NO_PROMISE
    every = "every" if simultaneous else "each"
    return f"In {often(beta)} {_kept(kind, error_text(alpha), every, place(columns))}."


def place(columns: int) -> str:
    """What a count along so many columns is called."""
    return "bar" if columns < 2 else "cell"


def _kept(kind: str, off: str, every: str, bar: str) -> str:
    match kind:
        case "count":
            return f"the number is within {off} people of the truth"
        case "counts":
            return f"{every} number is within {off} people of the truth"
        case "sum" | "mean":
            return f"the {kind} is within {off} of the truth"
        case "partition":
            return f"the number of people in every part is within {off} of the truth"
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
    return f"{every} {bar} is within {off} people of the truth"


def _aggregated(alpha: float | None, beta: float, every: str, group_size: int | None) -> str:
    inside = f"In {often(beta)} {every} true value lies in its noise interval."
    if alpha is None:
        return inside
    off = error_text(alpha)
    what = (
        f"{every} number"
        if group_size is None
        else f"the mean of {every} group of {group_size:,} or more rows"
    )
    return f"In {often(beta)} {what} is within {off} of the truth. {inside}"


def ranks_alone(alpha: float | None, beta: float) -> str:
    """Of quantiles that were answered before their intervals held for values."""
    off = error_text(alpha or 0.0)
    return f"In {often(beta)} the bin that ends with each value reaches its rank, give or take {off} people."


def brief(
    kind: str,
    alpha: float | None,
    beta: float | None,
    simultaneous: bool,
    places: int,
    group_size: int | None = None,
    *,
    columns: int = 1,
) -> str:
    """The same in a line of a table: ``±50 all bars, 95 %``, for an answer of so many values."""
    if kind in ("aggregates", "synthetic") and alpha is None and beta is not None:
        return f"noise intervals, {significant(100 * (1 - beta), 6)} %"
    if alpha is None or beta is None:
        return "not promised"
    where = _AROUND.get(kind, "")
    if group_size is not None:
        where = f" in groups of {group_size:,} rows"
    if kind == "partition":
        where = " all parts"
    if kind == "counts" and places > 1:
        where = " all numbers" if simultaneous else " each number"
    if kind in _BARS and places > 1:
        bar = place(columns)
        where = f" all {bar}s" if simultaneous else f" each {bar}"
    return f"±{error_text(alpha)}{where}, {significant(100 * (1 - beta), 6)} %"


def often(beta: float) -> str:
    """How many of 100 runs keep a promise that fails with probability beta."""
    return f"{significant(100 * (1 - beta), 6)} of 100 runs"


def error_text(alpha: float) -> str:
    """How far off: whole numbers as they are, others to three digits, rounded up so that it still holds."""
    if not alpha or not math.isfinite(alpha) or alpha == round(alpha):
        return significant(alpha, 6)
    unit = 10.0 ** (2 - math.floor(math.log10(abs(alpha))))
    up = math.ceil(round(alpha * unit, 9)) / unit
    return significant(up, 6)


def significant(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands set apart, no trailing zeros and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    shown = f"{round(value, places):,.{max(0, places)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
