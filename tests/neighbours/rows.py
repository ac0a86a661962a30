"""The rows of two databases that a promise joins: one person's rows are other ones, or are not there."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.neighbours.columns import DROPPED, Column
from tests.neighbours.promises import Promise, Record, Rule


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
    changed = set()
    for key in mine.keys() | theirs.keys():
        here, there = mine.get(key), theirs.get(key)
        cells = tuple(None if row is None else record(columns, row) for row in (here, there))
        if public and here and there and here.held[0] != there.held[0]:
            return False
        if cells[0] == cells[1]:
            continue
        if not promise.joins(columns, *cells):
            return False
        row = here or there
        assert row is not None
        changed.add(row.person)
    return len(changed) <= 1


@st.composite
def rows(draw: st.DrawFn, columns: tuple[Column, ...], people: People | None, *, texts: bool) -> Rows:
    """Two to five rows, of fewer people if these have several."""
    count = draw(st.integers(2, 5))
    made = []
    for key in range(1, count + 1):
        held = tuple(draw(st.sampled_from(column.raws(texts=texts)))[0] for column in columns)
        person = key if people is None or people.told else draw(st.sampled_from((1, 2, 1)))
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
