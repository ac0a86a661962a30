"""The books: reading and changing the cached sums of a ledger, inside one transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, func, select

from blowfishdb.adapters.ledger_events import append
from blowfishdb.adapters.ledger_values import Budget, Grant
from blowfishdb.adapters.store_schema import accounts, budgets
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, UnknownDataset


def read_budget(connection: Connection, dataset: str) -> Budget:
    """The budget of a dataset that has one."""
    row = connection.execute(select(budgets).where(budgets.c.dataset == dataset)).one_or_none()
    if row is None:
        raise UnknownDataset(f"'{dataset}' has no budget.", fixes=("let the curator set one",))
    return Budget(dataset, *map(Epsilon.from_nano, (row.total, row.spent, row.held, row.carried)))


def declare_budget(connection: Connection, dataset: str, total: Epsilon, by: str, *, at: str) -> None:
    """Write down what a dataset may lose in all, for the first time or anew."""
    row = {"dataset": dataset, "total": total.nano, "spent": 0, "held": 0}
    left = connection.execute(budgets.update().where(budgets.c.dataset == dataset).values(total=total.nano))
    if not left.rowcount:
        connection.execute(budgets.insert().values(row))
    append(connection, at=at, kind="budget", dataset=dataset, analyst=by, amount=total.nano)


def read_grant(connection: Connection, dataset: str, user: str) -> Grant:
    """What a user may spend and has spent; nothing for someone who never asked."""
    rows = select(accounts).where(accounts.c.dataset == dataset, accounts.c.analyst == user)
    row = connection.execute(rows).one_or_none()
    return Grant(dataset, user, None, Epsilon(0), Epsilon(0)) if row is None else grant_of(row)


def grant_of(row: Row[Any]) -> Grant:
    """A row of accounts as a value."""
    granted = None if row.granted is None else Epsilon.from_nano(row.granted)
    return Grant(row.dataset, row.analyst, granted, *map(Epsilon.from_nano, (row.spent, row.held)))


def sum_of_grants(connection: Connection, dataset: str) -> Epsilon | None:
    """Everything granted; None if nobody has a grant."""
    found = connection.execute(
        select(func.sum(accounts.c.granted)).where(accounts.c.dataset == dataset)
    ).scalar()
    return None if found is None else Epsilon.from_nano(int(found))


def check_affordable(connection: Connection, dataset: str, user: str, amount: Epsilon) -> None:
    """The dataset can lose ``amount`` more, and the user may spend it."""
    budget = read_budget(connection, dataset)
    if not amount:
        return
    left = left_of_grant(connection, dataset, user)
    if left is not None and amount > left and left <= budget.remaining:
        raise BudgetExhausted(
            f"The grant of '{user}' on '{dataset}' does not reach: needs {amount}, {left} left.",
            needed=amount,
            left=left,
            fixes=("a less accurate answer", "ask the curator for a larger grant"),
        )
    if amount > budget.remaining:
        raise BudgetExhausted(
            f"The budget of '{dataset}' does not reach: needs {amount}, {budget.remaining} left.",
            needed=amount,
            left=budget.remaining,
            fixes=("a less accurate answer", "an answer that is already stored", "ask the curator for more"),
        )


def left_of_grant(connection: Connection, dataset: str, user: str) -> Epsilon | None:
    """What a user may still spend; None if nobody has a grant, and nothing for one who has none."""
    if sum_of_grants(connection, dataset) is None:
        return None
    grant = read_grant(connection, dataset, user)
    used = grant.spent + grant.held
    return grant.granted - used if grant.granted is not None and grant.granted > used else Epsilon(0)


def set_grant(connection: Connection, dataset: str, user: str, amount: Epsilon) -> None:
    """Write a grant down."""
    mine = (accounts.c.dataset == dataset) & (accounts.c.analyst == user)
    known = connection.execute(accounts.update().where(mine).values(granted=amount.nano))
    if not known.rowcount:
        row = {"dataset": dataset, "analyst": user, "granted": amount.nano, "spent": 0, "held": 0}
        connection.execute(accounts.insert().values(row))


def book(connection: Connection, dataset: str, user: str, *, held: int = 0, spent: int = 0) -> None:
    """Add to the sums of a dataset and of a user, in nano-ε."""
    mine = (accounts.c.dataset == dataset) & (accounts.c.analyst == user)
    for update in (budgets.update().where(budgets.c.dataset == dataset), accounts.update().where(mine)):
        table = update.table
        known = connection.execute(update.values(held=table.c.held + held, spent=table.c.spent + spent))
    if not known.rowcount:  # the first charge of this user
        row = {"dataset": dataset, "analyst": user, "spent": spent, "held": held}
        connection.execute(accounts.insert().values(row))
