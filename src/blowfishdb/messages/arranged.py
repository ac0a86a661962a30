"""Answers as they were asked to be shown: other numbers, some groups, another order.

A function of the answer alone. What is promised of it stays true: intervals that hold for all groups at once
hold for those that are shown, whichever they are, and what is computed lies in its interval whenever all that
it is computed from does.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.questions.arrangement import Arrangement
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.numbers import ReleasedTable
from blowfishdb.messages.answers import Answer

_ROWS = "rows"
_COUNTED = ("histogram", "cumulative", "count", "marginals")


def arranged(answer: Answer, form: QuestionForm, domain: Domain) -> Answer:
    """The whole answer to a question as ``form`` shows it."""
    arrangement, places = form.arrangement, form.places(domain)
    if not arrangement:
        return answer
    if form.kind == "quantiles" and not form.by:
        answer = replace(answer, measures=answer.labels[0])
    if arrangement.across:
        answer = _beside(answer, arrangement.across)
    groups = answer.labels[:-1] if answer.measured_last else answer.labels
    count = len(answer.measures) or 1
    names = answer.measures or (_ROWS if form.kind in _COUNTED else form.kind,)
    table = _table(answer, count)
    shape = tuple(map(len, groups))
    if form.sets:
        ranks, possible = _of_sets(form, domain, places)
    else:
        ranks = _along(answer.axes[: len(shape)], shape, places)
        along = form.possible(domain)
        several = [along[name] for name in answer.axes[: len(shape)]] if arrangement.possible else []
        possible = reduce(np.multiply.outer, several, np.ones((), dtype=np.bool_))
    everything = np.broadcast_to(possible.ravel(), (math.prod(shape),))
    rows = arrangement.rows(table, ranks, everything)
    if arrangement.show:
        answer = _computed(answer, arrangement, table, groups)
        count = len(arrangement.show)
    notes = (*answer.notes, *_notes(arrangement, names, len(rows), math.prod(shape), table.exact))
    certain = not arrangement.by_numbers or bool(table.exact.all())
    return replace(
        _picked(answer, rows, groups, count),
        exact=answer.exact.reshape(-1, count)[rows].ravel() & certain,
        form=form.to_plain(),
        notes=notes,
    )


def _beside(answer: Answer, across: tuple[str, ...]) -> Answer:
    """Groups by these columns as numbers of one row."""
    count = len(answer.measures) if answer.measured_last else 1
    columns = answer.axes[:-1] if answer.measured_last else answer.axes
    labels = dict(zip(columns, answer.labels, strict=False))
    rest = [name for name in columns if name not in across]
    order = [*(columns.index(name) for name in (*rest, *across)), len(columns)]
    shape = (*(len(labels[name]) for name in columns), count)

    def turned(numbers: Any) -> Any:
        return numbers.reshape(shape).transpose(order).ravel()

    cells = map(", ".join, itertools.product(*(labels[name] for name in across)))
    told = answer.measures if count > 1 else ("",)
    names = tuple(f"{cell}: {each}" if each else cell for cell in cells for each in told)
    several = len(names) > 1 or not rest
    return replace(
        answer,
        labels=(*(labels[name] for name in rest), *((names,) if several else ())),
        axes=(*rest, *(("measure",) if several else ())),
        kind="aggregates",
        measures=names,
        values=turned(answer.values),
        raw=turned(answer.raw) if len(answer.raw) == len(answer.values) else answer.raw,
        low=None if answer.low is None else turned(answer.low),
        high=None if answer.high is None else turned(answer.high),
        exact=turned(answer.exact),
        alpha=answer.alpha if answer.kind == "aggregates" else None,
    )


def _along(
    axes: tuple[str, ...], shape: tuple[int, ...], places: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Where each column puts every group, of those that are listed along all columns."""
    return {
        name: np.broadcast_to(
            places[name].reshape([-1 if at == axis else 1 for at in range(len(shape))]), shape
        ).ravel()
        for axis, name in enumerate(axes)
        if name in places
    }


