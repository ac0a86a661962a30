"""Tokens: random texts by which a program or a browser is known, stored only as digests.

A token is 256 random bits, so its SHA-256 can be looked up as it is: nothing about a token can be learned
from how long looking for another one takes, and nothing about it from a copy of the workspace.

What accounts speak of: roles and users. Nothing here is secret, so everything may be shown.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, final, get_args

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, select, true

from blowfishdb.adapters.store.chain import Sealed, append, canonical, change, insert, remove
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.tables import tokens, users
from blowfishdb.adapters.store.values import Clock, stamp, utc_now
from blowfishdb.core.errors import InvalidInput, NotAllowed, NotFound
from blowfishdb.core.plain import Message

LONGEST_NAME: Final = 255


class Role(Enum):
    """What someone may do: a curator decides, an analyst asks, an auditor reads the books."""

    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@final
@dataclass(frozen=True)
class Account(Message):
    """Someone who may come in; not ``active`` once revoked."""

    user: str
    role: Role
    created: datetime
    active: bool = True

    def check_role(self, *allowed: Role) -> None:
        """Refuse anyone who has none of these roles."""
        if self.role in allowed:
            return
        wanted = " or ".join(role.value for role in allowed)
        raise NotAllowed(
            f"This is for the role {wanted}; '{self.user}' has the role {self.role.value}.",
            fixes=("ask a curator",),
        )


def account_of(row: Row[Any]) -> Account:
    """A row of users as a value."""
    return Account(row.name, Role(row.role), datetime.fromisoformat(row.created), row.ended is None)


def known_name(name: object) -> str | None:
    """A name in the one way in which it is stored; None for what cannot be one."""
    if not isinstance(name, str):
        return None
    composed = unicodedata.normalize("NFC", name)
    fits = composed.isprintable() and composed == composed.strip() and 0 < len(composed) <= LONGEST_NAME
    return composed if fits else None


def checked_name(name: object) -> str:
    """A name for a new user."""
    checked = known_name(name)
    if checked is None:
        raise InvalidInput(
            f"A name has 1 to {LONGEST_NAME} printable characters, and no space at either end."
        )
    return checked


def unknown_user(name: object) -> NotFound:
    """Nobody is called so, or no longer."""
    shown = known_name(name)
    who = "such a user" if shown is None else f"active user '{shown}'"
    return NotFound(f"There is no {who}.", fixes=("look at the list of users",))


Purpose = Literal["api", "session"]

PREFIX: Final = "bf_"
"""By this a token that was published by mistake is recognised."""
_LENGTH: Final = len(PREFIX) + 43
_LONGEST_LIFE: Final = timedelta(days=3660)
_REMEMBERED: Final = timedelta(days=30)  # how long a token that ended is still listed


@final
@dataclass(frozen=True)
class Token(Message):
    """What may be known of a token once it has been handed over."""

    id: str
    user: str
    purpose: Purpose
    label: str
    created: datetime
    expires: datetime
    active: bool


_WHO: Final = (
    select(users, tokens.c.digest, tokens.c.purpose, tokens.c.expires)
    .join(tokens, tokens.c.owner == users.c.name)
    .where(tokens.c.digest == bindparam("of_digest"), tokens.c.ended.is_(None), users.c.ended.is_(None))
)


@final
class Tokens:
    """The tokens of a workspace; safe to share between threads and processes."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def issue(
        self, name: str, *, purpose: Purpose, lifetime: timedelta, label: str = "", by: str | None = None
    ) -> tuple[str, Token]:
        """A new token for an active user: its text, which is not kept, and what is known of it.

        ``by``: who makes it; the user unless somebody else is named.
        """
        _check(purpose, lifetime, label)
        text = PREFIX + secrets.token_urlsafe(32)
        now = self._clock().astimezone(UTC)
        with self._store.writing() as connection:
            owner = known_name(name)
            active = select(users.c.name).where(users.c.name == owner, users.c.ended.is_(None))
            if owner is None or connection.execute(active).one_or_none() is None:
                raise unknown_user(name)
            forgotten = stamp(lambda: now - _REMEMBERED)
            old = remove(connection, tokens, tokens.c.expires <= forgotten)
            made = Token(secrets.token_hex(16), owner, purpose, label, now, now + lifetime, True)
            row = {
                "id": made.id,
                "owner": owner,
                "digest": _digest(text),
                "purpose": purpose,
                "label": label,
                "created": stamp(lambda: made.created),
                "expires": stamp(lambda: made.expires),
            }
            new = insert(connection, tokens, row)
            what = {"account": owner, "what": f"issued for {purpose}"}
            _tell(connection, stamp(lambda: now), owner if by is None else by, what, [*old, *new])
        return text, made

    def who(self, text: str, *, purpose: Purpose | None = None) -> Account | None:
        """Whose token it is, today; None if it is unknown, over, revoked, or meant for another purpose."""
        if not _looks_like_one(text):
            return None
        digest = _digest(text)
        row = self._store.recalled(
            _remembered_as(digest), lambda read: read.execute(_WHO, {"of_digest": digest}).one_or_none()
        )
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        over = row.expires <= stamp(self._clock)
        return None if over or purpose not in (None, row.purpose) else account_of(row)

    def at_hand(self, text: str) -> bool:
        """Whether ``who`` knows without asking the database: nothing was changed since it last did."""
        return not _looks_like_one(text) or self._store.remembers(_remembered_as(_digest(text)))

    def tokens(self, name: str) -> list[Token]:
        """The tokens of a user, the newest first; those that ended long ago are gone."""
        query = select(tokens).where(tokens.c.owner == known_name(name))
        with self._store.reading() as connection:
            rows = connection.execute(query.order_by(tokens.c.created.desc(), tokens.c.id)).all()
        now = stamp(self._clock)
        return [_token_of(row, now) for row in rows]

    def revoke_token(self, token_id: str, *, owner: str | None = None, by: str = "") -> None:
        """End a token; with ``owner``, only if it is theirs. A second time does nothing.

        ``by``: who says so.
        """
        mine = tokens.c.id == token_id
        if owner is not None:
            mine &= tokens.c.owner == known_name(owner)
        with self._store.writing() as connection:
            if connection.execute(select(tokens.c.id).where(mine)).one_or_none() is None:
                raise NotFound("There is no such token.", fixes=("look at the list of tokens",))
            _end(connection, mine, stamp(self._clock), by or owner or "")

    def revoke_text(self, text: str) -> None:
        """End the token with this text, as on signing out; an unknown one is none."""
        if not _looks_like_one(text):
            return
        with self._store.writing() as connection:
            _end(connection, tokens.c.digest == _digest(text), stamp(self._clock))


