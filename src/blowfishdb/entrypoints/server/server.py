"""What a running server holds open, once in each process: the workspace and what is stored beside it.

What can be set about a server. Nothing here is secret, and nothing changes what an answer costs.

The secret of a workspace from which every worker derives the same keys: for quotes, for pictures.

It is made once and kept in the catalogue. A server makes it when it starts, so that no quote has to write.

Quotes that can be taken up: everything that was quoted, sealed, so that no server has to remember it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import zlib
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import HTTPConnection

from blowfishdb.adapters.accounts import Accounts, Limits
from blowfishdb.adapters.store.catalogue import Catalogue
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.once import Idempotency, Scratch
from blowfishdb.adapters.store.values import Clock, utc_now
from blowfishdb.adapters.store.witness import Watch
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.codec import canonical
from blowfishdb.entrypoints.server.middleware import Rates
from blowfishdb.entrypoints.server.waiting import Underway
from blowfishdb.workspace.embedded import Workspace

if TYPE_CHECKING:
    from pwdlib import PasswordHash


@final
@dataclass(frozen=True)
class Settings:
    """How a server treats those who call it.

    ``https`` says that people reach it through TLS: cookies are then marked Secure and browsers are told to
    stay with TLS. A caller may send ``requests_per_second`` on average and ``burst`` at once. ``demo`` lets
    people on this machine choose a role without a password, and is for the demonstration only. ``witness``
    is a file outside the workspace into which every new head of the books is written.
    """

    session_hours: float = 12
    token_days: float = 90
    longest_body: int = 1_000_000
    longest_upload: int = 500_000_000
    """Bytes of a file of rows that a curator sends."""
    requests_per_second: float = 50
    burst: int = 500
    wrong_passwords: int = 5
    wrong_password_minutes: float = 15
    https: bool = False
    loopback_metrics: bool = True
    warm_up: bool = True
    demo: bool = False
    witness: str = ""
    sources: tuple[str, ...] = ()
    """Folders and hosts whose rows curators may declare; none named: every one that the process reaches.
    ``serve`` always names some."""
    proposal_seconds: float = 25
    """How long the rows of a source may be looked at to propose its columns, and a file be copied."""
    statement_seconds: float = 600
    """How long a database may take for one statement before it is interrupted."""
    requests_at_once: int = 256
    """How many requests a worker takes at a time; it refuses those beyond, for a moment."""
    questions_at_once: int = 8
    """How many of them may be questions that read rows."""
    ending_seconds: float = 6
    """How long questions under way may take when the server is told to end; then they are given up."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        positive = {
            "session_hours": self.session_hours,
            "token_days": self.token_days,
            "longest_body": self.longest_body,
            "longest_upload": self.longest_upload,
            "requests_per_second": self.requests_per_second,
            "burst": self.burst,
            "wrong_passwords": self.wrong_passwords,
            "wrong_password_minutes": self.wrong_password_minutes,
            "proposal_seconds": self.proposal_seconds,
            "statement_seconds": self.statement_seconds,
            "requests_at_once": self.requests_at_once,
            "questions_at_once": self.questions_at_once,
            "ending_seconds": self.ending_seconds,
        }
        for name, value in positive.items():
            if not 0 < value < float("inf"):
                raise InvalidInput(f"The setting {name} must be a positive number.")
        if self.burst < 1 or self.wrong_passwords < 1:
            raise InvalidInput("At least one request and one password must be allowed.")

    @property
    def session_lifetime(self) -> timedelta:
        """How long someone who signed in with a password stays signed in."""
        return timedelta(hours=self.session_hours)

    @property
    def token_lifetime(self) -> timedelta:
        """How long a token is valid unless its owner says otherwise."""
        return timedelta(days=self.token_days)

    @property
    def browser_lifetime(self) -> timedelta:
        """How long a browser is known as one in which somebody signed in."""
        return timedelta(days=365)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers hold ``__Host-`` ones to TLS and to this very host."""
        return "__Host-blowfishdb" if self.https else "blowfishdb"

    @property
    def browser_cookie(self) -> str:
        """The name of the cookie by which a browser is known; it lets nobody in."""
        return f"{self.cookie}-browser"

    def to_text(self) -> str:
        """As a text, by which a server tells its workers."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Settings from their text."""
        return cls(**json.loads(text))


_KIND, _NAME = "key", "quotes"
_BYTES: Final = 32


