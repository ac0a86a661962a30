"""Counts that everyone knows, and which databases they leave to tell apart: word by word, from records.

Whoever moves may force others to move, so that no known count changes. Moves of which no part does without
the rest are an *exchange*. Neighbours differ by one in which somebody moves along an edge: Lemma 1 of
docs/proofs/constraints.md; ``tests/core/known_counts.py`` has the definition that it follows from.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.constraints import Marginal
from tests.neighbours.columns import DROPPED, Column, Record
from tests.neighbours.questions import Where, wheres

Shift = frozenset[tuple[tuple[int, ...], int]]
"""By how much known counts change; those that do not are left out."""
NO_SHIFT: Shift = frozenset()


@dataclass(frozen=True)
class Fact:
    """A ``count`` of rows that satisfy conditions, a ``range`` of a column, or a ``table`` of some columns.

    ``answers`` are said, or only that they are known.
    """

    kind: str
    where: tuple[Where, ...] = ()
    places: tuple[int, ...] = ()
    answers: tuple[int, ...] | None = None

    def counts(self, columns: tuple[Column, ...], record: Record) -> tuple[int, ...] | None:
        """The row of the table that counts a record, () for a single count; None if it counts nowhere."""
        if self.kind == "table":
            cells = tuple(record[place] for place in self.places)
            return None if DROPPED in cells else cells
        if self.kind == "range":
            (between,) = self.where
            return () if record[between.place] in between.cells else None
        return () if all(condition.holds(columns, record) for condition in self.where) else None

    def rows(self, columns: tuple[Column, ...]) -> list[tuple[int, ...]]:
        """Everything that is counted, in the order of the answers."""
        return list(itertools.product(*(range(columns[place].cells) for place in self.places)))

    def declared(self, columns: tuple[Column, ...]) -> Any:
        """As the package has it."""
        if self.kind == "table":
            return Marginal(tuple(columns[place].name for place in self.places), answers=self.answers)
        answer = None if self.answers is None else self.answers[0]
        if self.kind == "range":
            column, cells = columns[self.where[0].place], self.where[0].cells
            low, high = column.value(cells[0]), column.value(cells[-1])
            return {column.name: (low, high + 2 if column.kind == "wide" else high)}, answer
        first, *others = (condition.predicate(columns) for condition in self.where)
        for other in others:
            first &= other
        return first, answer


@dataclass(frozen=True)
class Known:
    """All that is known, and how neighbours are read: ``literal``, or each move along an ``edge``."""

    facts: tuple[Fact, ...]
    reading: str = "literal"

    def constraints(self, columns: tuple[Column, ...]) -> bf.Constraints:
        """As the package has it."""

        def of(kind: str) -> list[Any]:
            return [fact.declared(columns) for fact in self.facts if fact.kind == kind]

        return bf.Constraints(of("count"), of("table"), of("range"), reading=self.reading)

    def meaning(self, columns: tuple[Column, ...]) -> Any:
        """What is known, whatever its words: which records each fact counts, and where."""
        records = list(itertools.product(*((*range(column.cells), DROPPED) for column in columns)))
        counted = (
            (fact.answers, [fact.counts(columns, record) for record in records]) for fact in self.facts
        )
        return self.reading, {(answers, tuple(rows)) for answers, rows in counted}

    def shift(self, columns: tuple[Column, ...], one: Record | None, other: Record | None) -> Shift:
        """What becomes of known counts when a record becomes another one; None is nobody."""
        change: Counter[tuple[int, ...]] = Counter()
        for record, by in ((one, -1), (other, 1)):
            if record is not None:
                for place in counted_by(self, columns, record):
                    change[place] += by
        return _shift(change)

    def told(self, columns: tuple[Column, ...], these: Sequence[Record], those: Sequence[Record]) -> Known:
        """With the answers that are true of two databases, where they have the same ones."""
        facts = []
        for fact in self.facts:
            sides = [Counter(fact.counts(columns, record) for record in side) for side in (these, those)]
            answers = [tuple(side[row] for row in fact.rows(columns)) for side in sides]
            given = fact.answers is not None and answers[0] == answers[1]
            facts.append(Fact(fact.kind, fact.where, fact.places, answers[0] if given else None))
        return Known(tuple(facts), self.reading)


@lru_cache(maxsize=4096)
def counted_by(known: Known, columns: tuple[Column, ...], record: Record) -> tuple[tuple[int, ...], ...]:
    """Every known count that a record is in: which fact, and which row of it."""
    found = ((at, fact.counts(columns, record)) for at, fact in enumerate(known.facts))
    return tuple((at, *row) for at, row in found if row is not None)


def _shift(change: Counter[tuple[int, ...]]) -> Shift:
    return frozenset((place, by) for place, by in change.items() if by)


def total(shifts: Sequence[Shift]) -> Shift:
    """Several moves at once."""
    change: Counter[tuple[int, ...]] = Counter()
    for shift in shifts:
        for place, by in shift:
            change[place] += by
    return _shift(change)


def exchange(shifts: Sequence[Shift]) -> bool:
    """Whether these moves leave every known count as it is, and no part of them does."""
    if total(shifts):
        return False
    parts = (part for size in range(1, len(shifts)) for part in itertools.combinations(shifts, size))
    return all(total(part) for part in parts)


@dataclass(frozen=True)
class Move:
    """One row that changes: whose it is, what becomes of known counts, and whether it is along an edge."""

    person: int
    shift: Shift
    edge: bool


def neighbourly(moves: Sequence[Move], most: int, *, edges: bool) -> bool:
    """Whether the moves are exchanges in each of which the same person moves along an edge, at most ``most``.

    ``edges``: every move has to be along one.
    """
    if edges and not all(move.edge for move in moves):
        return False
    people = {move.person for move in moves}
    return not moves or any(_taken_apart(tuple(moves), person, most) for person in people)


def _taken_apart(moves: tuple[Move, ...], person: int, most: int) -> bool:
    if not moves or not most:
        return not moves
    first, rest = moves[0], moves[1:]
    for size in range(len(moves)):
        for others in itertools.combinations(range(len(rest)), size):
            part = (first, *(rest[at] for at in others))
            whole = exchange([move.shift for move in part])
            if whole and any(move.person == person and move.edge for move in part):
                left = tuple(move for at, move in enumerate(rest) if at not in others)
                if _taken_apart(left, person, most - 1):
                    return True
    return False


@st.composite
def facts_known(draw: st.DrawFn, columns: tuple[Column, ...], kinds: Sequence[str] = ()) -> Known:
    """One or two things, of some ``kinds`` or any."""
    facts = tuple(draw(_facts(columns, kinds)) for _ in range(draw(st.sampled_from((1, 1, 2)))))
    return Known(facts, draw(st.sampled_from(("literal", "literal", "edge"))))


@st.composite
def _facts(draw: st.DrawFn, columns: tuple[Column, ...], kinds: Sequence[str]) -> Fact:
    place = draw(st.sampled_from(range(len(columns))))
    column = columns[place]
    may_be = ["count", "table", "table"] + ["range"] * column.ordered
    kind = draw(st.sampled_from([kind for kind in may_be if kind in kinds] or may_be))
    said = (0,) if draw(st.booleans()) else None  # which answers these are is seen when there are rows
    if kind == "range":
        ends = sorted(draw(st.sampled_from(range(column.size))) for _ in range(2))
        cells = tuple(range(ends[0], ends[1] + 1))
        return Fact(kind, (Where(place, cells),), answers=said)
    if kind == "count":
        conditions = tuple(draw(wheres(columns)) for _ in range(draw(st.sampled_from((1, 1, 2)))))
        return Fact(kind, conditions, answers=said)
    both = len(columns) > 1 and draw(st.sampled_from((False, False, False, True)))
    return Fact(kind, places=(0, 1) if both else (place,), answers=said)


@lru_cache(maxsize=64)
def every_record(columns: tuple[Column, ...]) -> list[Record]:
    """All that a row can be."""
    cells = [[*range(column.cells), *[DROPPED] * column.drops] for column in columns]
    return list(itertools.product(*cells))
