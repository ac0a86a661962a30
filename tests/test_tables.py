"""Several tables in one dataset, from rows through the whole stack: what a person loses, and what is free."""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import final

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.servers import sqlite_connection
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    BlowfishError,
    BudgetExhausted,
    InvalidInput,
    PolicyConflict,
    UnknownColumn,
    UnknownDataset,
    UnsupportedSql,
)
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.service.tasks import CountTask
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

TABLES = bf.Tables(
    people=bf.People("id"),
    orders=bf.Child("people", by="person", key="number", rows_per_person=2),
    items=bf.Child("orders", by="ordered", key="item", rows_per_person=2),
    regions=bf.Lookup("people", by="region", key="code"),
)
DOMAIN = bf.Domain.of(
    {
        "people.age": bf.Integer(0, 3, missing="public"),
        "regions.name": bf.Category(["north", "south"], missing="value"),
        "orders.amount": bf.Integer(0, 1, missing="public"),
        "items.price": bf.Integer(0, 1),
    }
)
REGIONS = {"n": "north", "s": "south"}


@dataclass(frozen=True)
class Rows:
    """What one person has: a value, a code that is looked up, the amounts of orders and prices of items."""

    age: int = 1
    region: str | None = "n"
    amounts: tuple[int, ...] = (0, 0, 0)
    prices: tuple[int, ...] = (1, 1)
    there: bool = True


ONE = Rows()
"""Of whom rows are changed: three orders, of which two count, and two items of the first of them."""


def fill(file: Path, one: Rows) -> None:
    """A database in which the first person has these rows, and others have theirs."""
    with closing(sqlite3.connect(file)) as made, made:
        for table in ("people", "orders", "items", "regions"):
            made.execute(f"DROP TABLE IF EXISTS {table}")
        made.execute("CREATE TABLE people (id INTEGER, age INTEGER, region TEXT)")
        made.execute("CREATE TABLE orders (number INTEGER, person INTEGER, amount INTEGER)")
        made.execute("CREATE TABLE items (item INTEGER, ordered INTEGER, price INTEGER)")
        made.execute("CREATE TABLE regions (code TEXT, name TEXT)")
        made.executemany("INSERT INTO regions VALUES (?, ?)", REGIONS.items())
        made.executemany("INSERT INTO people VALUES (?, ?, ?)", [(2, 0, "s"), (3, 3, "?"), (4, 2, "n")])
        orders = [(20, 2, 0), (21, 2, 1), (30, 3, 1), (90, 9, 1), (91, None, 1)]
        made.executemany("INSERT INTO orders VALUES (?, ?, ?)", orders)
        made.executemany("INSERT INTO items VALUES (?, ?, ?)", [(200, 20, 1), (201, 21, 0), (900, 99, 1)])
        if one.there:
            made.execute("INSERT INTO people VALUES (1, ?, ?)", (one.age, one.region))
            mine = [(10 + at, 1, amount) for at, amount in enumerate(one.amounts)]
            made.executemany("INSERT INTO orders VALUES (?, ?, ?)", mine)
            mine = [(100 + at, 10, price) for at, price in enumerate(one.prices)]
            made.executemany("INSERT INTO items VALUES (?, ?, ?)", mine)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.sqlite"
    fill(path, ONE)
    return path


@pytest.fixture
def ws(tmp_path: Path, file: Path) -> Iterator[Workspace]:
    with bf.open(tmp_path / "w.blowfish", user="carla") as opened:
        assert isinstance(opened, Workspace)
        opened.add_dataset("shop", file, domain=DOMAIN, tables=TABLES)
        opened.set_budget("shop", Epsilon(100))
        yield opened


def policy(*, joint: bool = True, presence: bool = False, age: int = 1) -> bf.Policy:
    """Ages that differ by little are hidden, and everything else altogether."""
    within = {"people.age": bf.graphs.Threshold(4, age)}
    return bf.Policy.by_column(DOMAIN, within, joint=joint, hide_presence=presence)


