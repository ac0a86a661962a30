"""Numbers as people read them: no long fractions, no exponents, no minus zero.

What the ledger speaks of as JSON, with the keys that the API uses.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.readings import significant

if TYPE_CHECKING:
    from blowfishdb.adapters.tokens import Account, Token
    from blowfishdb.core.policy.guarantee import Guarantee


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


def plain_account(user: Account) -> dict[str, Any]:
    """Someone who may come in."""
    return {
        "user": user.name,
        "role": user.role.value,
        "created": user.created.isoformat(),
        "active": user.active,
    }


def plain_token(known: Token) -> dict[str, Any]:
    """What may be known of a token once it was handed over."""
    return {
        "id": known.id,
        "user": known.owner,
        "label": known.label,
        "created": known.created.isoformat(),
        "expires": known.expires.isoformat(),
        "active": known.active,
    }


def plain_guarantee(promised: Guarantee) -> dict[str, Any]:
    """A guarantee, and its words in the order in which they are read."""
    return {**promised.to_plain(), "paragraphs": list(promised.paragraphs)}
