"""Moves: what one record can change at once, and what counting a table then costs.

Under a joint product every column of a record may move at once: one class of moves. Otherwise one part of the
policy moves at a time: one class for each. Every class has a loss of its own, and what is charged is the
largest. Earlier promises that are kept bring their own classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByRows
from blowfishdb.mechanisms.reuse.stored import Intervals
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.selection import told_apart
from blowfishdb.mechanisms.total_loss import moves_at_once


def check_proven(policy: Policy) -> None:
    """Refuse where the costs below do not hold, or where the number of rows is a secret."""
    if policy.constraints is not None:
        raise NotProven(
            "Synthetic tables are not proven private where something about the data is already known: "
            "records "
            "then move together.",
            fixes=("ask for histograms", "a policy that says nothing about what is known"),
        )
    if policy.hides_presence:
        raise NotProven(
            "A synthetic table has as many rows as the data, and this policy hides how many these are.",
            fixes=("ask for histograms", "a policy that does not hide presence"),
        )


@final
@dataclass(frozen=True, eq=False)
class Moves:
    """One class: the columns whose bins a record can change, and the whole policy of these moves."""

    policy: Policy
    axes: tuple[Axis, ...]

    @cached_property
    def moved(self) -> frozenset[int]:
        """Columns in which a hidden move reaches another bin."""
        return frozenset(
            at
            for at, axis in enumerate(self.axes)
            if self.policy.project({axis.column: axis.bins}).edge_count > 0
        )

    @cached_property
    def dropping(self) -> frozenset[int]:
        """Columns whose rows can stop counting, whatever else moves."""
        return frozenset(at for at, axis in enumerate(self.axes) if axis.attribute.may_drop)

    def cells(self, columns: Group) -> int:
        """How much one move changes the cells of a table, in total."""
        if not self.moved.isdisjoint(columns):
            return 2
        return 0 if self.dropping.isdisjoint(columns) else 1

    def prefixes(self, column: int) -> int:
        """How many of the counts up to each bin, but the last, one move changes."""
        return self._prefixes[column]

    @cached_property
    def _prefixes(self) -> tuple[int, ...]:
        return tuple(self._crossed(axis) for axis in self.axes)

    def _crossed(self, axis: Axis) -> int:
        count = axis.bins.count
        rows = Intervals(count, np.zeros(count - 1, dtype=np.int64), np.arange(1, count))
        kernel = ByRows((axis,), rows, (Fraction(1),), np.zeros(count - 1, dtype=np.int64))
        try:
            return int(kernel.worst(self.policy))
        except TooLarge:
            return count

    def chosen(self, candidates: Iterable[Group]) -> int:
        """How much one move changes the score of a candidate."""
        return int(any(self.cells(columns) for columns in candidates))


def classes(policies: Sequence[Policy], axes: tuple[Axis, ...]) -> tuple[Moves, ...]:
    """What may move at once under each of the policies that are promised."""
    for policy in policies:
        check_proven(policy)
    return tuple(Moves(moving, axes) for policy in policies for _, moving in moves_at_once(policy))


def separate(every: Sequence[Moves]) -> bool:
    """Whether no class touches many columns: then all pairs of columns cost little more than a few."""
    return all(len(each.moved | each.dropping) <= 1 for each in every)


def hidden(every: Sequence[Moves], axes: Sequence[Axis]) -> frozenset[int]:
    """Columns that some class touches."""
    return frozenset(at for at in range(len(axes)) if any(each.cells((at,)) for each in every))


__all__ = ["Moves", "check_proven", "classes", "hidden", "separate", "told_apart"]
