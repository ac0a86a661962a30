"""Counts and pages of what is in the books, for whoever looks through them: sums are the database's work."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import final

from sqlalchemy import case, func, select

from blowfishdb.adapters.store.chain import event_of
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.releases import in_parts
from blowfishdb.adapters.store.tables import charges, events
from blowfishdb.adapters.store.values import Answered, EventPage, State
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

    def people(self, dataset: str) -> list[str]:
        """Whoever did anything about a dataset, by name."""
        with self._store.reading() as connection:
            names = select(events.c.analyst).where(events.c.dataset == dataset).distinct()
            return sorted(connection.execute(names).scalars())
