"""Forms and their plain data: every round trip, every refusal."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import IsMissing, col
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Atom, Everything, Not, Or
from blowfishdb.core.errors import (
    BlowfishError,
    InvalidBins,
    InvalidInput,
    InvalidPredicate,
    InvalidValue,
    InvalidWorkload,
    NotFinite,
    UnknownColumn,
)
from blowfishdb.core.policy.codec import condition_from, plain_condition, plain_value, value_from
from blowfishdb.core.questions import kinds
from blowfishdb.core.questions.clusters import ClusterQuestion
from blowfishdb.core.questions.conditions import Counts, Marginals
from blowfishdb.core.questions.form import KINDS, ColumnForm, QuestionForm
from blowfishdb.core.questions.partitions import Partition
from tests.adapters.typed import SALARIES, alike, conditions, forms

DOMAIN = Domain(
    salary=Integer(0, 200_000),
    age=Integer(0, 119),
    region=Category(["north", "south", "east", "west"]),
    rate=Real(0, 10, 0.1),
    day=Date("2024-01-01", "2024-12-31"),
    employed=Boolean(),
)


def through_json(plain: object) -> object:
    return json.loads(json.dumps(plain, allow_nan=False))


# --- round trips ----------------------------------------------------------------------------------


@given(forms())
def test_a_form_survives_json(form):
    assert alike(QuestionForm.from_plain(through_json(form.to_plain()))) == alike(form)


@given(conditions)
def test_a_condition_survives_json(condition):
    assert alike(condition_from(through_json(plain_condition(condition)))) == alike(condition)


@given(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.dates()
    | st.datetimes()
    | st.fractions()
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.timedeltas()
)
def test_a_value_survives_json(value):
    assert value_from(through_json(plain_value(value))) == value


def test_numpy_is_let_go():
    form = QuestionForm("top", (ColumnForm("age", bins=np.int64(4)),), count=np.int64(3))
    assert through_json(form.to_plain()) == {
        "kind": "top",
        "columns": [{"name": "age", "bins": 4}],
        "count": 3,
    }
    assert plain_value(np.datetime64("2024-02-03")) == {"date": "2024-02-03"}
    assert plain_value(np.float64(0.5)) == 0.5


def test_lists_and_tuples_are_the_same_question():
    listed = ColumnForm("region", groups={"a": ["north", "south"], "b": ["east", "west"]})
    assert listed == ColumnForm("region", groups={"a": ("north", "south"), "b": ("east", "west")})
    assert ColumnForm("age", edges=[0, 5]) == ColumnForm("age", edges=(0, 5))
    ranges = QuestionForm("ranges", [ColumnForm("age")], bounds=[[0, 5]])  # type: ignore[arg-type]
    assert ranges == QuestionForm("ranges", (ColumnForm("age"),), bounds=((0, 5),))
    shares = QuestionForm("quantiles", (ColumnForm("age"),), shares=(Fraction(1, 4), Decimal("0.5"), 1))
    assert shares.shares == (0.25, 0.5, 1.0)


def test_a_column_can_be_sent_as_a_text():
    assert QuestionForm.from_plain({"kind": "histogram", "columns": ["age"]}).columns == (ColumnForm("age"),)


def test_what_was_not_said_is_not_sent():
    assert QuestionForm("count", ()).to_plain() == {"kind": "count", "columns": []}
    assert ColumnForm("age").to_plain() == {"name": "age"}


def test_a_combination_of_one_part_survives():
    for joined in (And((IsMissing("age"),)), Or((IsMissing("age"),))):
        assert condition_from(plain_condition(joined)) == joined


def test_a_day_and_its_midnight_stay_apart():
    assert type(value_from(plain_value(date(2024, 1, 1)))) is date
    assert type(value_from(plain_value(datetime(2024, 1, 1)))) is datetime


# --- from a form to a question --------------------------------------------------------------------


def test_every_kind_becomes_its_question():
    age = (ColumnForm("age"),)
    asked = {
        "histogram": (QuestionForm("histogram", age), kinds.Histogram()),
        "cumulative": (QuestionForm("cumulative", age), kinds.Cumulative()),
        "ranges": (QuestionForm("ranges", age, bounds=((0, 5),)), kinds.Ranges(((0, 5),))),
        "quantiles": (QuestionForm("quantiles", age, shares=(0.5,)), kinds.Quantiles((0.5,))),
        "count": (QuestionForm("count", age), kinds.Count(("age",))),
        "sum": (QuestionForm("sum", age), kinds.Sum(7)),
        "mean": (QuestionForm("mean", age), kinds.Sum(7, mean=True)),
        "top": (QuestionForm("top", age, count=3), kinds.Top(3)),
        "partition": (QuestionForm("partition", age, count=3), Partition(3)),
        "above": (QuestionForm("above", age, limit=5000), kinds.Above(5000)),
        "marginals": (QuestionForm("marginals", age, sets=(("age",), ())), Marginals((("age",), ()))),
    }
    assert {*asked, "clusters", "aggregates", "counts"} == {*KINDS}
    for form, kind in asked.values():
        question = form.question(DOMAIN, rows=7)
        assert question.kind == kind and [axis.column for axis in question.axes] == ["age"]
        form.check(DOMAIN)


def test_a_list_of_conditions_becomes_a_question_about_their_columns():
    young, rich = ("young", col("age") < 3), ("rich", col("salary") > 500)
    form = QuestionForm("counts", (), conditions=(young, rich))
    question = form.question(DOMAIN)
    assert question.kind == Counts((young, rich))
    assert {axis.column for axis in question.axes} == {"age", "salary"}
    form.check(DOMAIN)


def test_clusters_become_a_question_of_their_own():
    form = QuestionForm("clusters", (ColumnForm("salary"), ColumnForm("age")), col("age") > 3, k=4)
    question = form.question(DOMAIN)
    assert isinstance(question, ClusterQuestion) and (question.count, question.iterations) == (4, 5)
    assert set(question.columns) == {"salary", "age"}
    form.check(DOMAIN)
    assert form == replace(form, iterations=5) != replace(form, iterations=6)


@pytest.mark.parametrize(
    ("columns", "details", "words"),
    [
        (("age",), {}, "needs 'k'"),
        (("age",), {"k": 0}, "Between 1 and 64"),
        (("age",), {"k": 65}, "Between 1 and 64"),
        (("age",), {"k": 2.5}, "whole number"),
        (("age",), {"k": 2, "iterations": 0}, "Between 1 and 100"),
        (("age",), {"k": 2, "limit": 3}, "has no 'limit'"),
        (("age", "age"), {"k": 2}, "different columns"),
        ((), {"k": 2}, "different columns"),
        (("region",), {"k": 2}, "columns of numbers"),
    ],
)
def test_clusters_that_cannot_be_asked_for(columns, details, words):
    with pytest.raises(BlowfishError, match=words):
        QuestionForm("clusters", tuple(map(ColumnForm, columns)), **details).question(DOMAIN)


def test_bins_are_cut_as_asked():
    assert ColumnForm("age", width=10).axis(DOMAIN).bins.count == 12
    assert ColumnForm("age", bins=6).axis(DOMAIN).bins.count == 6
    assert ColumnForm("age", edges=(0, 30)).axis(DOMAIN).labels() == ("0–29", "30–119")
    assert ColumnForm("day", width=timedelta(days=61)).axis(DOMAIN).bins.count == 6
    groups = {"coast": ("west", "south"), "land": ("north", "east")}
    assert ColumnForm("region", groups=groups).axis(DOMAIN).bins.count == 2


def test_a_count_of_no_column_is_of_all_rows_in_one_bin():
    question = QuestionForm("count", (), col("age") >= 30).question(DOMAIN)
    assert [axis.column for axis in question.axes] == ["salary"]
    assert question.axes[0].bins.count == 1
    dropping = Domain(region=Category(["north"]), age=Integer(0, 9), rate=Integer(0, 9))
    assert QuestionForm("count", ()).question(dropping).axes[0].column == "age"
    assert QuestionForm("count", ()).question(Domain(region=Category(["north"]))).axes[0].column == "region"


def test_counting_and_only():
    form = QuestionForm("histogram", (ColumnForm("age", width=5),), col("age") >= 30)
    assert form.counting(DOMAIN) == QuestionForm("count", (), col("age") >= 30)
    for rule in ({"missing": "value"}, {"missing": "drop"}, {"outside": "drop"}):
        losing = Domain(age=Integer(0, 119, **rule), region=DOMAIN["region"])
        assert form.counting(losing) == QuestionForm("count", (ColumnForm("age"),), col("age") >= 30)
    narrowed = form.only(col("region") == "north")
    assert narrowed.where == ((col("age") >= 30) & (col("region") == "north"))
    assert QuestionForm("count", ()).only(col("age") >= 30).where == (col("age") >= 30)


# --- refusals -------------------------------------------------------------------------------------

AGE = ({"name": "age"},)


@pytest.mark.parametrize(
    ("stored", "error", "says"),
    [
        (5, InvalidInput, "A question is an object"),
        ({"kind": "guess"}, InvalidInput, "no question of kind 'guess'"),
        ({"kind": ["top"]}, InvalidInput, "no question of kind"),
        ({"kind": "count", "color": 1}, InvalidInput, "no 'color'"),
        ({"kind": "count", "columns": "age"}, InvalidInput, "'columns' is a list"),
        ({"kind": "count", "columns": [5]}, InvalidInput, "A column is an object"),
        ({"kind": "count", "columns": [{"name": 5}]}, InvalidInput, "named by a text"),
        ({"kind": "count", "columns": [{"nam": "age"}]}, InvalidInput, "no 'nam'"),
        ({"kind": "histogram", "columns": [{"name": "age", "edges": 5}]}, InvalidInput, "'edges' is a list"),
        ({"kind": "histogram", "columns": [{"name": "age", "groups": []}]}, InvalidBins, "Groups are"),
        (
            {"kind": "histogram", "columns": [{"name": "age", "groups": {"a": 1}}]},
            InvalidInput,
            "'groups' is",
        ),
        ({"kind": "histogram", "columns": [{"name": "age", "width": [1]}]}, InvalidInput, "cannot be a list"),
        ({"kind": "count", "columns": AGE, "bounds": [[0, 1]]}, InvalidInput, "has no 'bounds'"),
        ({"kind": "top", "columns": AGE, "count": 3, "limit": 3}, InvalidInput, "has no 'limit'"),
        ({"kind": "top", "columns": AGE}, InvalidInput, "needs 'count'"),
        ({"kind": "above", "columns": AGE}, InvalidInput, "needs 'limit'"),
        ({"kind": "quantiles", "columns": AGE}, InvalidInput, "needs 'shares'"),
        ({"kind": "ranges", "columns": AGE, "bounds": []}, InvalidInput, "needs 'bounds'"),
        ({"kind": "ranges", "columns": AGE, "bounds": 5}, InvalidInput, "'bounds' is a list"),
        ({"kind": "ranges", "columns": AGE, "bounds": [[1]]}, InvalidInput, "Bounds are pairs"),
        ({"kind": "ranges", "columns": AGE, "bounds": ["ab"]}, InvalidInput, "'bounds' is a list"),
        ({"kind": "quantiles", "columns": AGE, "shares": ["x"]}, InvalidInput, "Shares are numbers"),
        ({"kind": "quantiles", "columns": AGE, "shares": [True]}, InvalidInput, "Shares are numbers"),
        ({"kind": "sum", "columns": [{"name": "age", "bins": 3}]}, InvalidWorkload, "has no bins"),
        ({"kind": "mean", "columns": [*AGE, *AGE]}, InvalidWorkload, "one column"),
        ({"kind": "count", "where": 5}, InvalidPredicate, "an object with an 'op'"),
    ],
)
def test_plain_data_that_is_no_form(stored, error, says):
    with pytest.raises(error, match=says):
        QuestionForm.from_plain(stored)


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        ({"kind": "histogram", "columns": []}, InvalidWorkload),
        ({"kind": "histogram", "columns": ["nobody"]}, UnknownColumn),
        ({"kind": "histogram", "columns": ["age", "age"]}, InvalidWorkload),
        ({"kind": "histogram", "columns": [{"name": "age", "bins": "x"}]}, InvalidBins),
        ({"kind": "histogram", "columns": [{"name": "age", "bins": 3, "width": 2}]}, InvalidBins),
        ({"kind": "histogram", "columns": [{"name": "age", "width": "x"}]}, InvalidBins),
        ({"kind": "histogram", "columns": [{"name": "region", "groups": {"a": ["north"]}}]}, InvalidBins),
        ({"kind": "cumulative", "columns": ["region"]}, InvalidWorkload),
        ({"kind": "sum", "columns": ["day"]}, InvalidWorkload),
        ({"kind": "quantiles", "columns": ["day"], "shares": [0.5]}, InvalidWorkload),
        ({"kind": "quantiles", "columns": ["age"], "shares": [1.5]}, InvalidWorkload),
        ({"kind": "ranges", "columns": ["age"], "bounds": [[0, 500]]}, InvalidValue),
        ({"kind": "ranges", "columns": ["age"], "bounds": [[9, 3]]}, InvalidWorkload),
        ({"kind": "top", "columns": ["age"], "count": "x"}, InvalidWorkload),
        ({"kind": "top", "columns": ["age"], "count": 0}, InvalidWorkload),
        ({"kind": "top", "columns": ["age", "salary"], "count": 2}, InvalidWorkload),
        ({"kind": "above", "columns": ["age"], "limit": "x"}, InvalidInput),
        (
            {"kind": "count", "where": {"column": "region", "op": "==", "value": "mars"}},
            InvalidPredicate,
        ),
    ],
)
def test_forms_that_do_not_fit_the_columns(stored, error):
    form = QuestionForm.from_plain(stored)
    with pytest.raises(error):
        form.check(DOMAIN)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: ColumnForm("age", edges="abc"), InvalidBins),  # type: ignore[arg-type]
        (lambda: ColumnForm("age", edges=5), InvalidBins),  # type: ignore[arg-type]
        (lambda: ColumnForm("age", groups=["a"]), InvalidBins),  # type: ignore[arg-type]
        (lambda: ColumnForm("age", groups={"a": "north"}), InvalidBins),  # type: ignore[dict-item]
        (lambda: ColumnForm("age", groups={1: ["north"]}), InvalidBins),  # type: ignore[dict-item]
        (lambda: QuestionForm("count", ("age",)), InvalidInput),  # type: ignore[arg-type]
        (lambda: QuestionForm("count", (), where="age > 3"), InvalidInput),  # type: ignore[arg-type]
        (lambda: QuestionForm("ranges", (ColumnForm("age"),), bounds=((1, 2, 3),)), InvalidInput),  # type: ignore[arg-type]
        (lambda: QuestionForm("ranges", (ColumnForm("age"),), bounds=("ab",)), InvalidInput),  # type: ignore[arg-type]
        (lambda: QuestionForm("above", (ColumnForm("age"),), limit=float("inf")).to_plain(), NotFinite),
    ],
)
def test_python_that_is_no_form(build, error):
    with pytest.raises(error):
        build()


@pytest.mark.parametrize(
    "stored",
    [
        {"op": "guess"},
        {"op": ["and"]},
        {"op": "and", "of": []},
        {"op": "and"},
        {"op": "not", "of": [{"op": "everything"}, {"op": "everything"}]},
        {"op": ">=", "value": 3},
        {"op": ">=", "column": "age"},
        {"op": "missing", "column": 5},
        {"op": "in", "column": "age", "values": 5},
        {"op": "in", "column": "age", "values": []},
        {"op": "between", "column": "age", "low": 3},
        {"op": ">=", "column": "age", "value": [1]},
        {"op": ">=", "column": "age", "value": {"date": "soon"}},
        {"op": ">=", "column": "age", "value": {"date": 5}},
        {"op": ">=", "column": "age", "value": {"number": "x"}},
        {"op": ">=", "column": "age", "value": {"number": "1e999999999"}},
        {"op": ">=", "column": "age", "value": {"seconds": "1e99"}},
        {"op": ">=", "column": "age", "value": {"what": 1}},
        {"op": ">=", "column": "age", "value": float("nan")},
    ],
)
def test_plain_data_that_is_no_condition(stored):
    with pytest.raises(InvalidInput):
        condition_from(stored)


def test_conditions_are_not_read_without_end():
    stored: dict[str, object] = {"op": "everything"}
    for _ in range(100):
        stored = {"op": "not", "of": [stored]}
    with pytest.raises(InvalidPredicate, match="nested too deeply"):
        condition_from(stored)


def test_only_known_conditions_and_values_are_sent():
    class Odd(Atom):
        column = "age"
        cells = on_value = on_cells_of = None  # type: ignore[assignment]

    with pytest.raises(InvalidPredicate, match="Odd cannot be sent"):
        plain_condition(Not(Odd()))
    with pytest.raises(InvalidInput, match="not object"):
        plain_value(object())
    assert plain_condition(Everything()) == {"op": "everything"}


WORDS = (
    "kind columns where bounds shares count limit k iterations name bins width edges groups "
    "op of column value values low high date number seconds"
)
json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(KINDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS.split()), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(json_data, json_data, json_data, st.sampled_from(KINDS), st.sampled_from(list(SALARIES)))
def test_any_json_is_a_question_or_is_refused(first, second, third, kind, name):
    for stored in (
        first,
        {"kind": kind, "columns": [name], "bounds": first, "shares": second, "count": third},
        {"kind": kind, "columns": [{"name": name, "edges": first, "width": second}], "limit": third},
        {"kind": kind, "columns": [{"name": name, "bins": first}], "where": second, "count": third},
        {"kind": "histogram", "columns": [{"name": name, "groups": first}]},
        {"kind": "clusters", "columns": [name], "k": first, "iterations": second},
    ):
        try:
            QuestionForm.from_plain(stored).check(SALARIES)
        except BlowfishError as error:
            assert error.message  # never anything else


def test_a_length_of_time_may_be_written() -> None:
    """In Python and in JSON as in the short form, and the same question in whichever way."""
    meant = ColumnForm("day", width=timedelta(days=30))
    assert ColumnForm("day", width="30 days") == meant
    assert ColumnForm.from_plain({"name": "day", "width": "30 days"}) == meant
    assert ColumnForm.from_plain(meant.to_plain()) == meant
    assert ColumnForm("age", width="5").width == "5"
