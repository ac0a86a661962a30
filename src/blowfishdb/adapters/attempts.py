"""Attempts: how often a wrong password may be tried, in all processes together.

An attempt is counted as wrong before the password is looked at, and forgotten if it was right. So guesses
that are made at the same time are no more than those made one after the other.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import final

from sqlalchemy import Connection, or_, select

from blowfishdb.adapters.clock import Clock, stamp
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import login_attempts
from blowfishdb.core.errors import InvalidInput, TooManyAttempts


@final
@dataclass(frozen=True)
class Limits:
    """At most ``failures`` wrong passwords within ``window``, for each name and for each address."""

    failures: int = 5
    window: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        if self.failures < 1 or self.window <= timedelta(0):
            raise InvalidInput("At least one attempt must be allowed, within some time.")


@final
@dataclass(frozen=True)
class Attempt:
    """An attempt under way: the name that it is about, and the rows that count it."""

    subject: str
    rows: tuple[str, ...]


@final
class Attempts:
    """The wrong passwords of the last minutes."""

    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    def begin(self, name: str, address: str | None) -> Attempt:
        """Count one attempt, or refuse it; a refused one does not make the wait longer."""
        subjects = [_subject("name", name)]
        if address is not None:
            subjects.append(_subject("address", address))
        now = self._clock().astimezone(UTC)
        rows = tuple(secrets.token_hex(16) for _ in subjects)
        with self._store.writing() as connection:
            self._forget_old(connection, now)
            for subject in subjects:
                self._check(connection, subject, now)
            at = stamp(lambda: now)
            for row, subject in zip(rows, subjects, strict=True):
                connection.execute(login_attempts.insert().values(id=row, subject=subject, at=at))
        return Attempt(subjects[0], rows)

    def succeeded(self, connection: Connection, attempt: Attempt) -> None:
        """The name starts afresh. The address does not: else one's own password would buy more guesses."""
        mine = or_(login_attempts.c.subject == attempt.subject, login_attempts.c.id.in_(attempt.rows))
        connection.execute(login_attempts.delete().where(mine))

    def forgive(self, connection: Connection, name: str) -> None:
        """What was tried with an old password says nothing about a new one."""
        connection.execute(login_attempts.delete().where(login_attempts.c.subject == _subject("name", name)))

    def _forget_old(self, connection: Connection, now: datetime) -> None:
        horizon = stamp(lambda: now - self._limits.window)
        connection.execute(login_attempts.delete().where(login_attempts.c.at <= horizon))

    def _check(self, connection: Connection, subject: str, now: datetime) -> None:
        newest = select(login_attempts.c.at).where(login_attempts.c.subject == subject)
        newest = newest.order_by(login_attempts.c.at.desc()).limit(self._limits.failures)
        moments = list(connection.execute(newest).scalars())
        if len(moments) < self._limits.failures:
            return
        left = datetime.fromisoformat(moments[-1]) + self._limits.window - now
        seconds = max(1, math.ceil(min(left, self._limits.window).total_seconds()))
        minutes = math.ceil(seconds / 60)
        raise TooManyAttempts(
            "There were too many wrong passwords, so no password is accepted for a while.",
            wait=seconds,
            fixes=(
                f"again in {minutes} minute{'s' if minutes > 1 else ''}",
                "ask a curator for a new password",
            ),
        )


def _subject(kind: str, text: str) -> str:
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()
