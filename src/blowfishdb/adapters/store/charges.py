"""Charges inside one transaction: opened, moved from state to state, abandoned.

The books: reading and changing the cached sums of a ledger, inside one transaction.

Earlier policies that are still kept, inside one transaction: what every new charge costs under them too.

A policy that is loosened does not undo what was promised: the older promise stays until it is withdrawn, and
a question needs room under each of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, Connection, Row, bindparam, func, select

from blowfishdb.adapters.store.chain import append, canonical, digest
from blowfishdb.adapters.store.releases import enter_release
from blowfishdb.adapters.store.tables import (
    accounts,
    budgets,
    catalogue,
    charges,
    events,
    heads,
    losses,
    promises,
)
from blowfishdb.adapters.store.values import (
    Budget,
    Charge,
    Grant,
    Head,
    PolicyBalance,
    RequestKey,
    State,
    stamp,
)
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    AlreadyRefined,
    AnswerInProgress,
    AnswerLost,
    BudgetExhausted,
    KeyReused,
    PolicyConflict,
    UnknownDataset,
    WorkspaceError,
)

_DATASET: Final[BindParameter[str]] = bindparam("of_dataset")
_ANALYST: Final[BindParameter[str]] = bindparam("of_analyst")
_NUMBER: Final[BindParameter[int]] = bindparam("of_number")
_MORE: Final[dict[str, BindParameter[int]]] = {
    "held": bindparam("more_held"),
    "spent": bindparam("more_spent"),
}
# Statements that every question runs several times are written once: SQLAlchemy takes five times as long to
# put one together as SQLite takes to run it.
_BUDGET: Final = select(budgets).where(budgets.c.dataset == _DATASET)
_ACCOUNT: Final = select(accounts).where(accounts.c.dataset == _DATASET, accounts.c.analyst == _ANALYST)
_GRANTED: Final = select(func.sum(accounts.c.granted)).where(accounts.c.dataset == _DATASET)
_KEPT: Final = (
    select(promises)
    .where(promises.c.dataset == _DATASET, promises.c.withdrawn.is_(None))
    .order_by(promises.c.version)
)
_ANY_PROMISE: Final = select(promises.c.version).where(promises.c.dataset == _DATASET).limit(1)
_LOSSES: Final = select(losses).where(losses.c.charge == _NUMBER)
_BODY: Final = select(events.c.body).where(events.c.seq == _NUMBER)
_CHARGE: Final = select(charges).where(charges.c.id == _NUMBER)
_HEAD: Final = select(heads.c.seq, heads.c.hash)
_NEWEST_POLICY: Final = select(func.max(catalogue.c.version)).where(
    catalogue.c.kind == "policy", catalogue.c.name == _DATASET
)
_BOOK_BUDGET: Final = (
    budgets.update()
    .where(budgets.c.dataset == _DATASET)
    .values({name: budgets.c[name] + more for name, more in _MORE.items()})
)
_BOOK_ACCOUNT: Final = (
    accounts.update()
    .where(accounts.c.dataset == _DATASET, accounts.c.analyst == _ANALYST)
    .values({name: accounts.c[name] + more for name, more in _MORE.items()})
)
_BOOK_PROMISE: Final = (
    promises.update()
    .where(promises.c.dataset == _DATASET, promises.c.version == _NUMBER)
    .values({name: promises.c[name] + more for name, more in _MORE.items()})
)
_SET_TOTAL: Final = budgets.update().where(budgets.c.dataset == _DATASET).values(total=bindparam("new_total"))
_MOVE: Final = (
    charges.update()
    .where(charges.c.id == _NUMBER)
    .values(
        state=bindparam("new_state"),
        changed_at=bindparam("now"),
        answer=bindparam("given"),
        reason=bindparam("why"),
    )
)


def read_budget(connection: Connection, dataset: str) -> Budget:
    """The budget of a dataset that has one."""
    row = connection.execute(_BUDGET, {"of_dataset": dataset}).one_or_none()
    if row is None:
        raise UnknownDataset(f"'{dataset}' has no budget.", fixes=("let the curator set one",))
    return Budget(dataset, *map(Epsilon.from_nano, (row.total, row.spent, row.held, row.carried)))


def declare_budget(connection: Connection, dataset: str, total: Epsilon, by: str, *, at: str) -> None:
    """Write down what a dataset may lose in all, for the first time or anew."""
    row = {"dataset": dataset, "total": total.nano, "spent": 0, "held": 0}
    left = connection.execute(_SET_TOTAL, {"of_dataset": dataset, "new_total": total.nano})
    if not left.rowcount:
        connection.execute(budgets.insert(), row)
    append(connection, at=at, kind="budget", dataset=dataset, analyst=by, amount=total.nano)


def read_grant(connection: Connection, dataset: str, user: str) -> Grant:
    """What a user may spend and has spent; nothing for someone who never asked."""
    row = connection.execute(_ACCOUNT, {"of_dataset": dataset, "of_analyst": user}).one_or_none()
    return Grant(dataset, user, None, Epsilon(0), Epsilon(0)) if row is None else grant_of(row)


def grant_of(row: Row[Any]) -> Grant:
    """A row of accounts as a value."""
    granted = None if row.granted is None else Epsilon.from_nano(row.granted)
    return Grant(row.dataset, row.analyst, granted, *map(Epsilon.from_nano, (row.spent, row.held)))


def sum_of_grants(connection: Connection, dataset: str) -> Epsilon | None:
    """Everything granted; None if nobody has a grant."""
    granted = connection.execute(_GRANTED, {"of_dataset": dataset}).scalar()
    return None if granted is None else Epsilon.from_nano(int(granted))


def check_affordable(
    connection: Connection, dataset: str, user: str, amount: Epsilon, losses: Mapping[int, Epsilon]
) -> None:
    """The dataset can lose ``amount`` more, and the user may spend what is lost under any promise."""
    budget, needed = read_budget(connection, dataset), debit(amount, losses)
    if not needed:
        return
    left = left_of_grant(connection, dataset, user)
    if left is not None and needed > left and (left <= budget.remaining or amount <= budget.remaining):
        raise BudgetExhausted(
            f"The grant of '{user}' on '{dataset}' does not reach: needs {needed}, {left} left.",
            needed=needed,
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


def debit(amount: Epsilon, losses: Mapping[int, Epsilon]) -> Epsilon:
    """What an analyst pays for a charge: the largest loss, under the policy of today or a kept promise."""
    return max(amount, *losses.values(), amount)


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


def book(connection: Connection, dataset: str, *, held: int, spent: int = 0) -> None:
    """Add to the sums of a dataset, in nano-ε."""
    connection.execute(_BOOK_BUDGET, {"of_dataset": dataset, "more_held": held, "more_spent": spent})


def book_account(connection: Connection, dataset: str, user: str, *, held: int, spent: int = 0) -> None:
    """Add to the sums of a user, in nano-ε."""
    more = {"of_dataset": dataset, "of_analyst": user, "more_held": held, "more_spent": spent}
    if not connection.execute(_BOOK_ACCOUNT, more).rowcount:  # the first charge of this user
        row = {"dataset": dataset, "analyst": user, "spent": spent, "held": held}
        connection.execute(accounts.insert(), row)


def carried_by(facts: Mapping[str, Any]) -> Epsilon | None:
    """What a budget has to make good for answers before a policy was published, above what they had cost.

    Nothing if no budget could: an exact answer told apart what the policy hides, and the promise is about
    answers from then on. None if the record of the policy does not say what was lost.
    """
    if "past" not in facts:
        return None
    lost, paid = facts["past"]["epsilon"], Epsilon(facts.get("paid", facts["spent_before"]))
    return Epsilon(0) if lost is None or Epsilon(lost) <= paid else Epsilon(lost) - paid


def active_promises(connection: Connection, dataset: str) -> list[PolicyBalance]:
    """The earlier policies of a dataset that nobody has withdrawn, oldest first."""
    return [promise_of(row) for row in connection.execute(_KEPT, {"of_dataset": dataset})]


def promise_of(row: Row[Any]) -> PolicyBalance:
    """A row of promises as a value."""
    return PolicyBalance(
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
    return connection.execute(_NEWEST_POLICY, {"of_dataset": dataset}).scalar() or 0


def hold_losses(connection: Connection, dataset: str, charge: int, needed: Mapping[int, Epsilon]) -> None:
    """Set aside what a new charge costs under each promise."""
    for version, amount in needed.items():
        row = {"charge": charge, "version": version, "amount": amount.nano}
        connection.execute(losses.insert(), row)
        book_promise(connection, dataset, version, held=amount.nano)


def end_losses(connection: Connection, dataset: str, charge: int, *, spent: bool) -> None:
    """A charge is over: what it held is spent, or given back."""
    if connection.execute(_ANY_PROMISE, {"of_dataset": dataset}).first() is None:
        return
    for row in connection.execute(_LOSSES, {"of_number": charge}).all():
        book_promise(connection, dataset, row.version, held=-row.amount, spent=row.amount if spent else 0)


def book_promise(connection: Connection, dataset: str, version: int, *, held: int, spent: int = 0) -> None:
    """Add to the sums of a promise, in nano-ε."""
    this = {"of_dataset": dataset, "of_number": version}
    connection.execute(_BOOK_PROMISE, {**this, "more_held": held, "more_spent": spent})


# --- reading ----------------------------------------------------------------------------------


def read_charge(connection: Connection, number: int) -> Row[Any]:
    """One row of charges."""
    row = connection.execute(_CHARGE, {"of_number": number}).one_or_none()
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
            refines=row.refines,
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
        if row.state == State.LOST.value and (paid := debited(connection, row)):
            raise AnswerLost(
                f"What was asked under this key was charged {Epsilon.from_nano(paid)} (no. {row.id}) "
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


def refined(connection: Connection, numbers: Collection[int]) -> set[int]:
    """Which releases were refined, are being refined, or were lost while they were: none can be again."""
    rows = select(charges.c.refines).where(
        charges.c.refines.in_(list(numbers)), charges.c.state != State.VOID.value
    )
    return {row.refines for row in connection.execute(rows)}


def check_refinable(connection: Connection, number: int) -> None:
    """A release is out and nobody has refined it."""
    if read_charge(connection, number).state != State.SETTLED.value or refined(connection, (number,)):
        raise AlreadyRefined(
            f"Answer {number} was made more accurate meanwhile. Nothing was charged.",
            fixes=("ask again: the price is worked out anew",),
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
    refines: int | None = None,
) -> Charge:
    """A new charge that is reserved, or in one go under reading; its number is that of its first event."""
    facts: dict[str, object] = {"question": question, "detail": digest(detail), "holder": holder}
    once_only: dict[str, Any] = {}
    if key is not None:
        once_only = {"request": key.digest(user), "asked": key.asked, "part": key.part}
    if refines is not None:
        once_only["refines"] = refines
    facts |= once_only
    paid = debit(amount, losses)
    if losses:
        facts["losses"] = {str(version): loss.nano for version, loss in losses.items()}
        facts["debit"] = paid.nano
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
        **once_only,
    }
    connection.execute(charges.insert(), row)
    book(connection, dataset, held=amount.nano)
    book_account(connection, dataset, user, held=paid.nano)
    hold_losses(connection, dataset, number, losses)
    moment = datetime.fromisoformat(at)
    head = Head(*connection.execute(_HEAD).one())
    return Charge(
        id=number,
        dataset=dataset,
        user=user,
        amount=amount,
        question=question,
        detail=json.loads(detail),
        state=state,
        reserved_at=moment,
        changed_at=moment,
        refines=refines,
        head=str(head),
        debit=paid,
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
    seq = append(
        connection,
        at=at,
        kind=to.value,
        dataset=row.dataset,
        analyst=row.analyst,
        amount=row.amount,
        charge=row.id,
        body=canonical({name: fact for name, fact in facts.items() if fact is not None}),
    )
    moved = {"of_number": row.id, "new_state": to.value, "now": at, "given": answer, "why": reason}
    connection.execute(_MOVE, moved)
    if answer is not None:
        enter_release(connection, row.dataset, row.id, seq, answer)
    if not to.held:
        book(connection, row.dataset, held=-row.amount, spent=row.amount if to.spent else 0)
        paid = debited(connection, row)
        book_account(connection, row.dataset, row.analyst, held=-paid, spent=paid if to.spent else 0)
        end_losses(connection, row.dataset, row.id, spent=to.spent)
    return replace(charge_of(row), state=to, changed_at=datetime.fromisoformat(at), reason=reason)


def debited(connection: Connection, row: Row[Any]) -> int:
    """What was held of an account for a charge, in nano-ε: as its first event says, else its amount."""
    if connection.execute(_ANY_PROMISE, {"of_dataset": row.dataset}).first() is None:
        return int(row.amount)
    facts = json.loads(connection.execute(_BODY, {"of_number": row.id}).scalar_one())
    return int(facts.get("debit", row.amount))


def abandon(connection: Connection, row: Row[Any], now: Callable[[], str], restored: bool) -> Charge:
    """End an unfinished charge: voided if nothing can have been read for it, else lost."""
    reason = "left unfinished"
    if row.state == State.RESERVED.value:
        if not restored:
            return enter(connection, row, State.VOID, now(), reason=reason)
        enter(connection, row, State.READING, now())
        row = read_charge(connection, row.id)
    return enter(connection, row, State.LOST, now(), reason=reason)
