"""A workspace behind the app and the door for PostgreSQL clients, and the ways to come in."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from blowfishdb.entrypoints.pgwire.door import Door, Limits
from blowfishdb.entrypoints.pgwire.listener import Listener
from blowfishdb.entrypoints.server.server import Settings
from tests.entrypoints.server import ROLES, SETTINGS, Running, running

PSQL = shutil.which("psql")


@dataclass(frozen=True)
class Opened:
    """The app with its clients, the door, and the wire password of everyone."""

    web: Running
    door: Door
    port: int
    passwords: dict[str, str]
    loop: asyncio.AbstractEventLoop
    kept: list[Any] = field(default_factory=list)

    def url(self, user: str = "analyst", *, scheme: str = "postgresql", database: str = "blowfishdb") -> str:
        """The address of the door for a user."""
        return f"{scheme}://{user}:{self.passwords[user]}@127.0.0.1:{self.port}/{database}"

    def connect(self, user: str = "analyst", **more: Any) -> psycopg.Connection[Any]:
        """A connection that commits every statement."""
        return psycopg.connect(self.url(user), **{"autocommit": True, **more})

    def psql(self, *statements: str, user: str = "analyst") -> subprocess.CompletedProcess[str]:
        """What the real psql says to statements, one after another."""
        assert PSQL is not None
        commands = [part for statement in statements for part in ("-c", statement)]
        # as in a terminal: what is refused does not end the session
        return subprocess.run(
            [PSQL, "-X", "-w", self.url(user), *commands],
            env={"PATH": os.environ["PATH"], "PGCLIENTENCODING": "UTF8", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def spent(self) -> str:
        """What answers have cost so far."""
        return str(self.web.workspace.budget("salaries").spent)


@contextmanager
def opened(
    folder: Path, *, budget: str = "5", settings: Settings = SETTINGS, limits: Limits | None = None
) -> Iterator[Opened]:
    """A fresh workspace in ``folder`` behind the app and the door."""
    with running(folder, settings=settings, budget=budget) as web, door_of(web, limits) as there:
        yield there


@contextmanager
def door_of(web: Running, limits: Limits | None = None) -> Iterator[Opened]:
    """The door of an app that is there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="door", daemon=True)
    thread.start()

    def wait(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    door = Door(web.app.state.server, web.app.state.metrics, limits=limits or Limits())
    listener = Listener(door)
    try:
        port = wait(listener.open("127.0.0.1", 0))
        passwords = {role: door.passwords.issue(role) for role in ROLES}
        yield Opened(web, door, port, passwords, loop)
    finally:
        wait(listener.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def awaited(asked: Coroutine[Any, Any, Any]) -> Any:
    """What comes of it, in a thread of its own: that of the tests may have a loop, left by a browser."""
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, asked).result()
