"""Looking back: what a ledger has on record, read a page at a time and never changed here."""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Column, Connection, Row, Select, bindparam, select

from blowfishdb.adapters.store.audit import audit
from blowfishdb.adapters.store.chain import event_of, link_of
from blowfishdb.adapters.store.charges import charge_of, read_charge, refined
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.releases import IndexedRelease, in_parts, release_of
from blowfishdb.adapters.store.tables import charges, events, grids, heads, releases
from blowfishdb.adapters.store.values import Audited, Charge, Event, Head, State, StoredAnswer

# Written once: every question runs them.
_ANSWERED: Final = (
    select(charges)
    .where(charges.c.question == bindparam("asked"), charges.c.state == State.SETTLED.value)
    .order_by(charges.c.id.desc())
    .limit(1)
)
_LAST_EVENT: Final = (
    select(events)
    .where(events.c.dataset == bindparam("of_dataset"), events.c.kind == bindparam("of_kind"))
    .order_by(events.c.seq.desc())
    .limit(1)
)
_RELEASES: Final = (
    select(releases)
    .where(releases.c.dataset == bindparam("of_dataset"), releases.c.seq > bindparam("behind"))
    .order_by(releases.c.seq)
)
_ANY_RELEASE: Final = select(releases.c.charge).where(releases.c.dataset == bindparam("of_dataset")).limit(1)

_MOST_WALKED: Final = 5_000
_LARGEST: Final = 2**63 - 1  # a database knows no number beyond