def end_tokens(connection: Connection, owner: str, at: str, purpose: Purpose | None = None) -> None:
    """End all tokens of a user, or those for one purpose, in the transaction that is open."""
    mine = tokens.c.owner == owner
    if purpose is not None:
        mine &= tokens.c.purpose == purpose
    _end(connection, mine, at)


def end_all_tokens(store: Store) -> None:
    """End every token of a workspace."""
    with store.writing() as connection:
        _end(connection, true(), stamp(utc_now))


def _end(connection: Connection, which: ColumnElement[bool], at: str, by: str = "") -> None:
    """End those of the tokens that have not ended, with an event if there are any."""
    sealed = change(connection, tokens, and_(which, tokens.c.ended.is_(None)), {"ended": at})
    if sealed:
        _tell(connection, at, by, {"what": f"{len(sealed)} ended"}, sealed)


def _tell(connection: Connection, at: str, by: str, what: Mapping[str, str], sealed: Sealed) -> None:
    """Every change of tokens is an event."""
    append(
        connection,
        at=at,
        kind="token",
        dataset="",
        analyst=by,
        amount=0,
        body=canonical(what),
        sealed=sealed,
    )


def csrf(text: str) -> str:
    """What a form must send along to show that it was made for the one who is signed in with this token."""
    return hmac.new(text.encode("utf-8", "surrogatepass"), b"blowfishdb csrf", hashlib.sha256).hexdigest()


def csrf_matches(text: str, sent: str) -> bool:
    """Whether a form sent what it was given."""
    return hmac.compare_digest(csrf(text).encode(), sent.encode("utf-8", "surrogatepass"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _remembered_as(digest: str) -> tuple[str, str]:
    return ("token", digest)


def _looks_like_one(text: object) -> bool:
    return isinstance(text, str) and len(text) == _LENGTH and text.isascii() and text.startswith(PREFIX)


def _token_of(row: Row[Any], now: str) -> Token:
    created, expires = map(datetime.fromisoformat, (row.created, row.expires))
    active = row.ended is None and row.expires > now
    return Token(row.id, row.owner, row.purpose, row.label, created, expires, active)


def _check(purpose: object, lifetime: object, label: object) -> None:
    if purpose not in get_args(Purpose):
        raise InvalidInput(f"A token is for one of {', '.join(get_args(Purpose))}.")
    if not isinstance(lifetime, timedelta) or not timedelta(0) < lifetime <= _LONGEST_LIFE:
        raise InvalidInput("A token must be valid for some time, and for ten years at most.")
    if not isinstance(label, str) or len(label) > LONGEST_NAME or not (label.isprintable()):
        raise InvalidInput(f"The label of a token has at most {LONGEST_NAME} printable characters.")
