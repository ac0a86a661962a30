"""The audit: replay every event, and compare what must be true with what is stored.

It finds what was changed without care: a row edited, removed or added by hand, a bug in the books. Someone
who can write the database and recomputes every hash is not found by it, nor is one who puts an older copy in
its place; for that a head is kept elsewhere (``values.py``), and the books must extend it.

What the events say of rows outside the ledger, compared with the rows as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from sqlalchemy import Connection, select

from blowfishdb.adapters.store.chain import (
    COVERED,
    FACTS,
    NOTES,
    ChainedEvent,
    digest,
    link_of,
    place_of,
    present,
    seal,
    seal_key,
)
from blowfishdb.adapters.store.charges import carried_by
from blowfishdb.adapters.store.releases import compare_releases
from blowfishdb.adapters.store.tables import (
    SEAL_KEY,
    START,
    accounts,
    budgets,
    charges,
    events,
    heads,
    losses,
    promises,
    seals,
)
from blowfishdb.adapters.store.values import Audited, Head, State
from blowfishdb.core.errors import WorkspaceError

_OF = {covered.table.name: covered for covered in COVERED}


@final
@dataclass
class SealReplay:
    """The seals that the events add up to."""

    known: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By place: the seal, and the row in words."""
    since: str | None = None
    checked: dict[str, int] = field(default_factory=dict)
    _problems: list[str] = field(default_factory=list)

    def read(self, event: ChainedEvent) -> None:
        """One event more."""
        if event.kind == "covered" and self.since is None:
            self.since = event.at
        for entry in event.sealed:
            covered = _OF[entry["of"]]
            place, words = place_of(entry["of"], entry["key"]), covered.said(entry["key"])
            if entry.get("altered"):
                self._problems.append(
                    f"{words} was not as it had been left when event {event.seq} changed it."
                )
            if entry["seal"] is None:
                self.known.pop(place, None)
            else:
                self.known[place] = entry["seal"], words

    def compare(self, connection: Connection) -> list[str]:
        """What is not as it was sealed."""
        problems, left = list(self._problems), dict(self.known)
        self.checked = {covered.nouns: 0 for covered in COVERED}
        try:
            secret = seal_key(connection)
        except WorkspaceError as error:
            return [*problems, f"{error.message} Nothing outside the ledger could be checked."]
        for covered, place, row in present(connection):
            self.checked[covered.nouns] += 1
            found = left.pop(place, None)
            if found is None:
                problems.append(
                    f"{covered.said(covered.named(row))} is not on record: no event speaks of it."
                )
            elif found[0] != seal(secret, covered.table.name, row):
                problems.append(f"{found[1]} was changed outside of BlowfishDB.")
        problems += [f"{words} is missing." for _, words in left.values()]
        cached = {row.place: row.seal for row in connection.execute(select(seals)) if row.place != SEAL_KEY}
        if cached != {place: found for place, (found, _) in self.known.items()}:
            problems.append("The seals are not those that the events speak of.")
        return problems


_NOT_UNDERSTOOD: Final = (LookupError, ValueError, TypeError, AttributeError, RecursionError)
"""What an event raises that says nonsense: whoever edits by hand may put anything anywhere."""


def audit(connection: Connection, since: Sequence[Head] = ()) -> Audited:
    """Everything that is wrong, in words, what was looked at, and whether the books extend earlier heads."""
    replay = _Replay()
    head = replay.read_chain(connection, since)
    replay.compare_sums(connection)
    replay.compare_losses(connection)
    replay.compare_charges(connection)
    replay.problems += compare_releases(connection)
    replay.problems += replay.facts.compare(connection)
    checked = {
        "events": head.number,
        "budgets": len(replay.datasets),
        "grants and sums of analysts": len(replay.analysts),
        "charges and stored answers": len(replay.charges),
        "promises that are kept or were withdrawn": len(replay.promises),
        **replay.facts.checked,
    }
    return Audited(tuple(replay.problems), checked, head, replay.facts.since)


@final
@dataclass
class _Sums:
    """What a dataset or an analyst should show; ``limit`` is the budget or the grant."""

    limit: int | None = None
    spent: int = 0
    held: int = 0
    carried: int = 0

    @property
    def exceeded(self) -> bool:
        return self.spent + self.held > (self.limit or 0)

    @property
    def nothing_left(self) -> bool:
        """Whether nothing could have been charged: the past counts too, and alone may be above the limit."""
        return self.spent + self.held + self.carried > (self.limit or 0)

    @property
    def row(self) -> tuple[int | None, int, int]:
        return self.limit, self.spent, self.held

    def add(self, held: int, spent: int) -> None:
        self.held += held
        self.spent += spent


