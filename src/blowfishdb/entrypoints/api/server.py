"""What a running server holds open, once in each process: the workspace and what is stored beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, final

from starlette.requests import HTTPConnection

from blowfishdb.adapters.accounts import Accounts, Limits
from blowfishdb.adapters.idempotency import Idempotency
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.adapters.witness import Watch
from blowfishdb.entrypoints.api.keys import key
from blowfishdb.entrypoints.api.rates import Rates
from blowfishdb.entrypoints.api.settings import Settings
from blowfishdb.workspace import Workspace

if TYPE_CHECKING:
    from pwdlib import PasswordHash

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
    rates: Rates
    settings: Settings
    watch: Watch | None = None

    @classmethod
    def open(cls, place: str | Path, settings: Settings, hasher: PasswordHash | None = None) -> Server:
        """Open a workspace; what its last process left unfinished long ago is ended."""
        workspace = Workspace(place, user=SYSTEM)
        watch = workspace.watch(settings.witness) if settings.witness else None  # before anything is written
        key(workspace.store, "quotes")  # made now, so that the first quote need not write
        limits = Limits(settings.wrong_passwords, timedelta(minutes=settings.wrong_password_minutes))
        return cls(
            workspace,
            Accounts(workspace.store, hasher=hasher, limits=limits),
            Tokens(workspace.store),
            Idempotency(workspace.store),
            Rates(settings.requests_per_second, settings.burst),
            settings,
            watch,
        )

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
