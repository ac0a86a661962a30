"""Made-up rows: the whole way of a question for nothing, about nobody, and never taken for the real ones."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.messages.answers import compare
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.made_up import MOST_ROWS, table_of

DOMAIN = bf.Domain(
    age=bf.Integer(0, 99),
    pay=bf.Real(0, 10, "0.25", missing="value"),
    sex=bf.Category(["f", "m"]),
    member=bf.Boolean(),
    since=bf.Date("2020-01-01", "2020-12-31"),
)


def rows(shift: int) -> pa.Table:
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=(3 * i + shift) % 366) for i in range(50)]
    return pa.table(
        {
            "age": [(7 * i + shift) % 100 for i in range(50)],
            "pay": [((i + shift) % 40) / 4 for i in range(50)],
            "sex": ["fm"[(i + shift) % 2] for i in range(50)],
            "member": [bool((i + shift) % 3) for i in range(50)],
            "since": days,
        }
    )


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with bf.open(tmp_path / "w.blowfish") as workspace:
        for number, name in enumerate(("one", "other")):
            workspace.add_dataset(name, rows(number), domain=DOMAIN)
            workspace[name].publish(bf.Policy.by_column(DOMAIN, {"age": bf.graphs.Threshold(100, 5)}))
            workspace.set_budget(name, bf.Epsilon(3))
        yield workspace


QUESTIONS = {
    "bars": lambda ds: ds["sex"].histogram().accurate_to(20),
    "curve": lambda ds: ds["age"].cumulative(bins=10).accurate_to(20),
    "two": lambda ds: ds["sex", "member"].histogram().accurate_to(20),
    "dates": lambda ds: ds["since"].histogram(bins=4).accurate_to(20),
    "median": lambda ds: ds["pay"].median().accurate_to(20),
    "where": lambda ds: ds.where(bf.col("age") < 30)["sex"].histogram().accurate_to(20),
    "sql": lambda ds: ds.sql("SELECT sex, COUNT(*) FROM one GROUP BY sex WITH ERROR 20"),
    "clusters": lambda ds: ds["age"].clusters(2).spend(1),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_same_question_at_the_same_price_for_nothing(ws: Workspace, kind: str) -> None:
    real, asked = ws["one"], QUESTIONS[kind]
    before = len(ws.events("one"))
    answer = asked(real.made_up(300)).ask()
    assert answer.made_up
    assert answer.receipt.question == f"made-up rows: {asked(real).quote(more=False).question}"
    assert answer.receipt.cost == asked(real).quote(more=False).epsilon
    assert "made-up rows" in repr(answer)
    assert not ws.budget("one").spent and ws.answers() == [] and len(ws.events("one")) == before


def test_they_follow_from_the_declarations_alone(ws: Workspace) -> None:
    """Two tables with other rows have the same made-up ones; another seed has others."""
    one, other = (ws[name].made_up(500).gateway for name in ("one", "other"))
    assert isinstance(one, Workspace) and isinstance(other, Workspace)
    hashes = {each[name].source.copy.sha256 for each, name in ((one, "one"), (other, "other"))}
    assert len(hashes) == 1
    assert table_of(DOMAIN, 500, 0) == table_of(DOMAIN, 500, 0) != table_of(DOMAIN, 500, 1)


def test_whose_rows_they_are_and_who_comes_and_goes(tmp_path: Path) -> None:
    visits = rows(0).append_column("who", pa.array([i // 3 for i in range(50)]))
    visits = visits.append_column("visit", pa.array(range(50)))
    with bf.open(tmp_path / "w.blowfish") as ws:
        ds = ws.add_dataset("visits", visits, domain=DOMAIN, person="who", rows_per_person=3, row_key="visit")
        made = ds.made_up()
        question = bf.col("sex") == "f"
        assert made.gateway.facts("visits").rows_per_person == 3
        prices = [
            each.where(question).count().accurate_to(20).quote(more=False).epsilon for each in (ds, made)
        ]
        assert prices[0] == prices[1] > bf.Epsilon(0)


def test_they_are_compared_with_nothing_and_there_are_not_too_many(ws: Workspace) -> None:
    made, real = (QUESTIONS["bars"](each).ask() for each in (ws["one"].made_up(), ws["one"]))
    with pytest.raises(bf.errors.InvalidInput, match="about nobody"):
        compare(made, real)
    for count in (0, MOST_ROWS + 1):
        with pytest.raises(bf.errors.InvalidInput, match="can be made up"):
            ws["one"].made_up(count)
