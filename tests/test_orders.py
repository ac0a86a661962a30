"""Groups come in the order in which a database has them, those without a value among them: beside DuckDB."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import duckdb
import numpy as np
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidQuestion
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.entrypoints.pgwire.results import rows_of
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

COLUMNS = bf.Domain(
    town=bf.Category(["york", "bath", "leeds", "ely"], missing="value"),
    member=bf.Boolean(),
    pay=bf.Integer(0, 999),
    bonus=bf.Integer(0, 99, missing="value"),
)
ENOUGH = 3_000
"""An ε with which numbers of rows are told as they are."""
NULLS = ["", " NULLS FIRST", " NULLS LAST"]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, duckdb.DuckDBPyConnection]]:
    random, count = np.random.default_rng(8), 1_200
    town = random.choice(["york", "bath", "leeds", None], count, p=[0.4, 0.3, 0.1, 0.2])
    bonus = pd.array(random.integers(0, 100, count), dtype="Int64")
    bonus[random.random(count) < 0.3] = pd.NA
    rows = pd.DataFrame(
        {
            "town": town,
            "member": random.random(count) < 0.4,
            "pay": random.integers(0, 1_000, count),
            "bonus": bonus,
        }
    )
    beside = duckdb.connect()
    beside.register("raw", rows)
    beside.execute("CREATE TABLE people AS SELECT * FROM raw")
    with Workspace(tmp_path_factory.mktemp("orders") / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", rows, domain=COLUMNS)
        dataset.budget.set(10**6)
        yield dataset, beside


def groups_of(dataset: Dataset, typed: str) -> list[tuple[object, ...]]:
    """The groups of a statement in order, without the numbers."""
    question, answer = dataset.select(typed), dataset.sql(typed).spend(ENOUGH).ask()
    rows = rows_of(answer, question.columns, question.form, COLUMNS, intervals=False)
    groups = [at for at, column in enumerate(question.columns) if column.group is not None]
    return [tuple(row[at] for at in groups) for row in rows]


KEYS = [
    "town",
    "COALESCE(town, 'derby')",
    "town IS NULL",
    "town = 'york'",
    "UPPER(town)",
    "LENGTH(town)",
    "CASE WHEN town IN ('york', 'ely') THEN 'b' WHEN town = 'bath' THEN 'c' WHEN town = 'leeds' THEN 'a' END",
    "bonus >= 50",
    "FLOOR(bonus / 10)",
]


@pytest.mark.parametrize("key", KEYS)
def test_groups_without_a_value_are_where_a_database_has_them(
    key: str, people: tuple[Dataset, duckdb.DuckDBPyConnection]
) -> None:
    dataset, beside = people
    for way, nulls in itertools.product(("", " DESC"), NULLS):
        typed = f"SELECT {key} AS k, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY k{way}{nulls}"
        empty: set[tuple[object, ...]] = set() if "bonus" in key else {("ely",), ("ELY",), (3,)}
        told = [group for group in groups_of(dataset, typed) if group not in empty]
        assert told == [row[:1] for row in beside.execute(typed).fetchall()], typed


@pytest.mark.parametrize(
    "tail",
    [
        "GROUP BY ROLLUP (member, lacks) ORDER BY 1, 2",
        "GROUP BY ROLLUP (member, lacks) ORDER BY 2 DESC NULLS FIRST, 1 NULLS FIRST",
        "GROUP BY CUBE (member, lacks) ORDER BY 1 DESC, 2",
        "GROUP BY CUBE (member, lacks) ORDER BY n DESC, 1 LIMIT 3",
        "GROUP BY GROUPING SETS ((member), (2)) ORDER BY n",
        "GROUP BY CUBE (member, lacks) HAVING n > 300 ORDER BY 2 NULLS FIRST, n OFFSET 1",
        "AND member GROUP BY ROLLUP (member, lacks) ORDER BY 1, 2",
    ],
)
def test_tables_with_their_subtotals_are_ordered_cut_and_chosen(
    tail: str, people: tuple[Dataset, duckdb.DuckDBPyConnection]
) -> None:
    dataset, beside = people
    typed = f"SELECT member, bonus IS NULL AS lacks, COUNT(*) AS n FROM people WHERE pay < 990 {tail}"
    assert groups_of(dataset, typed) == [row[:2] for row in beside.execute(typed).fetchall()]


def test_too_few_rows_to_say_are_last_unless_they_are_to_be_first(
    people: tuple[Dataset, duckdb.DuckDBPyConnection],
) -> None:
    dataset, _ = people
    asked = dataset.by("town").mean("pay").spend(ENOUGH)
    wanted = {
        ("", False): -1,
        (" nulls last", True): -1,
        (" desc nulls first", True): 0,
        (" desc", False): -1,
    }
    for (how, _), place in wanted.items():
        answer = asked.order_by(f"mean(pay){how}").ask()
        assert np.isnan(answer.values[place]) and not np.isnan(np.delete(answer.values, place)).any()
        assert list(answer.columns()["town"])[place] == "ely"


def test_every_way_of_saying_it_is_one_order(people: tuple[Dataset, duckdb.DuckDBPyConnection]) -> None:
    dataset, _ = people
    chain = dataset["town"].histogram().order_by("town desc nulls first", "count()")
    short = dataset.question("histogram(town) order by town desc nulls first, count()")
    sql = dataset.sql(
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town ORDER BY town DESC NULLS FIRST, n"
    )
    assert chain.form == short.form == sql.form == QuestionForm.from_plain(sql.form.to_plain())
    plain = sql.form.to_plain()["arrangement"]["order"]
    assert plain == [
        {"column": "town", "descending": True, "missing_first": True},
        {"number": {"told": 0}},
    ]
    with pytest.raises(InvalidQuestion):
        dataset["town"].histogram().order_by("town nulls somewhere")
