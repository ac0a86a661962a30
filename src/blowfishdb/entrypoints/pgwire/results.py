"""Rows for clients: the columns that a statement selects, and what an answer says in each of them.

Numbers of rows are whole numbers, as SQL has them: what a mechanism released is rounded to the nearest. Noise
intervals are not. Where there are too few rows to say anything, the value is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, final

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.entrypoints.pgwire import protocol, types
from blowfishdb.entrypoints.pgwire.types import PgType
from blowfishdb.language.selected import Selected, Shown
from blowfishdb.messages.answers import Answer

_TYPES: Final[dict[Shown, PgType]] = {
    "whole": types.INT4,
    "large": types.INT8,
    "number": types.FLOAT8,
    "text": types.TEXT,
    "date": types.DATE,
    "moment": types.TIMESTAMP,
    "truth": types.BOOL,
    "count": types.INT8,
    "numbers": types.ARRAYS[types.FLOAT8.oid],
}
AS_OF: Final = "as_of"


@final
@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    type: PgType


@final
@dataclass(frozen=True, eq=False)
class Table:
    """A result: its columns, its rows, the word of the statement, and what is said beside it."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    tag: str = "SELECT"
    notices: tuple[bytes, ...] = ()
    cost: int = 0
    """What it cost, in nano-ε."""
    binary: bool = False
    """Whether its rows are written in binary even where nobody asks for that."""

    @cached_property
    def plain(self) -> bytes:
        """All of it as messages, in text; a stored answer is asked for again and again."""
        formats = [types.BINARY_FORMAT if self.binary else types.TEXT_FORMAT] * len(self.columns)
        rows = self.described(formats) + self.data(formats) if self.columns else b""
        return rows + protocol.complete(self.completed(len(self.rows)))

    def completed(self, rows: int) -> str:
        """What is said at the end of so many rows."""
        return f"SELECT {rows}" if self.tag == "SELECT" else self.tag

    def described(self, formats: Sequence[int]) -> bytes:
        """The columns as a message."""
        return description(self.columns, formats)

    def data(self, formats: Sequence[int], start: int = 0, stop: int | None = None) -> bytes:
        """Some rows as messages."""
        writers = [(column.type, code) for column, code in zip(self.columns, formats, strict=True)]
        return b"".join(
            protocol.data_row([kind.write(v, code) for (kind, code), v in zip(writers, row, strict=True)])
            for row in self.rows[start:stop]
        )


def description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """The columns of a result as a message."""
    return protocol.row_description([(c.name, c.type.oid, c.type.size) for c in columns], formats)


def formats_for(columns: int, asked: Sequence[int]) -> list[int]:
    """How each column is written: one word for all of them, or one for each."""
    if not asked:
        return [types.TEXT_FORMAT] * columns
    return [asked[0]] * columns if len(asked) == 1 else list(asked)


def typed(shown: Shown) -> PgType:
    """The type in which values are told."""
    return _TYPES[shown]


def columns_for(selected: Sequence[Selected], *, intervals: bool) -> tuple[Column, ...]:
    """The columns of a result; with ``intervals`` also where the truth lies, and of when it is."""
    columns: list[Column] = []
    for each in selected:
        columns.append(Column(each.name, typed(each.shown)))
        if intervals and each.number is not None:
            several = each.shown == "numbers"
            kind = types.ARRAYS[types.FLOAT8.oid] if several else types.FLOAT8
            columns += [Column(f"{each.name}_low", kind), Column(f"{each.name}_high", kind)]
    return (*columns, Column(AS_OF, types.TIMESTAMP)) if intervals else tuple(columns)


def rows_of(
    answer: Answer, selected: Sequence[Selected], form: QuestionForm, domain: Domain, *, intervals: bool
) -> list[tuple[Any, ...]]:
    """The rows of a result."""
    alone = form.kind == "quantiles" and not answer.measures
    subtotals = form.subtotals(domain) if form.kind == "marginals" else None
    groups = [()] if alone else answer.groups
    count = len(answer.values) // len(groups) if groups else 1
    tables = [None if side is None else side.reshape(-1, count).tolist() for side in _sides(answer)]
    places = [{} if each.group is None else _places(form, each.group, answer, domain) for each in selected]
    settled = _settled(answer)
    rows: list[tuple[Any, ...]] = []
    for at, group in enumerate(groups):
        row: list[Any] = []
        for each, names in zip(selected, places, strict=True):
            if each.group is not None:
                name = form.grouped[each.group].name
                place = names[group] if subtotals is None else subtotals[group[0]].get(name)
                row.append(None if place is None else each.values[place])
                continue
            told = [None if table is None else table[at] for table in tables]
            row += _told(told if intervals else told[:1], each)
        rows.append((*row, settled) if intervals else tuple(row))
    return rows


def _sides(answer: Answer) -> tuple[FloatArray | None, ...]:
    return (answer.values, *(answer.band or (None, None)))


def _told(sides: list[Any], each: Selected) -> list[Any]:
    """A number and the ends of its interval, or lists of them."""
    assert each.number is not None
    if each.shown == "numbers":
        among = slice(each.number, each.number + each.count)
        return [None if side is None else [_end(value) for value in side[among]] for side in sides]
    value, *ends = (None if side is None else side[each.number] for side in sides)
    return [None if value is None else _number(value, each.shown), *map(_end, ends)]


def _places(form: QuestionForm, group: int, answer: Answer, domain: Domain) -> dict[tuple[str, ...], int]:
    """Which bin of a column every group is in; answers list columns in the order of the declaration."""
    column = form.grouped[group]
    if form.kind == "marginals":
        return {}
    axis = column.axis(domain)
    labels = axis.ends() if form.kind == "cumulative" and column in form.columns else axis.labels()
    bins = {label: at for at, label in enumerate(labels)}
    place = answer.axes.index(column.name)
    return {each: bins[each[place]] for each in answer.groups}


def _number(value: float, shown: Shown) -> int | float | None:
    if math.isnan(value):
        return None
    return round(value) if shown == "count" else value


def _end(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _settled(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer.receipt.settled).replace(tzinfo=None)
