"""Accounts: who may come in, in which role, and with which password (tokens: ``tokens.py``).

A name is never given away a second time: what was charged to it stays the same person's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from sqlalchemy import Connection, Row, select

from blowfishdb.adapters.account_values import (
    Account,
    Role,
    account_of,
    checked_name,
    known_name,
    unknown_user,
)
from blowfishdb.adapters.attempts import Attempts, Limits
from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_events import Sealed, append, canonical
from blowfishdb.adapters.passwords import Passwords
from blowfishdb.adapters.seals import change, insert
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import users
from blowfishdb.adapters.tokens import end_tokens
from blowfishdb.core.errors import InvalidInput, NotSignedIn

if TYPE_CHECKING:
    from pwdlib import PasswordHash

__all__ = ["Account", "Accounts", "Limits", "Role"]


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
        known = known_name(name)
        attempt = self._attempts.begin(known if known is not None else str(name), address, browser)
        with self._store.reading() as connection:
            row = _row(connection, known)
        stored = None if row is None or row.ended is not None else row.password
        right, renewed = self._passwords.matches(password, stored)
        if not right:
            raise _not_signed_in()
        with self._store.writing() as connection:
            row = _row(connection, known)
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
        return self._attempts.remember(account.name, browser)

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
            found = _row(connection, new)
            assert found is not None
            return account_of(found)

    def revoke(self, name: str, *, by: str = "") -> None:
        """Let a user in no longer, neither by password nor by any token."""
        with self._store.writing() as connection:
            known, at = _active(connection, name), stamp(self._clock)
            self._change(connection, known, {"ended": at}, by, "revoked")
            end_tokens(connection, known, at)

    def set_password(self, name: str, password: str | None, *, by: str = "") -> None:
        """Another password, or none; whoever is signed in with the old one is signed out."""
        hashed = None if password is None else self._passwords.hash(password)
        with self._store.writing() as connection:
            known = _active(connection, name)
            self._change(connection, known, {"password": hashed}, by, "password set")
            end_tokens(connection, known, stamp(self._clock), "session")
            self._attempts.forgive(connection, known)

    def set_role(self, name: str, role: Role, *, by: str = "") -> None:
        """Another role, from the next request on."""
        _check_role(role)
        with self._store.writing() as connection:
            known = _active(connection, name)
            self._change(connection, known, {"role": role.value}, by, f"role set to {role.value}")

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
