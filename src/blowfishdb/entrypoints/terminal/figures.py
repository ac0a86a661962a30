"""Numbers as people read them: no long fractions, no exponents, no minus zero."""

from __future__ import annotations

import math

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.promises import significant

__all__ = ["amount", "decimals", "interval", "loss", "people", "significant"]


def loss(epsilon: Epsilon) -> str:
    """A privacy loss with three significant digits."""
    return significant(float(epsilon))


def people(value: float) -> str:
    """A count of people, as a whole number."""
    return f"{round(value):,}"


def decimals(alpha: float) -> int:
    """How many decimal places say something when the noise is ±alpha."""
    return 0 if alpha >= 10 or alpha <= 0 else min(9, math.ceil(1 - math.log10(alpha)))


def amount(value: float, places: int) -> str:
    """A number with so many decimal places, thousands set apart."""
    shown = f"{value:,.{places}f}"
    return shown.removeprefix("-") if not shown.strip("-0.,") else shown


def interval(low: float, high: float, places: int) -> str:
    """A noise interval, rounded outwards."""
    unit = 10.0**places
    return (
        f"{amount(math.floor(low * unit) / unit, places)} … {amount(math.ceil(high * unit) / unit, places)}"
    )
