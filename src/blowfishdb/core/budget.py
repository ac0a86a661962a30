"""Epsilon: privacy loss as an exact whole number of nano-ε.

Ledgers, comparisons and noise scales all use the integer, so 0.1 + 0.2 is 0.3 and nothing is ever
exceeded by 6e-17. Rounding is always against the analyst: what is *allowed* rounds down (the
constructor), what is *needed* rounds up (``Epsilon.at_least``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import total_ordering
from typing import Self, final

import numpy as np

from blowfishdb.core.errors import InvalidEpsilon

NANO = 10**9
_LARGEST = 10**15  # typed: far beyond what any ledger holds, and still a number to compute with
_MOST_DIGITS = 400  # of a typed exponent: more would only serve to exhaust memory
_SAFETY = Fraction(2**40 + 1, 2**40)  # outweighs the rounding of a float-derived ε


def _rational(value: object) -> Fraction:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Epsilon):
        return value.fraction
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Fraction, Decimal)):
        raise InvalidEpsilon(f"A privacy loss is a number such as 0.5 or '0.118', not {value!r}.")
    if isinstance(value, int | Fraction):
        return Fraction(value)
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)  # the decimal that was typed
    except InvalidOperation as error:
        raise InvalidEpsilon(f"{value!r} is not a number; write a privacy loss as '0.118'.") from error
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        raise InvalidEpsilon("A privacy loss must be a finite number of reasonable size.")
    return Fraction(number)


@final
@total_ordering
@dataclass(frozen=True, init=False)
class Epsilon:
    """A privacy loss ε ≥ 0, exact to one billionth.

    ``Epsilon("0.118")`` rounds down to whole nano-ε: it is what someone is willing to lose.

    >>> bf.Epsilon("0.1") + bf.Epsilon("0.2")
    Epsilon('0.3')
    """

    nano: int

    def __init__(self, value: AnyEpsilon) -> None:
        if type(value) is int and 0 <= value <= _LARGEST:
            self._set(value * NANO, value)
            return
        exact = _rational(value)
        if exact > _LARGEST and not isinstance(value, Fraction | Epsilon):
            raise InvalidEpsilon("A privacy loss must be a number of reasonable size; so much hides nothing.")
        self._set(math.floor(exact * NANO), value)

    def _set(self, nano: int, value: object) -> None:
        if nano < 0:
            raise InvalidEpsilon(f"A privacy loss cannot be negative, and {value} is.")
        object.__setattr__(self, "nano", nano)

    @classmethod
    def from_nano(cls, nano: int) -> Self:
        """From a stored whole number of nano-ε."""
        if isinstance(nano, bool) or not isinstance(nano, int):
            raise InvalidEpsilon(f"nano-ε must be a whole number, not {nano!r}.")
        made = cls.__new__(cls)
        made._set(nano, Fraction(nano, NANO) if nano < 0 else nano)
        return made

    @classmethod
    def at_least(cls, value: Epsilon | str | Fraction | Decimal | int | float) -> Self:
        """The least ε that is certainly not below ``value``; floats get a margin for their rounding."""
        needed = _rational(value) * (_SAFETY if isinstance(value, float) else 1)
        if needed < 0:
            raise InvalidEpsilon(f"A privacy loss cannot be negative, and {value} is.")
        return cls.from_nano(math.ceil(needed * NANO))

    @property
    def fraction(self) -> Fraction:
        """The exact value."""
        return Fraction(self.nano, NANO)

    def __float__(self) -> float:
        return self.nano / NANO

    def __bool__(self) -> bool:
        return self.nano > 0

    def __str__(self) -> str:
        """Exact decimal text, without trailing zeros."""
        units, rest = divmod(self.nano, NANO)
        return f"{units}.{rest:09d}".rstrip("0").rstrip(".")

    def __repr__(self) -> str:
        return f"Epsilon('{self}')"

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __lt__(self, other: Epsilon) -> bool:
        return self.nano < other.nano if isinstance(other, Epsilon) else NotImplemented

    def __add__(self, other: Epsilon) -> Epsilon:
        return Epsilon.from_nano(self.nano + other.nano) if isinstance(other, Epsilon) else NotImplemented

    def __sub__(self, other: Epsilon) -> Epsilon:
        return Epsilon.from_nano(self.nano - other.nano) if isinstance(other, Epsilon) else NotImplemented

    def __mul__(self, times: int) -> Epsilon:
        return Epsilon.from_nano(self.nano * times) if isinstance(times, int) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Epsilon) -> int:
        """How many times ``other`` fits."""
        if not other:
            raise InvalidEpsilon("What costs nothing fits any number of times.")
        return self.nano // other.nano


def positive(value: AnyEpsilon) -> Epsilon:
    """``value`` as an Epsilon that can be spent: at least one billionth."""
    epsilon = Epsilon(value)
    if not epsilon:
        raise InvalidEpsilon(f"{value} is too small: a release needs at least 0.000000001.")
    return epsilon


AnyEpsilon = Epsilon | str | Fraction | Decimal | int | float
"""What a user may type for a privacy loss."""