class Record(ABC):
    """Charges, answers and events as they stand in the books of a workspace."""

    _store: Store

    def charge(self, number: int) -> Charge:
        """One charge by its number."""
        with self._store.reading() as connection:
            return charge_of(read_charge(connection, number))

    def charges(self, dataset: str | None = None) -> list[Charge]:
        """All charges, oldest first."""
        columns = [column for column in charges.c if column.name != "answer"]
        rows = select(*columns).order_by(charges.c.id)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            return [charge_of(row) for row in connection.execute(rows)]

    def charged(self, dataset: str) -> bool:
        """Whether anything was ever charged to a dataset, or is being charged."""
        with self._store.reading() as connection:
            any_charge = select(charges.c.id).where(charges.c.dataset == dataset).limit(1)
            return connection.execute(any_charge).first() is not None

    def answer(self, question: str) -> StoredAnswer | None:
        """The newest settled answer to an identical question."""

        def read(connection: Connection) -> StoredAnswer | None:
            row = connection.execute(_ANSWERED, {"asked": question}).one_or_none()
            return None if row is None else StoredAnswer(charge_of(row), row.answer)

        return self._store.recalled(("answer", question), read)

    def answers(
        self,
        dataset: str | None = None,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        skip: int = 0,
    ) -> list[StoredAnswer]:
        """Settled answers, oldest first; with ``limit``, the last ones before number ``before``.

        With ``after``, the first ones behind that number instead. The first ``skip`` of these are left out.
        """
        rows = select(charges).where(charges.c.state == State.SETTLED.value)
        if dataset is not None:
            rows = rows.where(charges.c.dataset == dataset)
        with self._store.reading() as connection:
            page = _page(connection, rows.offset(skip or None), charges.c.id, limit, before, after)
            return [StoredAnswer(charge_of(row), row.answer) for row in page]

    def stored(self, numbers: Collection[int]) -> dict[int, StoredAnswer]:
        """Settled answers by their numbers; those that there are."""
        with self._store.reading() as connection:
            return _stored(connection, numbers)

    def at_hand(self, numbers: Sequence[int]) -> list[StoredAnswer]:
        """A few of them, kept in memory until anything is changed: what every price looks at."""
        read = self._store.recalled(("stored", *numbers), lambda connection: _stored(connection, numbers))
        return list(read.values())

    def releases(self, dataset: str, *, after: int = 0) -> list[IndexedRelease]:
        """What was measured for the answers of a dataset that were settled behind event ``after``, in order.

        Whoever writes waits for its turn, so none appears later in front of one that was seen.
        """

        def read(connection: Connection) -> list[IndexedRelease]:
            rows = connection.execute(_RELEASES, {"of_dataset": dataset, "behind": after})
            return [release_of(row) for row in rows]

        def any_release(connection: Connection) -> bool:
            return connection.execute(_ANY_RELEASE, {"of_dataset": dataset}).first() is not None

        if not after:  # all of them: they are read once, and need not be kept twice
            if not self._store.recalled(("any release", dataset), any_release):
                return []
            with self._store.reading() as connection:
                return read(connection)
        return [*self._store.recalled(("releases", dataset, after), read)]

    def refined(self, numbers: Collection[int]) -> set[int]:
        """Which of these releases cannot be refined any more."""
        return {*self._store.recalled(("refined", *numbers), lambda read: refined(read, numbers))}

    def grids(self, names: Collection[str]) -> dict[str, str]:
        """Boxes by their names, as JSON."""
        boxes: dict[str, str] = {}
        with self._store.reading() as connection:
            for some in in_parts(names):
                rows = connection.execute(select(grids).where(grids.c.grid.in_(some)))
                boxes |= {row.grid: row.axes for row in rows}
        return boxes

    def leads_to(self, head: Head, number: int, answer: str) -> bool:
        """Whether the books lead from a head to the event that settled a charge with an answer of this hash.

        Every event between the two must have the hash that follows from the one before it. At most some
        thousand are looked at: whoever may ask for this need not be known.
        """
        first = min(head.number, number)
        rows = select(events).where(events.c.seq >= first).order_by(events.c.seq).limit(_MOST_WALKED)
        previous, seen, settled = None, False, False
        with self._store.reading() as connection:
            for row in connection.execute(rows):
                event = link_of(row)
                if event.seal(row.previous) != row.hash or previous not in (None, row.previous):
                    return False
                previous = row.hash
                seen |= row.seq == head.number and head.is_of(row.hash)
                if row.charge == number and row.kind == State.SETTLED.value:
                    settled = event.facts.get("answer") == answer
                if seen and settled:
                    return True
        return False

    def events(
        self,
        dataset: str | None = None,
        *,
        kinds: Collection[str] = (),
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        """Everything that was ever entered, oldest first, with the hashes that chain it; or some kinds.

        With ``limit``, the last ones before number ``before``, or the first ones behind ``after``.
        """
        rows = select(events)
        if dataset is not None:
            rows = rows.where(events.c.dataset == dataset)
        if kinds:
            rows = rows.where(events.c.kind.in_(kinds))
        with self._store.reading() as connection:
            return [event_of(row) for row in _page(connection, rows, events.c.seq, limit, before, after)]

    def newest(self, dataset: str, kind: str) -> Event | None:
        """The last event of a kind."""
        with self._store.reading() as connection:
            row = connection.execute(_LAST_EVENT, {"of_dataset": dataset, "of_kind": kind}).one_or_none()
            return None if row is None else event_of(row)

    def audit(self, since: Sequence[Head] = ()) -> Audited:
        """What is wrong with the books, and what was looked at; they must extend every head in ``since``."""
        with self._store.reading() as connection:
            return audit(connection, since)

    def head(self) -> Head:
        """Where the books end; short enough to be kept elsewhere."""
        with self._store.reading() as connection:
            return Head(*connection.execute(select(heads.c.seq, heads.c.hash)).one())

    def verify(self) -> list[str]:
        """What is wrong with the books, in words; nothing if they are in order."""
        return list(self.audit().problems)


def _stored(connection: Connection, numbers: Collection[int]) -> dict[int, StoredAnswer]:
    answers: dict[int, StoredAnswer] = {}
    for some in in_parts([number for number in numbers if 0 < number <= _LARGEST]):
        rows = select(charges).where(charges.c.id.in_(some), charges.c.state == State.SETTLED.value)
        answers |= {row.id: StoredAnswer(charge_of(row), row.answer) for row in connection.execute(rows)}
    return answers


def _page(
    connection: Connection,
    rows: Select[Any],
    number: Column[int],
    limit: int | None,
    before: int | None,
    after: int | None,
) -> list[Row[Any]]:
    """Some rows in the order of their numbers."""
    if before is not None:
        rows = rows.where(number < before)
    if after is not None:
        rows = rows.where(number > after)
    if limit is None or after is not None:
        return list(connection.execute(rows.order_by(number).limit(limit)))
    return list(connection.execute(rows.order_by(number.desc()).limit(limit)))[::-1]
