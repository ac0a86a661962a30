"""The audit: replay every event, and compare what must be true with what is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

from sqlalchemy import Connection, select

from blowfishdb.adapters.ledger_events import START, Event, digest
from blowfishdb.adapters.ledger_values import State
from blowfishdb.adapters.store_schema import accounts, budgets, charges, events, heads

_FIELDS = ("seq", "at", "kind", "dataset", "analyst", "charge", "amount", "body")


def audit(connection: Connection) -> list[str]:
    """Everything that is wrong, in words."""
    replay = _Replay()
    replay.read_chain(connection)
    replay.compare_sums(connection)
    replay.compare_charges(connection)
    return replay.problems


@final
@dataclass
class _Sums:
    """What an account or a dataset should show; ``limit`` is its budget or grant."""

    limit: int | None = None
    spent: int = 0
    held: int = 0

    @property
    def used(self) -> int:
        return self.spent + self.held


@final
@dataclass
class _Replay:
    """The state that the events add up to."""

    datasets: dict[str, _Sums] = field(default_factory=dict)
    analysts: dict[tuple[str, str], _Sums] = field(default_factory=dict)
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def read_chain(self, connection: Connection) -> None:
        previous, number = START, 0
        for row in connection.execute(select(events).order_by(events.c.seq)):
            number += 1
            event = Event(**{name: getattr(row, name) for name in _FIELDS})
            if event.seq != number:
                self.problems.append(f"Event {number} is missing; the next one is {event.seq}.")
                number = event.seq
            if row.previous != previous:
                self.problems.append(f"Event {event.seq} does not follow the event before it.")
            if row.hash != event.seal(row.previous):
                self.problems.append(f"Event {event.seq} was changed.")
            previous = row.hash
            try:
                self._apply(event)
            except (KeyError, ValueError, TypeError, AttributeError):
                self.problems.append(f"Event {event.seq} cannot be understood.")
        head = connection.execute(select(heads.c.seq, heads.c.hash)).one_or_none()
        if head is None or (head.seq, head.hash) != (number, previous):
            self.problems.append("The end of the events is not where it was: some were cut off or added.")

    def _apply(self, event: Event) -> None:
        dataset = self.datasets.setdefault(event.dataset, _Sums())
        if event.kind == "budget":
            dataset.limit = event.amount
        else:
            analyst = self.analysts.setdefault((event.dataset, event.analyst), _Sums())
            if event.kind == "grant":
                analyst.limit = event.amount
            else:
                self._apply_to_charge(event, State(event.kind), dataset, analyst)
        self._check_limits(event, dataset)

    def _apply_to_charge(self, event: Event, state: State, dataset: _Sums, analyst: _Sums) -> None:
        if state is State.RESERVED:
            self.charges[event.seq] = {
                "dataset": event.dataset,
                "analyst": event.analyst,
                "amount": event.amount,
                "reserved_at": event.at,
                "answer": None,
                "reason": None,
                **event.facts,
            }
            change = (event.amount, 0)
        else:
            known = self.charges[event.charge or 0]
            if known["state"] != (state.before and state.before.value):
                self.problems.append(
                    f"Event {event.seq}: a charge that was {known['state']} became {state.value}."
                )
            if (known["dataset"], known["analyst"], known["amount"]) != (
                event.dataset,
                event.analyst,
                event.amount,
            ):
                self.problems.append(
                    f"Event {event.seq} speaks of another charge than number {event.charge}."
                )
            known.update(event.facts)
            change = (0, 0) if state.held else (-event.amount, event.amount if state.spent else 0)
        self.charges[event.charge or 0].update(state=state.value, changed_at=event.at)
        for sums in (dataset, analyst):
            sums.held += change[0]
            sums.spent += change[1]

    def _check_limits(self, event: Event, dataset: _Sums) -> None:
        if dataset.used > (dataset.limit or 0):
            self.problems.append(f"Event {event.seq}: '{event.dataset}' used more than its budget.")
        grants = {who: sums for (name, who), sums in self.analysts.items() if name == event.dataset}
        granted = [sums.limit for sums in grants.values() if sums.limit is not None]
        if sum(granted) > (dataset.limit or 0):
            self.problems.append(f"Event {event.seq}: the grants on '{event.dataset}' exceed its budget.")
        mine = grants.get(event.analyst)
        if granted and event.kind == State.RESERVED.value and event.amount and mine is not None:
            if mine.used > (mine.limit or 0):
                self.problems.append(f"Event {event.seq}: '{event.analyst}' used more than granted.")

    def compare_sums(self, connection: Connection) -> None:
        shown = {row.dataset: (row.total, row.spent, row.held) for row in connection.execute(select(budgets))}
        derived = {name: (sums.limit, sums.spent, sums.held) for name, sums in self.datasets.items()}
        for name in sorted(shown.keys() | derived.keys()):
            if shown.get(name) != derived.get(name):
                self.problems.append(f"The budget of '{name}' is not what its events add up to.")
        each = {
            (r.dataset, r.analyst): (r.granted, r.spent, r.held) for r in connection.execute(select(accounts))
        }
        owed = {key: (sums.limit, sums.spent, sums.held) for key, sums in self.analysts.items()}
        for key in sorted(each.keys() | owed.keys()):
            if each.get(key) != owed.get(key):
                self.problems.append(
                    f"The account of '{key[1]}' on '{key[0]}' is not what its events add up to."
                )

    def compare_charges(self, connection: Connection) -> None:
        expected = dict(self.charges)
        for row in connection.execute(select(charges).order_by(charges.c.id)):
            facts = expected.pop(row.id, None)
            if facts is None:
                self.problems.append(f"Charge {row.id} has no event.")
                continue
            stored = dict(row._mapping)
            stored["detail"] = digest(row.detail)
            stored["answer"] = None if row.answer is None else digest(row.answer)
            wrong = sorted(name for name, value in facts.items() if stored[name] != value)
            if wrong:
                self.problems.append(f"Charge {row.id} was changed: {', '.join(wrong)}.")
        self.problems += [f"Charge {number} is missing." for number in expected]
