"""The rows of two databases that a promise joins: one person's rows are other ones, or are not there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.neighbours.columns import DROPPED, Column, Record
from tests.neighbours.known import NO_SHIFT, Known, Move, Shift, every_record, exchange, neighbourly, total
from tests.neighbours.promises import Promise, Rule


@dataclass(frozen=True)
class Row:
    """One row: whose it is, a key that never changes, what it holds, and a text that nothing declares."""

    person: int
    key: int
    held: tuple[Any, ...]
    note: str = ""


@dataclass(frozen=True)
class People:
    """Whose rows they are: at most ``rows`` of each person count, by key or not at all; None: a row each.

    ``told``: another column than the right one is said to tell the person, or the key of a row: the first of
    the declared ones. Each row is a person's own then.
    """

    rows: int
    keyed: bool
    told: str = ""
    public: bool = False
    """Whether that column is said to be public."""


Rows = tuple[Row, ...]
NOTES = ("", "it, says", 'a "quoted" text', "two\nlines", "#")


def record(columns: tuple[Column, ...], row: Row) -> Record:
    """The cell of each column."""
    return tuple(_cell(column, held) for column, held in zip(columns, row.held, strict=True))


def _cell(column: Column, held: Any) -> int:
    return next(cell for raw, cell in column.raws(texts=True) if raw == held and type(raw) is type(held))


def counted(rows: Rows, people: People | None) -> Rows:
    """The rows that count, where the key does not choose; None of whoever has too many without one."""
    if people is None:
        return rows
    of = Counter(row.person for row in rows)
    return tuple(row for row in rows if of[row.person] <= people.rows)


def in_view(rows: Rows, filtered: bool) -> Rows:
    """The rows that a view shows which leaves out those without a first value."""
    return tuple(row for row in rows if row.held[0] is not None) if filtered else rows


def joined(
    promise: Promise,
    columns: tuple[Column, ...],
    one: Rows,
    other: Rows,
    people: People | None,
    *,
    public: bool,
) -> bool:
    """Whether ``promise`` hides the two databases from each other, or they are the same to it.

    ``public``: the first column is, and no promise hides what it holds, or how that is written.
    """
    mine, theirs = ({row.key: row for row in rows} for rows in (one, other))
    changed, moves = set(), []
    for key in mine.keys() | theirs.keys():
        here, there = mine.get(key), theirs.get(key)
        cells = tuple(None if row is None else record(columns, row) for row in (here, there))
        if public and here and there and here.held[0] != there.held[0]:
            return False
        if cells[0] == cells[1]:
            continue
        row, edge = here or there, promise.joins(columns, *cells)
        assert row is not None
        if promise.known is not None:
            if None in cells and not promise.presence:
                return False
            moves.append(Move(row.person, promise.known.shift(columns, *cells), edge))
        elif not edge:
            return False
        changed.add(row.person)
    if promise.known is not None:
        several = 1 if people is None else people.rows
        return neighbourly(moves, several, edges=promise.known.reading == "edge")
    return len(changed) <= 1


@st.composite
def rows(
    draw: st.DrawFn, columns: tuple[Column, ...], people: People | None, *, texts: bool, all_count: bool
) -> Rows:
    """Two to five rows, of fewer people if these have several; ``all_count``: nobody has too many."""
    count = draw(st.integers(2, 5))
    made = []
    for key in range(1, count + 1):
        held = tuple(draw(st.sampled_from(column.raws(texts=texts)))[0] for column in columns)
        person = key if people is None or people.told else draw(st.sampled_from((1, 2, 1)))
        if all_count and people is not None and [row.person for row in made].count(person) == people.rows:
            person = key + 2  # somebody else
        made.append(Row(person, key, held))
    return tuple(made)


@st.composite
def neighbour(
    draw: st.DrawFn,
    promise: Promise,
    columns: tuple[Column, ...],
    these: Rows,
    people: People | None,
    *,
    texts: bool,
    public: bool,
) -> Rows:
    """The rows of a database that ``promise`` joins to ``these``; the first column may be public."""
    if promise.known is not None:
        return draw(_exchanged(promise, promise.known, columns, these, texts=texts))
    person = draw(st.sampled_from(sorted({row.person for row in these})))
    own = [row for row in these if row.person == person]
    may_go = promise.presence and (people is None or len(own) <= people.rows)
    found: list[Row] = []
    for row in these:
        if row.person != person:
            found.append(row)
        elif not (may_go and draw(st.booleans())):
            moved = draw(_moved(promise, columns, row, texts=texts))
            held = (*row.held[:public], *moved.held[public:])
            found.append(replace(moved, held=held, note=draw(st.sampled_from(NOTES))))
    return tuple(found) or these[:1]


@st.composite
def _moved(draw: st.DrawFn, promise: Promise, columns: tuple[Column, ...], row: Row, *, texts: bool) -> Row:
    """The row with other values: each column stays in its cell or moves as the promise allows."""
    start = record(columns, row)
    at_once = promise.whole or promise.together
    moves_alone = draw(st.sampled_from(range(len(columns))))
    held = []
    for place, column in enumerate(columns):
        here, moves = start[place], at_once or place == moves_alone
        rule = Rule("full") if promise.whole else promise.rules[place]
        raws = column.raws(texts=texts)
        stay = [raw for raw, cell in raws if cell == here]
        go = [
            raw for raw, cell in raws if DROPPED in (cell, here) or (moves and rule.joins(column, here, cell))
        ]
        held.append(draw(st.sampled_from(go if go and draw(st.booleans()) else stay)))
    return replace(row, held=tuple(held))


@st.composite
def _exchanged(
    draw: st.DrawFn, promise: Promise, known: Known, columns: tuple[Column, ...], these: Rows, *, texts: bool
) -> Rows:
    """The rows after somebody moved along an edge, and others so that no known count changes."""
    spare = [Row(90, 90, (None,) * len(columns)), Row(91, 91, (None,) * len(columns))] * promise.presence
    places = [*these, *spare]
    before: list[Record | None] = [record(columns, row) for row in these] + [None] * len(spare)
    cells = [{cell for _, cell in column.raws(texts=texts)} for column in columns]
    everywhere: list[Record | None] = [None] * promise.presence
    everywhere += [there for there in every_record(columns) if all(map(_within, there, cells))]
    options = {at: _by_shift(promise, known, columns, here, everywhere) for at, here in enumerate(before)}
    after = dict(enumerate(before))
    for first in draw(st.permutations(range(len(these)))):
        along = [there for there in everywhere if promise.joins(columns, before[first], there)]
        if not along:
            continue
        to = draw(st.sampled_from(along))
        shift = known.shift(columns, before[first], to)
        others = {at: ends for at, ends in options.items() if at != first}
        sizes = draw(st.permutations((1, 2, 3)))
        ways = (list(itertools.islice(_completing(shift, others, size), 50)) for size in sizes)
        found = [{}] if shift == NO_SHIFT else next(filter(None, ways), None)
        if found:
            after[first] = to
            for at, own in draw(st.sampled_from(found)).items():
                after[at] = draw(st.sampled_from(options[at][own]))
            break
    made = []
    for at, row in enumerate(places):
        there = after[at]
        if there is not None:
            stays = there == before[at]
            held = row.held if stays else draw(_held(columns, there, texts=texts))
            made.append(replace(row, held=held, note=row.note if stays else draw(st.sampled_from(NOTES))))
    return tuple(made) or these[:1]


def _by_shift(
    promise: Promise,
    known: Known,
    columns: tuple[Column, ...],
    here: Record | None,
    everywhere: list[Record | None],
) -> dict[Shift, list[Record | None]]:
    """Where a row may have to go, by what that does to known counts."""
    found: dict[Shift, list[Record | None]] = {}
    for there in everywhere:
        if known.reading == "literal" or promise.joins(columns, here, there):
            found.setdefault(known.shift(columns, here, there), []).append(there)
    return {shift: ends for shift, ends in found.items() if shift != NO_SHIFT}


def _within(cell: int, cells: set[int]) -> bool:
    return cell in cells


def _completing(
    shift: Shift, options: dict[int, dict[Shift, list[Record | None]]], size: int
) -> Iterator[dict[int, Shift]]:
    """Moves of so many others that make an exchange of one that shifts known counts."""
    for others in itertools.combinations(options, size):
        last = options[others[-1]]
        for free in itertools.product(*(options[at] for at in others[:-1])):
            needed = frozenset((place, -by) for place, by in total([shift, *free]))
            if needed in last and exchange([shift, *free, needed]):
                yield dict(zip(others, (*free, needed), strict=True))


@st.composite
def _held(draw: st.DrawFn, columns: tuple[Column, ...], there: Record, *, texts: bool) -> tuple[Any, ...]:
    """Values of these cells."""
    held = []
    for column, cell in zip(columns, there, strict=True):
        held.append(draw(st.sampled_from([raw for raw, at in column.raws(texts=texts) if at == cell])))
    return tuple(held)
