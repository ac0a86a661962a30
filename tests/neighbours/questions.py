"""Questions of a small world, and their true answers, computed from records and nothing else."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.domain.domain import Axis
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from tests.neighbours.columns import DROPPED, Column, Record


@dataclass(frozen=True)
class Where:
    """A condition: the values of a column in ``cells`` (or missing), perhaps turned around."""

    place: int
    cells: tuple[int, ...]
    missing: bool = False
    negated: bool = False

    def predicate(self, columns: tuple[Column, ...]) -> Any:
        """As an analyst writes it."""
        column = columns[self.place]
        name = bf.col(column.name)
        if self.missing:
            made: Any = name.is_missing()
        elif column.kind == "wide":
            made = name.between(column.value(self.cells[0]), column.value(self.cells[0]) + 2)
        else:
            made = name.isin([column.value(cell) for cell in self.cells])
        return ~made if self.negated else made

    def holds(self, columns: tuple[Column, ...], record: Record) -> bool:
        """Whether a row satisfies it; what is unknown does not."""
        cell, column = record[self.place], columns[self.place]
        if cell == DROPPED:
            return False
        if self.missing:
            return (cell == column.size and column.has_missing_cell) != self.negated
        if cell == column.size:
            return False  # unknown, whichever way round
        inside = cell in (self.cells[:1] if column.kind == "wide" else self.cells)
        return inside != self.negated


@dataclass(frozen=True)
class Terms:
    """An ε to spend, or an accuracy to reach."""

    epsilon: str | None = None
    alpha: float | None = None
    confidence: float = 0.9
    each: bool = False
    mechanism: str | None = None


@dataclass(frozen=True)
class Question:
    """What is asked about some columns, for rows that satisfy all conditions."""

    kind: str
    places: tuple[int, ...]
    width: int | None = None
    where: tuple[Where, ...] = ()
    terms: Terms = Terms("0.5")
    detail: tuple[int, ...] = ()
    conditions: tuple[Where, ...] = ()
    """Of counts: which rows, in groups of the columns."""

    def within(self, share: float) -> Question:
        """The same question, answered so many times more closely; one that states an ε states an error."""
        alpha = (self.terms.alpha or 8.5) * share
        return replace(self, terms=replace(self.terms, epsilon=None, alpha=alpha))

    def asking(self, dataset: Dataset, columns: tuple[Column, ...]) -> Asking:
        """As an analyst asks it."""
        for condition in self.where:
            dataset = dataset.where(condition.predicate(columns))
        made = self._form(dataset, columns)
        terms = self.terms
        if terms.alpha is not None:
            made = made.accurate_to(terms.alpha, confidence=terms.confidence, each=terms.each)
        else:
            made = made.spend(terms.epsilon or "0.5")
        return made if terms.mechanism is None else made.using(terms.mechanism)

    def _form(self, dataset: Dataset, columns: tuple[Column, ...]) -> Asking:
        if self.kind == "rows":
            return dataset.count()
        asked = [columns[place] for place in self.places]
        if self.kind == "counts":
            named = {f"c{number}": each.predicate(columns) for number, each in enumerate(self.conditions)}
            return dataset.by(*(column.name for column in asked)).counts(named)
        if self.kind == "aggregates":
            value, *groups = (column.name for column in asked)
            told = [(of, None if of == "count" else value) for of in TOLD[self.detail[0]]]
            size = None if self.terms.alpha is None else 2
            return dataset.by(*groups).aggregate(*told, group_size=size if told[0][0] == "mean" else None)
        if self.kind == "two aggregates":
            first, second, *groups = (column.name for column in asked)
            return dataset.by(*groups).aggregate(("mean", first), ("sum", second))
        if self.kind in GROUPED:
            value, *groups = (column.name for column in asked)
            grouped = dataset.by(*groups)
            if self.kind == "ranges by":
                return grouped.ranges(value, [self._ends(asked[0])])
            return grouped.median(value) if self.kind == "median by" else grouped.cumulative(value)
        chosen = dataset[tuple(column.name for column in asked)]
        if self.kind == "marginals":
            return chosen.marginals(self.detail[0])
        if self.kind == "rectangles":
            return chosen.ranges([tuple(map(self._ends, asked))])
        cut = {"bins": math.ceil(asked[0].size / self.width)} if self.width else {}
        if self.kind == "ranges":
            return chosen.ranges([self._ends(asked[0])])
        if self.kind in ("top", "above"):
            return getattr(chosen, self.kind)(self.detail[0], **cut)
        if self.kind == "median":
            return chosen.median(**cut)
        if self.kind in ("sum", "count"):
            return getattr(chosen, self.kind)()
        return getattr(chosen, self.kind)(**cut)

    def _ends(self, column: Column) -> tuple[Any, Any]:
        """A range of a column as an analyst writes it; of several columns, as much of each as it has."""
        first, last = (min(cell, column.size - 1) for cell in self.detail)
        high = column.value(last)
        return column.value(first), high + 2 if column.kind == "wide" else high

    def labels(self, columns: tuple[Column, ...]) -> tuple[str, ...]:
        """The bins of a question about one column, in words."""
        (column,) = (columns[place] for place in self.places)
        attribute = column.attribute
        count = math.ceil(column.size / self.width) if self.width else None
        return Axis(column.name, attribute, attribute.bins(count=count)).labels()

    # --- the truth ------------------------------------------------------------------------------

    def truth(self, columns: tuple[Column, ...], records: Sequence[Record]) -> np.ndarray | None:
        """The true values in the order of the answer; None for kinds that answer something else."""
        kept = [
            record
            for record in records
            if all(record[place] != DROPPED for place in self._mentioned(columns))
            and all(condition.holds(columns, record) for condition in self.where)
        ]
        if self.kind == "rows":
            return np.array([len(kept)])
        asked = [columns[place] for place in self.places]
        if self.kind == "count":
            return np.array([sum(record[self.places[0]] < asked[0].size for record in kept)])
        if self.kind == "ranges":
            first, last = self.detail
            return np.array([sum(first <= record[self.places[0]] <= last for record in kept)])
        if self.kind == "sum":
            column, place = asked[0], self.places[0]
            values = (column.value(record[place]) for record in kept if record[place] < column.size)
            return np.array([float(sum(values))])
        if self.kind in ("median", "median by"):
            return None
        if self.kind == "two aggregates":
            return self._two(columns, kept)
        if self.kind in ("rectangles", "ranges by", "marginals", "cumulative by"):
            return self._boxes(columns, kept)
        if self.kind == "aggregates":
            return self._aggregates(columns, kept)
        if self.kind == "counts":
            groups = itertools.product(*(range(self._bins(column)) for column in asked))
            rows = (
                [row for row in kept if tuple(row[at] for at in self.places) == group] for group in groups
            )
            return np.array(
                [sum(c.holds(columns, row) for row in each) for each in rows for c in self.conditions]
            )
        table = np.zeros([self._bins(column) for column in asked])
        for record in kept:
            table[tuple(self._bin(columns[place], record[place]) for place in self.places)] += 1
        if self.kind == "cumulative":
            for axis, column in enumerate(asked):
                values = [slice(None)] * len(asked)
                values[axis] = slice(0, self._bins(column) - column.has_missing_cell)
                table = np.cumsum(table[tuple(values)], axis=axis)
        return table.ravel()

    def _two(self, columns: tuple[Column, ...], kept: Sequence[Record]) -> np.ndarray:
        """A mean of one column and a sum of another; rows without one of the values count for the other."""
        first, second, *groups = self.places
        truth = []
        for group in itertools.product(*(range(self._bins(columns[each])) for each in groups)):
            rows = [row for row in kept if tuple(row[each] for each in groups) == group]
            one, other = (
                [float(columns[at].value(row[at])) for row in rows if row[at] < columns[at].size]
                for at in (first, second)
            )
            truth += [math.fsum(one) / len(one) if one else math.nan, math.fsum(other)]
        return np.array(truth)

    def _boxes(self, columns: tuple[Column, ...], kept: Sequence[Record]) -> np.ndarray:
        """Rectangles, ranges and curves of groups, marginals: row by row, in the order of the domain."""
        place, *others = self.places

        def between(record: Record, at: int) -> bool:
            first, last = (min(cell, columns[at].size - 1) for cell in self.detail)
            return first <= record[at] <= last

        if self.kind == "rectangles":
            return np.array([sum(all(between(row, at) for at in self.places) for row in kept)])
        if self.kind == "marginals":
            counts = []
            for chosen in itertools.combinations(self.places, self.detail[0]):
                sizes = (range(self._bins(columns[at])) for at in sorted(chosen))
                for cells in itertools.product(*sizes):
                    named = list(zip(sorted(chosen), cells, strict=True))
                    counts.append(sum(all(row[at] == cell for at, cell in named) for row in kept))
            return np.array(counts)
        groups = list(itertools.product(*(range(self._bins(columns[at])) for at in sorted(others))))
        inside = [
            [row for row in kept if tuple(row[at] for at in sorted(others)) == group] for group in groups
        ]
        if self.kind == "ranges by":
            return np.array([sum(between(row, place) for row in rows) for rows in inside])
        shape = [self._bins(columns[at]) for at in sorted(others)]
        lines = [
            [sum(row[place] <= cell for row in rows) for cell in range(columns[place].size)]
            for rows in inside
        ]
        table = np.array(lines).reshape(*shape, -1)
        return np.moveaxis(table, -1, sorted(self.places).index(place)).ravel()

    def _aggregates(self, columns: tuple[Column, ...], kept: Sequence[Record]) -> np.ndarray:
        """Group by group, in the declared order; of what there is none, not a number."""
        place, *groups = self.places
        column = columns[place]
        every = itertools.product(*(range(self._bins(columns[each])) for each in groups))
        truth = []
        for group in every:
            rows = [row for row in kept if tuple(row[each] for each in groups) == group]
            values = [float(column.value(row[place])) for row in rows if row[place] < column.size]
            told = {
                "count": float(len(rows)),
                "sum": math.fsum(values),
                "mean": math.fsum(values) / len(values) if values else math.nan,
                "variance": float(np.var(values, ddof=1)) if len(values) > 1 else math.nan,
            }
            truth += [told[of] for of in TOLD[self.detail[0]]]
        return np.array(truth)

    def _mentioned(self, columns: tuple[Column, ...]) -> set[int]:
        """The columns that leave rows out; the first one counts rows if there is none that drops none."""
        places = set(self.places)
        if self.kind == "rows":
            places = {0} if all(column.drops for column in columns) else set()
        return places | {condition.place for condition in (*self.where, *self.conditions)}

    def _bins(self, column: Column) -> int:
        return math.ceil(column.size / (self.width or 1)) + column.has_missing_cell

    def _bin(self, column: Column, cell: int) -> int:
        return self._bins(column) - 1 if cell == column.size else cell // (self.width or 1)


GROUPED = ("median by", "cumulative by", "ranges by")
"""Questions along one column, of the groups of another."""
OF_SEVERAL = (*GROUPED, "rectangles", "marginals", "two aggregates")
"""Questions that need two columns."""
TOLD = (("mean",), ("sum",), ("mean", "count"), ("variance", "mean"), ("sum", "count"))
"""Which aggregates are asked for together."""
SPEND = tuple(Terms(epsilon) for epsilon in ("0.5", "1", "0.37"))
REACH = tuple(Terms(alpha=alpha, each=each) for alpha in (3.0, 8.5) for each in (False, True))


@st.composite
def questions(
    draw: st.DrawFn,
    columns: tuple[Column, ...],
    *,
    terms: Sequence[Terms],
    only: Sequence[str],
    conditions: Sequence[int],
) -> Question:
    """A question of any kind that the columns allow, or ``only`` of some, with so many ``conditions``."""
    place = draw(st.sampled_from(range(len(columns))))
    column = columns[place]
    kinds = ["histogram", "histogram", "rows", "count", "top", "above"]
    others = [other for other in range(len(columns)) if other != place]
    if len(columns) > 1:
        kinds.append("pairs")
    if column.ordered:
        kinds += ["cumulative", "cumulative", "ranges"]
    if column.numeric:
        kinds += ["median", "sum", "aggregates", "aggregates"]
    if "counts" in only:
        kinds.append("counts")
    if others and "marginals" in only:
        kinds += ["marginals", *(["cumulative by", "ranges by"] if column.ordered else [])]
        kinds += ["median by"] if column.numeric else []
        kinds += (
            ["two aggregates"] * 2 if column.numeric and any(columns[at].numeric for at in others) else []
        )
        kinds += ["rectangles"] if column.ordered and any(columns[at].ordered for at in others) else []
    kind = draw(st.sampled_from([kind for kind in kinds if kind in only] or kinds))
    width = draw(st.sampled_from((None, None, 2))) if column.ordered and kind != "pairs" else None
    places, detail = (place,), ()
    if kind == "pairs":
        kind, places = "histogram", (0, 1)
    if kind in GROUPED:
        places = (place, draw(st.sampled_from(others)))
    if kind == "two aggregates":
        second = draw(st.sampled_from([other for other in others if columns[other].numeric]))
        third = [other for other in others if other != second]
        places = (place, second, *draw(st.sampled_from([(), *[(other,) for other in third]])))
    if kind == "rectangles":
        places = (place, draw(st.sampled_from([other for other in others if columns[other].ordered])))
    if kind == "marginals":
        places, detail = tuple(sorted((place, *others))), (draw(st.sampled_from((1, min(2, len(columns))))),)
    if kind in ("ranges", "ranges by", "rectangles"):
        detail = tuple(sorted(draw(st.sampled_from(range(column.size))) for _ in range(2)))
    if kind in ("top", "above"):
        detail = (1,)
    if kind == "aggregates":
        places = (place, *draw(st.sampled_from([(), *[(other,) for other in others] * 3])))
        detail = (draw(st.sampled_from(range(len(TOLD)))),)
    asked: tuple[Where, ...] = ()
    if kind == "counts":
        places = draw(st.sampled_from(((), (place,))))
        asked = tuple(draw(st.lists(wheres(columns), min_size=1, max_size=3)))
    if kind in ("ranges", "sum", "rows", "count", "aggregates", "counts", *OF_SEVERAL):
        width = None
    where = tuple(draw(wheres(columns)) for _ in range(draw(st.sampled_from(conditions))))
    return Question(kind, places, width, where, draw(st.sampled_from(terms)), detail, asked)


@st.composite
def wheres(draw: st.DrawFn, columns: tuple[Column, ...]) -> Where:
    """A condition on one column."""
    place = draw(st.sampled_from(range(len(columns))))
    column = columns[place]
    cells = tuple(sorted(draw(st.sets(st.sampled_from(range(min(column.size, 4))), min_size=1, max_size=2))))
    missing = column.has_missing_cell and draw(st.sampled_from((False, False, True)))
    return Where(place, cells, missing, draw(st.sampled_from((False, False, True))))
