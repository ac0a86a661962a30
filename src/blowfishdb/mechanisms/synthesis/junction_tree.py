"""JunctionTree: sums over a domain that is far too large to list, through tables of a few columns each.

A distribution p(x) ∝ exp Σ_m φ_m(x_m) whose factors each touch few columns is summed by eliminating one
column after the other. What is eliminated leaves a clique of columns; the cliques make a tree in which every
column is connected, and two passes of messages over it give log Z and the exact marginal of every clique
(Lauritzen and Spiegelhalter 1988). Which column goes first decides how large cliques get: always the one
whose clique has the fewest cells. All of this depends on which columns meet, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.errors import SizeMismatch

Group = tuple[int, ...]
"""Columns by number, in ascending order."""


@final
@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns, each behind the clique that it hangs on; ``parents[0]`` is −1."""

    sizes: tuple[int, ...]
    cliques: tuple[Group, ...]
    parents: tuple[int, ...]

    @classmethod
    def over(cls, sizes: Sequence[int], groups: Iterable[Group]) -> JunctionTree:
        """The tree in which every one of ``groups`` is inside some clique; every column is in one."""
        cliques = _eliminated(tuple(sizes), groups)
        order, parents = _spanning(cliques)
        return cls(tuple(sizes), tuple(cliques[at] for at in order), parents)

    def shape(self, group: Group) -> tuple[int, ...]:
        """How many values each column of a group has."""
        return tuple(self.sizes[column] for column in group)

    @cached_property
    def cells(self) -> int:
        """How many numbers the tables of all cliques have together."""
        return sum(math.prod(self.shape(clique)) for clique in self.cliques)

    @cached_property
    def separators(self) -> tuple[Group, ...]:
        """What each clique shares with its parent."""
        return tuple(
            () if parent < 0 else tuple(c for c in clique if c in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def home(self, group: Group) -> int:
        """The smallest clique that holds a group."""
        holding = [at for at, clique in enumerate(self.cliques) if set(group) <= set(clique)]
        if not holding:
            raise SizeMismatch("No clique of this tree holds these columns.")
        return min(holding, key=lambda at: math.prod(self.shape(self.cliques[at])))

    def together(self, first: int, second: int) -> bool:
        """Whether two columns are in one clique."""
        return any({first, second} <= set(clique) for clique in self.cliques)

    def separating(self, first: int, second: int) -> Group:
        """Columns that stand between two: what the cliques on the way from one to the other share."""
        near: dict[int, list[int]] = {at: [] for at in range(len(self.cliques))}
        for at, parent in enumerate(self.parents):
            if parent >= 0:
                near[at].append(parent)
                near[parent].append(at)
        start = next(at for at, clique in enumerate(self.cliques) if first in clique)
        came: dict[int, int] = {start: -1}
        queue = [start]
        for at in queue:
            for other in near[at]:
                if other not in came:
                    came[other] = at
                    queue.append(other)
        goal = next(at for at in queue if second in self.cliques[at])
        best: tuple[int, ...] | None = None
        while came[goal] >= 0:
            shared = tuple(c for c in self.cliques[goal] if c in self.cliques[came[goal]])
            if first not in shared and second not in shared and (best is None or len(shared) < len(best)):
                best = shared
            goal = came[goal]
        return best or ()

    def zeros(self) -> list[FloatArray]:
        """A table of zeros for every clique."""
        return [np.zeros(self.shape(clique)) for clique in self.cliques]

    def spread(self, table: FloatArray, group: Group, clique: int) -> FloatArray:
        """A table over some columns of a clique, so that it can be added to that of the clique."""
        inside = set(group)
        return table.reshape([self.sizes[c] if c in inside else 1 for c in self.cliques[clique]])

    def onto(self, table: FloatArray, clique: int, group: Group) -> FloatArray:
        """The table of a clique, summed up over the columns that are not in ``group``."""
        inside = set(group)
        away = tuple(axis for axis, column in enumerate(self.cliques[clique]) if column not in inside)
        return np.asarray(table.sum(axis=away)) if away else table

    def calibrate(
        self, potentials: Sequence[FloatArray], given: FloatArray | None = None
    ) -> tuple[float, list[FloatArray]]:
        """log Z of exp Σ potentials, and the marginal of every clique; minus infinity forbids a cell.

        ``given``: the shares of the values of the last column, which is then in every clique. Only what the
        other columns do given these is computed, and log Z is the mean of theirs.
        """
        beliefs = [np.array(potential) for potential in potentials]
        sent: list[FloatArray] = [np.zeros(()) for _ in beliefs]
        for at in range(len(beliefs) - 1, 0, -1):
            sent[at] = self._summed(beliefs[at], at, self.separators[at])
            beliefs[self.parents[at]] += self.spread(sent[at], self.separators[at], self.parents[at])
        if given is None:
            log_z = float(_log_sum(beliefs[0], tuple(range(beliefs[0].ndim))))
            beliefs[0] -= log_z
        else:
            last = (len(self.sizes) - 1,)
            each = self._summed(beliefs[0], 0, last)
            log_z = float(given @ each)
            beliefs[0] = beliefs[0] + self.spread(np.log(given) - each, last, 0)
        for at in range(1, len(beliefs)):
            back = self._summed(beliefs[self.parents[at]], self.parents[at], self.separators[at])
            with np.errstate(invalid="ignore"):
                more = np.where(np.isneginf(back), -np.inf, back - sent[at])
            beliefs[at] += self.spread(more, self.separators[at], at)
        return log_z, [np.exp(belief) for belief in beliefs]

    def _summed(self, belief: FloatArray, clique: int, group: Group) -> FloatArray:
        inside = set(group)
        away = tuple(axis for axis, column in enumerate(self.cliques[clique]) if column not in inside)
        return _log_sum(belief, away)


def _log_sum(table: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """log Σ exp along some axes, without overflow."""
    if not axes:
        return table
    most = table.max(axis=axes, keepdims=True)
    most[np.isneginf(most)] = 0.0
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(table - most).sum(axis=axes))
    return np.asarray(total + most.reshape(total.shape))


def _eliminated(sizes: tuple[int, ...], groups: Iterable[Group]) -> list[Group]:
    """The maximal cliques that eliminating every column leaves, the cheapest column first."""
    near: dict[int, set[int]] = {column: set() for column in range(len(sizes))}
    for group in groups:
        for column in group:
            near[column] |= set(group) - {column}

    def weight(column: int) -> tuple[int, int]:
        return math.prod(sizes[c] for c in (*near[column], column)), column

    cliques: list[set[int]] = []
    while near:
        column = min(near, key=weight)
        around = near.pop(column)
        clique = around | {column}
        if not any(clique <= other for other in cliques):
            cliques = [other for other in cliques if not other <= clique] + [clique]
        for other in around:
            near[other] |= around - {other}
            near[other].discard(column)
    return [tuple(sorted(clique)) for clique in cliques]


def _spanning(cliques: Sequence[Group]) -> tuple[list[int], tuple[int, ...]]:
    """An order of the cliques, and for each the place of its parent in it: those that share the most."""
    left, order, parents = set(range(1, len(cliques))), [0], [-1]
    shared = {at: (len(set(cliques[at]) & set(cliques[0])), 0) for at in left}
    while left:
        at = max(left, key=lambda one: (shared[one][0], -one))
        left.discard(at)
        order.append(at)
        parents.append(shared[at][1])
        for other in left:
            common = len(set(cliques[other]) & set(cliques[at]))
            if common > shared[other][0]:
                shared[other] = (common, len(order) - 1)
    return order, tuple(parents)