def neighbours(*, joint: bool, presence: bool, age: int = 1) -> Iterator[Rows]:
    """Every database that differs in the rows of the first person, each of them along an edge.

    Where one column moves at a time, each row that is counted moves in one column: so either what is said of
    the person changes, which changes in all of them, or what is said of some orders, or of items.
    """
    ages = [other for other in range(4) if abs(other - ONE.age) <= age]
    amounts, prices = ([[0, 1]] * len(held) for held in (ONE.amounts, ONE.prices))
    for changed in itertools.product(
        ages, ["n", "s", "?"], itertools.product(*amounts), itertools.product(*prices)
    ):
        other = Rows(*changed)
        moved = [
            other.age != ONE.age,
            REGIONS.get(other.region or "") != REGIONS.get(ONE.region or ""),
            other.amounts != ONE.amounts,
            other.prices != ONE.prices,
        ]
        if joint or sum(moved) <= 1:
            yield other
    if presence:
        yield Rows(there=False)


def questions(shop: Dataset) -> list[Asking]:
    """About every table, with and without a condition on what its rows belong to."""
    items, orders, people = (shop.table(name) for name in ("items", "orders", "people"))
    young = bf.col("people.age") <= 1
    return [
        people["people.age"].histogram().spend(1),
        people["people.age"].cumulative().spend(1),
        people["regions.name"].histogram().spend(1),
        people.where(bf.col("regions.name") == "north").count().spend(1),
        orders["orders.amount"].histogram().spend(1),
        orders["people.age"].histogram().spend(1),
        orders["regions.name", "orders.amount"].histogram().spend(1),
        orders.where(young)["orders.amount"].cumulative().spend(1),
        orders.where(young).count().spend(1),
        items["items.price"].histogram().spend(1),
        items["orders.amount"].histogram().spend(1),
        items.where(bf.col("orders.amount") == 1)["people.age"].histogram().spend(1),
    ]


def planned(ws: Workspace, asking: Asking) -> CountTask:
    task = ws._service.plan(asking.using("laplace").request())
    assert isinstance(task, CountTask)
    return task


@final
class Counting:
    """What the statement of a question counts in every neighbouring database; what cannot matter is kept."""

    def __init__(self, ws: Workspace, file: Path, task: CountTask) -> None:
        entry = ws._records[task.request.dataset]
        self.task, self.table = task, entry.table_name
        self._file, self._statement = file, ws._rows.backend(entry).prepare(task.problem.cells).statement
        self._known: dict[Rows, np.ndarray] = {}
        self._lost: dict[Rows, Fraction | float] = {}

    def of(self, one: Rows) -> np.ndarray:
        """The counts where the first person has these rows."""
        own = self._seen(one)
        if own not in self._known:
            fill(self._file, own)
            with closing(sqlite_connection(self._file)) as connection:
                rows = connection.execute(self._statement.text).fetchall()
            self._known[own] = self._statement.fold_rows(rows)
        return self._known[own]

    def lost(self, one: Rows) -> Fraction | float:
        """What is told apart between them and the usual rows, by the noise that the answer gets."""
        own = self._seen(one)
        if own not in self._lost:
            self._lost[own] = self._between(own)
        return self._lost[own]

    def _between(self, one: Rows) -> Fraction | float:
        here, there, plan = self.of(ONE), self.of(one), self.task.choice.plan
        assert isinstance(plan, Plan)
        if (here == there).all():
            return Fraction(0)
        answers = [np.asarray(plan.workload.answer(counts)) for counts in (here, there)]
        if plan.free or (answers[0] != answers[1])[plan.exact].any():
            return math.inf
        rows, scales = plan.rows(epsilon=self.task.choice.epsilon)
        change = np.abs(rows @ (here - there))
        return sum((Fraction(int(by)) / scale for by, scale in zip(change, scales, strict=True)), Fraction(0))

    def _seen(self, one: Rows) -> Rows:
        """What rows of this table can depend on: a row has what it belongs to, and nothing else."""
        if self.table == "people":
            return replace(one, amounts=ONE.amounts, prices=ONE.prices)
        if self.table == "orders":
            return replace(one, prices=ONE.prices)
        return replace(one, amounts=(one.amounts[0], *ONE.amounts[1:]))


