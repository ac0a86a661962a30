"""The ledger: what every dataset may lose, what it has lost, and for which answers.

A charge goes ``reserved → reading → settled | lost``. Only a reserved one may be voided: from the durable reading
mark on, the data may have been seen, and whatever happens the charge stays spent. Each step is one transaction
and one event, so a crash between two steps loses nothing and gives nothing away.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Final, Self, final

from sqlalchemy import Connection, Row, func, select

from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_audit import audit
from blowfishdb.adapters.ledger_events import append, canonical, digest
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import accounts, budgets, charges
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, InvalidEpsilon, InvalidInput, UnknownDataset, WorkspaceError

_MOST: Final = 2**62
_TEXT: Final = 255


class State(Enum):
    """Where a charge stands."""

    RESERVED = "reserved"
    READING = "reading"
    SETTLED = "settled"
    LOST = "lost"
    VOID = "void"


_BEFORE: dict[State, State] = {
    State.READING: State.RESERVED,
    State.VOID: State.RESERVED,
    State.SETTLED: State.READING,
    State.LOST: State.READING,
}


@final
@dataclass(frozen=True)
class Budget:
    """What a dataset may lose in total, has lost, and holds for questions under way."""

    dataset: str
    total: Epsilon
    spent: Epsilon
    held: Epsilon

    @property
    def remaining(self) -> Epsilon:
        """What can still be reserved."""
        return self.total - self.spent - self.held


@final
@dataclass(frozen=True)
class Grant:
    """What one analyst may spend (None: as much as the dataset has), has spent, and holds."""

    dataset: str
    user: str
    granted: Epsilon | None
    spent: Epsilon
    held: Epsilon


@final
@dataclass(frozen=True)
class Charge:
    """One entry of the ledger."""

    id: int
    dataset: str
    user: str
    amount: Epsilon
    question: str
    detail: Mapping[str, Any]
    state: State
    reserved_at: datetime
    changed_at: datetime
    reason: str | None = None


@final
@dataclass(frozen=True)
class StoredAnswer:
    """A settled charge and what was released for it."""

    charge: Charge
    answer: str


@final
class Ledger:
    """The ledger of a workspace; safe to share between threads, opened once in each process."""

    def __init__(self, store: Store, *, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock
        self._holder = uuid.uuid4().hex

    @classmethod
    def open(cls, path_or_url: str | Path, *, clock: Clock = utc_now) -> Self:
        """Open the ledger in a file or at a URL; a new one is created."""
        return cls(Store.open(path_or_url), clock=clock)

    @property
    def store(self) -> Store:
        """The database that it shares with the catalogue."""
        return self._store

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

    # --- budgets --------------------------------------------------------------------------------

    def set_budget(self, dataset: str, total: Epsilon, by: str) -> None:
        """Promise that ``dataset`` loses at most ``total``, all analysts together."""
        _check_names(dataset=dataset, by=by)
        _check_amount(total)
        with self._store.writing() as connection:
            row = connection.execute(select(budgets).where(budgets.c.dataset == dataset)).one_or_none()
            if row is None:
                connection.execute(budgets.insert().values(dataset=dataset, total=total.nano, spent=0, held=0))
            else:
                needed = Epsilon.from_nano(max(row.spent + row.held, _granted(connection, dataset)))
                if total < needed:
                    raise InvalidInput(
                        f"The budget of '{dataset}' cannot become {total}: "
                        f"{needed} of it is spent, held for questions under way, or granted.",
                        fixes=(f"a budget of at least {needed}",),
                    )
                connection.execute(budgets.update().where(budgets.c.dataset == dataset).values(total=total.nano))
            self._event(connection, "budget", dataset, by, total.nano)

    def budget(self, dataset: str) -> Budget:
        """The budget of a dataset."""
        with self._store.reading() as connection:
            return _budget(connection, dataset)

    def grant(self, dataset: str, user: str, amount: Epsilon, by: str = "") -> None:
        """Let ``user`` spend up to ``amount`` in all. Once anyone has a grant, only those with one can spend."""
        _check_names(dataset=dataset, user=user)
        _check_amount(amount)
        with self._store.writing() as connection:
            total = _budget(connection, dataset).total
            mine = _account(connection, dataset, user)
            others = _granted(connection, dataset) - (mine.granted or 0)
            if amount.nano + others > total.nano:
                left = Epsilon.from_nano(max(total.nano - others, 0))
                raise BudgetExhausted(
                    f"Grants on '{dataset}' would exceed its budget of {total}: needs {amount}, {left} left.",
                    fixes=(f"a grant of at most {left}",),
                )
            used = Epsilon.from_nano(mine.spent + mine.held)
            if amount < used:
                raise InvalidInput(
                    f"The grant of '{user}' cannot become {amount}: {used} is already spent or held.",
                    fixes=(f"a grant of at least {used}",),
                )
            _change_account(connection, dataset, user, granted=amount.nano)
            self._event(connection, "grant", dataset, user, amount.nano, facts={"by": by})

    def grants(self, dataset: str) -> list[Grant]:
        """Every analyst who has a grant or has spent something, by name."""
        with self._store.reading() as connection:
            rows = connection.execute(
                select(accounts).where(accounts.c.dataset == dataset).order_by(accounts.c.analyst)
            )
            return [
                Grant(
                    dataset,
                    row.analyst,
                    None if row.granted is None else Epsilon.from_nano(row.granted),
                    Epsilon.from_nano(row.spent),
                    Epsilon.from_nano(row.held),
                )
                for row in rows
            ]

    # --- charges --------------------------------------------------------------------------------

    def reserve(
        self, dataset: str, user: str, amount: Epsilon, question: str, detail: Mapping[str, object]
    ) -> Charge:
        """Hold ``amount`` for one question, or refuse and write nothing."""
        _check_names(dataset=dataset, user=user, question=question)
        _check_amount(amount)
        text = _json(detail)
        at = stamp(self._clock)
        with self._store.writing() as connection:
            _check_affordable(connection, dataset, user, amount)
            facts = {"question": question, "detail": digest(text), "holder": self._holder}
            number = self._event(connection, "reserved", dataset, user, amount.nano, facts=facts, at=at)
            row = {
                "id": number,
                "dataset": dataset,
                "analyst": user,
                "amount": amount.nano,
                "question": question,
                "detail": text,
                "holder": self._holder,
                "state": State.RESERVED.value,
                "reserved_at": at,
                "changed_at": at,
            }
            connection.execute(charges.insert().values(row))
            _book(connection, dataset, user, held=amount.nano)
            return _charge(connection, number)

    def mark_reading(self, charge: Charge) -> Charge:
        """Write down, durably, that the data is about to be read; from here on nothing is given back."""
        return self._move(charge, State.READING)

    def settle(self, charge: Charge, answer: str) -> Charge:
        """Store the released answer (JSON); the charge is spent."""
        return self._move(charge, State.SETTLED, answer=answer)

    def lose(self, charge: Charge, reason: str) -> Charge:
        """The data was read and no answer came out; the charge is spent all the same."""
        return self._move(charge, State.LOST, reason=reason)

    def void(self, charge: Charge) -> Charge:
        """Give a reservation back; possible only before the reading mark."""
        return self._move(charge, State.VOID)

    def recover(self, older_than: timedelta | None = None) -> list[Charge]:
        """End what others left unfinished: reservations are voided, charges under reading are lost.

        Never gives anything away: a holder that is still alive finds its charge ended and cannot read or settle.
        Charges of this ledger itself are left alone, and with ``older_than`` those that changed more recently.
        """
        unfinished = select(charges.c.id).where(
            charges.c.state.in_((State.RESERVED.value, State.READING.value)), charges.c.holder != self._holder
        )
        if older_than is not None:
            limit = (self._clock() - older_than).astimezone(UTC)
            unfinished = unfinished.where(charges.c.changed_at < limit.isoformat(timespec="microseconds"))
        with self._store.writing() as connection:
            ended = []
            for number in connection.execute(unfinished.order_by(charges.c.id)).scalars().all():
                left = _charge(connection, number)
                to = State.VOID if left.state is State.RESERVED else State.LOST
                ended.append(self._enter(connection, left, to, reason="left unfinished"))
            return ended

    def charge(self, number: int) -> Charge:
        """One charge by its number."""
        with self._store.reading() as connection:
            return _charge(connection, number)

    def charges(self, dataset: str | None = None) -> list[Charge]:
        """All charges, oldest first."""
        rows = select(charges).order_by(charges.c.id)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            return [_from_row(row) for row in connection.execute(rows)]

    def answer(self, question: str) -> StoredAnswer | None:
        """The newest settled answer to an identical question."""
        rows = select(charges).where(charges.c.question == question, charges.c.state == State.SETTLED.value)
        with self._store.reading() as connection:
            row = connection.execute(rows.order_by(charges.c.id.desc()).limit(1)).one_or_none()
            return None if row is None else StoredAnswer(_from_row(row), row.answer)

    def answers(self, dataset: str | None = None) -> list[StoredAnswer]:
        """All settled answers, oldest first."""
        rows = select(charges).where(charges.c.state == State.SETTLED.value).order_by(charges.c.id)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            return [StoredAnswer(_from_row(row), row.answer) for row in connection.execute(rows)]

    def verify(self) -> list[str]:
        """What is wrong with the books, in words; nothing if they are in order."""
        with self._store.reading() as connection:
            return audit(connection)
