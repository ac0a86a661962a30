"""The event chain: every change of the ledger, each sealed with the hash of the one before it.

Whoever changes, removes or reorders an event breaks the chain; cutting off its end disagrees with the head.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import Connection, select

from blowfishdb.adapters.store_schema import events, heads


def canonical(value: object) -> str:
    """The one way to write a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class Event:
    """One step: ``kind`` is budget, grant, or the state that a charge entered."""

    seq: int
    at: str
    kind: str
    dataset: str
    analyst: str
    charge: int | None
    amount: int
    body: str

    def seal(self, previous: str) -> str:
        """The hash of this event behind ``previous``."""
        return digest(previous + "\n" + canonical(vars(self)))

    @property
    def facts(self) -> dict[str, Any]:
        """The body, parsed."""
        return dict(json.loads(self.body))


def append(
    connection: Connection,
    *,
    at: str,
    kind: str,
    dataset: str,
    analyst: str,
    amount: int,
    charge: int | None = None,
    facts: Mapping[str, object] | None = None,
) -> Event:
    """Add an event behind the last; a charge without a number takes the number of its first event."""
    head = connection.execute(select(heads.c.seq, heads.c.hash)).one()
    seq = head.seq + 1
    number = seq if kind == "reserved" else charge
    event = Event(
        seq=seq,
        at=at,
        kind=kind,
        dataset=dataset,
        analyst=analyst,
        charge=number,
        amount=amount,
        body=canonical(dict(facts or {})),
    )
    sealed = event.seal(head.hash)
    connection.execute(events.insert().values(**vars(event), previous=head.hash, hash=sealed))
    connection.execute(heads.update().values(seq=seq, hash=sealed))
    return event