def _of_sets(
    form: QuestionForm, domain: Domain, places: dict[str, FloatArray]
) -> tuple[dict[str, FloatArray], BoolArray]:
    """The same of tables with their subtotals, which have no place along the columns that they add up."""
    cells, along = list(form.subtotals(domain).values()), form.possible(domain)
    ranks = {
        name: np.array([of[cell[name]] if name in cell else math.nan for cell in cells])
        for name, of in places.items()
    }
    possible = [all(along[name][bin_] for name, bin_ in cell.items()) for cell in cells]
    return ranks, np.array(possible, dtype=np.bool_)


def _table(answer: Answer, count: int) -> ReleasedTable:
    low, high = answer.band or (answer.values, answer.values)
    values, low, high = (each.reshape(-1, count) for each in (answer.values, low, high))
    return ReleasedTable(values, low, high, answer.exact.reshape(-1, count))


def _picked(answer: Answer, rows: IntArray, groups: tuple[tuple[str, ...], ...], count: int) -> Answer:
    """Some groups, in this order; labels are then those of rows where groups are by several columns."""

    def of(numbers: FloatArray) -> FloatArray:
        return numbers.reshape(-1, count)[rows].ravel()

    labels = list(itertools.product(*groups))
    if np.array_equal(rows, np.arange(len(labels))):
        return answer
    columns = zip(*(labels[row] for row in rows.tolist()), strict=True) if len(rows) else (() for _ in groups)
    last = answer.labels[-1:] if answer.measured_last else ()
    same = len(answer.raw) == len(answer.values)
    return replace(
        answer,
        labels=(*map(tuple, columns), *last),
        listed=len(groups) > 1,
        values=of(answer.values),
        raw=of(answer.raw) if same else answer.raw,
        low=None if answer.low is None else of(answer.low),
        high=None if answer.high is None else of(answer.high),
    )


def _computed(
    answer: Answer, arrangement: Arrangement, table: ReleasedTable, groups: tuple[tuple[str, ...], ...]
) -> Answer:
    """Other numbers in the place of those that were released."""
    numbers = [number for _, number in arrangement.show]
    names = tuple(name for name, _ in arrangement.show)
    grouped = bool(answer.axes) and math.prod(map(len, groups)) >= 1 and _in_groups(answer)
    axes = answer.axes[: len(groups)] if grouped else ()
    labels = groups if grouped else ()
    several = len(names) > 1 or not labels
    ends = [each.interval(table) for each in numbers]
    return replace(
        answer,
        labels=(*labels, *((names,) if several else ())),
        axes=(*axes, *(("measure",) if several else ())),
        kind="aggregates",
        measures=names,
        values=np.column_stack([each.of(table) for each in numbers]).ravel(),
        low=np.column_stack([low for low, _ in ends]).ravel(),
        high=np.column_stack([high for _, high in ends]).ravel(),
        exact=np.column_stack([each.exact(table) for each in numbers]).ravel(),
        alpha=None,
        group_size=None,
    )


def _in_groups(answer: Answer) -> bool:
    """Whether its labels are those of groups, and not the name of its one number."""
    return answer.kind in ("histogram", "cumulative") or (
        bool(answer.measures) and answer.labels != (answer.measures,)
    )


def _notes(
    arrangement: Arrangement, names: tuple[str, ...], shown: int, groups: int, exact: BoolArray
) -> tuple[str, ...]:
    """How numbers are divided, what was left out, and by what."""
    notes = []
    if any(number.divides for _, number in arrangement.show):
        notes.append("Divisions are exact: 7 / 2 is 3.5.")
    noisy = "" if bool(exact.all()) else "noisy "
    if arrangement.having is not None:
        near = ", so one that is near may be on the wrong side" if noisy else ""
        words = arrangement.having.words(names)
        notes.append(f"Groups are listed by their {noisy}numbers ({words}){near}.")
    if arrangement.possible:
        notes.append("Groups of which the condition leaves no row are not listed.")
    if shown < groups and (arrangement.limit is not None or arrangement.offset):
        by = f" by their {noisy}numbers" if arrangement.by_numbers else ""
        notes.append(f"{shown:,} of {groups:,} groups are shown, in the order that was asked for{by}.")
    return tuple(notes)
