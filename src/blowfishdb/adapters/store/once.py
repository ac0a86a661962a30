"""Requests that may be sent again: the same key gets the same response, and the work is done once.

Notes that the processes of one workspace leave for each other, for a week at most.

They lie among the responses of ``Idempotency``, which are cleared after the same time, under keys that nobody
can send: those of requests are printable.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final, final

from sqlalchemy import ColumnElement, Connection, Row, and_, select

from blowfishdb.adapters.store.chain import Sealed, append, canonical, change, insert, remove
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.tables import idempotency
from blowfishdb.adapters.store.values import Clock, stamp, utc_now
from blowfishdb.core.errors import AnswerInProgress, InvalidInput, KeyReused

SILENCE: Final = timedelta(seconds=60)
"""After this a request under way of which nothing was heard is taken for abandoned."""
_KEPT: Final = timedelta(days=7)
_SOON: Final = 5  # seconds after which it is worth looking again
_LONGEST: Final = 255


@final
class Idempotency:
    """The responses of the last seven days by user and key; safe to share between threads and processes.

    Whoever gets None from ``once`` does the work, calls ``renew`` every few seconds, and then ``keep``, or
    ``give_up`` if it failed and may be tried again. What was charged under a key is for the ledger to say:
    these are only the responses as they were sent.
    """

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def kept(self, user: str, key: str, digest: str) -> str | None:
        """The stored response, if there is one.

        ``digest`` is one of the request: another request may not have the same key.
        """
        _check(user, key, digest)
        with self._store.reading() as connection:
            row = connection.execute(select(idempotency).where(_at(user, key))).one_or_none()
        if row is None:
            return None
        _check_same(row, digest)
        return None if row.body is None else str(row.body)

    def alive(self, user: str, key: str) -> bool:
        """Whether somebody is at work under this key, and was heard of lately."""
        now = self._clock().astimezone(UTC)
        with self._store.reading() as connection:
            row = connection.execute(select(idempotency).where(_at(user, key))).one_or_none()
        return row is not None and row.body is None and _left(row, now) > timedelta(0)

    def once(self, user: str, key: str, digest: str) -> str | None:
        """The stored response; None for the first who asks, who has the key from then on."""
        _check(user, key, digest)
        now = self._clock().astimezone(UTC)
        with self._store.writing() as connection:
            self._forget_old(connection, now)
            row = connection.execute(select(idempotency).where(_at(user, key))).one_or_none()
            mine = {"owner": user, "key": key, "digest": digest, "created": stamp(lambda: now)}
            if row is None:
                connection.execute(idempotency.insert().values(mine))  # under way: sealed by keep
                return None
            _check_same(row, digest)
            if row.body is not None:
                return str(row.body)
            left = _left(row, now)
            if left > timedelta(0):
                raise AnswerInProgress(
                    "The same request is being answered right now.",
                    wait=min(math.ceil(left.total_seconds()), _SOON),
                    fixes=("the same request, with the same key, in a moment",),
                )
            connection.execute(idempotency.update().where(_at(user, key)).values(created=mine["created"]))
            return None

    def renew(self, user: str, key: str) -> None:
        """Still at work."""
        here = (_at(user, key), idempotency.c.body.is_(None))
        with self._store.writing() as connection:
            connection.execute(idempotency.update().where(*here).values(created=stamp(self._clock)))

    def keep(self, user: str, key: str, digest: str, body: str) -> None:
        """Store the response, and put it on record; the first one stays."""
        _check(user, key, digest)
        here, now = _at(user, key), stamp(self._clock)
        with self._store.writing() as connection:
            row = connection.execute(select(idempotency).where(here)).one_or_none()
            if row is None:
                new = {"owner": user, "key": key, "digest": digest, "body": body, "created": now}
                _tell(connection, now, user, "kept", insert(connection, idempotency, new))
            elif row.digest == digest and row.body is None:
                sealed = change(connection, idempotency, here, {"body": body, "created": now})
                _tell(connection, now, user, "kept", sealed)

    def give_up(self, user: str, key: str) -> None:
        """There is no response, so the request may be sent again; one that was stored stays."""
        with self._store.writing() as connection:
            connection.execute(idempotency.delete().where(_at(user, key), idempotency.c.body.is_(None)))

    def _forget_old(self, connection: Connection, now: datetime) -> None:
        horizon = stamp(lambda: now - _KEPT)
        sealed = remove(connection, idempotency, idempotency.c.created <= horizon)
        if sealed:
            _tell(connection, stamp(lambda: now), "", f"{len(sealed)} forgotten", sealed)


def _tell(connection: Connection, at: str, user: str, what: str, sealed: Sealed) -> None:
    append(
        connection,
        at=at,
        kind="request",
        dataset="",
        analyst=user,
        amount=0,
        body=canonical({"what": f"response {what}"}),
        sealed=sealed,
    )


def _check_same(row: Row[Any], digest: str) -> None:
    if row.digest != digest:
        raise KeyReused("This idempotency key was already used for another request.", fixes=("a new key",))


def _left(row: Row[Any], now: datetime) -> timedelta:
    """How long a request under way is believed to be at work, if nothing more is heard of it."""
    return datetime.fromisoformat(row.created) + SILENCE - now


def _at(user: str, key: str) -> ColumnElement[bool]:
    return and_(idempotency.c.owner == user, idempotency.c.key == key)


def _check(user: str, key: str, digest: str) -> None:
    for what, text in (("user", user), ("idempotency key", key)):
        if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or not text.isprintable():
            raise InvalidInput(f"The {what} must have 1 to {_LONGEST} printable characters.")
    if not isinstance(digest, str) or len(digest) != 64:
        raise InvalidInput("The digest of a request has 64 hexadecimal digits.", fixes=("codec.digest()",))


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
        here, now = _note_at(owner, name), stamp(self._clock)
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
                connection.execute(
                    idempotency.update().where(_note_at(owner, name)).values(body=body)
                ).rowcount
            )

    def add(self, owner: str, name: str, amount: int, most: int | None = None) -> int | None:
        """Count up a note that is a number, and say what it is then; None if that were more than ``most``.

        Whoever counts does it in one transaction, so that no two of them both fit into what is left for one.
        """
        here, now = _note_at(owner, name), stamp(self._clock)
        with self._store.writing() as connection:
            so_far = connection.execute(select(idempotency.c.body).where(here)).scalar()
            total = int(so_far or 0) + amount
            if most is not None and total > most:
                return None
            if so_far is None:
                new = {"owner": owner, "key": _MARK + name, "digest": _NO_DIGEST, "created": now}
                connection.execute(idempotency.insert().values({**new, "body": str(total)}))
            else:
                connection.execute(idempotency.update().where(here).values(body=str(total), created=now))
        return total

    def get(self, owner: str, name: str) -> str | None:
        """The note; None if there is none."""
        with self._store.reading() as connection:
            return connection.execute(select(idempotency.c.body).where(_note_at(owner, name))).scalar()

    def drop(self, owner: str, name: str) -> None:
        """Take the note away."""
        with self._store.writing() as connection:
            connection.execute(idempotency.delete().where(_note_at(owner, name)))


def _note_at(owner: str, name: str) -> ColumnElement[bool]:
    return and_(idempotency.c.owner == owner, idempotency.c.key == _MARK + name)
