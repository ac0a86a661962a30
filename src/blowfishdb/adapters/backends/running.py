"""Running one statement so that it can always be stopped: in time, by a cancellation, or by Ctrl-C.

The statement has a thread of its own, because drivers wait for a database in ways that nothing interrupts.
The thread that asked waits for it, and stops the statement in the database before it goes on without it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import final

from blowfishdb.adapters.backends.cancellation import Cancellation
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.errors import Cancelled, QueryFailed
from blowfishdb.core.secret import Secret

_FIRST, _LAST = 0.05, 10.0
"""Seconds between attempts to stop a statement: one that has not begun yet cannot be stopped by the first."""


@final
class Brake:
    """How to stop the statement that another thread is running, for as long as it runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self.pulled = False

    @contextmanager
    def stops_by(self, stop: Callable[[], object]) -> Iterator[None]:
        """While inside, ``stop`` ends what runs here, and never anything that runs later."""
        with self._lock:
            if self.pulled:
                raise InterruptedError
            self._stop = stop
        try:
            yield
        finally:
            with self._lock:
                self._stop = None

    def pull(self) -> None:
        """Stop what runs, and let nothing more begin."""
        with self._lock:
            self.pulled = True
            if self._stop is not None:
                with suppress(Exception):  # tried again for as long as the statement runs on
                    self._stop()


@final
class _Work:
    """A statement and its thread. Of a failure only its kind is kept, because its words may quote data."""

    def __init__(self, run: Callable[[Brake], IntArray]) -> None:
        self.counts: Secret[IntArray] | None = None
        self.failure = ""
        self.lost = False
        self.wake = threading.Event()
        self._run = run
        self._brake = Brake()
        self._thread = threading.Thread(target=self._count, name="blowfishdb-count", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop it if it still runs; a database that cannot be reached any more is not waited for."""
        pause = _FIRST
        while self._thread.is_alive() and pause < _LAST:
            self._brake.pull()
            self._thread.join(pause)
            pause *= 2

    def _count(self) -> None:
        try:
            self.counts = Secret(self._run(self._brake))
        except Exception as error:
            self.failure, self.lost = type(error).__name__, isinstance(error, ConnectionError)
        finally:
            self.wake.set()


def counted(run: Callable[[Brake], IntArray], timeout: float, cancel: Cancellation) -> Secret[IntArray]:
    """What ``run`` counts. Whatever fails here is charged, and says nothing about the data.

    A ``run`` raises ConnectionError where the database was lost. An answer that comes although it was to be
    stopped is given: it is paid for.
    """
    work, started = _Work(run), time.monotonic()
    with cancel.calling(work.wake.set):
        try:
            if not cancel.requested:
                work.start()
                work.wake.wait(timeout)
        finally:
            work.end()
    if work.counts is not None:
        return work.counts
    if cancel.requested:
        raise Cancelled(
            "The question was cancelled while the database was counting. What it costs stays charged, "
            "because the data may have been seen."
        )
    if time.monotonic() - started >= timeout:
        raise QueryFailed(
            f"The database took longer than {timeout:g} seconds and was interrupted.",
            fixes=("fewer or wider bins", "ask the curator for a longer limit"),
        )
    if work.lost:
        raise QueryFailed(
            "The connection to the database was lost while it was counting.",
            fixes=("see whether the server runs", "ask again"),
        )
    raise QueryFailed(
        f"The database could not answer ({work.failure}).", fixes=("ask the curator to check the source",)
    )
