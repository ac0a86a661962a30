"""Rows for clients: the columns that a statement selects, and what an answer says in each of them.

Numbers of rows are whole numbers, as SQL has them: what a mechanism released is rounded to the nearest. Noise
intervals are not. Where there are too few rows to say anything, the value is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

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
    if form.kind == "quantiles":
        return [_quantiles(answer, selected[0], intervals=intervals)]
    groups = answer.groups
    count = len(answer.values) // len(groups) if groups else 1
    values = answer.values.reshape(-1, count).tolist()
    low, high = answer.band or (None, None)
    lows = None if low is None else low.reshape(-1, count).tolist()
    highs = None if high is None else high.reshape(-1, count).tolist()
    places = [{} if each.group is None else _places(form, each.group, domain) for each in selected]
    settled = _settled(answer)
    rows: list[tuple[Any, ...]] = []
    for at, group in enumerate(groups):
        row: list[Any] = []
        for each, bins in zip(selected, places, strict=True):
            if each.group is not None:
                row.append(each.values[bins[group[each.group]]])
                continue
            assert each.number is not None
            row.append(_number(values[at][each.number], each.shown))
            if intervals:
                row.append(_end(None if lows is None else lows[at][each.number]))
                row.append(_end(None if highs is None else highs[at][each.number]))
        rows.append((*row, settled) if intervals else tuple(row))
    return rows


def _quantiles(answer: Answer, selected: Selected, *, intervals: bool) -> tuple[Any, ...]:
    low, high = answer.band or (None, None)
    sides: list[Any] = [answer.values.tolist()]
    if intervals:
        sides += [None if side is None else side.tolist() for side in (low, high)]
    if selected.shown != "numbers":
        sides = [None if side is None else _end(side[0]) for side in sides]
    return (*sides, _settled(answer)) if intervals else tuple(sides)


def _places(form: QuestionForm, group: int, domain: Domain) -> dict[str, int]:
    """Which bin a label stands for."""
    return {label: at for at, label in enumerate(form.columns[group].axis(domain).labels())}


def _number(value: float, shown: Shown) -> int | float | None:
    if math.isnan(value):
        return None
    return round(value) if shown == "count" else value


def _end(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _settled(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer.receipt.settled).replace(tzinfo=None)
