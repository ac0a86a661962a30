"""Every kind of question on every kind of column: what can be quoted is answered, and nothing is lost.

Whatever can fail without data fails before the charge; so after a quote that succeeds, an ask does too, and
no charge is ever left without an answer.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.values import State
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.workspace.asking import Asking, Columns
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

VALUES: dict[str, tuple[str, list[object]]] = {
    "whole": ("INTEGER", [3, 17, None, 12, 19, 0]),
    "coarse": ("INTEGER", [3, 17, None, 40, 99, 0]),
    "real": ("DOUBLE", [0.5, 1.25, None, 2.0, 0.0, 1.0]),
    "word": ("VARCHAR", ["a", "b", None, "c", "a", "a"]),
    "rank": ("VARCHAR", ["a", "b", None, "c", "a", "a"]),
    "flag": ("BOOLEAN", [True, False, None, True, True, False]),
    "day": ("DATE", ["2024-01-01", "2024-01-12", None, "2024-01-07", "2024-01-02", "2024-01-03"]),
    "moment": (
        "TIMESTAMP",
        ["2024-01-01 00:00:00", "2024-01-01 23:59:59", None, "2024-01-01 12:00:00"] * 2,
    ),
}


def declared(missing: str, outside: str) -> dict[str, Attribute]:
    said = {"missing": missing, "outside": outside}
    kinds: dict[str, Callable[[], Attribute]] = {
        "whole": lambda: bf.Integer(0, 19, **said),
        "coarse": lambda: bf.Integer(0, 99, step=10, **said),
        "real": lambda: bf.Real(0, 2, 0.25, **said),
        "word": lambda: bf.Category(["a", "b", "c"], **said),
        "rank": lambda: bf.Category(["a", "b", "c"], ordered=True, **said),
        "flag": lambda: bf.Boolean(**{k: v for k, v in said.items() if k == "missing"}),
        "day": lambda: bf.Date("2024-01-01", "2024-01-12", **said),
        "moment": lambda: bf.Date("2024-01-01", "2024-01-02", unit="hour", **said),
    }
    made = {}
    for name, make in kinds.items():
        try:
            made[name] = make()
        except (InvalidInput, TypeError):
            continue  # not every column can be declared in every way
    return made


def questions(columns: Columns, attribute: Attribute) -> Iterator[Callable[[], Asking]]:
    ends = (attribute.lower(0), attribute.upper(attribute.value_count - 1))
    yield from (
        columns.histogram,
        lambda: columns.histogram(bins=1),
        lambda: columns.histogram(bins=2),
        lambda: columns.histogram(edges=[ends[0]]),
        lambda: columns.histogram(groups={"one": ["a", "c"], "two": ["b"]}),
        columns.cumulative,
        lambda: columns.cumulative(bins=1),
        lambda: columns.cumulative(bins=3),
        lambda: columns.ranges([ends]),
        lambda: columns.quantiles([0, 0.25, 1]),
        columns.median,
        lambda: columns.median(bins=1),
        columns.sum,
        columns.mean,
        columns.count,
        lambda: columns.top(1),
        lambda: columns.top(9),
        lambda: columns.partition(2),
        lambda: columns.above(2),
        lambda: columns.above(0, bins=1),
        lambda: columns.clusters(2),
        columns.std,
        columns.var,
    )


def aggregates(rows: Dataset, name: str) -> Iterator[Callable[[], Asking]]:
    groups = rows.by("word").by("flag")
    yield from (
        lambda: rows.by("word").mean(name),
        lambda: rows.by("rank").sum(name),
        lambda: groups.std(name),
        lambda: groups.count(name),
        lambda: rows.by("day", bins=3).aggregate(("mean", name), "count"),
        lambda: rows.by(name).mean(name),
        lambda: rows.by().aggregate(("variance", name), ("sum", name), ("count", name)),
        lambda: rows.by("word").aggregate(("mean", name), ("sum", "real"), ("count", "coarse")),
    )


def grouped(rows: Dataset, name: str, ends: tuple[object, object]) -> Iterator[Callable[[], Asking]]:
    other = "day" if name == "whole" else "whole"
    whole = (rows.schema["whole"].lower(0), rows.schema["whole"].lower(9))
    yield from (
        lambda: rows.by("flag").median(name),
        lambda: rows.by("rank").quantiles(name, [0, 0.5, 1], bins=2),
        lambda: rows.by("word").cumulative(name, bins=3),
        lambda: rows.by("flag").ranges(name, [ends]),
        lambda: rows[name, "whole"].ranges([(ends, whole)]),
        lambda: rows[name, "word", "flag"].marginals(2),
        lambda: rows[name, other].marginals(1, bins=2),
    )


DECLARED = (
    ("value", "drop"),
    *(
        pytest.param(said, marks=pytest.mark.thorough)
        for said in (("value", "clamp"), ("drop", "drop"), ("clamp", "clamp"))
    ),
)


@pytest.fixture(params=DECLARED, ids=str)
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Dataset]:
    missing, outside = request.param
    path = tmp_path / "people.duckdb"
    domain = bf.Domain(**declared(missing, outside))
    with duckdb.connect(str(path)) as connection:
        listed = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
        connection.execute(f"CREATE TABLE people ({listed})")
        for row in zip(*(values[:6] for _, values in VALUES.values()), strict=True):
            connection.execute(f"INSERT INTO people VALUES ({', '.join('?' * len(row))})", row)
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", path, domain=domain, table="people")
        dataset.budget.set(10**6)
        yield dataset


def lost(people: Dataset) -> list[str]:
    charges = people.gateway._ledger.charges()  # type: ignore[attr-defined]
    return [charge.detail["question"] for charge in charges if charge.state is not State.SETTLED]


def tried(made: Callable[[], Asking], mechanism: str | None = "laplace") -> bool:
    """Whether the question can be asked; if it can be quoted, it must be."""
    try:
        asking = made().spend(1)
        asking = asking.using(None if asking.form.kind == "clusters" else mechanism)
        quote = asking.quote()
    except BlowfishError:
        return False
    answer = asking.ask()
    assert answer.receipt.cost == quote.epsilon, quote.question
    json.dumps(answer.to_plain(), allow_nan=False)
    assert answer.places is not None or len(answer.values) == np.prod([len(axis) for axis in answer.labels])
    assert all(isinstance(label, str) and label for axis in answer.labels for label in axis)
    return True


def test_nothing_fails_after_the_charge(people: Dataset) -> None:
    domain, asked = people.schema, 0
    for name in domain.names:
        asked += sum(tried(made) for made in questions(people[name], domain[name]))
    wheres = [bf.col("whole") >= 12]
    if domain["whole"].has_missing_cell:
        wheres += [bf.col("whole").is_missing(), ~bf.col("flag").is_missing()]
    for rows in (people, *map(people.where, wheres)):
        asked += tried(rows.count)
        for name in ("whole", "word"):
            asked += sum(map(tried, (rows[name].count, rows[name].histogram, rows[name].sum)))
    for name in domain.names:
        asked += sum(tried(made, None) for made in aggregates(people, name))
        asked += sum(tried(made, None) for made in aggregates(people.where(wheres[0]), name))
        ends = (domain[name].lower(0), domain[name].upper(domain[name].value_count - 1))
        asked += sum(tried(made) for made in grouped(people, name, ends))
    for pair in itertools.pairwise(domain.names):
        columns = people[pair]
        asked += sum(map(tried, (columns.histogram, columns.cumulative, columns.count)))
    assert lost(people) == []
    assert asked > 100


def test_the_number_of_rows_is_not_headed_by_a_column(people: Dataset) -> None:
    answer = people.count().spend(1).ask()
    drops = all(attribute.may_drop for _, attribute in people.schema.columns)
    assert answer.kind == "count"
    assert answer.labels == (("rows",),) if not drops else answer.labels[0][0].startswith("rows with a value")
    assert answer.headings == ("answer",)
    if not drops:
        assert answer.receipt.question == "number of rows" and answer.values.tolist() == [6]
