"""Notes that the processes of one workspace leave for each other, for a week at most.

They lie among the responses of ``Idempotency``, which are cleared after the same time, under keys that nobody
can send: those of requests are printable.
"""

from __future__ import annotations

from typing import Final, final

from sqlalchemy import ColumnElement, and_, select

from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import idempotency

_MARK: Final = "\x1f"
_NO_DIGEST: Final = "0" * 64


@final
class Scratch:
    """Texts by their owner and a name; safe to share between threads and processes."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def put(self, owner: str, name: str, body: str) -> None:
        """Leave a note, in place of an earlier one of that name."""
        here, now = _at(owner, name), stamp(self._clock)
        with self._store.writing() as connection:
            changed = connection.execute(idempotency.update().where(here).values(body=body, created=now))
            if not changed.rowcount:
                new = {
                    "owner": owner,
                    "key": _MARK + name,
                    "digest": _NO_DIGEST,
                    "body": body,
                    "created": now,
                }
                connection.execute(idempotency.insert().values(new))

    def replace(self, owner: str, name: str, body: str) -> bool:
        """Change a note; False if there is none."""
        with self._store.writing() as connection:
            return bool(
                connection.execute(idempotency.update().where(_at(owner, name)).values(body=body)).rowcount
            )

    def get(self, owner: str, name: str) -> str | None:
        """The note; None if there is none."""
        with self._store.reading() as connection:
            return connection.execute(select(idempotency.c.body).where(_at(owner, name))).scalar()

    def drop(self, owner: str, name: str) -> None:
        """Take the note away."""
        with self._store.writing() as connection:
            connection.execute(idempotency.delete().where(_at(owner, name)))


def _at(owner: str, name: str) -> ColumnElement[bool]:
    return and_(idempotency.c.owner == owner, idempotency.c.key == _MARK + name)
