"""Orders, limits and conditions on groups: functions of what was released, free, and true to the promise."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BlowfishError, InvalidInput, InvalidWorkload, NoGuarantee
from blowfishdb.core.questions.arrangement import Arrangement, Compared, Joined, OrderKey
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.numbers import Constant, ReleasedTable, Told
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.arranged import arranged
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

REGIONS = ("north", "south", "east", "west")
SIZES = dict(zip(REGIONS, (40, 900, 300, 1_760), strict=True))


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    region = np.repeat(REGIONS, list(SIZES.values()))
    return pd.DataFrame(
        {
            "region": region,
            "sex": rng.choice(["male", "female"], region.size),
            "age": rng.integers(18, 90, region.size),
            "pay": np.clip(rng.normal(4_000, 1_500, region.size), 0, 9_999).astype(int),
        }
    )


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        workspace._service = replace(workspace._service, noise=bf.noise.seeded(5))
        yield workspace


@pytest.fixture
def people(ws: Workspace) -> Dataset:
    domain = bf.Domain(
        region=bf.Category(REGIONS),
        sex=bf.Category(["male", "female"]),
        age=bf.Integer(18, 89),
        pay=bf.Integer(0, 9_999),
    )
    dataset = ws.add_dataset("people", rows(), domain=domain)
    dataset.budget.set(1_000)
    return dataset


def told(answer: Answer) -> list[tuple[object, ...]]:
    return list(answer.to_pandas().itertuples(index=False, name=None))


COUNTED = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def test_an_order_is_no_part_of_the_release(people: Dataset) -> None:
    whole = people.sql(f"{COUNTED} WITH ERROR 20").ask()
    spent = people.gateway.budget("people").spent
    for tail, wanted in {
        "ORDER BY n DESC": ["west", "south", "east", "north"],
        "ORDER BY 2": ["north", "east", "south", "west"],
        "ORDER BY region": sorted(REGIONS),
        "ORDER BY region DESC LIMIT 2": sorted(REGIONS, reverse=True)[:2],
        "ORDER BY n DESC, region LIMIT 2 OFFSET 1": ["south", "east"],
        "ORDER BY COUNT(*) FETCH FIRST 1 ROWS ONLY": ["north"],
        "LIMIT 3": list(REGIONS[:3]),
        "HAVING n >= 300 ORDER BY n LIMIT 5": ["east", "south", "west"],
        "HAVING COUNT(*) BETWEEN 200 AND 1000": ["south", "east"],
        "HAVING NOT (n > 200 OR n < 0)": ["north"],
    }.items():
        asked = people.sql(f"{COUNTED} {tail} WITH ERROR 20")
        assert asked.quote().owned, tail
        answer = asked.ask()
        assert answer.receipt.cost == Epsilon(0) and answer.number == whole.number
        if "300" not in tail:  # which is near, so that noise decides
            assert list(answer.columns()["region"]) == wanted, tail
        rowwise = {label: rest for label, *rest in told(whole)}
        assert all(rowwise[label] == rest for label, *rest in told(answer)), tail
    assert people.gateway.budget("people").spent == spent
    assert people.gateway.answer(whole.number).labels == whole.labels  # what is stored is whole


def test_groups_by_several_columns_are_listed_as_rows(people: Dataset) -> None:
    asked = people["region", "sex"].histogram().accurate_to(30)
    whole, top = asked.ask(), asked.order_by("count() desc", "sex").limit(3).ask()
    assert top.listed and top.receipt.cost == Epsilon(0)
    expected = sorted(told(whole), key=lambda row: -row[2])[:3]
    assert told(top) == expected
    assert "3 of 8 groups" in " ".join(top.notes) and "noisy" in " ".join(top.notes)
    assert top.plot().to_dict() and "west" in top._repr_html_()
    assert Answer.from_plain(json.loads(json.dumps(top.to_plain()))).columns()["region"] == [
        row[0] for row in expected
    ]


def test_aggregates_are_arranged_by_any_of_them(people: Dataset) -> None:
    asked = people.by("region").aggregate(("mean", "pay"), "count").spend(5)
    whole = asked.ask()
    arranged = asked.having("count() > 100").order_by("mean(pay) desc").ask()
    assert arranged.receipt.cost == Epsilon(0)
    kept = [row for row in told(whole) if row[1] == "rows" and row[2] > 100]
    assert {row[0] for row in told(arranged)} == {row[0] for row in kept}
    means = [row[2] for row in told(arranged) if row[1] != "rows"]
    assert means == sorted(means, reverse=True)
    said = " ".join(arranged.notes)
    assert "noisy" in said and "rows > 100" in said and "wrong side" in said
    assert arranged.promise == whole.promise


def test_a_text_a_chain_and_a_statement_say_the_same(people: Dataset) -> None:
    chain = people.by("region").mean("pay").having("mean(pay) > 10").order_by("mean(pay) desc").limit(2)
    short = people.question(
        "mean(pay) by region where age > 20 having mean(pay) > 10 order by mean(pay) desc limit 2"
    )
    sql = people.sql(
        "SELECT region, AVG(pay) m FROM people WHERE age > 20 GROUP BY region "
        "HAVING AVG(pay) > 10 ORDER BY m DESC LIMIT 2"
    )
    assert short.form == sql.form and chain.form.arrangement == sql.form.arrangement
    assert QuestionForm.from_plain(json.loads(json.dumps(sql.form.to_plain()))) == sql.form


def test_the_fullest_groups_and_those_above_a_number_keep_their_own_promise(people: Dataset) -> None:
    assert people.sql(f"{COUNTED} ORDER BY n DESC LIMIT 2").form.kind == "top"
    assert people.sql(f"{COUNTED} HAVING n > 100").form.kind == "above"
    for tail in ("ORDER BY n LIMIT 2", "HAVING n >= 100", "HAVING n > 100 ORDER BY n", "ORDER BY n DESC"):
        assert people.sql(f"{COUNTED} {tail}").form.kind == "histogram", tail


def test_what_is_chosen_by_noise_needs_all_intervals_at_once(people: Dataset) -> None:
    asked = people.sql(f"{COUNTED} HAVING n >= 100 WITH ERROR 20 EACH")
    for step in (asked.quote, asked.ask):
        with pytest.raises(NoGuarantee, match="at once"):
            step()
    people.sql(f"{COUNTED} ORDER BY n WITH ERROR 20 EACH").ask()  # all of them are shown
    people.sql(f"{COUNTED} ORDER BY region LIMIT 2 WITH ERROR 20 EACH").ask()  # not by noise


def test_a_group_that_was_chosen_by_noise_is_not_called_exact(people: Dataset) -> None:
    whole = people["region"].histogram().accurate_to(20).ask()
    half = replace(whole, exact=np.array([False, False, True, True]))
    by_noise, by_name = (
        arranged(half, people.sql(f"{COUNTED} {tail}").form, people.schema)
        for tail in ("HAVING n >= 250", "ORDER BY region DESC LIMIT 1")
    )
    assert "east" in by_noise.labels[0] and not by_noise.exact.any()
    assert by_name.labels == (("west",),) and by_name.exact.all()


def test_one_row_is_in_order(people: Dataset) -> None:
    assert people.sql("SELECT COUNT(*) FROM people ORDER BY 1 LIMIT 1000").form == QuestionForm("count", ())
    for wrong in (
        lambda: people.count().limit(1),
        lambda: people["age"].median().order_by("age"),
        lambda: people["region"].top(2).limit(1),
    ):
        with pytest.raises(InvalidWorkload):
            wrong()
    for typed in ("pay", "mean(pay)", "round(count()) * count()"):
        with pytest.raises(BlowfishError):
            people["region"].histogram().order_by(typed)


# --- as a function of what was released ---------------------------------------------------------------


def table(values: np.ndarray) -> ReleasedTable:
    return ReleasedTable(values, values - 1, values + 1, np.zeros(values.shape, dtype=np.bool_))


def shown(arrangement: Arrangement, values: np.ndarray, ranks: dict[str, np.ndarray]) -> np.ndarray:
    """Where every group can have rows."""
    return arrangement.rows(table(values), ranks, np.ones(len(values), dtype=np.bool_))


numbers = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=9)


@given(numbers, st.integers(-3, 3), st.integers(0, 4), st.integers(0, 3), st.booleans())
def test_rows_are_those_of_a_database(values, than, limit, offset, descending):
    frame = pd.DataFrame([(g, *pair) for g, pair in enumerate(values)], columns=["g", "a", "b"])
    having = Joined("or", (Compared(">", Told(0), Constant(than)), Compared("=", Told(1), Told(0))))
    order = (OrderKey(Told(1), descending), OrderKey("g"))
    arrangement = Arrangement(having=having, order=order, limit=limit, offset=offset)
    places = {"g": np.arange(len(values), dtype=float)}
    found = shown(arrangement, np.array(values, dtype=float), places)
    sql = (
        f"SELECT g FROM groups WHERE a > {than} OR b = a ORDER BY b {'DESC' if descending else ''}, g "
        f"LIMIT {limit} OFFSET {offset}"
    )
    duckdb.register("groups", frame)
    assert found.tolist() == [g for (g,) in duckdb.sql(sql).fetchall()]
    assert Arrangement.from_plain(json.loads(json.dumps(arrangement.to_plain()))) == arrangement


def test_what_is_no_number_is_last_and_satisfies_nothing() -> None:
    values = np.array([[1.0], [np.nan], [3.0], [2.0]])
    for descending, wanted in ((False, [0, 3, 2, 1]), (True, [2, 3, 0, 1])):
        assert shown(Arrangement(order=(OrderKey(Told(0), descending),)), values, {}).tolist() == wanted
        first = OrderKey(Told(0), descending, missing_first=True)
        assert shown(Arrangement(order=(first,)), values, {}).tolist() == [1, *wanted[:-1]]
        assert OrderKey.from_plain(json.loads(json.dumps(first.to_plain()))) == first
    above = Compared(">", Told(0), Constant(0))
    assert shown(Arrangement(having=above), values, {}).tolist() == [0, 2, 3]
    assert shown(Arrangement(having=Joined("not", (above,))), values, {}).tolist() == []


@pytest.mark.parametrize(
    "stored",
    [
        {"having": {"sign": "~", "left": 1, "right": 2}},
        {"having": {"xor": []}},
        {"order": [{"column": "a", "number": 1}]},
        {"order": [{"number": {"told": -1}}]},
        {"order": [{"column": "a", "missing_last": True}]},
        {"order": [{"column": "a", "missing_first": "no"}]},
        {"order": "a"},
        {"limit": -1},
        {"limit": 1.5},
        {"show": [{"name": "", "number": 1}]},
        {"show": [{"number": 1}]},
        {"more": 1},
        [],
    ],
)
def test_what_says_nothing_is_refused(stored: object) -> None:
    with pytest.raises(InvalidInput):
        Arrangement.from_plain(stored)


def test_places_follow_the_declaration_or_the_alphabet(people: Dataset) -> None:
    case = "CASE WHEN age < 40 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END"
    by_text = people.sql(
        f"SELECT {case} AS g, COUNT(*) FROM people GROUP BY g ORDER BY g WITH ERROR 50"
    ).ask()
    assert list(by_text.columns()["age"]) == ["40–59", "60–89", "18–39"]  # middle, old, young
    years = people.sql(
        "SELECT BIN(age, 24), COUNT(*) FROM people GROUP BY 1 ORDER BY 1 DESC WITH ERROR 50"
    ).ask()
    assert list(years.columns()["age"]) == ["66–89", "42–65", "18–41"]


def test_every_order_of_every_answer_has_the_same_rows(people: Dataset) -> None:
    whole = people["region", "sex"].histogram().accurate_to(30).ask()
    for first, second in itertools.product(("region", "sex", "count()"), repeat=2):
        some = people["region", "sex"].histogram().accurate_to(30).order_by(first, f"{second} desc").ask()
        assert sorted(told(some)) == sorted(told(whole))
        assert some.receipt.cost == Epsilon(0)


def test_groups_that_cannot_have_rows_are_left_out_before_others_are_counted() -> None:
    possible = np.array([True, False, True, True])
    asked, values = Arrangement(limit=2, possible=True), table(np.array([[4.0], [0.0], [3.0], [2.0]]))
    assert asked.rows(values, {}, possible).tolist() == [0, 2]
    assert replace(asked, possible=False).rows(values, {}, possible).tolist() == [0, 1]
