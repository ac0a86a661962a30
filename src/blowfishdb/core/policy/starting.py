"""Starting points: three policies to choose from before anyone has thought about single columns.

They are functions of the declared columns alone, so that which of them is chosen tells nothing about rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.graphs import PolicyGraph, Threshold
from blowfishdb.core.policy.policy import Policy

_FEW: Final = 8  # values in an order, of which no two are far apart
_USUAL: Final = 10  # values are hidden within this part of what a column may hold
_OPEN: Final = 50


@final
@dataclass(frozen=True, eq=False)
class StartingPoint:
    """A policy to begin with, what it is called, and what it gives and gives up in one sentence."""

    key: str
    title: str
    words: str
    policy: Policy


def starting_points(first: Policy, public: Collection[str] = ()) -> tuple[StartingPoint, ...]:
    """Strict, usual and open over the columns of ``first``, the policy that hides everything; fewer where two
    of them would hide the same. Columns that no policy may hide stay as they are.
    """
    strict = StartingPoint(
        "strict",
        "Strict",
        "Everything about a person is hidden, as in plain differential privacy. Answers cost the most.",
        first,
    )
    usual = StartingPoint(
        "usual",
        "Usual",
        "Numbers and dates are hidden within about a tenth of their range, everything else entirely, and all "
        "columns together. Roughly how large a value is may show.",
        _within(first, public, _USUAL, joint=True),
    )
    opened = StartingPoint(
        "open",
        "Open",
        "Numbers and dates are hidden within about a fiftieth of their range, and columns one by one: people "
        "who differ in several columns are protected less.",
        _within(first, public, _OPEN, joint=False),
    )
    wide = any(_is_wide(attribute) for name, attribute in first.domain.columns if name not in public)
    several = len(first.domain.names) > 1
    return (strict, *((usual,) if wide else ()), *((opened,) if wide or several else ()))


def _within(first: Policy, public: Collection[str], part: int, *, joint: bool) -> Policy:
    graphs: dict[str, PolicyGraph] = {
        name: Threshold(attribute.value_count, _distance(attribute, part))
        for name, attribute in first.domain.columns
        if name not in public and _is_wide(attribute)
    }
    return first.edited(graphs, joint=joint)


def _is_wide(attribute: Attribute) -> bool:
    return attribute.ordered and attribute.value_count > _FEW


def _distance(attribute: Attribute, part: int) -> int:
    """About this part of a column in cells: a round number of them in data units."""
    cell = 1 / Fraction(attribute.in_cells(1))
    wanted = attribute.value_count * cell / part
    return max(1, int(_round_below(wanted) / cell))


def _round_below(amount: Fraction) -> Fraction:
    """The largest of 1, 2 and 5 times a power of ten that is not above ``amount``."""
    power = Fraction(1)
    while power * 10 <= amount:
        power *= 10
    while power > amount:
        power /= 10
    return next(power * times for times in (5, 2, 1) if power * times <= amount)
