"""The event chain: every change of the ledger, each sealed with the hash of the one before it.

Whoever changes, removes or reorders an event breaks the chain; cutting off its end disagrees with the head.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from sqlalchemy import Connection, Row, select

from blowfishdb.adapters.ledger_values import Event
from blowfishdb.adapters.store_schema import events, heads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import WorkspaceError

Sealed = list[dict[str, Any]]
"""What an event says of rows outside the ledger (``seals.py``): which they are, and the seal of each."""
NOTES: Final = ("policy", "preview", "source")
"""Kinds of events that move no budget."""
FACTS: Final = ("entry", "account", "token", "request", "covered")
"""Kinds of events about rows outside the ledger."""
_SALT, _SEALED = "salt", "sealed"


def canonical(value: object) -> str:
    """The one way to write a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class Link:
    """One event as it is chained: ``kind`` is budget, grant, a note, or the state that a charge entered."""

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
        """What the event tells, without its salt and its seals."""
        return {name: fact for name, fact in json.loads(self.body).items() if name not in (_SALT, _SEALED)}

    @property
    def salt(self) -> str:
        """Random digits: without them nothing can be guessed from the hash. Older events have none."""
        return str(json.loads(self.body).get(_SALT, ""))

    @property
    def sealed(self) -> Sealed:
        """What it says of rows outside the ledger."""
        return list(json.loads(self.body).get(_SEALED, ()))


def append(
    connection: Connection,
    *,
    at: str,
    kind: str,
    dataset: str,
    analyst: str,
    amount: int,
    charge: int | None = None,
    body: str = "{}",
    sealed: Sequence[dict[str, Any]] = (),
) -> int:
    """Add an event behind the last, and return its number, which is also that of a charge it reserves.

    ``sealed`` are the seals of the rows outside the ledger that were changed with it.
    """
    head = connection.execute(select(heads.c.seq, heads.c.hash)).one()
    seq: int = head.seq + 1
    link = Link(
        seq=seq,
        at=at,
        kind=kind,
        dataset=dataset,
        analyst=analyst,
        charge=seq if kind == "reserved" else charge,
        amount=amount,
        body=_salted(body, sealed),
    )
    chained = link.seal(head.hash)
    connection.execute(events.insert().values(**vars(link), previous=head.hash, hash=chained))
    connection.execute(heads.update().values(seq=seq, hash=chained))
    return seq


def _salted(body: str, sealed: Sequence[dict[str, Any]]) -> str:
    told = {**json.loads(body), _SALT: secrets.token_hex(16)}
    return canonical({**told, _SEALED: list(sealed)} if sealed else told)


def link_of(row: Row[Any]) -> Link:
    """A row of events as it was sealed."""
    return Link(
        seq=row.seq,
        at=row.at,
        kind=row.kind,
        dataset=row.dataset,
        analyst=row.analyst,
        charge=row.charge,
        amount=row.amount,
        body=row.body,
    )


def event_of(row: Row[Any]) -> Event:
    """A row of events in the words of the ledger."""
    try:
        link = link_of(row)
        return Event(
            seq=row.seq,
            at=datetime.fromisoformat(row.at),
            kind=row.kind,
            dataset=row.dataset,
            analyst=row.analyst,
            charge=row.charge,
            amount=Epsilon.from_nano(row.amount),
            facts=link.facts,
            hash=row.hash,
            salt=link.salt,
            sealed=tuple(link.sealed),
        )
    except (ValueError, TypeError, AttributeError):
        raise WorkspaceError(f"Event {row.seq} cannot be read.", fixes=("verify() to see why",)) from None
