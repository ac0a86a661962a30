"""Attempts: how often a wrong password may be tried, in all processes together.

An attempt is counted as wrong before the password is looked at, and forgotten if it was right. So guesses
that are made at the same time are no more than those made one after the other.

Nobody can keep somebody else out by guessing. Waits grow for a name *at an address*, so that whoever guesses
from his own address makes only himself wait. Guesses from many addresses are spaced by seconds, never
stopped; and a browser in which someone has signed in before waits for nothing but its own mistakes, also
where many people share an address.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, final

from sqlalchemy import Connection, func, or_, select

from blowfishdb.adapters.clock import Clock, stamp
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import login_attempts
from blowfishdb.core.errors import InvalidInput, TooManyAttempts

_MEMORY: Final = timedelta(hours=24)  # a wrong password counts for so long
_FIRST_WAIT: Final = timedelta(seconds=30)
_SHARED: Final = 4  # so many times the mistakes of one person: several people may share an address
_EVERYWHERE: Final = 60  # likewise; a day of guessing from one address makes no third of these
_SPACING: Final = timedelta(seconds=1)
_LONGEST_SPACING: Final = timedelta(seconds=10)
_BROWSERS: Final = 20  # that one person is known by; the one used longest ago is forgotten
_BROWSER_MEMORY: Final = timedelta(days=365)
_NETWORK_BITS: Final = 64  # of an IPv6 address; its owner has all the others below them


@final
@dataclass(frozen=True)
class Limits:
    """After ``failures`` wrong passwords waits begin; they double with each one, up to ``longest``."""

    failures: int = 5
    longest: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        if self.failures < 1 or self.longest <= timedelta(0):
            raise InvalidInput("At least one attempt must be allowed, and some time must pass after it.")


@final
@dataclass(frozen=True)
class Attempt:
    """An attempt under way: the mistakes that it ends if it is right, and the rows that count it."""

    subject: str
    rows: tuple[str, ...]


@final
@dataclass(frozen=True)
class _Rule:
    """How long to wait after so many wrong passwords for ``subject``: nothing for the ``free`` first ones."""

    subject: str
    free: int
    first: timedelta
    longest: timedelta

    def wait(self, wrong: int) -> timedelta:
        if wrong < self.free:
            return timedelta(0)
        doublings = min(wrong - self.free, 30)
        return min(self.first * (1 << doublings), self.longest)


@final
class Attempts:
    """The wrong passwords of the last day, and the browsers that people are known by."""

    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    def begin(self, name: str, address: str | None, browser: str | None = None) -> Attempt:
        """Count one attempt, or refuse it; a refused one does not make the wait longer."""
        now = self._clock().astimezone(UTC)
        with self._store.writing() as connection:
            self._forget_old(connection, now)
            rules = self._rules(connection, name, address, browser)
            for rule in rules:
                _check(connection, rule, now)
            rows = tuple(secrets.token_hex(16) for _ in rules)
            at = stamp(lambda: now)
            for row, rule in zip(rows, rules, strict=True):
                connection.execute(login_attempts.insert().values(id=row, subject=rule.subject, at=at))
        return Attempt(rules[0].subject, rows)

    def succeeded(self, connection: Connection, attempt: Attempt) -> None:
        """The name starts afresh where it came in. The address does not, else one's own password would buy
        more guesses at others; nor does the name elsewhere, where others may be guessing it."""
        mine = or_(login_attempts.c.subject == attempt.subject, login_attempts.c.id.in_(attempt.rows))
        connection.execute(login_attempts.delete().where(mine))

    def forgive(self, connection: Connection, name: str) -> None:
        """What was tried with an old password says nothing about a new one, nor who came in with it."""
        about = or_(
            login_attempts.c.subject.startswith(_digest("name", name)),
            login_attempts.c.subject.startswith(_known(name)),
        )
        connection.execute(login_attempts.delete().where(about))

    def remember(self, name: str, browser: str | None) -> str:
        """The text by which a browser is known from now on as one in which this user signed in."""
        now = self._clock().astimezone(UTC)
        with self._store.writing() as connection:
            text = browser if _is_known(connection, name, browser) and browser else secrets.token_urlsafe(32)
            mine = login_attempts.c.subject == _known(name, text)
            connection.execute(login_attempts.delete().where(mine))
            row = {"id": secrets.token_hex(16), "subject": _known(name, text), "at": stamp(lambda: now)}
            connection.execute(login_attempts.insert().values(row))
            older = select(login_attempts.c.id).where(login_attempts.c.subject.startswith(_known(name)))
            older = older.order_by(login_attempts.c.at.desc(), login_attempts.c.id)
            surplus = list(connection.execute(older).scalars())[_BROWSERS:]
            connection.execute(login_attempts.delete().where(login_attempts.c.id.in_(surplus)))
        return text

    def _rules(
        self, connection: Connection, name: str, address: str | None, browser: str | None
    ) -> tuple[_Rule, ...]:
        """What an attempt is counted under; the first is the one that a right password ends."""
        failures, longest = self._limits.failures, self._limits.longest
        someone = _digest("name", name)
        if browser is not None and _is_known(connection, name, browser):
            return (_Rule(someone + _digest("browser", browser), failures, _FIRST_WAIT, longest),)
        place = _digest("address", network(address) if address is not None else "nowhere")
        here = _Rule(someone + place, failures, _FIRST_WAIT, longest)
        everywhere = _Rule(someone, _EVERYWHERE * failures, _SPACING, _LONGEST_SPACING)
        if address is None:
            return here, everywhere
        return here, _Rule(f"from:{place}", _SHARED * failures, _FIRST_WAIT, longest), everywhere

    def _forget_old(self, connection: Connection, now: datetime) -> None:
        known = login_attempts.c.subject.startswith("known:")
        day, year = stamp(lambda: now - _MEMORY), stamp(lambda: now - _BROWSER_MEMORY)
        old = or_(~known & (login_attempts.c.at <= day), known & (login_attempts.c.at <= year))
        connection.execute(login_attempts.delete().where(old))


def network(address: str) -> str:
    """The addresses that belong together: one of IPv4, the network that an IPv6 address lies in.

    Whoever has one IPv6 address has 2⁶⁴ of them, and could guess from each.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), _NETWORK_BITS), strict=False))


