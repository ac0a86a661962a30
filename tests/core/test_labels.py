"""What stands beside a number is what was counted: every cut of every column, against a count by hand.

A cut inside a cell is refused, in each of the ways to write one; whatever is not refused counts exactly the
rows that its label, or its condition, speaks of.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.values import text
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.projection import project
from blowfishdb.core.questions.readings import Release
from blowfishdb.language.select import parse_select
from blowfishdb.language.short import parse_question

COLUMNS: dict[str, tuple[Attribute, list[Any]]] = {
    "ones": (bf.Integer(0, 19), list(range(20))),
    "tens": (bf.Integer(0, 99, step=10), list(range(100))),
    "sevens": (bf.Integer(-3, 40, step=7), list(range(-3, 41))),
    "reals": (bf.Real(0, 2, Fraction(1, 4)), [Fraction(n, 4) for n in range(9)]),
    "days": (bf.Date("2024-01-01", "2024-01-20"), [date(2024, 1, 1) + timedelta(n) for n in range(20)]),
    "weeks": (
        bf.Date("2024-01-01", "2024-01-31", unit="week"),
        [date(2024, 1, 1) + timedelta(n) for n in range(31)],
    ),
    "hours": (
        bf.Date("2024-01-01", "2024-01-02", unit="hour"),
        [datetime(2024, 1, 1) + timedelta(minutes=20 * n) for n in range(144)],
    ),
}


def typed(name: str) -> list[Any]:
    """Values that somebody may type: those of the column, between them, and beyond them."""
    _, values = COLUMNS[name]
    some = values[:: max(1, len(values) // 12)] + values[:3] + values[-3:]
    if isinstance(values[0], date):
        return [*some, date(2024, 1, 1), date(2024, 1, 2), date(2023, 12, 31), date(2024, 2, 1)]
    return [*some, Fraction(1, 3), Fraction(25, 10), values[0] - 1, values[-1] + 1]


def asked(name: str, form: QuestionForm) -> tuple[tuple[str, ...], list[float]]:
    """Labels and true answers."""
    attribute, values = COLUMNS[name]
    domain = bf.Domain(**{name: attribute})
    question = form.question(domain)
    problem = project(question, bf.Policy.differential_privacy(domain))
    (axis,) = problem.cells.axes
    boxes = axis.bins.assign(attribute.encode(values))
    found = np.asarray(problem.workload.answer(np.bincount(boxes, minlength=axis.bins.count)), dtype=float)
    release = Release(found, np.ones(len(found), dtype=np.bool_), 0.0, simultaneous=True)
    reading = question.kind.read(release, problem.axes)
    return reading.labels[0], reading.values.tolist()


def counted(name: str, label: str) -> int:
    """The rows between the ends that a label names."""
    _, values = COLUMNS[name]
    if label.startswith("≤ "):
        return sum(value <= _end(values, label[2:], last=True) for value in values)
    low, _, high = label.partition("–")
    first, last = _end(values, low, last=False), _end(values, high or low, last=True)
    return sum(first <= value <= last for value in values)


def _end(values: list[Any], word: str, *, last: bool) -> Any:
    if isinstance(values[0], datetime):
        whole = datetime.fromisoformat(word)
        return whole + timedelta(days=1, seconds=-1) if last and len(word) == 10 else whole
    if isinstance(values[0], date):
        return date.fromisoformat(word)
    return Fraction(word.replace(",", ""))


def cuts(name: str) -> Iterator[QuestionForm]:
    """Every way to write bins and ranges."""
    _, values = COLUMNS[name]
    widths: list[Any] = [1, 2, 3, 5, 7, 10, 14, 20, 25, Fraction(1, 4), Fraction(1, 2), Fraction(3, 10), 1000]
    widths += [timedelta(days=1), timedelta(days=7), timedelta(hours=3), timedelta(minutes=30)]
    for kind in ("histogram", "cumulative"):
        yield from (QuestionForm(kind, (ColumnForm(name, bins=n),)) for n in (1, 2, 3, 7, 1000))
        yield from (QuestionForm(kind, (ColumnForm(name, width=w),)) for w in widths)
        ends = [values[0], *typed(name)]
        for edges in itertools.combinations(sorted(set(map(_sortable, ends))), 2):
            yield QuestionForm(kind, (ColumnForm(name, edges=tuple(_typed(e, values) for e in edges)),))
    for low, high in itertools.product(typed(name), repeat=2):
        yield QuestionForm("ranges", (ColumnForm(name),), bounds=((low, high),))
    yield QuestionForm("histogram", (ColumnForm(name),))


def _sortable(value: Any) -> Any:
    return datetime(value.year, value.month, value.day) if type(value) is date else value


def _typed(value: Any, values: list[Any]) -> Any:
    return value.date() if isinstance(value, datetime) and type(values[0]) is date else value


@pytest.mark.parametrize("name", COLUMNS)
def test_a_label_says_what_was_counted(name: str) -> None:
    answered = refused = 0
    for form in cuts(name):
        try:
            labels, found = asked(name, form)
        except BlowfishError as error:
            assert not error.charged
            refused += 1
            continue
        answered += 1
        assert found == [counted(name, label) for label in labels], (form, labels)
    assert answered > 20 and refused > 20


OPS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "=": operator.eq,
    "<>": operator.ne,
}


def written(value: Any) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else str(value)


def meets(value: Any, op: str, other: Any) -> bool:
    """As people read it: a moment is on a day, or before it, or after it."""
    if isinstance(value, datetime) and type(other) is date:
        value = value.date()
    if type(value) is date and isinstance(other, datetime):
        value = datetime(value.year, value.month, value.day)
    return OPS[op](value, other)


def conditions(name: str) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    for op, value in itertools.product(OPS, typed(name)):
        yield f"{name} {op} {written(value)}", lambda v, op=op, value=value: meets(v, op, value)
    for low, high in itertools.combinations(typed(name), 2):
        between = f"{name} BETWEEN {written(low)} AND {written(high)}"
        yield between, lambda v, low=low, high=high: meets(v, ">=", low) and meets(v, "<=", high)
        listed = f"{name} IN ({written(low)}, {written(high)})"
        yield listed, lambda v, low=low, high=high: meets(v, "=", low) or meets(v, "=", high)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_condition_counts_the_rows_that_it_is_true_of(name: str) -> None:
    attribute, values = COLUMNS[name]
    domain = bf.Domain(**{name: attribute})
    answered = refused = 0
    for words, holds in conditions(name):
        try:
            short = parse_question(f"count() where {words}", domain)
            select = parse_select(f"SELECT COUNT(*) FROM people WHERE {words}", domain, dataset="people").form
        except BlowfishError:
            refused += 1
            continue
        answered += 1
        assert short == select
        expected = sum(map(holds, values))
        assert asked(name, short)[1] == [expected], words
    assert answered > 20 and refused > 5


@pytest.mark.parametrize("width", [1, 3, 10, 20, 25, 100])
def test_bins_in_sql_are_those_of_the_short_form(width: int) -> None:
    attribute, _ = COLUMNS["tens"]
    domain = bf.Domain(tens=attribute)
    statement = f"SELECT BIN(tens, {width}), COUNT(*) FROM people GROUP BY BIN(tens, {width})"
    if width % 10:
        for refused in (
            lambda: parse_select(statement, domain, dataset="people"),
            lambda: parse_question(f"histogram(tens, width={width})", domain),
        ):
            with pytest.raises(bf.errors.InvalidInput, match="cut through cells"):
                refused()
        return
    labels, found = asked("tens", parse_select(statement, domain, dataset="people").form)
    assert found == [counted("tens", label) for label in labels]
    assert (labels, found) == asked("tens", parse_question(f"histogram(tens, width={width})", domain))


@pytest.mark.parametrize(
    ("bounds", "near"),
    [
        ((1, 100), ()),
        ((1, 50), ("from 10 to 49", "from 0 to 59")),
        ((0, 55), ("from 0 to 49", "from 0 to 59")),
        ((3, 7), ("from 0 to 9",)),
        ((95, 99), ("from 90 to 99",)),
    ],
)
def test_a_range_that_ends_inside_a_cell_is_refused_with_the_nearest(
    bounds: tuple[int, int], near: tuple[str, ...]
) -> None:
    form = QuestionForm("ranges", (ColumnForm("tens"),), bounds=(bounds,))
    with pytest.raises(bf.errors.InvalidInput) as refused:
        asked("tens", form)
    assert refused.value.fixes == near
    for words in near:
        low, high = map(int, words.removeprefix("from ").split(" to "))
        labels, found = asked("tens", QuestionForm("ranges", (ColumnForm("tens"),), bounds=((low, high),)))
        assert found == [high - low + 1] and labels == (f"{text(low)}–{text(high)}",)
