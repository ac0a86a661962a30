"""Numbers, prices and moments as people read them: no long fractions, no exponents, no minus zero."""

from __future__ import annotations

import math

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.promise import significant
from blowfishdb.messages.answers import Receipt

TOO_FEW = "too few rows to say"
"""What stands in the place of a value where its noise interval is all that is possible."""


def loss(epsilon: Epsilon | float | str) -> str:
    """A privacy loss with three significant digits."""
    return significant(float(epsilon))


def enough(price: Epsilon) -> str:
    """A price in three digits that is not below it: what to allow for it."""
    step = 10 ** max(len(str(price.nano)) - 3, 0)
    return str(Epsilon.from_nano(-(-price.nano // step) * step))


def charged(receipt: Receipt) -> str:
    """What an asking cost: under the policy of its day, else under those that were still promised."""
    if receipt.cost:
        return f"ε {loss(receipt.cost)}"
    if receipt.debit:
        return " and ".join(paid.words for paid in receipt.promised)
    paid_before = receipt.epsilon or any(paid.epsilon for paid in receipt.promised)
    return f"nothing: this answer {'was already paid for' if paid_before else 'is free'}"


def people(value: float) -> str:
    """A count of people, as a whole number."""
    return amount(value, 0)


def decimals(scale: float) -> int:
    """How many decimal places say something of a number that is uncertain by ``scale``."""
    if not math.isfinite(scale) or scale <= 0:
        return 3
    return min(9, max(0, 1 - math.floor(math.log10(scale))))


def rounded(value: float, places: int) -> float:
    """Without what is not worth showing, and without a minus in front of zero."""
    return round(float(value), places) + 0.0


def amount(value: float, places: int) -> str:
    """A number with so many decimal places, thousands set apart; of too few rows there is none."""
    if math.isnan(value):
        return TOO_FEW
    return f"{rounded(value, places):,.{places}f}"


def interval(low: float, high: float, places: int) -> str:
    """A noise interval, rounded outwards; what may be anything has none."""
    if math.isnan(low) or math.isnan(high):
        return "anything"
    unit = 10.0**places
    return (
        f"{amount(math.floor(low * unit) / unit, places)} … {amount(math.ceil(high * unit) / unit, places)}"
    )


def moment(written: str) -> str:
    """When something happened; the books are kept in UTC."""
    return f"{written[:19].replace('T', ' ')} UTC" if "T" in written else written


def headline(words: str) -> str:
    """A sentence begins with a capital letter, whatever the column is called."""
    return words[:1].upper() + words[1:]
