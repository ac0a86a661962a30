"""The books: reading and changing the cached sums of a ledger, inside one transaction."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, select

from blowfishdb.adapters.ledger_values import Budget, Charge, Grant, State
from blowfishdb.adapters.store_schema import accounts, budgets, charges
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, UnknownDataset, WorkspaceError


def read_budget(connection: Connection, dataset: str) -> Budget:
    """The budget of a dataset that has one."""
    row = connection.execute(select(budgets).where(budgets.c.dataset == dataset)).one_or_none()
    if row is None:
        raise UnknownDataset(f"'{dataset}' has no budget.", fixes=("let the curator set one",))
    return Budget(dataset, *map(Epsilon.from_nano, (row.total, row.spent, row.held)))


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
    if amount > budget.remaining:
        raise BudgetExhausted(
            f"The budget of '{dataset}' does not reach: needs {amount}, {budget.remaining} left.",
            fixes=("a less accurate answer", "an answer that is already stored", "ask the curator for more"),
        )
    if sum_of_grants(connection, dataset) is None:
        return
    grant = read_grant(connection, dataset, user)
    left = (grant.granted or Epsilon(0)).nano - grant.spent.nano - grant.held.nano
    if amount.nano > left:
        raise BudgetExhausted(
            f"The grant of '{user}' on '{dataset}' does not reach: "
            f"needs {amount}, {Epsilon.from_nano(max(left, 0))} left.",
            fixes=("a less accurate answer", "ask the curator for a larger grant"),
        )


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


def read_charge(connection: Connection, number: int) -> Row[Any]:
    """One row of charges."""
    row = connection.execute(select(charges).where(charges.c.id == number)).one_or_none()
    if row is None:
        raise WorkspaceError(f"There is no charge number {number} in this ledger.")
    return row


def charge_of(row: Row[Any]) -> Charge:
    """A row of charges as a value."""
    try:
        return Charge(
            id=row.id,
            dataset=row.dataset,
            user=row.analyst,
            amount=Epsilon.from_nano(row.amount),
            question=row.question,
            detail=json.loads(row.detail),
            state=State(row.state),
            reserved_at=datetime.fromisoformat(row.reserved_at),
            changed_at=datetime.fromisoformat(row.changed_at),
            reason=row.reason,
        )
    except (ValueError, TypeError):
        raise WorkspaceError(f"Charge {row.id} cannot be read.", fixes=("verify() to see why",)) from None
