"""The ledger: what every dataset may lose, what it has lost, and for which answers.

A charge goes ``reserved → reading → settled | lost``. Only a reserved one may be voided: from the durable
reading mark on, the data may have been seen, and whatever happens the charge stays spent. One of nothing may
be settled without the mark: no row was read for its answer. Each step is one event, and each method one
transaction, so a crash between two of them gives nothing away.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self, final

from sqlalchemy import Connection, Row, bindparam, select

from blowfishdb.adapters.store.catalogue import check_declared, check_read
from blowfishdb.adapters.store.chain import NOTES, append, canonical
from blowfishdb.adapters.store.charges import (
    abandon,
    changed_within,
    charge_of,
    charged_under,
    check_affordable,
    check_not_charged,
    check_not_in_progress,
    check_promises,
    check_refinable,
    declare_budget,
    enter,
    grant_of,
    left_of_grant,
    open_charge,
    read_budget,
    read_charge,
    read_grant,
    set_grant,
    sum_of_grants,
    under_way,
    unfinished,
)
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.record import Record
from blowfishdb.adapters.store.releases import check_readable
from blowfishdb.adapters.store.tables import accounts, budgets, charges
from blowfishdb.adapters.store.values import (
    Budget,
    Charge,
    Clock,
    Grant,
    RequestKey,
    Reservation,
    State,
    StoredAnswer,
    stamp,
    utc_now,
)
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BudgetExhausted, InvalidEpsilon, InvalidInput, WorkspaceError

_MOST: Final = Epsilon(4 * 10**9)  # nano-ε are stored in 63 bits
_LONGEST_NAME: Final = 255
_PATIENCE: Final = timedelta(minutes=15)  # after this an unfinished charge is taken for abandoned
# Written once, as in charges: every question runs them.
_ACCOUNTS: Final = (
    select(accounts).where(accounts.c.dataset == bindparam("of_dataset")).order_by(accounts.c.analyst)
)


@final
class Ledger(Record):
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
            if known is not None:
                granted = sum_of_grants(connection, dataset) or Epsilon(0)
                carried = known.carried if total.nano < known.total else 0  # a raise may not reach the past
                used = Epsilon.from_nano(known.spent + known.held + carried)
                needed = max(used, granted)
                if total < needed:
                    raise InvalidInput(
                        f"The budget of '{dataset}' cannot become {total}: "
                        f"{needed} of it is spent, held for questions under way, granted, or was lost by "
                        "answers under earlier policies.",
                        fixes=(f"a budget of at least {needed}",),
                    )
            declare_budget(connection, dataset, total, by, at=stamp(self._clock))

    def budget(self, dataset: str) -> Budget:
        """The budget of a dataset."""
        return self._store.recalled(("budget", dataset), lambda read: read_budget(read, dataset))

    def granted(self, dataset: str, user: str) -> Epsilon | None:
        """What is left of the grant of ``user``; None if nobody has one."""
        key = ("granted", dataset, user)
        return self._store.recalled(key, lambda read: left_of_grant(read, dataset, user))

    def left(self, dataset: str, user: str) -> Epsilon:
        """What ``user`` could still reserve: of the budget, and of the grant if there are any."""

        def read(connection: Connection) -> Epsilon:
            remaining = read_budget(connection, dataset).remaining
            granted = left_of_grant(connection, dataset, user)
            return remaining if granted is None else min(remaining, granted)

        return self._store.recalled(("left", dataset, user), read)

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
                    needed=amount,
                    left=left,
                    fixes=(f"a grant of at most {left}",),
                )
            used = mine.spent + mine.held
            if amount < used:
                raise InvalidInput(
                    f"The grant of '{user}' cannot become {amount}: {used} is already spent or held.",
                    fixes=(f"a grant of at least {used}",),
                )
            set_grant(connection, dataset, user, amount)
            append(
                connection,
                at=stamp(self._clock),
                kind="grant",
                dataset=dataset,
                analyst=user,
                amount=amount.nano,
                body=canonical({"by": by}),
            )

    def grants(self, dataset: str) -> list[Grant]:
        """Every analyst who has a grant or ever reserved anything, by name."""

        def read(connection: Connection) -> list[Grant]:
            return [grant_of(row) for row in connection.execute(_ACCOUNTS, {"of_dataset": dataset})]

        return [*self._store.recalled(("grants", dataset), read)]

    def note(self, dataset: str, user: str, kind: str, facts: Mapping[str, object]) -> None:
        """Put on record what changes the meaning of charges and costs nothing: a ``policy`` was published."""
        _check_names(dataset=dataset, user=user)
        if kind not in NOTES:
            raise InvalidInput(f"There are no notes of the kind {kind!r}.", fixes=NOTES)
        if not facts:
            raise InvalidInput("A note needs facts.")
        text = _json("facts of a note", facts)
        with self._store.writing() as connection:
            read_budget(connection, dataset)
            append(
                connection,
                at=stamp(self._clock),
                kind=kind,
                dataset=dataset,
                analyst=user,
                amount=0,
                body=text,
            )

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
        reading: bool = False,
        version: int | None = None,
        declared: int | None = None,
        losses: Mapping[int, Epsilon] | None = None,
        key: RequestKey | None = None,
        refines: int | None = None,
    ) -> Charge:
        """Hold ``amount`` for one question, or refuse and write nothing; free answers reserve zero."""
        asked = Reservation(
            dataset, user, amount, question, detail, once, version, declared, losses or {}, key, refines
        )
        return self.reserve_all([asked], reading=reading)[0]

    def reserve_all(self, reservations: Sequence[Reservation], *, reading: bool = False) -> list[Charge]:
        """Hold what several questions need, or refuse all of them and write nothing.

        With ``reading``, the mark of ``mark_reading`` is made in the same transaction: one durable commit
        instead of two, and nothing to give back.
        """
        for asked in reservations:
            _check_names(dataset=asked.dataset, user=asked.user, question=asked.question)
            _check_amount(asked.amount)
        texts = [_json("detail of a charge", asked.detail) for asked in reservations]
        state = State.READING if reading else State.RESERVED
        with self._store.writing() as connection:
            check_readable(connection)
            return [
                self._reserve(connection, asked, text, state)
                for asked, text in zip(reservations, texts, strict=True)
            ]

    def _reserve(self, connection: Connection, asked: Reservation, text: str, state: State) -> Charge:
        if asked.key is not None:
            check_not_charged(connection, asked.user, asked.key)
        if asked.once:
            check_not_in_progress(connection, asked.question, changed_within(self._clock(), _PATIENCE))
        if asked.declared is not None:
            check_declared(connection, asked.dataset, asked.declared)
        if asked.refines is not None:
            check_refinable(connection, asked.refines)
        check_promises(connection, asked.dataset, asked.version, asked.losses)
        check_affordable(connection, asked.dataset, asked.user, asked.amount, asked.losses)
        return open_charge(
            connection,
            at=stamp(self._clock),
            dataset=asked.dataset,
            user=asked.user,
            amount=asked.amount,
            question=asked.question,
            detail=text,
            holder=self._holder,
            state=state,
            losses=asked.losses,
            key=asked.key,
            refines=asked.refines,
        )

    def charged_under(
        self, user: str, key: RequestKey, *, silence: timedelta | None = None
    ) -> dict[int, StoredAnswer]:
        """What was answered under a key, by part; refused while a part is under way, and if one was lost.

        With ``silence``, a part of which nothing was heard for so long is taken for abandoned: it is lost.
        """
        with self._store.reading() as connection:
            found = charged_under(connection, user, key)
        left = [row for row in found.values() if row.state != State.SETTLED.value]
        for row in left:
            heard = datetime.fromisoformat(row.changed_at)
            if silence is None or abs(self._clock() - heard) < silence:
                raise under_way()
        if left:
            with self._store.writing() as connection:
                for row in left:
                    now = read_charge(connection, row.id)
                    if now.state in (State.RESERVED.value, State.READING.value):
                        abandon(connection, now, lambda: stamp(self._clock), restored=False)
            return self.charged_under(user, key)
        return {part: StoredAnswer(charge_of(row), row.answer) for part, row in found.items()}

    def mark_reading(self, charge: Charge) -> Charge:
        """Write down, durably, that the data is about to be read; from here on nothing is given back."""
        return self._move(charge, State.READING)

    def settle(self, charge: Charge, answer: str, *, declared: int | None = None) -> Charge:
        """Store the released answer (JSON); the charge is spent.

        With ``declared``, only while that is the version of the declaration: rows that were declared anew
        while they were read belong to no snapshot.
        """
        return self._move(charge, State.SETTLED, answer=answer, declared=declared)

    def lose(self, charge: Charge, reason: str) -> Charge:
        """The data was read and no answer came out; the charge is spent all the same."""
        return self._move(charge, State.LOST, reason=reason)

    def void(self, charge: Charge) -> Charge:
        """Give a reservation back; possible only before the reading mark."""
        return self._move(charge, State.VOID)

    def end(self, charge: Charge, reason: str) -> Charge:
        """Give a charge up: a reservation is given back, and what was read is lost."""
        with self._store.writing() as connection:
            row = self._own(connection, charge)
            given_back = row.state == State.RESERVED.value
            to = State.VOID if given_back else State.LOST
            return enter(connection, row, to, stamp(self._clock), reason=None if given_back else reason)

    def recover(self, older_than: timedelta | None = None, *, restored: bool = False) -> list[Charge]:
        """End what others left unfinished: reservations are voided, charges under reading are lost.

        Nothing is given away: a holder that is still alive finds its charge ended and can neither read nor
        settle. This ledger's own charges are left alone, and so are, with ``older_than``, recent ones.
        In a ``restored`` ledger reservations are lost too: their data may have been read after the backup.
        """
        left = select(charges).where(unfinished(), charges.c.holder != self._holder)
        if older_than is not None:
            left = left.where(~changed_within(self._clock(), older_than))
        with self._store.reading() as connection:
            if self._store.read_only or connection.execute(left.limit(1)).first() is None:
                return []  # whoever only opens a workspace need not wait for its turn to write
        with self._store.writing() as connection:
            return [
                abandon(connection, row, lambda: stamp(self._clock), restored)
                for row in connection.execute(left.order_by(charges.c.id)).all()
            ]

    def _move(
        self,
        charge: Charge,
        to: State,
        *,
        answer: str | None = None,
        reason: str | None = None,
        declared: int | None = None,
    ) -> Charge:
        with self._store.writing() as connection:
            if declared is not None:
                check_read(connection, charge.dataset, declared)
            row = self._own(connection, charge)
            return enter(connection, row, to, stamp(self._clock), answer=answer, reason=reason)

    def _own(self, connection: Connection, charge: Charge) -> Row[Any]:
        """A charge as it is on record, which this process reserved."""
        row = read_charge(connection, charge.id)
        if row.holder != self._holder:
            raise WorkspaceError(
                f"Charge {charge.id} was reserved by another process.",
                fixes=("recover() when that process has ended",),
            )
        return row


def _check_names(**names: str) -> None:
    for what, name in names.items():
        if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise InvalidInput(f"The {what} must be a printable text of 1 to {_LONGEST_NAME} characters.")


def _check_amount(amount: object) -> None:
    if not isinstance(amount, Epsilon):
        raise InvalidEpsilon(f"An amount must be an Epsilon, not {type(amount).__name__}.")
    if amount > _MOST:
        raise InvalidEpsilon(f"{amount} is more than a ledger can hold ({_MOST}).")


def _json(what: str, facts: Mapping[str, object]) -> str:
    try:
        return canonical(dict(facts))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The {what} must be JSON ({type(error).__name__}).") from None
