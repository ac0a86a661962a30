"""Requests that may be sent again: the same key gets the same response, and the work is done once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final

from sqlalchemy import ColumnElement, and_, or_, select

from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import idempotency
from blowfishdb.core.errors import AnswerInProgress, InvalidInput, KeyReused

_KEPT: Final = timedelta(days=7)
_PATIENCE: Final = timedelta(minutes=15)  # after this a request under way is taken for abandoned
_LONGEST: Final = 255


@final
class Idempotency:
    """The responses of the last seven days by user and key; safe to share between threads and processes.

    Whoever gets None from ``once`` does the work, and then calls ``keep``, or ``give_up`` if it failed and
    may be tried again.
    """

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def once(self, user: str, key: str, digest: str) -> str | None:
        """The stored response; None for the first who asks, who has the key from then on.

        ``digest`` is one of the request: another request may not have the same key.
        """
        _check(user, key, digest)
        now = self._clock().astimezone(UTC)
        with self._store.writing() as connection:
            connection.execute(idempotency.delete().where(_over(now)))
            row = connection.execute(select(idempotency).where(_at(user, key))).one_or_none()
            if row is None:
                mine = {"owner": user, "key": key, "digest": digest, "created": stamp(lambda: now)}
                connection.execute(idempotency.insert().values(mine))
                return None
            if row.digest != digest:
                raise KeyReused(
                    "This idempotency key was already used for another request.", fixes=("a new key",)
                )
            if row.body is None:
                raise AnswerInProgress(
                    "The same request is being answered right now.",
                    fixes=("the same request, with the same key, in a moment",),
                )
            return str(row.body)

    def keep(self, user: str, key: str, digest: str, body: str) -> None:
        """Store the response; the first one stays."""
        _check(user, key, digest)
        here, now = _at(user, key), stamp(self._clock)
        with self._store.writing() as connection:
            row = connection.execute(select(idempotency).where(here)).one_or_none()
            if row is None:
                new = {"owner": user, "key": key, "digest": digest, "body": body, "created": now}
                connection.execute(idempotency.insert().values(new))
            elif row.digest == digest and row.body is None:
                connection.execute(idempotency.update().where(here).values(body=body, created=now))

    def give_up(self, user: str, key: str) -> None:
        """There is no response, so the request may be sent again; one that was stored stays."""
        with self._store.writing() as connection:
            connection.execute(idempotency.delete().where(_at(user, key), idempotency.c.body.is_(None)))


def _at(user: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency.c.owner == user, idempotency.c.key == key)


def _over(now: datetime) -> ColumnElement[bool]:
    abandoned = idempotency.c.created <= stamp(lambda: now - _PATIENCE)
    old = idempotency.c.created <= stamp(lambda: now - _KEPT)
    return or_(old, and_(idempotency.c.body.is_(None), abandoned))


def _check(user: str, key: str, digest: str) -> None:
    for what, text in (("user", user), ("idempotency key", key)):
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or not text.isprintable():
            raise InvalidInput(f"The {what} must have 1 to {_LONGEST} printable characters.")
    if not isinstance(digest, str) or len(digest) != 64:
        raise InvalidInput("The digest of a request has 64 hexadecimal digits.", fixes=("codec.digest()",))
