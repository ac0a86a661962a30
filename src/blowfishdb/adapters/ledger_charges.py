"""Charges inside one transaction: opened, moved from state to state, abandoned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from blowfishdb.adapters.clock import stamp
from blowfishdb.adapters.heads import Head
from blowfishdb.adapters.ledger_books import book
from blowfishdb.adapters.ledger_events import append, canonical, digest
from blowfishdb.adapters.ledger_promises import end_losses, hold_losses
from blowfishdb.adapters.ledger_values import Charge, RequestKey, State
from blowfishdb.adapters.store_schema import charges, heads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import AnswerInProgress, AnswerLost, KeyReused, WorkspaceError

# --- reading ----------------------------------------------------------------------------------


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


def unfinished() -> ColumnElement[bool]:
    """Neither answered nor ended."""
    return charges.c.state.in_((State.RESERVED.value, State.READING.value))


def changed_within(now: datetime, span: timedelta) -> ColumnElement[bool]:
    """Changed less than ``span`` ago. A clock that was set back makes moments that lie as far ahead."""
    return charges.c.changed_at.between(stamp(lambda: now - span), stamp(lambda: now + span))


def check_not_in_progress(connection: Connection, question: str, recently: ColumnElement[bool]) -> None:
    """A recent unfinished charge may still become an answer; a settled one already is."""
    same = select(charges.c.id).where(
        charges.c.question == question,
        (unfinished() & recently) | (charges.c.state == State.SETTLED.value),
    )
    if connection.execute(same.limit(1)).first() is not None:
        raise AnswerInProgress(
            "This very question is being answered right now. Nothing was charged for asking it again.",
            fixes=("ask once more in a moment: the answer will be free",),
        )


def charged_under(connection: Connection, user: str, key: RequestKey) -> dict[int, Row[Any]]:
    """What was charged under a key so far, by its part: settled, or still under way.

    A charge that was lost is refused, every time in the same words. What was given back, or cost nothing and
    was lost, does not count.
    """
    rows = select(charges).where(charges.c.request == key.digest(user), charges.c.state != State.VOID.value)
    found = {}
    for row in connection.execute(rows.order_by(charges.c.id)):
        if row.asked != key.asked:
            raise KeyReused(
                "This idempotency key was already used for another request.", fixes=("a new key",)
            )
        if row.state == State.LOST.value and row.amount:
            raise AnswerLost(
                f"What was asked under this key was charged {Epsilon.from_nano(row.amount)} (no. {row.id}) "
                "and its answer was lost while the data was being read. Nothing more is charged under it.",
                fixes=("a new key, under which it is charged again",),
            )
        if row.state != State.LOST.value:
            found[row.part] = row
    return found


def check_not_charged(connection: Connection, user: str, key: RequestKey) -> None:
    """This part of a request has no charge yet; whoever comes second asks again and gets the answer."""
    if key.part in charged_under(connection, user, key):
        raise under_way()


def under_way() -> AnswerInProgress:
    """The same request, under the same key, is being answered."""
    return AnswerInProgress(
        "The same request is being answered right now. Nothing was charged for sending it again.",
        fixes=("the same request, with the same key, in a moment",),
    )


# --- writing ----------------------------------------------------------------------------------


def open_charge(
    connection: Connection,
    *,
    at: str,
    dataset: str,
    user: str,
    amount: Epsilon,
    question: str,
    detail: str,
    holder: str,
    state: State,
    losses: Mapping[int, Epsilon],
    key: RequestKey | None = None,
) -> Charge:
    """A new charge that is reserved, or in one go under reading; its number is that of its first event."""
    facts: dict[str, object] = {"question": question, "detail": digest(detail), "holder": holder}
    asked_under: dict[str, Any] = {}
    if key is not None:
        asked_under = {"request": key.digest(user), "asked": key.asked, "part": key.part}
    facts |= asked_under
    if losses:
        facts["losses"] = {str(version): loss.nano for version, loss in losses.items()}
    number = append(
        connection,
        at=at,
        kind=State.RESERVED.value,
        dataset=dataset,
        analyst=user,
        amount=amount.nano,
        body=canonical(facts),
    )
    if state is not State.RESERVED:
        append(
            connection,
            at=at,
            kind=state.value,
            dataset=dataset,
            analyst=user,
            amount=amount.nano,
            charge=number,
        )
    row = {
        "id": number,
        "dataset": dataset,
        "analyst": user,
        "amount": amount.nano,
        "question": question,
        "detail": detail,
        "holder": holder,
        "state": state.value,
        "reserved_at": at,
        "changed_at": at,
        **asked_under,
    }
    connection.execute(charges.insert().values(row))
    book(connection, dataset, user, held=amount.nano)
    hold_losses(connection, dataset, number, losses)
    moment = datetime.fromisoformat(at)
    head = Head(*connection.execute(select(heads.c.seq, heads.c.hash)).one())
    return Charge(
        number, dataset, user, amount, question, json.loads(detail), state, moment, moment, head=str(head)
    )


def enter(
    connection: Connection,
    row: Row[Any],
    to: State,
    at: str,
    *,
    answer: str | None = None,
    reason: str | None = None,
) -> Charge:
    """Move a charge on, if that is a step it may take."""
    state = State(row.state)
    if not to.follows(state, row.amount):
        raise WorkspaceError(f"Charge {row.id} is {state.value} and cannot become {to.value}.")
    facts = {"answer": None if answer is None else digest(answer), "reason": reason}
    append(
        connection,
        at=at,
        kind=to.value,
        dataset=row.dataset,
        analyst=row.analyst,
        amount=row.amount,
        charge=row.id,
        body=canonical({name: fact for name, fact in facts.items() if fact is not None}),
    )
    values = {"state": to.value, "changed_at": at, "answer": answer, "reason": reason}
    connection.execute(charges.update().where(charges.c.id == row.id).values(values))
    if not to.held:
        book(connection, row.dataset, row.analyst, held=-row.amount, spent=row.amount if to.spent else 0)
        end_losses(connection, row.dataset, row.id, spent=to.spent)
    return replace(charge_of(row), state=to, changed_at=datetime.fromisoformat(at), reason=reason)


def abandon(connection: Connection, row: Row[Any], now: Callable[[], str], restored: bool) -> Charge:
    """End an unfinished charge: voided if nothing can have been read for it, else lost."""
    reason = "left unfinished"
    if row.state == State.RESERVED.value:
        if not restored:
            return enter(connection, row, State.VOID, now(), reason=reason)
        enter(connection, row, State.READING, now())
        row = read_charge(connection, row.id)
    return enter(connection, row, State.LOST, now(), reason=reason)
