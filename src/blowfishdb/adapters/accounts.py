"""Accounts: who may come in, in which role, and with which password (tokens: ``tokens.py``).

A name is never given away a second time: what was charged to it stays the same person's.

Passwords: kept as argon2id hashes, compared with the same work whether or not there is one.

Attempts: how often a wrong password may be tried, in all processes together.

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
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, final

from sqlalchemy import Connection, Row, func, or_, select

from blowfishdb.adapters.store.chain import Sealed, append, canonical, change, insert
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.tables import login_attempts, users
from blowfishdb.adapters.store.values import Clock, stamp, utc_now
from blowfishdb.adapters.tokens import (
    Account,
    Role,
    account_of,
    checked_name,
    end_tokens,
    known_name,
    unknown_user,
)
from blowfishdb.core.errors import InvalidInput, NotSignedIn, TooManyAttempts

if TYPE_CHECKING:
    from pwdlib import PasswordHash


SHORTEST: Final = 10
LONGEST: Final = 1000  # hashing takes longer the longer the text is


@final
class Passwords:
    """The one way to make and check hashes; ``hasher`` is argon2id with pwdlib's costs unless given."""

    def __init__(self, hasher: PasswordHash | None = None) -> None:
        self._given = hasher
        self._nobody: str | None = None

    def hash(self, password: str) -> str:
        """The hash of a password that is long enough."""
        check_password(password)
        return self._hasher().hash(_prepared(password))

    def matches(self, password: str, stored: str | None) -> tuple[bool, str | None]:
        """Whether a password is the stored one, and a new hash if the costs have changed since.

        Without a stored hash the work is done on a hash that nothing matches, so that the time taken does
        not tell whether there is one; that hash is made on the first call, whoever it is about.
        """
        from pwdlib.exceptions import UnknownHashError

        _check_text(password)
        hasher = self._hasher()
        if self._nobody is None:
            self._nobody = hasher.hash(secrets.token_bytes(32))
        usable = stored is not None and len(password) <= LONGEST
        against = stored if stored is not None and usable else self._nobody
        try:
            right, renewed = hasher.verify_and_update(_prepared(password[:LONGEST]), against)
        except UnknownHashError:  # its message is the hash
            return False, None
        return right and usable, renewed

    def _hasher(self) -> PasswordHash:
        if self._given is None:
            from pwdlib import PasswordHash

            self._given = PasswordHash.recommended()
        return self._given


def check_password(password: str) -> None:
    """Whether somebody may have this password: as any text, it is long enough and not too long."""
    _check_text(password)
    if not SHORTEST <= len(password.strip()) <= len(password) <= LONGEST:
        raise InvalidInput(
            f"A password has {SHORTEST} to {LONGEST:,} characters, not counting spaces at its ends.",
            fixes=("four or five random words",),
        )


def _check_text(password: object) -> None:
    if not isinstance(password, str):
        raise InvalidInput("A password is a text.")


