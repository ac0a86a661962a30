"""Columns of a small world: how each is declared, what its rows may hold, and in which cell that belongs.

The cell of a value is written down here beside the value; nothing of the package decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from hypothesis import strategies as st

import blowfishdb as bf

DROPPED: Final = -1
"""The cell of a row that the declaration of a column leaves out."""
BELOW, ABOVE = "below", "above"
MISSING: Final = ("drop", "clamp", "value", "public", "none")
OUTSIDE: Final = ("clamp", "drop")
_FIRST_DAY: Final = date(2024, 2, 28)
Record = tuple[int, ...]
"""The cell of each column; DROPPED where the declaration leaves the row out."""


@dataclass(frozen=True)
class Junk:
    """A text in a column of numbers; it counts as missing."""

    text: str


@dataclass(frozen=True)
class Column:
    """A declared column with ``size`` values."""

    name: str
    kind: str
    size: int
    missing: str
    outside: str

    @property
    def attribute(self) -> bf.core.attribute.Attribute:  # type: ignore[name-defined]
        """As it is declared."""
        rules: dict[str, Any] = {"missing": self.missing, "outside": self.outside}
        if self.kind == "integer":
            return bf.Integer(0, self.size - 1, **rules)
        if self.kind == "wide":
            return bf.Integer(10, 10 + 3 * self.size - 1, 3, **rules)
        if self.kind == "real":
            return bf.Real(0, (self.size - 1) / 2, "0.5", **rules)
        if self.kind == "boolean":
            return bf.Boolean(**rules)
        if self.kind == "date":
            return bf.Date(_FIRST_DAY, _FIRST_DAY + timedelta(days=self.size - 1), "day", **rules)
        return bf.Category(self.names, ordered=self.kind == "ordered", **rules)

    @property
    def names(self) -> tuple[str, ...]:
        """The values of a category; some differ by case alone."""
        return tuple(("v", "V", "w", "W")[place % 4] + str(place // 4) for place in range(self.size))

    @property
    def cells(self) -> int:
        """How many cells there are, with that of missing values."""
        return self.size + self.has_missing_cell

    @property
    def has_missing_cell(self) -> bool:
        """Whether missing values have a cell of their own."""
        return self.missing in ("value", "public")

    @property
    def drops(self) -> bool:
        """Whether a row can be left out."""
        return "drop" in (self.missing, self.outside)

    @property
    def ordered(self) -> bool:
        """Whether its values lie on a line."""
        return self.kind != "category"

    @property
    def numeric(self) -> bool:
        """Whether its values can be added up."""
        return self.kind in ("integer", "wide", "real")

    def value(self, cell: int) -> Any:
        """A value of a cell, typed as in a question."""
        if self.kind == "integer":
            return cell
        if self.kind == "wide":
            return 10 + 3 * cell
        if self.kind == "real":
            return cell / 2
        if self.kind == "boolean":
            return bool(cell)
        if self.kind == "date":
            return _FIRST_DAY + timedelta(days=cell)
        return self.names[cell]

    def raws(self, *, texts: bool) -> list[tuple[Any, int]]:
        """What a row may hold, each with its cell; texts among numbers only where they can be stored."""
        inside = [(self.value(cell), cell) for cell in range(self.size)]
        if self.kind == "wide":
            inside += [(12, 0), (10 + 3 * self.size - 2, self.size - 1)]
        missing: list[Any] = [None] if self.missing != "none" else []
        if missing and texts and self.kind not in ("category", "ordered"):
            missing += [Junk("#N/A"), Junk("n, a"), Junk("")]
        return (
            inside
            + [(raw, self._missing_cell()) for raw in missing]
            + [(raw, self._outside_cell(side)) for raw, side in self._outsiders()]
        )

    def _outsiders(self) -> list[tuple[Any, str]]:
        if self.kind == "integer":
            return [(-7, BELOW), (self.size, ABOVE), (10**6, ABOVE)]
        if self.kind == "wide":
            return [(9, BELOW), (10 + 3 * self.size, ABOVE)]
        if self.kind == "real":
            return [(-0.5, BELOW), (self.size / 2, ABOVE)]
        if self.kind == "boolean":
            return []
        if self.kind == "date":
            return [(date(1999, 1, 1), BELOW), (_FIRST_DAY + timedelta(days=self.size), ABOVE)]
        return [("elsewhere", ABOVE)]

    def _missing_cell(self) -> int:
        if self.has_missing_cell:
            return self.size
        if self.missing == "drop":
            return DROPPED
        return 0 if self.kind not in ("category", "ordered") else self.size - 1

    def _outside_cell(self, side: str) -> int:
        if self.outside == "drop":
            return DROPPED
        return 0 if side == BELOW else self.size - 1


@st.composite
def columns(
    draw: st.DrawFn,
    kinds: Sequence[str],
    counts: Sequence[int],
    sizes: Sequence[int],
    missing: Sequence[str],
    outside: Sequence[str],
) -> tuple[Column, ...]:
    """As many columns as one of ``counts``, with some of these rules."""
    count = draw(st.sampled_from(counts))
    made = []
    for name in "abc"[:count]:
        rules = draw(st.sampled_from(missing)), draw(st.sampled_from(outside))
        made.append(Column(name, *_cells(draw(st.sampled_from(kinds)), draw(st.sampled_from(sizes))), *rules))
    return tuple(made)


def _cells(kind: str, size: int) -> tuple[str, int]:
    """The kind of a column and how many values it has."""
    if kind == "boolean":
        return kind, 2
    return ("category", 18) if kind == "many" else (kind, size)
