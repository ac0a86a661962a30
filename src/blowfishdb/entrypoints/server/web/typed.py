"""What people type into fields: numbers as they write them, and at which field a refusal is shown.

A comma between digits parts thousands or decimals. Of an ε it is always a decimal comma: there is no promise
so weak that its ε needs thousands, and read the other way ``1,250`` would be a thousand times what was meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from typing import Final

from fastapi import Request

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidBins, InvalidEpsilon
from blowfishdb.core.policy.columns import ungrouped, with_point

_MOST_BINS: Final = 10_000


def number_text(typed: str) -> str:
    """``$10,000``, ``1 000 €``, ``±50`` and ``0,5`` as a number is written."""
    return with_point(ungrouped(typed.strip().lstrip("±"))).strip()


def is_number(typed: str) -> bool:
    """Whether somebody typed a number."""
    try:
        return Decimal(number_text(typed)).is_finite()
    except InvalidOperation:
        return False


def loss_text(typed: str) -> str:
    """``ε 0,118`` as a privacy loss is written."""
    bare = typed.strip().removeprefix("ε").strip()
    return bare.replace(",", ".") if bare.count(",") == 1 and "." not in bare else bare


def privacy_loss(typed: str) -> Epsilon:
    """A privacy loss that somebody typed."""
    text = loss_text(typed)
    if not text:
        raise InvalidEpsilon("Type an ε here, a number.", fixes=("0.5",))
    return Epsilon(text)


def most_bins(typed: str) -> int:
    """How many bins at most somebody typed."""
    number = number_text(typed)
    if not number.isdecimal() or not 1 <= int(number) <= _MOST_BINS:
        raise InvalidBins(f"The number of bins is a whole number up to {_MOST_BINS:,}.", fixes=("20",))
    return int(number)


@contextmanager
def at_field(request: Request, name: str) -> Iterator[None]:
    """What is refused inside is shown at the field ``name``, where the page shows again what was typed."""
    request.state.field = name
    yield
    request.state.field = ""


def field_of(request: Request) -> str:
    """The field that was refused; empty where it was none of them."""
    return str(getattr(request.state, "field", ""))