def _prepared(password: str) -> bytes:
    """The same characters are the same password, however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


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
        origin = _digest("address", network(address) if address is not None else "nowhere")
        here = _Rule(someone + origin, failures, _FIRST_WAIT, longest)
        everywhere = _Rule(someone, _EVERYWHERE * failures, _SPACING, _LONGEST_SPACING)
        if address is None:
            return here, everywhere
        return here, _Rule(f"from:{origin}", _SHARED * failures, _FIRST_WAIT, longest), everywhere

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
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), _NETWORK_BITS), strict=False))


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


@final
class Accounts:
    """The users of a workspace; safe to share between threads and processes.

    ``hasher`` and ``limits`` are argon2id with pwdlib's costs, and waits of up to 15 minutes after five wrong
    passwords.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock = utc_now,
        *,
        hasher: PasswordHash | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._passwords = Passwords(hasher)
        self._attempts = Attempts(store, clock, limits if limits is not None else Limits())

    # --- who is there ---------------------------------------------------------------------------

    def list(self) -> list[Account]:
        """Everyone, also those who were revoked, in alphabetical order."""
        with self._store.reading() as connection:
            return [account_of(row) for row in connection.execute(select(users).order_by(users.c.name))]

    def find(self, name: str) -> Account | None:
        """A user by name, active or not."""
        with self._store.reading() as connection:
            row = _row(connection, known_name(name))
        return None if row is None else account_of(row)

    def check_password(
        self, name: str, password: str, *, address: str | None = None, browser: str | None = None
    ) -> Account:
        """The user, if the password is right; the refusal does not tell whether there is such a user.

        ``address`` is where the request came from: wrong passwords make their sender wait, not the user.
        ``browser`` is the text that ``remember`` gave to the browser it came from, if it has one.
        """
        user = known_name(name)
        attempt = self._attempts.begin(user if user is not None else str(name), address, browser)
        with self._store.reading() as connection:
            row = _row(connection, user)
        stored = None if row is None or row.ended is not None else row.password
        right, renewed = self._passwords.matches(password, stored)
        if not right:
            raise _not_signed_in()
        with self._store.writing() as connection:
            row = _row(connection, user)
            if row is None or row.ended is not None or row.password != stored:
                raise _not_signed_in()  # revoked, or given another password, in this moment
            self._attempts.succeeded(connection, attempt)
            if renewed is not None:
                self._change(connection, str(row.name), {"password": renewed}, "", "password hashed anew")
            return account_of(row)

    def remember(self, account: Account, browser: str | None) -> str:
        """The text by which the browser of someone who just signed in is known the next time.

        It lets nobody in. It only keeps the wrong passwords of others apart from those of its owner.
        """
        return self._attempts.remember(account.user, browser)

    # --- who decides ----------------------------------------------------------------------------

    def add(self, name: str, role: Role, password: str | None, *, by: str = "") -> Account:
        """A new user; without a password, one who comes in by tokens only. ``by``: who says so."""
        new = checked_name(name)
        _check_role(role)
        hashed = None if password is None else self._passwords.hash(password)
        row = {"name": new, "role": role.value, "password": hashed, "created": stamp(self._clock)}
        with self._store.writing() as connection:
            if _row(connection, new) is not None:
                raise InvalidInput(
                    f"There is already a user '{new}', or there was one: a name is not given away twice.",
                    fixes=("another name",),
                )
            sealed = insert(connection, users, row)
            self._tell(connection, new, by, f"added as {role.value}", sealed)
            existing = _row(connection, new)
            assert existing is not None
            return account_of(existing)

    def revoke(self, name: str, *, by: str = "") -> None:
        """Let a user in no longer, neither by password nor by any token."""
        with self._store.writing() as connection:
            user, at = _active(connection, name), stamp(self._clock)
            self._change(connection, user, {"ended": at}, by, "revoked")
            end_tokens(connection, user, at)

    def set_password(self, name: str, password: str | None, *, by: str = "") -> None:
        """Another password, or none; whoever is signed in with the old one is signed out."""
        hashed = None if password is None else self._passwords.hash(password)
        with self._store.writing() as connection:
            user = _active(connection, name)
            self._change(connection, user, {"password": hashed}, by, "password set")
            end_tokens(connection, user, stamp(self._clock), "session")
            self._attempts.forgive(connection, user)

    def set_role(self, name: str, role: Role, *, by: str = "") -> None:
        """Another role, from the next request on."""
        _check_role(role)
        with self._store.writing() as connection:
            user = _active(connection, name)
            self._change(connection, user, {"role": role.value}, by, f"role set to {role.value}")

    # --- on record ------------------------------------------------------------------------------

    def _change(
        self, connection: Connection, name: str, values: Mapping[str, Any], by: str, what: str
    ) -> None:
        sealed = change(connection, users, users.c.name == name, values)
        self._tell(connection, name, by, what, sealed)

    def _tell(self, connection: Connection, name: str, by: str, what: str, sealed: Sealed) -> None:
        """Every change of an account is an event."""
        append(
            connection,
            at=stamp(self._clock),
            kind="account",
            dataset="",
            analyst=by,
            amount=0,
            body=canonical({"account": name, "what": what}),
            sealed=sealed,
        )


def _row(connection: Connection, name: str | None) -> Row[Any] | None:
    if name is None:
        return None
    return connection.execute(select(users).where(users.c.name == name)).one_or_none()


def _active(connection: Connection, name: str) -> str:
    row = _row(connection, known_name(name))
    if row is None or row.ended is not None:
        raise unknown_user(name)
    return str(row.name)


def _check_role(role: object) -> None:
    if not isinstance(role, Role):
        raise InvalidInput(f"A role is one of {', '.join(each.value for each in Role)}.")


def _not_signed_in() -> NotSignedIn:
    return NotSignedIn("The name or the password is wrong.", fixes=("ask a curator for a new password",))
