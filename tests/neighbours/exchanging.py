"""Records that have to move together because something is known: the exchanges that releases tell best.

Found with floating-point numbers among those of two moves, and by letting every class of records take part in
turn; what is found is an exchange, whether or not there is a worse one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tests.neighbours.columns import Column, Record
from tests.neighbours.known import Known, Shift, every_record, exchange
from tests.neighbours.promises import Promise
from tests.neighbours.watching import Released

_MOST_EDGES = 60

Moved = tuple[int, int]
"""From one record to another, by their numbers; nobody comes last."""


@lru_cache(maxsize=64)
def joined_pairs(promise: Promise, columns: tuple[Column, ...]) -> list[tuple[int, int]]:
    """The numbers of all records that are hidden from each other; nobody comes last."""
    records: list[Record | None] = [*every_record(columns), None]
    return [
        (one, other)
        for one, other in itertools.combinations(range(len(records)), 2)
        if promise.joins(columns, records[one], records[other])
    ]


def worst_exchange(
    promise: Promise,
    known: Known,
    columns: tuple[Column, ...],
    releases: Sequence[Released],
    places: Sequence[tuple[int, ...]],
) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """For every release the boxes that are left and those that are entered; None if one row moves alone."""
    records: list[Record | None] = [*every_record(columns), *[None] * promise.presence]
    seen = np.hstack(
        [_seen(release, at)[: len(records)] for release, at in zip(releases, places, strict=True)]
    )
    _, first, alike = np.unique(
        np.column_stack((seen, _classes(known, columns, records))),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    alike = first[alike.ravel()]  # of records that nothing tells apart, one is enough
    pairs = {(int(alike[one]), int(alike[other])) for one, other in joined_pairs(promise, columns)}
    search = _Search(known, columns, records, seen, sorted({int(one) for one in first}))
    edges = [(u, v) for pair in sorted(pairs) for u, v in (pair, pair[::-1]) if search.shift(u, v)]
    found = search.worst(edges)
    if found is None:
        return None
    return [(tuple(at[one] for one, _ in found), tuple(at[other] for _, other in found)) for at in places]


def _classes(known: Known, columns: tuple[Column, ...], records: Sequence[Record | None]) -> np.ndarray:
    """Records that known counts do not tell apart have the same number."""
    numbers: dict[Shift, int] = {}
    return np.array([numbers.setdefault(known.shift(columns, None, one), len(numbers)) for one in records])


def _seen(release: Released, places: tuple[int, ...]) -> np.ndarray:
    """By how much each record changes what is measured, over its noise; one line for each."""
    each = release.each
    return np.array([each[box] if box >= 0 else np.zeros(each.shape[1]) for box in places])


class _Search:
    """Exchanges between records that something tells apart."""

    def __init__(
        self,
        known: Known,
        columns: tuple[Column, ...],
        records: Sequence[Record | None],
        seen: np.ndarray,
        kinds: Sequence[int],
    ) -> None:
        self.known, self.columns, self.records, self.seen = known, columns, records, seen
        self.kinds = kinds
        self.classes: dict[Shift, list[int]] = defaultdict(list)
        for one in kinds:
            self.classes[known.shift(columns, None, records[one])].append(one)
        self.own = {one: own for own, some in self.classes.items() for one in some}
        self.shifts: dict[tuple[Shift, Shift], Shift] = {}

    def shift(self, one: int, other: int) -> Shift:
        """What a move does to known counts."""
        ends = self.own[one], self.own[other]
        if ends not in self.shifts:
            self.shifts[ends] = self.known.shift(self.columns, self.records[one], self.records[other])
        return self.shifts[ends]

    def worst(self, edges: Sequence[Moved]) -> list[Moved] | None:
        """The exchange with one of these moves that is told best."""
        moves = edges
        if self.known.reading == "literal":
            moves = [(u, v) for u in self.kinds for v in self.kinds if self.own[u] != self.own[v]]
        back: dict[Shift, list[Moved]] = defaultdict(list)
        for move in moves:
            back[self.shift(*move)].append(move)
        best: tuple[float, list[Moved]] | None = None
        step = max(1, len(edges) // _MOST_EDGES)
        for u, v in edges[::step]:
            ways = [self._with_one(u, v, back)]
            if self.known.reading == "literal":
                ways.append(self._around(u, v))
            for way in ways:
                if way is not None and (best is None or way[0] > best[0]):
                    best = way
        return None if best is None else best[1]

    def _told(self, moves: Sequence[Moved]) -> float:
        return float(np.abs(sum(self.seen[v] - self.seen[u] for u, v in moves)).sum())

    def _with_one(self, u: int, v: int, back: dict[Shift, list[Moved]]) -> tuple[float, list[Moved]] | None:
        others = back.get(frozenset((place, -by) for place, by in self.shift(u, v)))
        if not others:
            return None
        ends = np.array(others)
        change = self.seen[v] - self.seen[u] + self.seen[ends[:, 1]] - self.seen[ends[:, 0]]
        told = np.abs(change).sum(axis=1)
        at = int(told.argmax())
        return float(told[at]), [(u, v), others[at]]

    def _around(self, u: int, v: int) -> tuple[float, list[Moved]] | None:
        """From class to class: each that takes part is left by one record and entered by another."""
        left, entered = {self.own[u]: u}, {self.own[v]: v}
        change = self.seen[v] - self.seen[u]
        for own in (self.own[u], self.own[v]):
            change = self._end(own, left, entered, change)
        for own in self.classes.keys() - left.keys():
            pairs = np.array(list(itertools.permutations(self.classes[own], 2)))
            if len(pairs) and len(left) < 5:
                ways = change + self.seen[pairs[:, 1]] - self.seen[pairs[:, 0]]
                at = int(np.abs(ways).sum(axis=1).argmax())
                left[own], entered[own] = map(int, pairs[at])
                change = ways[at]
        order = [self.own[v], *(own for own in left if own not in (self.own[u], self.own[v])), self.own[u]]
        moves = [(u, v), *((left[here], entered[there]) for here, there in itertools.pairwise(order))]
        if not exchange([self.shift(*move) for move in moves]):
            return None
        return self._told(moves), moves

    def _end(
        self, own: Shift, left: dict[Shift, int], entered: dict[Shift, int], change: np.ndarray
    ) -> np.ndarray:
        """The other record of a class that one record left or entered."""
        some, sign = np.array(self.classes[own]), -1 if own in entered else 1
        ways = change + sign * self.seen[some]
        at = int(np.abs(ways).sum(axis=1).argmax())
        (left if own in entered else entered)[own] = int(some[at])
        return np.asarray(ways[at])
