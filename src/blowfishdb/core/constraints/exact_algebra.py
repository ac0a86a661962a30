"""Linear algebra without rounding: rank, the one free direction, and what known rows say about another.

Rows hold whole numbers. The rank is computed modulo a prime, where it can only come out too small, so that
"determined" is never said too often; everything else is in exact fractions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray

Row = Mapping[int, int | Fraction]
"""The entries of a row by their column; those that are left out are zero."""

_PRIME = 2**31 - 1  # products of two residues fit into 63 bits


def rank_at_least(rows: IntArray) -> int:
    """The rank modulo a prime: never above the true rank."""
    left = np.asarray(rows, dtype=np.int64) % _PRIME
    rank = 0
    for column in range(left.shape[1]):
        below = np.flatnonzero(left[rank:, column])
        if not below.size:
            continue
        pivot = rank + int(below[0])
        left[[rank, pivot]] = left[[pivot, rank]]
        left[rank] = left[rank] * pow(int(left[rank, column]), -1, _PRIME) % _PRIME
        others = rank + 1 + np.flatnonzero(left[rank + 1 :, column])
        left[others] = (left[others] - left[others, column, None] * left[rank]) % _PRIME
        rank += 1
        if rank == left.shape[0]:
            break
    return rank


def free_direction(rows: IntArray) -> tuple[int, ...] | None:
    """The primitive whole vector that spans {z : rows·z = 0}; None unless that space is a line."""
    columns = rows.shape[1]
    if rank_at_least(rows) < columns - 1:
        return None
    span = Span(columns)
    for at in np.argsort(np.count_nonzero(rows, axis=1), kind="stable"):  # short rows first: less fills in
        span.add(dict(enumerate(rows[at].tolist())), 0)
    if len(span.pivots) != columns - 1:
        return None
    free = next(column for column in range(columns) if column not in span.pivots)
    vector = [Fraction(0)] * columns
    vector[free] = Fraction(1)
    for column, row in span.solved().items():
        vector[column] = -row[free]
    scale = math.lcm(*(entry.denominator for entry in vector))
    whole = [int(entry * scale) for entry in vector]
    shared = math.gcd(*whole)
    return tuple(entry // shared for entry in whole)


@final
class Span:
    """Rows with known answers, reduced one by one, and what follows from them."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.pivots: dict[int, tuple[dict[int, Fraction], Fraction]] = {}

    def reduce(self, row: Row, answer: int | Fraction) -> tuple[dict[int, Fraction], Fraction]:
        """What is left of a row, and of its answer, after everything known is subtracted."""
        left = {column: Fraction(entry) for column, entry in row.items() if entry}
        rest = Fraction(answer)
        waiting = [column for column in left if column in self.pivots]
        heapq.heapify(waiting)
        while waiting:
            column = heapq.heappop(waiting)
            if column not in left:
                continue
            known, value = self.pivots[column]
            times = left[column]
            for at, entry in known.items():
                if at not in left and at in self.pivots:
                    heapq.heappush(waiting, at)
                left[at] = left.get(at, Fraction(0)) - times * entry
                if not left[at]:
                    del left[at]
            rest -= times * value
        return left, rest

    def add(self, row: Row, answer: int | Fraction) -> bool:
        """Whether the row agrees with what is known already; if it is new, it is known from now on."""
        left, rest = self.reduce(row, answer)
        if not left:
            return rest == 0
        first = min(left)
        lead = left[first]
        self.pivots[first] = {at: entry / lead for at, entry in left.items()}, rest / lead
        return True

    def answer(self, row: Row) -> Fraction | None:
        """The answer that follows for a row; None if it does not."""
        left, rest = self.reduce(row, 0)
        return None if left else -rest

    def solved(self) -> dict[int, list[Fraction]]:
        """For every pivot column, its row with all other pivot columns eliminated."""
        found: dict[int, list[Fraction]] = {}
        for column in sorted(self.pivots, reverse=True):
            row = [self.pivots[column][0].get(at, Fraction(0)) for at in range(self.columns)]
            for at, other in found.items():
                if row[at]:
                    times = row[at]
                    row = [entry - times * more for entry, more in zip(row, other, strict=True)]
            found[column] = row
        return found
