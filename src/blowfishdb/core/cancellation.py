"""Work under way: how far it is, and giving it up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

from blowfishdb.core.errors import Cancelled

Progress = Callable[[int, int], None]
"""Called with how much of a long piece of work is done, and how much there is."""


@final
class Cancellation:
    """Asked for once, by any thread, and from then on. One object belongs to one question."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may cancel while its own thread is in here
        self._requested = False
        self._leaving = False
        self._calls: list[Callable[[], object]] = []

    @property
    def requested(self) -> bool:
        """Whether the question is to be given up."""
        return self._requested

    def cancel(self) -> None:
        """Give the question up. Before the data is read this is free; later, what it costs stays charged."""
        with self._lock:
            self._requested = True
            for call in tuple(self._calls):
                call()

    def leave(self) -> None:
        """Give the question up if no row is read yet; otherwise it goes on, and its answer is kept."""
        self._leaving = True

    def check(self) -> None:
        """Go no further if it was asked for; only for steps before the data is read."""
        if self._requested or self._leaving:
            error = Cancelled("The question was cancelled before the data was read. Nothing was charged.")
            error.charged = False
            raise error

    @contextmanager
    def calling(self, call: Callable[[], object]) -> Iterator[None]:
        """While inside, ``call`` is called as soon as it is asked for: at once, if it was before."""
        with self._lock:
            self._calls.append(call)
            if self._requested:
                call()
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)