@pytest.mark.parametrize(("joint", "presence"), [(True, False), (False, False), (True, True)])
def test_nobody_loses_more_than_is_charged(ws: Workspace, file: Path, joint: bool, presence: bool) -> None:
    """Over every neighbouring database; nearly every charge is what one of them loses."""
    ws["shop"].publish(policy(joint=joint, presence=presence))
    asked = [Counting(ws, file, planned(ws, asking)) for asking in questions(ws["shop"])]
    worst: list[Fraction | float] = [Fraction(0)] * len(asked)
    together: Fraction | float = Fraction(0)
    for other in neighbours(joint=joint, presence=presence):
        losses = [each.lost(other) for each in asked]
        worst = [max(before, now) for before, now in zip(worst, losses, strict=True)]
        together = max(together, sum(losses))
    charges = [each.task.cost.fraction for each in asked]
    for each, most, charge in zip(asked, worst, charges, strict=True):
        assert most <= charge, each.task.request.question.describe()
    assert together <= sum(charges)
    tight = [charge - most < Fraction(1, 10**6) for charge, most in zip(charges, worst, strict=True)]
    assert sum(tight) >= (5 if presence else 9), tight


def test_what_is_free_is_the_same(ws: Workspace, file: Path) -> None:
    """How many rows each table has is told by keys, which no policy hides."""
    tables = [ws["shop"].table(name) for name in ("people", "orders", "items")]
    totals = [Counting(ws, file, planned(ws, table.count().spend(1))) for table in tables]
    assert all(each.task.free for each in totals)
    for other in itertools.islice(neighbours(joint=True, presence=False), 0, None, 7):
        assert [int(each.of(other).sum()) for each in totals] == [4, 6, 4]


def test_what_the_past_lost_under_another_policy(ws: Workspace, file: Path) -> None:
    """Rows of several tables may each move along an edge of their own, so their losses are added up."""
    shop = ws["shop"].publish(policy())
    about = [asking.using("laplace") for asking in questions(shop) if "region" not in str(asking.to_plain())]
    asked = [Counting(ws, file, planned(ws, asking)) for asking in about]
    for asking in about:
        asking.ask()
    said = shop.past(policy(age=2)).epsilon
    assert said is not None and said > shop.budget.status.spent
    for other in neighbours(joint=True, presence=False, age=2):
        if other.region == ONE.region:
            assert sum(each.lost(other) for each in asked) <= said.fraction


# --- one budget, one set of promises ----------------------------------------------------------


def test_all_tables_share_one_budget(ws: Workspace) -> None:
    shop = ws["shop"]
    shop.budget.set(3)
    orders = shop.table("orders")
    assert shop.table("people")["people.age"].histogram().spend(1).ask().receipt.dataset == "shop.people"
    answer = orders["people.age"].histogram().spend(2).ask()
    assert (answer.receipt.dataset, answer.receipt.epsilon) == ("shop.orders", Epsilon(2))
    assert orders.budget.remaining == shop.budget.remaining == Epsilon(0)
    with pytest.raises(BudgetExhausted):
        shop.table("items")["items.price"].histogram().spend("0.1").ask()
    assert [one.receipt.dataset for one in ws.answers("shop")] == ["shop.people", "shop.orders"]
    assert ws.verify() == []


def test_one_question_of_two_tables_is_two_questions(ws: Workspace) -> None:
    """Stored answers about one table say nothing about another."""
    people, orders = (ws["shop"].table(name)["people.age"].histogram() for name in ("people", "orders"))
    first = people.accurate_to(2).ask()
    assert people.accurate_to(2).quote().owned
    assert not orders.accurate_to(2).quote().owned
    second = orders.accurate_to(2).ask()
    assert second.receipt.epsilon == 2 * first.receipt.epsilon  # two rows of each person count
    both = ws.batch(people.accurate_to(1), orders.accurate_to(1))
    alone = people.accurate_to(1).quote().epsilon + orders.accurate_to(1).quote().epsilon
    assert both.quote() == alone
    both.ask()
    assert ws.verify() == []


