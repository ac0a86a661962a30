"""Policies as promises: published, kept beside newer ones, withdrawn. Each step is one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from sqlalchemy import func, select

from blowfishdb.adapters.catalogue import enter_version
from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_books import read_budget
from blowfishdb.adapters.ledger_events import append, canonical
from blowfishdb.adapters.ledger_promises import active_promises, carried_by, newest_policy
from blowfishdb.adapters.ledger_values import Promise
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import budgets, charges, promises
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, PolicyConflict


@final
class Policies:
    """The policies of a workspace, in the database that it shares with the ledger."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def kept(self, dataset: str) -> list[Promise]:
        """Earlier policies that new answers still have to fit under, oldest first."""
        with self._store.reading() as connection:
            return active_promises(connection, dataset)

    def publish(
        self,
        dataset: str,
        by: str,
        body: str,
        facts: Mapping[str, object],
        *,
        last_charge: int,
        keep: bool,
        withdraw: bool,
    ) -> int:
        """Make a policy the one that answers follow, and return its version.

        ``facts`` say what the charges up to ``last_charge`` lost under it; what is above the price that was
        paid for them counts against the budget, whatever its total. With ``keep`` the policy so far stays
        promised too; with ``withdraw`` it is taken back, for everyone to see.
        """
        with self._store.writing() as connection:
            budget, version = read_budget(connection, dataset), newest_policy(connection, dataset)
            at = stamp(self._clock)
            newest = connection.execute(select(func.max(charges.c.id)).where(charges.c.dataset == dataset))
            if (newest.scalar() or 0) != last_charge:
                raise PolicyConflict(
                    f"A question about '{dataset}' was answered meanwhile, under the policy so far.",
                    fixes=("publish again, which counts it too",),
                )
            if version != facts["from_version"]:
                raise PolicyConflict(
                    f"Another policy of '{dataset}' was published meanwhile.",
                    fixes=("look at what changes now, and publish again",),
                )
            this = budgets.update().where(budgets.c.dataset == dataset)
            if withdraw and budget.held:
                raise _under_way(dataset)
            if keep:
                used = budget.used
                row = {"dataset": dataset, "version": version, "total": budget.total.nano}
                connection.execute(promises.insert().values({**row, "spent": used.nano, "held": 0}))
                append(
                    connection,
                    at=at,
                    kind="promise",
                    dataset=dataset,
                    analyst=by,
                    amount=budget.total.nano,
                    body=canonical({"version": version, "spent": used.nano}),
                )
            if withdraw:
                append(
                    connection,
                    at=at,
                    kind="withdrawn",
                    dataset=dataset,
                    analyst=by,
                    amount=0,
                    body=canonical({"version": version}),
                )
            carried = carried_by(facts) or Epsilon(0)
            if carried != budget.carried:
                connection.execute(this.values(carried=carried.nano))
                append(connection, at=at, kind="carried", dataset=dataset, analyst=by, amount=carried.nano)
            sealed, entered = enter_version(connection, "policy", dataset, body, at=at)
            append(
                connection,
                at=at,
                kind="policy",
                dataset=dataset,
                analyst=by,
                amount=0,
                body=canonical(dict(facts)),
                sealed=sealed,
            )
            return entered

    def withdraw(self, dataset: str, by: str, version: int) -> None:
        """Take an earlier promise back, for everyone to see: from now on answers need not fit under it."""
        with self._store.writing() as connection:
            kept = {promise.version: promise for promise in active_promises(connection, dataset)}
            if version not in kept:
                raise InvalidInput(
                    f"Version {version} of the policy of '{dataset}' is not an earlier promise that is kept.",
                    fixes=tuple(f"version {number}" for number in sorted(kept)),
                )
            if kept[version].held:
                raise _under_way(dataset)
            this = (promises.c.dataset == dataset) & (promises.c.version == version)
            at = stamp(self._clock)
            connection.execute(promises.update().where(this).values(withdrawn=at))
            append(
                connection,
                at=at,
                kind="withdrawn",
                dataset=dataset,
                analyst=by,
                amount=0,
                body=canonical({"version": version}),
            )


def _under_way(dataset: str) -> PolicyConflict:
    return PolicyConflict(
        f"A question about '{dataset}' is being answered, and it was promised what is to be withdrawn. "
        "Nothing was changed.",
        fixes=("try again in a moment", "blowfishdb doctor, if it was left unfinished"),
    )
