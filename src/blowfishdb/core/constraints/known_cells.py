"""Known counts over the cells that a computation looks at.

Every declared count, range or table becomes one labelling of the cells: the row of the table a cell counts
in, or −1. Cells with the same labels are told apart by nothing that is known: they form a *class*. Only
classes matter, so a table over 10⁵ values costs 10⁵ labels and nothing is enumerated over the domain.

Linear algebra without rounding: rank, the one free direction, and what known rows say about another.

Rows hold whole numbers. The rank is computed modulo a prime, where it can only come out too small, so that
"determined" is never said too often; everything else is in exact fractions.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.constraints.declared import Constraints, Marginal, Range, Reading, table_bins
from blowfishdb.core.domain.bins import LIMIT, Bins, common_bins, single_cells
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import InvalidInput, TooLarge

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
            pivot, value = self.pivots[column]
            times = left[column]
            for at, entry in pivot.items():
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
        solutions: dict[int, list[Fraction]] = {}
        for column in sorted(self.pivots, reverse=True):
            row = [self.pivots[column][0].get(at, Fraction(0)) for at in range(self.columns)]
            for at, other in solutions.items():
                if row[at]:
                    times = row[at]
                    row = [entry - times * more for entry, more in zip(row, other, strict=True)]
            solutions[column] = row
        return solutions


MOST_ENTRIES = 4 * 10**6
"""How large a table of (known counts × classes) may be for exact linear algebra."""


@final
@dataclass(frozen=True, eq=False)
class KnownCells:
    """What is known, over cells ``0 … size-1``: ``labels[item, cell]`` is a row of the item, or −1."""

    labels: IntArray
    rows: tuple[int, ...]
    answers: tuple[tuple[int | None, ...], ...]
    reading: Reading

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.labels.shape[1])

    def with_uncounted(self) -> KnownCells:
        """With one more vertex at the end (⊥ or *outside*) that no known count counts."""
        absent = np.full((self.labels.shape[0], 1), -1, dtype=np.int64)
        return KnownCells(np.hstack((self.labels, absent)), self.rows, self.answers, self.reading)

    @cached_property
    def _distinct(self) -> tuple[IntArray, IntArray]:
        combinations = math.prod(rows + 1 for rows in self.rows)
        if combinations > 2**62:
            columns, inverse = np.unique(self.labels, axis=1, return_inverse=True)
            return columns, np.asarray(inverse, dtype=np.int64).ravel()
        keys = np.ravel_multi_index(tuple(self.labels + 1), tuple(rows + 1 for rows in self.rows))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        return self.labels[:, first], np.asarray(inverse, dtype=np.int64).ravel()

    @property
    def classes(self) -> IntArray:
        """The class of every cell."""
        return self._distinct[1]

    @property
    def class_labels(self) -> IntArray:
        """The labels of every class: one column each."""
        return self._distinct[0]

    @property
    def class_count(self) -> int:
        """How many classes there are."""
        return int(self._distinct[0].shape[1])

    @cached_property
    def counts(self) -> BoolArray | None:
        """Which known count counts which class, one row each; None if that is too large to write out."""
        if sum(self.rows) * self.class_count > MOST_ENTRIES:
            return None
        answered = [
            labels[None, :] == np.arange(rows)[:, None]
            for labels, rows in zip(self.class_labels, self.rows, strict=True)
        ]
        return np.concatenate(answered)

    @property
    def disjoint(self) -> bool:
        """Whether no class is counted twice."""
        return bool(((self.class_labels >= 0).sum(axis=0) <= 1).all())

    @cached_property
    def determines_classes(self) -> bool:
        """Whether the known counts and the number of records fix how many records are in every class.

        True of disjoint counts, of one table, of nested ranges. Never True by mistake: see ``rank_at_least``.
        """
        if self.disjoint:
            return True
        return self.equations is not None and rank_at_least(self.equations) == self.class_count

    @property
    def equations(self) -> IntArray | None:
        """The known counts and the number of records as rows over classes."""
        if self.counts is None:
            return None
        everyone = np.ones((1, self.class_count), dtype=np.int64)
        return np.concatenate((everyone, self.counts.astype(np.int64)))


# --- from columns to cells ------------------------------------------------------------------------


def refined(constraints: Constraints, domain: Domain, asked: Mapping[str, Bins]) -> dict[str, Bins]:
    """The coarsest boxes that refine ``asked`` and on which everything known is constant."""
    cuts = dict(asked)
    for more in _cuts(constraints, domain):
        for name, bins in more.items():
            cuts[name] = common_bins(cuts.get(name), bins, domain[name].size)
    return {name: cuts[name] for name in domain.names if name in cuts}


def _cuts(constraints: Constraints, domain: Domain) -> list[dict[str, Bins]]:
    conditions = [count.where for count in constraints.counts] + [box.where for box in constraints.ranges]
    cuts = [where.cuts(domain) for where in conditions if isinstance(where, Predicate)]
    return cuts + [table_bins(marginal, domain) for marginal in constraints.marginals]


def known_on_boxes(
    constraints: Constraints, domain: Domain, boxes: Mapping[str, Bins], outside: Collection[str] = ()
) -> KnownCells:
    """What is known, over boxes that ``refined`` made; row-major in the order of the domain.

    A column in ``outside`` has one more bin, the last, for rows that have no declared value there: a count of
    that column leaves them out, a count of other columns does not.
    """
    shape = box_shape(boxes, outside)
    if math.prod(shape) > LIMIT:
        raise TooLarge(
            f"What is known and what is asked together cut the records into {math.prod(shape):,} boxes.",
            fixes=("ask about fewer columns or larger bins",),
        )
    first = box_cells(boxes, outside)

    def of_table(marginal: Marginal) -> IntArray:
        bins = table_bins(marginal, domain)
        inside = np.all([first[name] >= 0 for name in bins], axis=0)
        parts = tuple(group.assign(np.maximum(first[name], 0)) for name, group in bins.items())
        rows = np.ravel_multi_index(parts, tuple(group.count for group in bins.values()))
        return np.where(inside, rows, -1)

    def of_condition(where: object) -> IntArray:
        if not isinstance(where, Predicate):
            raise InvalidInput("A known count of listed cells cannot be read as a condition on columns.")
        held = where.on_cells(domain, {name: first[name] for name in where.columns()})
        return np.where(np.broadcast_to(held, (math.prod(shape),)), 0, -1)

    tables = [(of_table(m), _table_rows(m, domain), m.answers) for m in constraints.marginals]
    counts = [(of_condition(count.where), 1, (count.answer,)) for count in constraints.counts]
    ranges = [(of_condition(box.where), 1, (box.answer,)) for box in constraints.ranges]
    return _known([*tables, *counts, *ranges], constraints.reading)


def box_shape(boxes: Mapping[str, Bins], outside: Collection[str] = ()) -> tuple[int, ...]:
    """How many bins each column has, with one for rows outside where there may be some."""
    return tuple(bins.count + (name in outside) for name, bins in boxes.items())


def box_cells(boxes: Mapping[str, Bins], outside: Collection[str] = ()) -> dict[str, IntArray]:
    """For every box and column a cell of it; −1 outside."""
    shape = box_shape(boxes, outside)
    places = np.unravel_index(np.arange(math.prod(shape)), shape) if shape else ()
    return {
        name: np.where(place < bins.count, bins.first(np.minimum(place, bins.count - 1)), -1)
        for (name, bins), place in zip(boxes.items(), places, strict=True)
    }


def _table_rows(marginal: Marginal, domain: Domain) -> int:
    return math.prod(bins.count for bins in table_bins(marginal, domain).values())


# --- over bare cells ------------------------------------------------------------------------------


def known_on_cells(constraints: Constraints, shape: tuple[int, ...]) -> KnownCells:
    """What is known about bare cells, row-major on a grid; columns are axes, counts list cells."""
    size = math.prod(shape)
    places = np.unravel_index(np.arange(size), shape)

    def of_cells(where: object) -> IntArray:
        if isinstance(where, Predicate):
            raise InvalidInput(
                "Conditions on columns need the columns: give the domain too.",
                fixes=("sensitivity(workload, graph, constraints, domain=domain)", "count cells: {0, 1}"),
            )
        cells = np.asarray(where, dtype=np.int64)
        if cells.max() >= size:
            raise InvalidInput(
                f"A known count names a cell that does not exist: cells are 0 to {size - 1:,}."
            )
        return np.where(np.isin(np.arange(size), cells), 0, -1)

    tables = [_axes_table(marginal, places, shape) for marginal in constraints.marginals]
    boxes = [(_axes_box(box, places), 1, (box.answer,)) for box in constraints.ranges]
    counts = [(of_cells(count.where), 1, (count.answer,)) for count in constraints.counts]
    return _known([*tables, *counts, *boxes], constraints.reading)


def _axes_table(
    marginal: Marginal, places: tuple[IntArray, ...], shape: tuple[int, ...]
) -> tuple[IntArray, int, tuple[int | None, ...] | None]:
    bins = [
        single_cells(shape[_axis(name, shape)]) if group is None else group
        for name, group in zip(marginal.columns, marginal.bins, strict=True)
    ]
    parts = tuple(
        group.assign(places[_axis(name, shape)]) for name, group in zip(marginal.columns, bins, strict=True)
    )
    rows = tuple(group.count for group in bins)
    return np.asarray(np.ravel_multi_index(parts, rows)), math.prod(rows), marginal.answers


def _axes_box(box: Range, places: tuple[IntArray, ...]) -> IntArray:
    inside = np.ones(places[0].shape, dtype=np.bool_)
    for name, low, high in box.sides:
        at = places[_axis(name, places)]
        inside &= (low <= at) & (at <= high)
    return np.where(inside, 0, -1)


def _axis(name: object, axes: tuple[object, ...]) -> int:
    if not isinstance(name, int) or not 0 <= name < len(axes):
        raise InvalidInput(
            f"Over bare cells columns are numbered 0 to {len(axes) - 1}, and {name!r} is none of them.",
            fixes=("sensitivity(workload, graph, constraints, domain=domain)",),
        )
    return name


def _known(items: list[tuple[IntArray, int, tuple[int | None, ...] | None]], reading: Reading) -> KnownCells:
    if not items:
        raise InvalidInput("Nothing is known, so there is nothing to compute with.")
    labels = np.stack([labels for labels, _, _ in items])
    answers = tuple(counts if counts is not None else (None,) * rows for _, rows, counts in items)
    return KnownCells(labels, tuple(rows for _, rows, _ in items), answers, reading)