def test_an_earlier_promise_is_kept_for_every_table(ws: Workspace) -> None:
    shop = ws["shop"].publish(policy(age=2))
    shop.table("orders")["people.age"].cumulative().spend(1).ask()
    shop.publish(policy(), confirm=True)
    orders, people = shop.table("orders"), shop.table("people")
    assert [kept.version for kept in shop.kept] == [kept.version for kept in orders.kept] == [2]
    assert orders.kept[0].policy.domain.names == ("people.age", "regions.name", "orders.amount")
    quote = people["people.age"].cumulative().spend(1).quote()
    assert [promise.version for promise in quote.promises] == [2]
    people["people.age"].cumulative().spend(1).ask()
    used = [promise.spent for promise in ws._policies.kept("shop")]
    assert used[0] >= Epsilon("1.9")
    shop.withdraw(2)
    assert not people.kept


def test_what_is_said_of_all_tables_is_said_once(ws: Workspace) -> None:
    orders = ws["shop"].table("orders")
    for refused in (
        lambda: orders.publish(orders.policy),
        lambda: orders.budget.set(1),
        lambda: orders.budget.grant("ana", 1),
        orders.refresh,
        orders.delete,
        lambda: orders.withdraw(1),
        lambda: orders.declare(**{"orders.amount": bf.Integer(0, 9)}),
    ):
        with pytest.raises(InvalidInput, match="one table of 'shop'"):
            refused()
    known = bf.Constraints(marginals=[["regions.name"]]) if False else None
    assert known is None
    assert "at most 2 in 'orders'" in str(ws["shop"].guarantee()) and "Keys are not hidden" in str(
        orders.guarantee()
    )


def test_made_up_rows_are_those_of_one_table(ws: Workspace) -> None:
    with pytest.raises(InvalidInput, match="has several tables"):
        ws["shop"].made_up(50)
    orders = ws["shop"].table("orders")
    made, real = (
        each["orders.amount"].histogram().accurate_to(5).quote() for each in (orders.made_up(50), orders)
    )
    assert (made.dataset, made.epsilon) == (real.dataset, real.epsilon)


def test_known_counts_are_refused(ws: Workspace) -> None:
    from blowfishdb.core.constraints import Count

    known = bf.Constraints(counts=[Count(bf.col("regions.name") == "north")])
    with pytest.raises(PolicyConflict, match="of other tables is not proven"):
        ws["shop"].publish(policy().knowing(known))


def test_refresh_and_declare_anew(ws: Workspace, file: Path) -> None:
    shop = ws["shop"]
    shop.declare(**{"orders.amount": bf.Integer(0, 5, missing="public")})
    count = shop.table("orders").count().spend(1)
    assert count.ask().values.tolist() == [6]
    fill(file, replace(ONE, there=False))
    shop.refresh()
    assert count.ask().values.tolist() == [4]
    fill(file, replace(ONE, age=None))  # type: ignore[arg-type]
    shop.refresh()
    with closing(sqlite3.connect(file)) as made, made:
        made.execute("INSERT INTO people VALUES (1, 2, 'n')")
    with pytest.raises(InvalidInput, match="'id' occur twice"):
        shop.refresh()
    assert "erased" not in shop.delete()
    with pytest.raises(UnknownDataset):
        ws["shop.orders"].count()


# --- naming tables and columns ----------------------------------------------------------------


