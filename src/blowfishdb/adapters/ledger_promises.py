"""Earlier policies that are still kept, inside one transaction: what every new charge costs under them too.

A policy that is loosened does not undo what was promised: the older promise stays until it is withdrawn, and
a question needs room under each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, func, select

from blowfishdb.adapters.ledger_values import Promise
from blowfishdb.adapters.store_schema import catalogue, losses, promises
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, PolicyConflict


def carried_by(facts: Mapping[str, Any]) -> Epsilon | None:
    """What a budget has to make good for answers before a policy was published, above what they had cost.

    Nothing if no budget could: an exact answer told apart what the policy hides, and the promise is about
    answers from then on. None if the record of the policy does not say what was lost.
    """
    if "past" not in facts:
        return None
    lost, paid = facts["past"]["epsilon"], Epsilon(facts.get("paid", facts["spent_before"]))
    return Epsilon(0) if lost is None or Epsilon(lost) <= paid else Epsilon(lost) - paid


def active_promises(connection: Connection, dataset: str) -> list[Promise]:
    """The earlier policies of a dataset that nobody has withdrawn, oldest first."""
    rows = select(promises).where(promises.c.dataset == dataset, promises.c.withdrawn.is_(None))
    return [promise_of(row) for row in connection.execute(rows.order_by(promises.c.version))]


def promise_of(row: Row[Any]) -> Promise:
    """A row of promises as a value."""
    return Promise(
        row.dataset, row.version, *(Epsilon.from_nano(part) for part in (row.total, row.spent, row.held))
    )


def check_promises(
    connection: Connection, dataset: str, version: int | None, needed: Mapping[int, Epsilon]
) -> None:
    """A charge that was planned under policy ``version`` fits under every promise that is still kept."""
    if version is not None and version != newest_policy(connection, dataset):
        raise PolicyConflict(
            f"The policy of '{dataset}' changed while this question was being planned. Nothing was charged.",
            fixes=("ask again: the price is that of the new policy",),
        )
    kept = active_promises(connection, dataset)
    if {promise.version for promise in kept} != needed.keys():
        raise PolicyConflict(
            f"What is promised about '{dataset}' changed while this question was being planned. "
            "Nothing was charged.",
            fixes=("ask again",),
        )
    for promise in kept:
        if needed[promise.version] > promise.remaining:
            raise BudgetExhausted(
                f"Policy version {promise.version} of '{dataset}' is still promised. Under it this answer "
                f"would cost {needed[promise.version]:.3g}, but only {promise.remaining:.3g} is left.",
                needed=needed[promise.version],
                left=promise.remaining,
                fixes=("a less accurate answer", "ask the curator to withdraw the earlier promise"),
            )


def newest_policy(connection: Connection, dataset: str) -> int:
    """The version of the policy that answers follow now; 0 where none is kept here."""
    named = (catalogue.c.kind == "policy") & (catalogue.c.name == dataset)
    return connection.execute(select(func.max(catalogue.c.version)).where(named)).scalar() or 0


def hold_losses(connection: Connection, dataset: str, charge: int, needed: Mapping[int, Epsilon]) -> None:
    """Set aside what a new charge costs under each promise."""
    for version, amount in needed.items():
        connection.execute(losses.insert().values(charge=charge, version=version, amount=amount.nano))
        book_promise(connection, dataset, version, held=amount.nano)


def end_losses(connection: Connection, dataset: str, charge: int, *, spent: bool) -> None:
    """A charge is over: what it held is spent, or given back."""
    any_promise = select(promises.c.version).where(promises.c.dataset == dataset).limit(1)
    if connection.execute(any_promise).first() is None:
        return
    for row in connection.execute(select(losses).where(losses.c.charge == charge)).all():
        book_promise(connection, dataset, row.version, held=-row.amount, spent=row.amount if spent else 0)


def book_promise(connection: Connection, dataset: str, version: int, *, held: int, spent: int = 0) -> None:
    """Add to the sums of a promise, in nano-ε."""
    this = (promises.c.dataset == dataset) & (promises.c.version == version)
    values = {"held": promises.c.held + held, "spent": promises.c.spent + spent}
    connection.execute(promises.update().where(this).values(values))
