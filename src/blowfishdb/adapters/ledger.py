"""The ledger: what every dataset may lose, what it has lost, and for which answers.

A charge goes ``reserved → reading → settled | lost``. Only a reserved one may be voided: from the durable
reading mark on, the data may have been seen, and whatever happens the charge stays spent. Each step is one
transaction and one event, so a crash between two steps loses nothing and gives nothing away.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self, final

from sqlalchemy import ColumnElement, Connection, Row, select

from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_audit import audit
from blowfishdb.adapters.ledger_books import (
    book,
    charge_of,
    check_affordable,
    grant_of,
    read_budget,
    read_charge,
    read_grant,
    set_grant,
    sum_of_grants,
)
from blowfishdb.adapters.ledger_events import append, canonical, digest
from blowfishdb.adapters.ledger_values import Budget, Charge, Grant, State, StoredAnswer
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import accounts, budgets, charges
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    AnswerInProgress,
    BudgetExhausted,
    InvalidEpsilon,
    InvalidInput,
    WorkspaceError,
)

__all__ = ["Budget", "Charge", "Grant", "Ledger", "State", "StoredAnswer"]

_MOST: Final = Epsilon(4 * 10**9)  # nano-ε are stored in 63 bits
_LONGEST_NAME: Final = 255
_PATIENCE: Final = timedelta(minutes=15)  # after this an unfinished charge is taken for abandoned


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
            known = connection.execute(select(budgets).where(budgets.c.dataset == dataset)).one_or_none()
            if known is None:
                connection.execute(
                    budgets.insert().values(dataset=dataset, total=total.nano, spent=0, held=0)
                )
            else:
                granted = sum_of_grants(connection, dataset) or Epsilon(0)
                needed = max(Epsilon.from_nano(known.spent + known.held), granted)
                if total < needed:
                    raise InvalidInput(
                        f"The budget of '{dataset}' cannot become {total}: "
                        f"{needed} of it is spent, held for questions under way, or granted.",
                        fixes=(f"a budget of at least {needed}",),
                    )
                connection.execute(
                    budgets.update().where(budgets.c.dataset == dataset).values(total=total.nano)
                )
            at = stamp(self._clock)
            append(connection, at=at, kind="budget", dataset=dataset, analyst=by, amount=total.nano)

    def budget(self, dataset: str) -> Budget:
        """The budget of a dataset."""
        with self._store.reading() as connection:
            return read_budget(connection, dataset)

    def grant(self, dataset: str, user: str, amount: Epsilon, by: str = "") -> None:
        """Let ``user`` spend up to ``amount`` in all; once anyone has a grant, nobody can do without."""
        _check_names(dataset=dataset, user=user)
        _check_amount(amount)
        with self._store.writing() as connection:
            total = read_budget(connection, dataset).total
            mine = read_grant(connection, dataset, user)
            others = (sum_of_grants(connection, dataset) or Epsilon(0)) - (mine.granted or Epsilon(0))
            if others + amount > total:
                left = total - others
                raise BudgetExhausted(
                    f"All grants on '{dataset}' would exceed its budget: needs {amount}, {left} left.",
                    fixes=(f"a grant of at most {left}",),
                )
            used = mine.spent + mine.held
            if amount < used:
                raise InvalidInput(
                    f"The grant of '{user}' cannot become {amount}: {used} is already spent or held.",
                    fixes=(f"a grant of at least {used}",),
                )
            set_grant(connection, dataset, user, amount)
            at, facts = stamp(self._clock), {"by": by}
            append(
                connection,
                at=at,
                kind="grant",
                dataset=dataset,
                analyst=user,
                amount=amount.nano,
                facts=facts,
            )

    def grants(self, dataset: str) -> list[Grant]:
        """Every analyst who has a grant or ever reserved anything, by name."""
        rows = select(accounts).where(accounts.c.dataset == dataset).order_by(accounts.c.analyst)
        with self._store.reading() as connection:
            return [grant_of(row) for row in connection.execute(rows)]

    # --- charges --------------------------------------------------------------------------------

    def reserve(
        self,
        dataset: str,
        user: str,
        amount: Epsilon,
        question: str,
        detail: Mapping[str, object],
        *,
        once: bool = False,
    ) -> Charge:
        """Hold ``amount`` for one question, or refuse and write nothing; free answers reserve zero.

        With ``once``, a question that is just being answered is refused, so that nobody pays for it twice.
        """
        _check_names(dataset=dataset, user=user, question=question)
        _check_amount(amount)
        text = _json(detail)
        with self._store.writing() as connection:
            if once:
                self._check_not_in_progress(connection, question)
            check_affordable(connection, dataset, user, amount)
            event = append(
                connection,
                at=stamp(self._clock),
                kind=State.RESERVED.value,
                dataset=dataset,
                analyst=user,
                amount=amount.nano,
                facts={"question": question, "detail": digest(text), "holder": self._holder},
            )
            row = {
                "id": event.seq,
                "dataset": dataset,
                "analyst": user,
                "amount": amount.nano,
                "question": question,
                "detail": text,
                "holder": self._holder,
                "state": State.RESERVED.value,
                "reserved_at": event.at,
                "changed_at": event.at,
            }
            connection.execute(charges.insert().values(row))
            book(connection, dataset, user, held=amount.nano)
        at = datetime.fromisoformat(event.at)
        return Charge(event.seq, dataset, user, amount, question, json.loads(text), State.RESERVED, at, at)

    def _check_not_in_progress(self, connection: Connection, question: str) -> None:
        """Within ``_PATIENCE`` an unfinished charge may still become an answer; a settled one already is."""
        unfinished = charges.c.state.in_((State.RESERVED.value, State.READING.value))
        same = select(charges.c.id).where(
            charges.c.question == question,
            (unfinished & self._within(_PATIENCE)) | (charges.c.state == State.SETTLED.value),
        )
        if connection.execute(same.limit(1)).first() is not None:
            raise AnswerInProgress(
                "This very question is being answered right now. Nothing was charged for asking it again.",
                fixes=("ask once more in a moment: the answer will be free",),
            )

    def _within(self, span: timedelta) -> ColumnElement[bool]:
        """Changed less than ``span`` ago. A clock that was set back makes moments that lie as far ahead."""
        now = self._clock()
        return charges.c.changed_at.between(stamp(lambda: now - span), stamp(lambda: now + span))

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

    def recover(self, older_than: timedelta | None = None, *, restored: bool = False) -> list[Charge]:
        """End what others left unfinished: reservations are voided, charges under reading are lost.

        Nothing is given away: a holder that is still alive finds its charge ended and can neither read nor
        settle. This ledger's own charges are left alone, and so are, with ``older_than``, recent ones.
        In a ``restored`` ledger reservations are lost too: their data may have been read after the backup.
        """
        unfinished = select(charges).where(
            charges.c.state.in_((State.RESERVED.value, State.READING.value)), charges.c.holder != self._holder
        )
        if older_than is not None:
            unfinished = unfinished.where(~self._within(older_than))
        with self._store.writing() as connection:
            return [
                self._abandon(connection, row, restored)
                for row in connection.execute(unfinished.order_by(charges.c.id)).all()
            ]

    def _abandon(self, connection: Connection, row: Row[Any], restored: bool) -> Charge:
        reason = "left unfinished"
        if row.state == State.RESERVED.value:
            if not restored:
                return self._enter(connection, row, State.VOID, reason=reason)
            self._enter(connection, row, State.READING)
            row = read_charge(connection, row.id)
        return self._enter(connection, row, State.LOST, reason=reason)

    def _move(
        self, charge: Charge, to: State, *, answer: str | None = None, reason: str | None = None
    ) -> Charge:
        with self._store.writing() as connection:
            row = read_charge(connection, charge.id)
            if row.holder != self._holder:
                raise WorkspaceError(
                    f"Charge {charge.id} was reserved by another process.",
                    fixes=("recover() when that process has ended",),
                )
            return self._enter(connection, row, to, answer=answer, reason=reason)

    def _enter(
        self,
        connection: Connection,
        row: Row[Any],
        to: State,
        *,
        answer: str | None = None,
        reason: str | None = None,
    ) -> Charge:
        state = State(row.state)
        if state is not to.before:
            raise WorkspaceError(f"Charge {row.id} is {state.value} and cannot become {to.value}.")
        facts = (
            {"answer": digest(answer)}
            if answer is not None
            else {"reason": reason}
            if reason is not None
            else {}
        )
        at = stamp(self._clock)
        append(
            connection,
            at=at,
            kind=to.value,
            dataset=row.dataset,
            analyst=row.analyst,
            amount=row.amount,
            charge=row.id,
            facts=facts,
        )
        values = {"state": to.value, "changed_at": at, "answer": answer, "reason": reason}
        connection.execute(charges.update().where(charges.c.id == row.id).values(values))
        if not to.held:
            book(connection, row.dataset, row.analyst, held=-row.amount, spent=row.amount if to.spent else 0)
        return replace(charge_of(row), state=to, changed_at=datetime.fromisoformat(at), reason=reason)

    # --- looking back ---------------------------------------------------------------------------

    def charge(self, number: int) -> Charge:
        """One charge by its number."""
        with self._store.reading() as connection:
            return charge_of(read_charge(connection, number))

    def charges(self, dataset: str | None = None) -> list[Charge]:
        """All charges, oldest first."""
        rows = select(charges).order_by(charges.c.id)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            return [charge_of(row) for row in connection.execute(rows)]

    def answer(self, question: str) -> StoredAnswer | None:
        """The newest settled answer to an identical question."""
        rows = select(charges).where(charges.c.question == question, charges.c.state == State.SETTLED.value)
        with self._store.reading() as connection:
            row = connection.execute(rows.order_by(charges.c.id.desc()).limit(1)).one_or_none()
            return None if row is None else StoredAnswer(charge_of(row), row.answer)

    def answers(self, dataset: str | None = None) -> list[StoredAnswer]:
        """All settled answers, oldest first."""
        rows = select(charges).where(charges.c.state == State.SETTLED.value).order_by(charges.c.id)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            return [StoredAnswer(charge_of(row), row.answer) for row in connection.execute(rows)]

    def verify(self) -> list[str]:
        """What is wrong with the books, in words; nothing if they are in order."""
        with self._store.reading() as connection:
            return audit(connection)


def _check_names(**names: str) -> None:
    for what, name in names.items():
        if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidInput(f"The {what} must be a printable text of 1 to {_LONGEST_NAME} characters.")


def _check_amount(amount: object) -> None:
    if not isinstance(amount, Epsilon):
        raise InvalidEpsilon(f"An amount must be an Epsilon, not {type(amount).__name__}.")
    if amount > _MOST:
        raise InvalidEpsilon(f"{amount} is more than a ledger can hold ({_MOST}).")


def _json(detail: Mapping[str, object]) -> str:
    try:
        return canonical(dict(detail))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The detail of a charge must be JSON ({type(error).__name__}).") from None
