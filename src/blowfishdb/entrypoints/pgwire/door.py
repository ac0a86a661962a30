"""What the connections of one worker share: accounts, threads, the catalogue, and who is inside.

A question is given up by its client if no row is read yet; otherwise it goes on, and its answer is kept.
"""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import json
import os
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, final

from blowfishdb.adapters.accounts import Limits as PasswordLimits
from blowfishdb.adapters.store.once import Scratch
from blowfishdb.adapters.store.values import stamp
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.entrypoints.pgwire.catalogue import Catalogue, Catalogues, Kept
from blowfishdb.entrypoints.server.middleware import LOGGER, Metrics
from blowfishdb.entrypoints.server.server import Server

_CANCELS: Final = "wire cancels"
_MOST_LINES: Final = 200  # of the log, that wait to be written


@final
@dataclass(frozen=True)
class Limits:
    """How many connections there may be, how long one may say nothing, and how long coming in may take."""

    total: int = 500
    per_user: int = 250
    idle_seconds: float = 3600.0
    sign_in_seconds: float = 30.0

    def __post_init__(self) -> None:
        if min(self.total, self.per_user, self.idle_seconds, self.sign_in_seconds) <= 0:
            raise InvalidInput("Connections need room and time.")


@final
@dataclass(eq=False)
class Running:
    """What a connection waits for, so that another one can give it up."""

    cancel: Cancellation = field(default_factory=Cancellation)
    asked: bool = False
    """Whether somebody asked for it."""


@final
@dataclass(eq=False)
class Inside:
    """Someone who is signed in, and what they wait for."""

    user: str
    running: Running | None = None


class Line(NamedTuple):
    """A statement as the log tells of it: when it ended, by what it is known, and what came of it."""

    time: float
    reference: str
    verb: str
    code: str
    seconds: float
    user: str
    problem: str | None

    def to_text(self) -> str:
        """In the form of the log of requests."""
        ended = datetime.fromtimestamp(self.time, UTC)
        line: dict[str, Any] = {
            "time": stamp(lambda: ended),
            "id": self.reference,
            "method": "SQL",
            "route": f"pgwire {self.verb.lower()[:20]}" if self.verb.isalpha() else "pgwire",
            "status": self.code,
            "ms": round(1000 * self.seconds, 1),
            "user": self.user,
        }
        return json.dumps(line if self.problem is None else {**line, "problem": self.problem})


@final
class Door(Catalogues):
    """Everything that the connections of one worker share."""

    def __init__(
        self,
        server: Server,
        metrics: Metrics,
        *,
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.server = server
        self.limits = limits
        self.tls = tls
        guesses = PasswordLimits(server.settings.wrong_passwords)
        self.passwords = WirePasswords(server.workspace.store, limits=guesses)
        self._metrics = metrics
        self._numbers = itertools.count(os.getpid() * 1_000 % 2**30 + 1)
        self._inside: dict[tuple[int, int], Inside] = {}
        self._by_user: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._catalogue: tuple[object, Catalogue, Kept] | None = None
        self._lines: list[Line] = []
        self._threads = ThreadPoolExecutor(server.settings.questions_at_once, thread_name_prefix="pgwire")

    # --- what sessions share ------------------------------------------------------------------------

    def next_process(self) -> int:
        """A number for a connection."""
        return next(self._numbers)

    def plain_allowed(self, address: str) -> bool:
        """Whether someone may come in unencrypted: from this machine alone."""
        try:
            return ipaddress.ip_address(address).is_loopback
        except ValueError:
            return False

    def enter(self, process: int, secret: int, user: str) -> Inside | None:
        """Count someone who is signed in; None if too many connections are theirs."""
        with self._lock:
            if self._by_user[user] >= self.limits.per_user:
                return None
            self._by_user[user] += 1
            inside = self._inside[process, secret] = Inside(user)
            return inside

    def left(self, process: int, secret: int) -> None:
        """A connection is over."""
        with self._lock:
            inside = self._inside.pop((process, secret), None)
            if inside is not None:
                self._by_user[inside.user] -= 1
                if not self._by_user[inside.user]:
                    del self._by_user[inside.user]

    def later(self, seconds: float, call: Callable[[], object]) -> threading.Timer:
        """Call something after so many seconds, unless it is cancelled before."""
        timer = threading.Timer(seconds, call)
        timer.daemon = True
        timer.start()
        return timer

    def work(self, call: Callable[[], Any]) -> Future[Any]:
        """Do something in a thread."""
        return self._threads.submit(call)

    def count(self, route: str, code: str, seconds: float) -> None:
        """Note a statement among the requests of the server."""
        status = 200 if code == "00000" else 500 if code == "XX000" else 400
        self._metrics.count(route, "SQL", status, seconds)

    def note(self, line: Line) -> None:
        """A line for the log, which is written with the next ones."""
        self._lines.append(line)
        if len(self._lines) > _MOST_LINES:
            self.write_log()

    def write_log(self) -> None:
        """Write what was noted since the last time."""
        lines, self._lines = self._lines, []
        if lines:
            LOGGER.info("\n".join(map(Line.to_text, lines)))

    def memory(self) -> dict[Any, Any]:
        """Where things can be kept while nothing in the workspace changes: a new one after every change."""
        nothing: dict[Any, Any] = {}
        return self.server.workspace.store.recalled(("wire",), lambda _: nothing)

    # --- the catalogue --------------------------------------------------------------------------------

    def current(self) -> tuple[Catalogue, Kept]:
        """The catalogue over the datasets of this moment."""
        workspace = self.server.workspace
        infos = [workspace.facts(name) for name in workspace.counted()]
        state = tuple((info.name, info.domain, info.policy_version, info.title) for info in infos)
        with self._lock:
            held = self._catalogue
            if held is None or held[0] != state:
                held = self._catalogue = (state, Catalogue(infos), Kept())
        return held[1], held[2]

    # --- giving up ------------------------------------------------------------------------------------

    def cancel(self, process: int, secret: int) -> None:
        """Give up what a connection waits for; one of another worker is told through the workspace."""
        if self.cancelled_here(process, secret):
            return
        scratch: Scratch = self.server.scratch
        with contextlib.suppress(BlowfishError):
            scratch.put(_CANCELS, f"{process} {secret}", "stop")

    def cancelled_here(self, process: int, secret: int) -> bool:
        """Whether the connection is one of this worker; what it waits for is given up then."""
        inside = self._inside.get((process, secret))
        if inside is None:
            return False
        if inside.running is not None:
            inside.running.asked = True
            inside.running.cancel.leave()
        return True

    def look_for_cancels(self) -> None:
        """What other workers were told to give up, as far as somebody here waits for it."""
        for (process, secret), inside in list(self._inside.items()):
            if inside.running is not None and not inside.running.asked:
                note = f"{process} {secret}"
                with contextlib.suppress(BlowfishError):
                    if self.server.scratch.get(_CANCELS, note) is not None:
                        self.cancelled_here(process, secret)
                        self.server.scratch.drop(_CANCELS, note)

    @property
    def waiting(self) -> bool:
        """Whether anybody waits for an answer."""
        return any(inside.running is not None for inside in list(self._inside.values()))

    def close(self) -> None:
        """Take on no more work, and let go of the catalogue."""
        self.write_log()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._catalogue is not None:
            self._catalogue[1].close()
            self._catalogue = None