def seal(store: Store, purpose: str) -> Fernet:
    """What closes texts for one purpose and opens those that it closed, by a key that every worker has.

    Nobody else can read or change them; whoever has one key learns nothing about those for other purposes.
    """
    return _closing(_secret(store), purpose)


@lru_cache(maxsize=16)
def _closing(secret: bytes, purpose: str) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(hmac.new(secret, purpose.encode(), hashlib.sha256).digest()))


def _secret(store: Store) -> bytes:
    """The first one that any worker entered; later ones do not count."""
    catalogue = Catalogue(store)
    if (stored := catalogue.first(_KIND, _NAME)) is None:
        catalogue.put(_KIND, _NAME, secrets.token_hex(_BYTES))
        stored = catalogue.get(_KIND, _NAME, 1)
        assert stored is not None
    return bytes.fromhex(stored)


LIFETIME: Final = timedelta(hours=1)


@final
@dataclass(frozen=True)
class Quoted:
    """What a quote was for, whose it is, and what it said."""

    user: str
    dataset: str
    asked: dict[str, Any]
    policy_version: int
    nano_epsilon: int
    expires: str


@final
class QuoteIds:
    """Seals quotes and opens what it sealed."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def sign(
        self, *, user: str, dataset: str, asked: dict[str, Any], policy_version: int, nano_epsilon: int
    ) -> tuple[str, str]:
        """The id of a quote, and the moment at which it is over."""
        expires = (self._clock().astimezone(UTC) + LIFETIME).isoformat(timespec="seconds")
        quoted = Quoted(user, dataset, asked, policy_version, nano_epsilon, expires)
        body = zlib.compress(canonical(asdict(quoted)).encode())
        return seal(self._store, "quotes").encrypt(body).decode(), expires

    def open(self, text: str, *, user: str, dataset: str) -> Quoted:
        """What was quoted to this user about this dataset, if it is not over."""
        try:
            body = seal(self._store, "quotes").decrypt(text.encode(errors="replace"))
        except InvalidToken:
            raise _not_ours() from None
        quoted = Quoted(**json.loads(zlib.decompress(body)))  # nothing is unpacked that we did not pack
        if (quoted.user, quoted.dataset) != (user, dataset):
            raise _not_ours()
        if datetime.fromisoformat(quoted.expires) <= self._clock().astimezone(UTC):
            raise InvalidInput(
                "This quote is more than an hour old. Nothing was charged.",
                fixes=("a new quote; it is free",),
            )
        return quoted


def _not_ours() -> InvalidInput:
    return InvalidInput(
        "This is not a quote of yours for this dataset. Nothing was charged.",
        fixes=("a new quote; it is free",),
    )


SYSTEM = "server"
"""In whose name the workspace is open; every request is made in the name of the one who sent it."""


@final
@dataclass(frozen=True, eq=False)
class Server:
    """One workspace and those who may use it."""

    workspace: Workspace
    accounts: Accounts
    tokens: Tokens
    idempotency: Idempotency
    scratch: Scratch
    quotes: QuoteIds
    rates: Rates
    settings: Settings
    underway: Underway
    watch: Watch | None = None

    @classmethod
    def open(cls, place: str | Path, settings: Settings, hasher: PasswordHash | None = None) -> Server:
        """Open a workspace; what its last process left unfinished long ago is ended."""
        workspace = Workspace(place, user=SYSTEM, statement_seconds=settings.statement_seconds)
        workspace.limit_copies(settings.proposal_seconds)
        watch = workspace.watch(settings.witness) if settings.witness else None  # before anything is written
        _secret(workspace.store)  # made now, so that the first quote need not write
        limits = Limits(settings.wrong_passwords, timedelta(minutes=settings.wrong_password_minutes))
        return cls(
            workspace,
            Accounts(workspace.store, hasher=hasher, limits=limits),
            Tokens(workspace.store),
            Idempotency(workspace.store),
            Scratch(workspace.store),
            QuoteIds(workspace.store),
            Rates(settings.requests_per_second, settings.burst),
            settings,
            Underway(),
            watch,
        )

    def seal(self, purpose: str) -> Fernet:
        """What closes texts for one purpose, and opens those that any worker closed."""
        return seal(self.workspace.store, purpose)

    def close(self) -> None:
        """Let go of the workspace, and write down where its books end."""
        if self.watch is not None:
            self.watch.end()
        self.workspace.close()


def server_of(connection: HTTPConnection) -> Server:
    """The server that a request came to."""
    server = connection.app.state.server
    assert isinstance(server, Server)
    return server
