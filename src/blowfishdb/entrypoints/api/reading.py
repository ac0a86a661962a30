"""Plain data that someone sent, turned into values; whatever does not fit is an ``InvalidInput``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from blowfishdb.core.errors import BlowfishError, InvalidInput

T = TypeVar("T")


def read(what: str, build: Callable[[], T]) -> T:
    """What ``build`` makes of the data; ``what`` names it for the one who sent it.

    Constructors check values, not that JSON has the right shape, so a missing key or a text in place of a
    list surfaces here. Its message would quote internals, and is left out.
    """
    try:
        return build()
    except BlowfishError:
        raise
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        IndexError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        raise InvalidInput(
            f"The {what} is not in the form that it needs ({type(error).__name__}).",
            fixes=(f"the {what} as GET returns it", "the form in /api/docs"),
        ) from None