def _check(connection: Connection, rule: _Rule, now: datetime) -> None:
    columns = func.count(), func.max(login_attempts.c.at)
    wrong, last = connection.execute(select(*columns).where(login_attempts.c.subject == rule.subject)).one()
    wait = rule.wait(wrong)
    if not wrong or not wait:
        return
    left = min(datetime.fromisoformat(last) + wait - now, wait)  # a clock set back must not make it longer
    if left <= timedelta(0):
        return
    seconds = math.ceil(left.total_seconds())
    words = _words(seconds)
    raise TooManyAttempts(
        f"After several wrong passwords the next one is looked at in {words}. "
        "A browser in which you signed in before does not wait for the mistakes of others.",
        wait=seconds,
        fixes=(
            f"again in {words}",
            "a browser in which you signed in before",
            "ask a curator for a new password",
        ),
    )


def _words(seconds: int) -> str:
    if seconds <= 90:
        return f"{seconds} second{'s' if seconds > 1 else ''}"
    return f"{math.ceil(seconds / 60)} minutes"


def _is_known(connection: Connection, name: str, browser: str | None) -> bool:
    if browser is None:
        return False
    one = select(login_attempts.c.id).where(login_attempts.c.subject == _known(name, browser))
    return connection.execute(one.limit(1)).first() is not None


def _known(name: str, browser: str | None = None) -> str:
    """The subject of a browser that a user is known by; without one, how all of theirs begin."""
    return f"known:{_digest('name', name)[:26]}{'' if browser is None else _digest('browser', browser)}"


def _digest(kind: str, text: str) -> str:
    """Half a digest, 128 bits: two of them are a subject."""
    return hashlib.sha256(f"{kind}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
