"""Parts of dates that come again: months of every year, weekdays, weeks, hours."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.domain.dates import MONTHS, WEEKDAYS
from blowfishdb.core.errors import BlowfishError, InvalidBins, TooLarge
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.language.short import column_text, parse_question

OF = {
    "year": lambda day: day.year,
    "quarter": lambda day: 1 + (day.month - 1) // 3,
    "month": lambda day: day.month,
    "week": lambda day: int(day.strftime("%V")),
    "day": lambda day: day.day,
    "weekday": lambda day: day.weekday() + 1,
}


@given(
    st.dates(date(1990, 1, 1), date(2030, 1, 1)), st.integers(0, 1_500), st.sampled_from([*OF]), st.booleans()
)
def test_a_bin_is_every_day_of_one_part(first: date, more: int, part: str, missing: bool) -> None:
    column = bf.Date(first, first + timedelta(days=more), missing="value" if missing else "none")
    told = [OF[part](first + timedelta(days=k)) for k in range(more + 1)]
    bins = column.parts(part)
    assert bins.count == len(set(told)) + missing and bins.size == column.size
    places = sorted(set(told))
    assert bins.assign(np.arange(more + 1)).tolist() == [places.index(value) for value in told]
    if missing:
        assert bins.members(bins.count - 1).tolist() == [more + 1]


def test_bins_are_called_by_what_they_are() -> None:
    domain = bf.Domain(
        day=bf.Date("2020-01-01", "2022-12-31", missing="value"),
        seen=bf.Date(datetime(2024, 1, 1), datetime(2024, 1, 9), unit="hour"),
    )
    called = {
        part: ColumnForm("day", part=part).axis(domain).labels()
        for part in ("month", "weekday", "quarter", "week")
    }
    assert called["month"] == (*MONTHS, "missing") and called["weekday"] == (*WEEKDAYS, "missing")
    assert called["quarter"] == ("Q1", "Q2", "Q3", "Q4", "missing") and called["week"][52:] == (
        "week 53",
        "missing",
    )
    hours = ColumnForm("seen", part="hour").axis(domain)
    assert hours.labels() == tuple(f"{hour:02}:00" for hour in range(24))
    assert ColumnForm("day", part="year").axis(domain).labels()[0] == "2020-01-01–2020-12-31"


def test_groups_of_parts_are_called_by_what_is_in_them() -> None:
    domain = bf.Domain(day=bf.Date("2020-01-01", "2022-12-31", missing="value"))
    column = ColumnForm("day", part="weekday", groups={"work": (1, 2, 3, 4, 5), "end": (6, 7)})
    axis = column.axis(domain)
    assert axis.labels() == ("Monday, Tuesday, Wednesday, Thursday, Friday", "Saturday, Sunday", "missing")
    first = date(2020, 1, 1)
    told = axis.bins.assign(np.arange(1_096)).tolist()
    assert told == [int((first + timedelta(days=k)).weekday() >= 5) for k in range(1_096)]
    text = "histogram(day, groups={'work': [1, 2, 3, 4, 5], 'end': [6, 7]}, part=weekday)"
    assert parse_question(text, domain).columns == (column,)
    assert parse_question(f"histogram({column_text(column)})", domain).columns == (column,)
    assert ColumnForm.from_plain(json.loads(json.dumps(column.to_plain()))) == column


def test_it_is_typed_stored_and_written_again() -> None:
    domain = bf.Domain(day=bf.Date("2020-01-01", "2022-12-31"), pay=bf.Integer(0, 9))
    form = parse_question("mean(pay) by day(part=month)", domain)
    assert form.columns == (ColumnForm("day", part="month"),)
    assert column_text(form.columns[0]) == "day(part=month)"
    assert ColumnForm.from_plain(json.loads(json.dumps(form.columns[0].to_plain()))) == form.columns[0]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (ColumnForm("day", part="moon"), "no part"),
        (ColumnForm("day", part="weekday", groups={"end": (6, 7)}), "without a group: 1, 2"),
        (ColumnForm("day", part="weekday", groups={"a": (1, 2, 3, 4, 5, 6, 7), "b": (7,)}), "in two"),
        (ColumnForm("day", part="hour"), "no hours"),
        (ColumnForm("pay", part="month"), "Only dates"),
        (ColumnForm("day", width=7, part="month"), "not by several"),
        (ColumnForm("week", part="month"), "two months"),
        (ColumnForm("long", part="month"), "edges"),
    ],
)
def test_what_is_no_part_is_refused(column: ColumnForm, said: str) -> None:
    domain = bf.Domain(
        day=bf.Date("2020-01-01", "2022-12-31"),
        pay=bf.Integer(0, 9),
        week=bf.Date("2020-01-06", "2021-12-31", unit="week"),
        long=bf.Date("2020-01-01T00:00:00", "2020-12-31T00:00:00", unit="second"),
    )
    with pytest.raises((InvalidBins, TooLarge), match=said):
        column.axis(domain)
    with pytest.raises(BlowfishError):
        parse_question(f"histogram({column_text(column)})", domain)
