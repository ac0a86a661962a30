"""Means, sums and spreads in groups, from rows to answers: intervals that hold, one charge, free parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.messages.answers import Answer
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

SIZES = {0: 0, 1: 1, 2: 5, 3: 50, 4: 5_000}
"""How many rows are in each town."""
TOP = 10_000


def table(seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    group = np.repeat(list(SIZES), list(SIZES.values()))
    pay = np.clip(rng.normal(4_000, 1_500, group.size), 0, TOP).astype(int)
    return pa.table({"town": group, "pay": pay, "age": rng.integers(18, 80, group.size)})


def domain(**rules: str) -> bf.Domain:
    return bf.Domain(town=bf.Integer(0, 4), pay=bf.Integer(0, TOP, **rules), age=bf.Integer(18, 79))


def hiding(of: bf.Domain, *, town: bool, presence: bool = False, within: int = 100) -> bf.Policy:
    towns = bf.graphs.Full(len(SIZES)) if town else bf.graphs.Explicit(len(SIZES), ())
    pays = bf.graphs.Threshold(TOP + 1, within)
    return bf.Policy.by_column(of, {"town": towns, "pay": pays}, hide_presence=presence)


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        seeded(workspace, 11)
        yield workspace


def declared(ws: Workspace, name: str = "people", policy: bf.Policy | None = None, **rules: str) -> Dataset:
    dataset = ws.add_dataset(name, table(), domain=domain(**rules), same_rows=name != "people")
    dataset.budget.set(10**6)
    return dataset if policy is None else dataset.publish(policy, confirm=True)


def seeded(ws: Workspace, seed: int) -> None:
    ws._service = replace(ws._service, noise=bf.noise.seeded(seed))


def truths(of: str) -> np.ndarray:
    rows = table().to_pandas()
    means = [getattr(rows[rows.town == town].pay, of)() for town in SIZES]
    return np.array(means, dtype=float)


# --- intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", ["towns", "presence", "nothing but values"])
def test_intervals_hold_for_groups_of_every_size(ws: Workspace, hidden: str) -> None:
    of = domain()
    policy = hiding(of, town=hidden == "towns", presence=hidden == "presence")
    people = declared(ws, policy=policy)
    runs, missed, unsaid = 60, 0, np.zeros(len(SIZES))
    truth = np.stack([truths("mean"), truths("std"), truths("sum")], axis=1)
    for run in range(runs):
        seeded(ws, run)
        epsilon = Epsilon("1") + Epsilon.from_nano(run)  # another question each time
        told = (
            people.by("town")
            .aggregate(("mean", "pay"), ("stddev", "pay"), ("sum", "pay"))
            .spend(epsilon)
            .ask()
        )
        assert told.low is not None and told.high is not None
        low, high = (end.reshape(truth.shape) for end in (told.low, told.high))
        inside = (low - 1e-6 <= truth) & (truth <= high + 1e-6) | np.isnan(truth)
        missed += not inside.all()
        unsaid += np.isnan(told.values.reshape(truth.shape)[:, 0])
    assert missed <= 0.05 * runs + 3 * math.sqrt(0.05 * runs)
    few, many = unsaid[:3], unsaid[-1]
    assert many == 0
    assert (few[:2] >= 0.9 * runs).all() if hidden != "nothing but values" else few[0] == runs


def test_the_promise_is_kept_for_groups_that_are_large_enough(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=True))
    mean = people.by("town").mean("pay", group_size=1_000).accurate_to(100)
    assert mean.quote().promise.startswith(
        "In 95 of 100 runs the mean of every group of 1,000 or more rows is within 100 of the truth."
    )
    missed, unsaid = 0, 0
    for run in range(40):
        seeded(ws, 1_000 + run)
        answer = replace(mean, terms=mean.terms.accurate_to(100 + run / 10_000)).ask()
        missed += abs(answer.values[-1] - truths("mean")[-1]) > 100.01
        unsaid += int(np.isnan(answer.values[:2]).sum())  # nobody, and one person
    assert missed <= 4 and unsaid >= 70


# --- charges and parts -----------------------------------------------------------------------------------


def asked(people: Dataset, *measures: tuple[str, str] | str, epsilon: str = "0.5") -> Answer:
    return people.by("town").aggregate(*measures).spend(epsilon).ask()


def test_one_charge_and_every_part_is_free_afterwards(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=True))
    both = asked(people, ("mean", "pay"), "count")
    assert both.receipt.cost == Epsilon("0.5") and both.labels[-1] == ("mean of pay", "rows")
    mean = asked(people, ("mean", "pay"))
    assert mean.receipt.cost == Epsilon(0) and mean.receipt.charge == both.receipt.charge
    assert mean.values[-1] == both.values[-2]
    assert "rows" in both.receipt.question and mean.receipt.question.startswith("mean of pay by town")
    assert mean.high[-1] < both.high[-2]  # type: ignore[index]  # nothing else shares what may fail
    quote = people.by("town").sum("pay").spend("0.5").quote()
    assert quote.owned and not quote.epsilon
    assert asked(people, ("sum", "pay")).receipt.cost == Epsilon(0)
    assert asked(people, ("mean", "pay"), epsilon="0.6").receipt.cost == Epsilon("0.6")
    assert people.where(bf.col("age") > 30).by("town").mean("pay").spend("0.5").quote().epsilon


def test_what_squares_tell_includes_the_rest(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=True))
    paid = asked(people, ("stddev", "pay"))
    for part in (("mean", "pay"), ("sum", "pay"), ("variance", "pay")):
        again = asked(people, part)
        assert again.receipt.cost == Epsilon(0) and again.receipt.charge == paid.receipt.charge
    spread = asked(people, ("variance", "pay")).values
    assert np.allclose(spread, paid.values**2, equal_nan=True)


def test_groups_that_are_not_hidden_have_exact_counts(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=False))
    answer = asked(people, ("mean", "pay"), "count").values.reshape(-1, 2)
    assert answer[:, 1].tolist() == list(SIZES.values())
    counts = asked(people, ("count", "pay"))
    assert counts.exact.all() and not counts.receipt.epsilon
    public = people.by("town").mean("pay", group_size=1_000).accurate_to(10).quote().epsilon
    hidden = declared(ws, "hidden", hiding(domain(), town=True))
    assert 50 * float(public) < float(
        hidden.by("town").mean("pay", group_size=1_000).accurate_to(10).quote().epsilon
    )


def test_a_size_that_is_public_need_not_be_said(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=False))
    mean = people.by("town").mean("pay").accurate_to(500)
    with pytest.raises(bf.errors.NotCounted, match="It is public") as refused:
        mean.quote()
    assert "count(pay) by town" in refused.value.fixes[0]
    answer = mean.ask()
    assert answer.group_size == 1 and mean.quote().owned  # one town has one row, and another has none
    assert np.allclose(answer.values[1:], truths("mean")[1:], atol=500) and np.isnan(answer.values[0])
    assert mean.counting().quote().owned
    large = people.where(bf.col("town") == 4).by("town").mean("pay").accurate_to(500)
    assert large.ask().receipt.epsilon.nano * 1_000 < answer.receipt.epsilon.nano


def test_nothing_is_charged_where_nothing_is_hidden(ws: Workspace) -> None:
    of = domain()
    nothing = {name: bf.graphs.Explicit(of[name].size, ()) for name in of.names}
    people = declared(ws, policy=bf.Policy.by_column(of, nothing))
    answer = asked(people, ("mean", "pay"), ("stddev", "pay"), "count")
    assert not answer.receipt.epsilon
    assert np.allclose(answer.values.reshape(-1, 3)[:, 0], truths("mean"), equal_nan=True)
    assert np.allclose(answer.values.reshape(-1, 3)[:, 1], truths("std"), equal_nan=True)
    assert answer.exact.sum() == 5 + 4 + 3  # of no rows there is no mean, of one no spread


def test_a_policy_that_follows_counts_what_was_told(ws: Workspace) -> None:
    of = domain()
    people = declared(ws, policy=hiding(of, town=True, within=100))
    asked(people, ("mean", "pay"))
    loss = people.past(hiding(of, town=True, within=1_000)).epsilon
    assert loss is not None and loss >= Epsilon("0.5")
    people.publish(hiding(of, town=True, within=1_000), confirm=True)
    answer = asked(people, ("sum", "pay"), epsilon="0.3")
    assert answer.receipt.epsilon <= Epsilon("0.3")
    assert asked(people, ("sum", "pay"), epsilon="0.3").receipt.cost == Epsilon(0)


def test_people_in_several_rows_pay_for_each(ws: Workspace) -> None:
    rows = pa.table({"who": [1, 1, 2], "town": [1, 2, 1], "pay": [10, 20, 30], "age": [20, 20, 30]})
    people = ws.add_dataset("people", rows, domain=domain(), person="who", rows_per_person=2)
    people.budget.set(10**6)
    alone = ws.add_dataset("rows", rows, domain=domain(), same_rows=True)
    alone.budget.set(10**6)
    many, one = (each.by("town").sum("pay").accurate_to(500).quote().epsilon for each in (people, alone))
    assert many.nano == pytest.approx(2 * one.nano, abs=2)
    assert people.by("town").mean("pay").spend(1).ask().receipt.epsilon == Epsilon(1)


# --- rows without a value -----------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["value", "public"])
def test_rows_without_a_value_are_counted_but_not_summed(ws: Workspace, missing: str) -> None:
    rows = pa.table({"town": [1, 1, 1, 2, 2], "pay": [10, None, 30, None, 7], "age": [20] * 5})
    of = domain(missing=missing)
    people = ws.add_dataset("people", rows, domain=of)
    people.budget.set(10**9)
    people.publish(hiding(of, town=False), confirm=True)
    told = asked(people, ("mean", "pay"), ("count", "pay"), "count", epsilon="100000000").values.reshape(
        -1, 3
    )
    assert np.allclose(told[1], [20, 2, 3], atol=1e-3) and np.allclose(told[2], [7, 1, 2], atol=1e-3)
    exact = asked(people, ("mean", "pay"), ("count", "pay"), "count", epsilon="100000000").exact.reshape(
        -1, 3
    )
    assert exact[:, 2].all()  # how many rows a town has is not hidden, whoever has no pay
    assert exact[:, 1].all() == (missing == "public")


# --- doors ------------------------------------------------------------------------------------------------


def test_python_sql_and_the_short_form_ask_the_same(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=True))
    older = people.where(bf.col("age") >= 30)
    asked_for = [
        older.by("town").aggregate(("mean", "pay"), "count"),
        people.sql("SELECT town, AVG(pay), COUNT(*) FROM people WHERE age >= 30 GROUP BY town"),
        people.question("mean(pay), count() by town where age >= 30"),
    ]
    assert len({str(each.form.to_plain()) for each in asked_for}) == 1
    costs = [each.spend("0.25").ask().receipt.cost for each in asked_for]
    assert costs == [Epsilon("0.25"), Epsilon(0), Epsilon(0)]
    assert people.by("town").count().form.kind == "histogram"
    assert people.by().count().form.kind == "count"
    assert people.by("age", width=10).by("town").count("pay").form.columns[0].width == 10


def test_groups_of_which_the_condition_leaves_no_row_are_known(ws: Workspace) -> None:
    """They are nought without noise, do not make the others dearer, and SQL does not list them."""
    people = declared(ws, policy=hiding(domain(), town=True))
    some = people.where(bf.col("town") >= 3).by("town")
    told = some.aggregate(("sum", "pay"), "count", ("mean", "pay")).spend(1).ask()
    values, exact = (each.reshape(5, 3) for each in (told.values, told.exact))
    assert not values[:3, :2].any() and exact[:3, :2].all() and np.isnan(values[:3, 2]).all()
    assert not exact[3:].any() and values[4, 1] > 4_000
    everyone = people.by("town").sum("pay").accurate_to(500_000).quote().epsilon
    assert some.sum("pay").accurate_to(500_000).quote().epsilon < everyone
    listed = people.sql("SELECT town, SUM(pay) FROM people WHERE town >= 3 GROUP BY town ORDER BY 1 LIMIT 9")
    assert listed.spend(1).ask().labels[0] == ("3", "4")
    no_town = people.sql("SELECT town, COUNT(*) FROM people WHERE 1 = 0 GROUP BY town")
    assert no_town.spend(1).ask().labels[0] == ()


def test_too_few_rows_are_said_and_not_made_up(ws: Workspace) -> None:
    people = declared(ws, policy=hiding(domain(), town=True))
    answer = asked(people, ("mean", "pay"))
    from blowfishdb.show.exports import export
    from blowfishdb.show.tables import answer_table

    texts = answer_table(answer).rows
    assert texts[0][1] == "too few rows to say" and texts[0][2] == "0 … 10,000"
    assert '"values": [null,' in export(answer, "json").body.decode()
    assert export(answer, "csv").body.decode("utf-8-sig").splitlines()[1].startswith("0,,0.0,")
    assert Answer.from_plain(answer.to_plain()).values[-1] == answer.values[-1]
    assert answer.plot().to_dict()["vconcat"][0]["layer"]  # above a legend of its marks