def test_columns_choose_the_table_nearest_to_people(ws: Workspace) -> None:
    shop = ws["shop"]
    assert shop["people.age"].histogram().spend(1).dataset == "shop.people"
    assert shop["regions.name"].histogram().spend(1).dataset == "shop.people"
    assert shop.by("regions.name").mean("orders.amount").spend(1).dataset == "shop.orders"
    assert shop.where(bf.col("items.price") == 1)["people.age"].median().spend(1).dataset == "shop.items"
    assert shop.count().spend(1).dataset == "shop.people"
    assert shop.question("mean(amount) by regions.name").dataset == "shop.orders"
    assert shop.question("histogram(orders.amount) where people.age > 1").dataset == "shop.orders"
    with pytest.raises(UnknownColumn, match="no column 'age'"):
        shop["age"].histogram()
    with pytest.raises(UnknownDataset):
        shop.table("regions")
    with pytest.raises(UnknownDataset):
        ws["shop.nothing"].count()
    with pytest.raises(InvalidInput, match="public"):
        ws["shop.regions"].count()


SQL = {
    "SELECT COUNT(*) FROM orders": "shop.orders",
    "SELECT COUNT(*) FROM shop.orders": "shop.orders",
    'SELECT COUNT(*) FROM "shop"."orders" AS o WHERE o.amount > 1': "shop.orders",
    "SELECT regions.name, AVG(orders.amount) FROM orders GROUP BY regions.name": "shop.orders",
    "SELECT name, AVG(amount) AS mean FROM orders GROUP BY name ORDER BY mean DESC": "shop.orders",
    "SELECT p.age, COUNT(*) FROM items i LEFT JOIN orders o ON i.ordered = o.number "
    "LEFT JOIN people p ON p.id = o.person WHERE o.amount = 1 GROUP BY p.age": "shop.items",
    "SELECT r.name, COUNT(*) FROM people p LEFT JOIN regions r ON p.region = r.code "
    "GROUP BY r.name": "shop.people",
    "SELECT COUNT(*) FROM (SELECT * FROM orders WHERE orders.amount > 0) t": "shop.orders",
}


def test_statements(ws: Workspace) -> None:
    for text, dataset in SQL.items():
        asking = ws["shop"].sql(f"{text} WITH EPSILON 1")
        assert asking.dataset == dataset
        assert asking.quote().epsilon <= Epsilon(1)
    facet = ws["shop.orders"].sql("SELECT AVG(orders.amount) FROM shop.orders WITH EPSILON 1")
    assert facet.dataset == "shop.orders"


NOT_ALONG = {
    "SELECT COUNT(*) FROM shop": "FROM names the one",
    "SELECT COUNT(*) FROM regions": "FROM names the one",
    "SELECT COUNT(*) FROM orders JOIN people ON orders.person = people.id": "would leave it out",
    "SELECT COUNT(*) FROM people LEFT JOIN orders ON orders.person = people.id": "only along the declared",
    "SELECT COUNT(*) FROM orders LEFT JOIN people ON orders.amount = people.age": "only along the declared",
    "SELECT COUNT(*) FROM orders LEFT JOIN regions ON orders.person = regions.code": "only along",
    "SELECT COUNT(*) FROM items LEFT JOIN people ON items.ordered = people.id": "only along the declared",
    "SELECT COUNT(*) FROM orders CROSS JOIN people": "only along the declared keys",
    "SELECT COUNT(*) FROM orders, people": "only along the declared keys",
    "SELECT COUNT(*) FROM people WHERE orders.amount > 1": "one dataset",
    "SELECT COUNT(*) FROM people WHERE id IN (SELECT person FROM orders)": "subquer",
}


def test_what_is_not_along_keys_is_refused(ws: Workspace) -> None:
    for text, words in NOT_ALONG.items():
        with pytest.raises(BlowfishError, match=words) as refusal:
            ws["shop"].sql(f"{text} WITH EPSILON 1")
        for fix in refusal.value.fixes:
            if fix.startswith("SELECT "):
                ws["shop"].sql(f"{fix} WITH EPSILON 1").quote()
    with pytest.raises(UnsupportedSql):
        ws["shop"].sql("SELECT COUNT(*) FROM orders JOIN people USING (id) WITH EPSILON 1")
    with pytest.raises(UnknownColumn):
        ws["shop.people"].question("histogram(items.price)")
