"""What the events say of rows outside the ledger, compared with the rows as they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sqlalchemy import Connection, select

from blowfishdb.adapters.ledger_events import Link
from blowfishdb.adapters.seals import COVERED, place_of, present, seal, seal_key
from blowfishdb.adapters.store_schema import SEAL_KEY, seals
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

    def read(self, event: Link) -> None:
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
