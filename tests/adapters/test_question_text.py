"""The short form: every kind of question to a form and back, and what the errors say."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    BlowfishError,
    InvalidBins,
    InvalidInput,
    InvalidQuestion,
    InvalidValue,
    InvalidWorkload,
    Refused,
    UnknownColumn,
    UnsupportedSql,
)
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.language.short import parse_question, question_text
from blowfishdb.language.text import LONGEST
from tests.adapters.typed import SALARIES, alike, forms

SALARY, AGE, REGION = ColumnForm("salary"), ColumnForm("age"), ColumnForm("region")
COASTS = {"coast": ("west", "south"), "land": ("north", "east")}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("cumulative(salary, bins=20)", QuestionForm("cumulative", (ColumnForm("salary", bins=20),))),
        ("histogram(age, width=5)", QuestionForm("histogram", (ColumnForm("age", width=5),))),
        ("histogram(age, region)", QuestionForm("histogram", (AGE, REGION))),
        (
            "histogram(age, edges=[0,25,35])",
            QuestionForm("histogram", (ColumnForm("age", edges=(0, 25, 35)),)),
        ),
        (
            "histogram(region, groups={'coast': ['west','south'], land: ['north','east']})",
            QuestionForm("histogram", (ColumnForm("region", groups=COASTS),)),
        ),
        (
            "ranges(salary, 0..9999, 50_000..99_999)",
            QuestionForm("ranges", (SALARY,), bounds=((0, 9999), (50_000, 99_999))),
        ),
        (
            "ranges(day, 2024-01-01..2024-02-01, '2024-03-01'..'2024-04-01')",
            QuestionForm(
                "ranges",
                (ColumnForm("day"),),
                bounds=((date(2024, 1, 1), date(2024, 2, 1)), ("2024-03-01", "2024-04-01")),
            ),
        ),
        (
            "ranges(seen, 2024-01-01T10:00..2024-02-01T10:00:59)",
            QuestionForm(
                "ranges",
                (ColumnForm("seen"),),
                bounds=((datetime(2024, 1, 1, 10), datetime(2024, 2, 1, 10, 0, 59)),),
            ),
        ),
        ("ranges(rate, 1.5..2.5)", QuestionForm("ranges", (ColumnForm("rate"),), bounds=((1.5, 2.5),))),
        (
            "ranges(rate, 1/10..1/5)",
            QuestionForm("ranges", (ColumnForm("rate"),), bounds=((Fraction(1, 10), Fraction(1, 5)),)),
        ),
        (
            "ranges(level, 'low'..'mid')",
            QuestionForm("ranges", (ColumnForm("level"),), bounds=(("low", "mid"),)),
        ),
        (
            "ranges(employed, false..true)",
            QuestionForm("ranges", (ColumnForm("employed"),), bounds=((False, True),)),
        ),
        ("median(salary)", QuestionForm("quantiles", (SALARY,), shares=(0.5,))),
        ("quantiles(salary, .25, 0.5)", QuestionForm("quantiles", (SALARY,), shares=(0.25, 0.5))),
        ("mean(salary)", QuestionForm("mean", (SALARY,))),
        ("sum(salary)", QuestionForm("sum", (SALARY,))),
        ("count()", QuestionForm("count", ())),
        ("COUNT(Age)", QuestionForm("count", (AGE,))),
        ("top(region, 3)", QuestionForm("top", (REGION,), count=3)),
        ("above(age, 5000, width=5)", QuestionForm("above", (ColumnForm("age", width=5),), limit=5000)),
        ("above(age, -0.5)", QuestionForm("above", (AGE,), limit=-0.5)),
        (
            "histogram(age(width=10), salary(bins=20))",
            QuestionForm("histogram", (ColumnForm("age", width=10), ColumnForm("salary", bins=20))),
        ),
        ("histogram(day, width=7 days)", QuestionForm("histogram", (ColumnForm("day", width=timedelta(7)),))),
        ('histogram("hours per week")', QuestionForm("histogram", (ColumnForm("hours per week"),))),
        ('histogram("a ""b"" c")', QuestionForm("histogram", (ColumnForm('a "b" c'),))),
        ("histogram(Größe, bins=5)", QuestionForm("histogram", (ColumnForm("Größe", bins=5),))),
        (
            "count() where age >= 30 and region in ('north')",
            QuestionForm("count", (), (col("age") >= 30) & col("region").isin(["north"])),
        ),
        (" histogram ( age , ) WHERE age<9 ", QuestionForm("histogram", (AGE,), col("age") < 9)),
    ],
)
def test_what_is_read(typed: str, meant: QuestionForm) -> None:
    assert parse_question(typed, SALARIES) == meant
    assert alike(parse_question(question_text(meant), SALARIES)) == alike(meant)


@given(forms())
def test_what_is_written_reads_back(form):
    assert alike(parse_question(question_text(form), SALARIES)) == alike(form)


@given(
    st.text(min_size=1).filter(str.strip), st.lists(st.text(), min_size=1, max_size=3, unique=True), st.text()
)
def test_any_name_and_any_text_survive(name, values, group):
    domain = Domain.of({name: Category(values)})
    form = QuestionForm("histogram", (ColumnForm(name, groups={group: values}),), col(name) == values[0])
    assert parse_question(question_text(form), domain) == form


def test_the_median_is_written_as_such() -> None:
    assert question_text(QuestionForm("quantiles", (SALARY,), shares=(0.5,))) == "median(salary)"
    assert question_text(QuestionForm("histogram", (ColumnForm("day", width=timedelta(1)),))) == (
        "histogram(day, width=1 day)"
    )
    with pytest.raises(InvalidInput, match="cannot be written"):
        question_text(QuestionForm("histogram", (ColumnForm("age", width=object()),)))


@pytest.mark.parametrize(
    ("typed", "says", "fix"),
    [
        ("", "begins with one of", "histogram(salary)"),
        ("histgram(age)", "found 'histgram'", "histogram(salary)"),
        ("histogram", r"Expected '\('", "histogram(salary)"),
        ("histogram()", "needs a column", "histogram(salary)"),
        ("histogram('age')", "needs a column", "histogram(salary)"),
        ("histogram(age width=3)", "found 'width' after 'histogram", "histogram(salary)"),
        ("histogram(age", "found the end", "histogram(salary)"),
        ("histogram(age) were age > 3", "Expected 'where' or the end", "histogram(salary)"),
        ("histogram(age) where", "nothing to read", "salary >= 100000"),
        ("histogram(age, with=3)", "no 'with='", "histogram(salary)"),
        ("histogram(age(5))", "bins=, width=", "histogram(salary)"),
        ("histogram(age(bins=5 width=3))", "','", "histogram(salary)"),
        ("histogram(age, region, width=5)", "which column", "histogram(age(width=5), region)"),
        ("count(bins=5)", "which column", "count()"),
        ("histogram(age, 3)", "only columns and bins", "histogram(age)"),
        ("histogram(age, 3..5)", "only columns and bins", "histogram(age)"),
        ("histogram(age, edges=5)", r"Expected '\['", "histogram(salary)"),
        ("histogram(age, edges=[5 6])", "',' or ']'", "histogram(salary)"),
        ("histogram(age, groups=5)", "Expected '{'", "histogram(salary)"),
        ("histogram(age, groups={5: [1]})", "a group such as", "histogram(salary)"),
        ("histogram(age, groups={'a' [1]})", "Expected ':'", "histogram(salary)"),
        ("histogram(age, groups={'a': [1] 'b'})", "',' or '}'", "histogram(salary)"),
        ("histogram(age, width=-)", "a value", "histogram(salary)"),
        ("histogram(age, width=five)", "single quotes", "'five'"),
        ("histogram(age, width=1/0)", "fraction", "histogram(salary)"),
        ("top(region)", "number of bins", "top(region, 3)"),
        ("top(region, 3, 4)", "number of bins", "top(region, 3)"),
        ("above(age, 'x')", "number of rows", "above(age, 100)"),
        ("quantiles(salary)", "shares", "quantiles(salary, 0.25, 0.5)"),
        ("quantiles(salary, true)", "shares", "quantiles(salary, 0.25, 0.5)"),
        ("median(salary, 3)", "only columns and bins", "median(salary)"),
        ("ranges(age)", "ranges such as", "ranges(age, 0..119)"),
        ("ranges(salary, 0-99)", "found '-'", "ranges(salary, 0..200000)"),
        ("ranges(age, 5)", "ranges such as", "ranges(age, 0..119)"),
        ("histogram(age) #", "found '#'", "histogram(salary)"),
    ],
)
def test_errors_point_and_show_what_works(typed: str, says: str, fix: str) -> None:
    with pytest.raises(InvalidQuestion, match=says) as refused:
        parse_question(typed, SALARIES)
    assert refused.value.fixes[0] == fix
    if "(" in fix:
        parse_question(fix, SALARIES)


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("histogram(ages)", UnknownColumn),
        ('histogram("AGE")', UnknownColumn),
        ("histogram(age, bins=3, width=2)", InvalidBins),
        ("histogram(age(bins=3), bins=3)", InvalidBins),
        ("histogram(region, groups={'a': ['north'], 'a': ['south']})", InvalidBins),
        ("histogram(region, groups={'a': ['north']})", InvalidBins),
        ("histogram(age, width=0.5)", InvalidBins),
        ("histogram(age, width=3 days)", InvalidBins),
        ("cumulative(region)", InvalidWorkload),
        ("median(day)", InvalidWorkload),
        ("sum(region)", InvalidWorkload),
        ("quantiles(salary, 5)", InvalidWorkload),
        ("top(region, 0)", InvalidWorkload),
        ("top(region, 1.5)", InvalidWorkload),
        ("mean(salary, age)", InvalidWorkload),
        ("sum(salary, bins=3)", InvalidWorkload),
        ("ranges(salary, 99..0)", InvalidWorkload),
        ("ranges(salary, -5..3)", InvalidValue),
        ("histogram(day, edges=[2024-13-01])", InvalidQuestion),
        ("histogram(day, width=1e300 days)", InvalidQuestion),
        ("histogram(age, width=1e999)", InvalidQuestion),
        ("histogram('age", InvalidQuestion),
        ("count() where age like '3%'", UnsupportedSql),
        ("count()" + " " * LONGEST, InvalidQuestion),
        (5, InvalidQuestion),
    ],
)
def test_what_cannot_be_asked(typed, error: type[BlowfishError]) -> None:
    with pytest.raises(error):
        parse_question(typed, SALARIES)


def test_examples_fit_the_columns_there_are() -> None:
    words = Domain(region=Category(["north", "south"]))
    for typed in ("cumulative(", "ranges(", "median(", "mean(", "top(", "histogram("):
        with pytest.raises(InvalidQuestion) as refused:
            parse_question(typed, words)
        parse_question(refused.value.fixes[0], words)
    numbers = Domain(n=Integer(5, 5))
    with pytest.raises(InvalidQuestion) as refused:
        parse_question("ranges(", numbers)
    assert refused.value.fixes == ("ranges(n, 5..5)",)


WORDS = (
    "histogram cumulative ranges quantiles median mean sum count top above ( ( ( ) ) ) , , = bins width "
    "edges groups [ ] { } : .. - / 3 0.25 1_000 .5 1e9 2024-01-01 2024-13-41T10:00 'north' \"age\" age "
    "salary region day level employed true days where AND >= in ; # ' \""
)
pieces = st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)


@given(st.text() | pieces | pieces.map(lambda typed: "top(" + typed))
def test_any_text_is_a_question_or_is_refused(typed):
    try:
        found = parse_question(typed, SALARIES)
    except (InvalidInput, Refused) as error:
        assert error.message
    else:
        assert alike(parse_question(question_text(found), SALARIES)) == alike(found)


def test_what_was_read_lately_is_the_question_of_the_same_columns_only() -> None:
    text = "histogram(age, width=5)"
    first = parse_question(text, SALARIES)
    assert parse_question(text, SALARIES) is first
    narrow = Domain(age=Integer(0, 9))
    assert parse_question("histogram(age)", narrow) == parse_question("histogram(age)", SALARIES)
    parse_question("histogram(region)", SALARIES)
    for _ in range(2):
        with pytest.raises(UnknownColumn):
            parse_question("histogram(region)", narrow)
