"""Counts and pages of what is in the books, for whoever looks through them: sums are the database's work."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from sqlalchemy import case, func, select

from blowfishdb.adapters.store.chain import event_of
from blowfishdb.adapters.store.charges import charge_of
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.releases import in_parts
from blowfishdb.adapters.store.tables import charges, events
from blowfishdb.adapters.store.values import Answered, ChargePage, Event, EventPage, Spent, State
from blowfishdb.core.budget import Epsilon


@final
@dataclass(frozen=True, eq=False)
class Pages:
    """What is in the books of a workspace, without reading all of it."""

    _store: Store

    def answered(self, dataset: str | None = None, *, before: int | None = None) -> Answered:
        """How many settled answers there are, up to a number; none of them is read."""
        paid = func.sum(case((charges.c.amount > 0, 1), else_=0))
        sums = select(func.count(), paid, func.sum(charges.c.amount))
        sums = sums.where(charges.c.state == State.SETTLED.value)
        if dataset is not None:
            sums = sums.where(charges.c.dataset == dataset)
        if before is not None:
            sums = sums.where(charges.c.id < before)
        with self._store.reading() as connection:
            count, costly, spent = connection.execute(sums).one()
            return Answered(count, int(costly or 0), Epsilon.from_nano(int(spent or 0)))

    def numbers(self, dataset: str | None, *, order: str, limit: int, skip: int = 0) -> list[int]:
        """The numbers of settled answers in an order: ``new``, ``old``, or ``dear``, what cost most first."""
        by = {"old": (charges.c.id,), "dear": (charges.c.amount.desc(), charges.c.id.desc())}
        rows = select(charges.c.id).where(charges.c.state == State.SETTLED.value)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        rows = rows.order_by(*by.get(order, (charges.c.id.desc(),))).limit(limit).offset(skip)
        with self._store.reading() as connection:
            return [int(number) for number in connection.execute(rows).scalars()]

    def by_state(self, dataset: str) -> dict[State, tuple[int, Epsilon]]:
        """How many charges are in each state, and how much they are together."""
        sums = select(charges.c.state, func.count(), func.sum(charges.c.amount))
        sums = sums.where(charges.c.dataset == dataset).group_by(charges.c.state)
        with self._store.reading() as connection:
            return {
                State(state): (count, Epsilon.from_nano(int(amount)))
                for state, count, amount in connection.execute(sums)
            }

    def asked(self, numbers: Collection[int]) -> dict[int, str]:
        """The questions of charges, in words; those that have words."""
        questions: dict[int, str] = {}
        with self._store.reading() as connection:
            for some in in_parts(numbers):
                rows = select(charges.c.id, charges.c.detail).where(charges.c.id.in_(some))
                details = {row.id: json.loads(row.detail) for row in connection.execute(rows)}
                questions |= {
                    number: detail["question"] for number, detail in details.items() if "question" in detail
                }
        return questions

    def event_page(
        self, dataset: str, *, kind: str = "", analyst: str = "", number: int = 1, size: int = 100
    ) -> EventPage:
        """A page of the events of a dataset, the newest first; the last page for a number beyond it."""
        chosen = [events.c.dataset == dataset]
        chosen += [events.c.kind == kind] if kind else []
        chosen += [events.c.analyst == analyst] if analyst else []
        with self._store.reading() as connection:
            count = connection.execute(select(func.count()).select_from(events).where(*chosen)).scalar_one()
            pages = max(1, -(-count // size))
            number = min(pages, max(1, number))
            rows = select(events).where(*chosen).order_by(events.c.seq.desc())
            page = connection.execute(rows.limit(size).offset((number - 1) * size))
            return EventPage(tuple(event_of(row) for row in page), count, number, pages)

    def charge_page(
        self, dataset: str, *, state: str = "", analyst: str = "", number: int = 1, size: int = 50
    ) -> ChargePage:
        """A page of the charges of a dataset, the newest first, each with the events that it went through."""
        chosen = [charges.c.dataset == dataset]
        chosen += [charges.c.state == state] if state else []
        chosen += [charges.c.analyst == analyst] if analyst else []
        columns = [column for column in charges.c if column.name != "answer"]
        with self._store.reading() as connection:
            count = connection.execute(select(func.count()).select_from(charges).where(*chosen)).scalar_one()
            pages = max(1, -(-count // size))
            number = min(pages, max(1, number))
            rows = select(*columns).where(*chosen).order_by(charges.c.id.desc())
            page = [
                charge_of(row) for row in connection.execute(rows.limit(size).offset((number - 1) * size))
            ]
            found: dict[int, list[Event]] = {charge.id: [] for charge in page}
            its = select(events).where(events.c.dataset == dataset, events.c.charge.in_(list(found)))
            for row in connection.execute(its.order_by(events.c.seq)):
                found[row.charge].append(event_of(row))
        listed = tuple((charge, tuple(found[charge.id])) for charge in page)
        return ChargePage(listed, count, number, pages)

    def spending(self, dataset: str) -> list[Spent]:
        """What each of those who ask has spent on each day, oldest first; what is lost is spent, too."""
        day = func.substr(charges.c.changed_at, 1, 10)
        gone = charges.c.state.in_((State.SETTLED.value, State.LOST.value))
        sums = select(day, charges.c.analyst, func.sum(charges.c.amount))
        sums = sums.where(charges.c.dataset == dataset, gone, charges.c.amount > 0)
        with self._store.reading() as connection:
            rows = connection.execute(sums.group_by(day, charges.c.analyst).order_by(day, charges.c.analyst))
            return [Spent(day, analyst, Epsilon.from_nano(int(amount))) for day, analyst, amount in rows]

    def people(self, dataset: str) -> list[str]:
        """Whoever did anything about a dataset, by name."""
        with self._store.reading() as connection:
            names = select(events.c.analyst).where(events.c.dataset == dataset).distinct()
            return sorted(connection.execute(names).scalars())