@final
@dataclass
class _Replay:
    """The state that the events add up to."""

    datasets: dict[str, _Sums] = field(default_factory=dict)
    analysts: dict[tuple[str, str], _Sums] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    promises: dict[tuple[str, int], _Sums] = field(default_factory=dict)
    withdrawn: dict[tuple[str, int], str] = field(default_factory=dict)
    losses: dict[int, dict[int, int]] = field(default_factory=dict)
    debits: dict[int, int] = field(default_factory=dict)
    """What the analyst pays for each charge."""
    charges: dict[int, dict[str, Any]] = field(default_factory=dict)
    refined: dict[int, int] = field(default_factory=dict)
    """By which charge a release was refined."""
    facts: SealReplay = field(default_factory=SealReplay)
    problems: list[str] = field(default_factory=list)

    # --- events ---------------------------------------------------------------------------------

    def read_chain(self, connection: Connection, since: Sequence[Head]) -> Head:
        """Replay every event, and return where they end."""
        previous, number = START, 0
        wanted: dict[int, list[Head]] = {}
        for kept in since:
            if kept.number:
                wanted.setdefault(kept.number, []).append(kept)
        for row in connection.execute(select(events).order_by(events.c.seq)):
            event = link_of(row)
            number += 1
            if event.seq != number:
                self.problems.append(f"Event {number} is missing; the next one is {event.seq}.")
                number = event.seq if isinstance(event.seq, int) else number
            if row.previous != previous:
                self.problems.append(f"Event {event.seq} does not follow the event before it.")
            if row.hash != _sealed(event, row.previous):
                self.problems.append(f"Event {event.seq} was changed.")
            previous = str(row.hash)
            if not all(kept.is_of(previous) for kept in wanted.pop(number, ())):
                self.problems.append(
                    f"Event {number} is another than it was: the books do not extend a head that was kept."
                )
            try:
                self._apply(event)
            except _NOT_UNDERSTOOD:
                self.problems.append(f"Event {event.seq} cannot be understood.")
        ends = [tuple(row) for row in connection.execute(select(heads))]
        if ends != [(1, number, previous)]:
            self.problems.append("The end of the events is not where it was: some were cut off or added.")
        self.problems += [
            f"The books end at event {number}, but a head of event {gone} was kept: they were rolled back."
            for gone in sorted(wanted)[:3]
        ]
        return Head(number, previous)

    def _apply(self, event: ChainedEvent) -> None:
        self.facts.read(event)
        if event.kind in FACTS:
            self._note(event)
            return
        dataset = self.datasets.setdefault(event.dataset, _Sums())
        if event.kind == "budget":
            dataset.limit = event.amount
        elif event.kind == "grant":
            analyst = self.analysts.setdefault((event.dataset, event.analyst), _Sums())
            before = self.granted.get(event.dataset, 0) - (analyst.limit or 0)
            self.granted[event.dataset] = before + event.amount
            analyst.limit = event.amount
        elif event.kind == "carried":
            dataset.carried = event.amount
        elif event.kind == "promise":
            facts = event.facts
            self.promises[event.dataset, facts["version"]] = _Sums(event.amount, spent=facts["spent"])
        elif event.kind == "withdrawn":
            self.withdrawn[event.dataset, event.facts["version"]] = event.at
        elif event.kind in NOTES:
            self._note(event)
        elif event.kind == State.RESERVED.value:
            self._reserve(event)
        else:
            self._move(event, State(event.kind))
        self._check_limits(event)

    def _note(self, event: ChainedEvent) -> None:
        """Its facts can be read, and it moves nothing; a policy says what was lost before it."""
        carried = carried_by(event.facts) if event.kind == "policy" else None
        if carried is not None:
            self.datasets[event.dataset].carried = carried.nano
        if event.amount or event.charge is not None or not event.facts:
            self.problems.append(f"Event {event.seq} is a note that is not only a note.")

    def _reserve(self, event: ChainedEvent) -> None:
        facts = event.facts
        needed = {int(version): amount for version, amount in facts.pop("losses", {}).items()}
        largest = max(event.amount, *needed.values(), event.amount)
        debit = facts.pop("debit", None)
        if debit not in (None, largest):
            self.problems.append(f"Event {event.seq} does not debit the largest loss.")
        paid = event.amount if debit is None else debit  # before it was noted, whatever else was promised
        self.losses[event.seq], self.debits[event.seq] = needed, paid
        kept = {
            version for name, version in self.promises.keys() - self.withdrawn.keys() if name == event.dataset
        }
        if needed.keys() != kept:
            self.problems.append(f"Event {event.seq} does not say what it costs under every kept promise.")
        if "refines" in facts:
            self._refine(event, facts["refines"])
        self.charges[event.seq] = {
            "dataset": event.dataset,
            "analyst": event.analyst,
            "amount": event.amount,
            "state": event.kind,
            "reserved_at": event.at,
            "changed_at": event.at,
            "answer": None,
            "reason": None,
            **dict.fromkeys(("request", "asked", "part", "refines")),
            **facts,
        }
        self._book(event, event.seq, held=True)
        if event.amount and self.datasets[event.dataset].nothing_left:
            self.problems.append(f"Event {event.seq}: '{event.dataset}' used more than its budget.")
        for version, amount in needed.items():
            promise = self.promises[event.dataset, version]
            promise.add(amount, 0)
            if amount and promise.exceeded:
                self.problems.append(f"Event {event.seq}: policy version {version} lost more than promised.")
        mine = self.analysts[event.dataset, event.analyst]
        if event.dataset in self.granted and paid and mine.exceeded:
            self.problems.append(f"Event {event.seq}: '{event.analyst}' used more than was granted.")

    def _refine(self, event: ChainedEvent, number: int) -> None:
        """A release is made more accurate once."""
        before = self.charges.get(self.refined.get(number, 0))
        again = before is not None and before["state"] != State.VOID.value
        if again or self.charges[number]["state"] != State.SETTLED.value:
            self.problems.append(f"Event {event.seq} refines release {number}, which it could not.")
        self.refined[number] = event.seq

    def _move(self, event: ChainedEvent, state: State) -> None:
        known = self.charges[event.charge or 0]
        if not state.follows(State(known["state"]), known["amount"]):
            self.problems.append(
                f"Event {event.seq}: a charge that was {known['state']} became {state.value}."
            )
        if (known["dataset"], known["analyst"], known["amount"]) != (
            event.dataset,
            event.analyst,
            event.amount,
        ):
            self.problems.append(f"Event {event.seq} speaks of another charge than number {event.charge}.")
        known.update(event.facts, state=state.value, changed_at=event.at)
        if not state.held:
            self._book(event, event.charge or 0, spent=state.spent)
            for version, amount in self.losses[event.charge or 0].items():
                self.promises[event.dataset, version].add(-amount, amount if state.spent else 0)

    def _book(self, event: ChainedEvent, charge: int, *, held: bool = False, spent: bool = False) -> None:
        account = self.analysts.setdefault((event.dataset, event.analyst), _Sums())
        for sums, amount in ((self.datasets[event.dataset], event.amount), (account, self.debits[charge])):
            sums.add(amount if held else -amount, amount if spent else 0)

    def _check_limits(self, event: ChainedEvent) -> None:
        dataset = self.datasets[event.dataset]
        if dataset.exceeded:
            self.problems.append(f"Event {event.seq}: '{event.dataset}' used more than its budget.")
        if self.granted.get(event.dataset, 0) > (dataset.limit or 0):
            self.problems.append(f"Event {event.seq}: the grants on '{event.dataset}' exceed its budget.")

    # --- what is stored -------------------------------------------------------------------------

    def compare_sums(self, connection: Connection) -> None:
        shown = {
            row.dataset: (row.total, row.spent, row.held, row.carried)
            for row in connection.execute(select(budgets))
        }
        for name in sorted(shown.keys() | self.datasets.keys(), key=repr):
            known = self.datasets.get(name)
            if known is None or shown.get(name) != (*known.row, known.carried):
                self.problems.append(f"The budget of '{name}' is not what its events add up to.")
        kept = {
            (row.dataset, row.version): (row.total, row.spent, row.held, row.withdrawn)
            for row in connection.execute(select(promises))
        }
        added = {key: (*sums.row, self.withdrawn.get(key)) for key, sums in self.promises.items()}
        for key in sorted(kept.keys() | added.keys(), key=repr):
            if kept.get(key) != added.get(key):
                self.problems.append(f"The promise {key[1]} of '{key[0]}' is not what its events add up to.")
        each = {
            (row.dataset, row.analyst): (row.granted, row.spent, row.held)
            for row in connection.execute(select(accounts))
        }
        for key in sorted(each.keys() | self.analysts.keys(), key=repr):
            if key not in self.analysts or each.get(key) != self.analysts[key].row:
                self.problems.append(f"What '{key[1]}' spent on '{key[0]}' is not what the events add up to.")

    def compare_losses(self, connection: Connection) -> None:
        shown: dict[int, dict[int, int]] = {}
        for row in connection.execute(select(losses)):
            shown.setdefault(row.charge, {})[row.version] = row.amount
        known = {charge for charge, needed in self.losses.items() if needed}
        for number in sorted(shown.keys() | known, key=repr):
            if shown.get(number) != self.losses.get(number):
                self.problems.append(f"What charge {number} costs under kept promises was changed.")

    def compare_charges(self, connection: Connection) -> None:
        expected = dict(self.charges)
        for row in connection.execute(select(charges).order_by(charges.c.id)):
            facts = expected.pop(row.id, None)
            if facts is None:
                self.problems.append(f"Charge {row.id} has no event.")
                continue
            stored = dict(row._mapping)
            stored["detail"] = _digest(row.detail)
            stored["answer"] = None if row.answer is None else _digest(row.answer)
            wrong = sorted(name for name, value in facts.items() if stored.get(name) != value)
            if wrong:
                self.problems.append(f"Charge {row.id} was changed: {', '.join(wrong)}.")
        self.problems += [f"Charge {number} is missing." for number in expected]


def _sealed(event: ChainedEvent, previous: object) -> str | None:
    """The hash that an event should have; None for one that cannot have been written here."""
    try:
        return event.seal(str(previous))
    except (TypeError, ValueError):
        return None


def _digest(stored: object) -> str | None:
    return digest(stored) if isinstance(stored, str) else None
