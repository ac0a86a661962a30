"""Wire passwords: by which a database client is known, stored only as what SCRAM needs to recognise them.

A wire password is issued once, like a token: 256 random bits, one for each account. Kept are the keys that
SCRAM-SHA-256 (RFC 5802, RFC 7677) derives from it, from which it cannot be found, and which let nobody in.

What clients of an account may do by themselves: defaults of the settings of a connection, kept beside it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from sqlalchemy import Connection, select

from blowfishdb.adapters.accounts import Attempt, Attempts, Limits
from blowfishdb.adapters.store.catalogue import Catalogue, enter_version, newest
from blowfishdb.adapters.store.chain import append, canonical
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.tables import catalogue, users
from blowfishdb.adapters.store.values import Clock, stamp, utc_now
from blowfishdb.adapters.tokens import Account, account_of, known_name, unknown_user

PREFIX: Final = "bfw_"
"""By this a wire password that was published by mistake is recognised."""
ITERATIONS: Final = 4096
_KIND: Final = "wire password"
_DEFAULTS: Final = "wire settings"
_KEY: Final = ("key", "wire")
_ENDED: Final = ""


@final
@dataclass(frozen=True, repr=False)
class Verifier:
    """What recognises a password without knowing it; ``version`` says which one it is."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int = ITERATIONS
    version: int = 0

    @classmethod
    def of(cls, password: str, salt: bytes, *, iterations: int = ITERATIONS) -> Verifier:
        """The verifier of a password of ASCII characters."""
        salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        return cls(salt, hashlib.sha256(client_key).digest(), server_key, iterations)

    def to_text(self) -> str:
        """As it is stored."""
        parts = {"salt": self.salt, "stored_key": self.stored_key, "server_key": self.server_key}
        written = {name: base64.b64encode(part).decode() for name, part in parts.items()}
        return canonical({**written, "iterations": self.iterations})

    @classmethod
    def from_text(cls, text: str, version: int) -> Verifier:
        """From how it is stored."""
        stored = json.loads(text)
        salt, key, server = (base64.b64decode(stored[name]) for name in ("salt", "stored_key", "server_key"))
        return cls(salt, key, server, int(stored["iterations"]), version)


@final
@dataclass(frozen=True)
class WireAccount:
    """Someone with a wire password: the account, and what recognises the password."""

    account: Account
    verifier: Verifier


@final
class WirePasswords:
    """The wire passwords of a workspace; safe to share between threads and processes."""

    def __init__(self, store: Store, clock: Clock = utc_now, *, limits: Limits | None = None) -> None:
        self._store = store
        self._clock = clock
        self._attempts = Attempts(store, clock, limits if limits is not None else Limits())
        self._catalogue = Catalogue(store, clock)

    # --- issuing --------------------------------------------------------------------------------

    def issue(self, name: str, *, by: str = "") -> str:
        """A new wire password for an active user, in place of an earlier one; it is not kept."""
        password = PREFIX + secrets.token_urlsafe(32)
        self._enter(name, Verifier.of(password, secrets.token_bytes(16)).to_text(), by, "issued")
        return password

    def revoke(self, name: str, *, by: str = "") -> None:
        """From now on no database client is let in under this name."""
        self._enter(name, _ENDED, by, "ended")

    def _enter(self, name: str, body: str, by: str, what: str) -> None:
        with self._store.writing() as connection:
            owner, at = _active(connection, name), stamp(self._clock)
            sealed, _ = enter_version(connection, _KIND, owner, body, at=at)
            append(
                connection,
                at=at,
                kind="account",
                dataset="",
                analyst=by or owner,
                amount=0,
                body=canonical({"account": owner, "what": f"wire password {what}"}),
                sealed=sealed,
            )

    # --- coming in ------------------------------------------------------------------------------

    def find(self, name: str) -> WireAccount | None:
        """An active user with a wire password; None for anybody else."""
        owner = known_name(name)
        if owner is None:
            return None
        return self._store.recalled((_KIND, owner), lambda read: _read(read, owner))

    def at_hand(self, name: str) -> bool:
        """Whether ``find`` knows without asking the database."""
        owner = known_name(name)
        return owner is None or self._store.remembers((_KIND, owner))

    def stand_in(self, name: str) -> Verifier:
        """What is shown to those whom nobody knows: always the same for a name, and nothing matches it."""
        salt = hmac.digest(self._secret(), name.encode("utf-8", "surrogatepass"), "sha256")[:16]
        return Verifier(salt, secrets.token_bytes(32), secrets.token_bytes(32))

    def begin(self, name: str, address: str | None) -> Attempt:
        """Count an attempt as wrong until it turns out to be right, or refuse it."""
        return self._attempts.begin(name, address)

    def succeeded(self, attempt: Attempt) -> None:
        """It was right."""
        with self._store.writing() as connection:
            self._attempts.succeeded(connection, attempt)

    def _secret(self) -> bytes:
        if (stored := self._catalogue.first(*_KEY)) is None:
            self._catalogue.put(*_KEY, secrets.token_hex(32))
            stored = self._catalogue.get(*_KEY, 1)
            assert stored is not None
        return bytes.fromhex(stored)

    # --- defaults -------------------------------------------------------------------------------

    def defaults(self, subject: str) -> dict[str, str]:
        """What connections begin with: of an account (``user NAME``) or of a dataset (``dataset NAME``)."""

        def read(connection: Connection) -> dict[str, str]:
            stored = _body(connection, _DEFAULTS, subject)
            return {} if stored is None else dict(json.loads(stored[0]))

        return {**self._store.recalled((_DEFAULTS, subject), read)}

    def set_defaults(self, subject: str, values: Mapping[str, str], *, by: str) -> None:
        """Other defaults, on record."""
        self._catalogue.put(_DEFAULTS, subject, canonical(dict(values)), by)


def _active(connection: Connection, name: str) -> str:
    owner = known_name(name)
    row = connection.execute(select(users).where(users.c.name == owner)).one_or_none()
    if owner is None or row is None or row.ended is not None:
        raise unknown_user(name)
    return owner


def _read(connection: Connection, owner: str) -> WireAccount | None:
    row: Any = connection.execute(select(users).where(users.c.name == owner)).one_or_none()
    stored = _body(connection, _KIND, owner)
    if row is None or row.ended is not None or stored is None or stored[0] == _ENDED:
        return None
    return WireAccount(account_of(row), Verifier.from_text(*stored))


def _body(connection: Connection, kind: str, name: str) -> tuple[str, int] | None:
    """The newest entry and its number; None if there is none."""
    version = newest(connection, kind, name)
    at = (catalogue.c.kind == kind, catalogue.c.name == name, catalogue.c.version == version)
    body = connection.execute(select(catalogue.c.body).where(*at)).scalar()
    return None if body is None else (str(body), version)
