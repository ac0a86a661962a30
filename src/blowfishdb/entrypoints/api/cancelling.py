"""Giving a running question up, from whichever worker the request to do so reaches."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, final

from blowfishdb.adapters.backends import Cancellation
from blowfishdb.adapters.scratch import Scratch
from blowfishdb.adapters.store import Store
from blowfishdb.core.errors import NotFound, WorkspaceError

_EVERY: Final = 0.5  # seconds between looks at what other workers were told
_BEAT: Final = 10  # looks between two signs of life
_RUNNING, _STOP = "running", "stop"

_here: dict[tuple[str, str, str], Cancellation] = {}
"""What runs in this very process, by workspace, user and key; it need not wait for the next look."""


@final
class RunningQuestions:
    """The questions that are being answered now, by user and idempotency key."""

    def __init__(self, store: Store) -> None:
        self._place = store.name
        self._scratch = Scratch(store)

    @contextmanager
    def running(self, user: str, key: str, beat: Callable[[], None] = lambda: None) -> Iterator[Cancellation]:
        """While inside, whoever calls ``stop`` with the same names cancels the question.

        ``beat`` is called every few seconds, to tell others that somebody is still at work.
        """
        cancel, over = Cancellation(), threading.Event()
        self._scratch.put(user, _name(key), _RUNNING)
        watch = threading.Thread(
            target=self._watch, args=(user, key, cancel, over, beat), name="blowfishdb-cancel", daemon=True
        )
        watch.start()
        _here[self._place, user, key] = cancel
        try:
            yield cancel
        finally:
            _here.pop((self._place, user, key), None)
            over.set()
            watch.join()
            self._scratch.drop(user, _name(key))

    def stop(self, user: str, key: str) -> None:
        """Ask for a question to be given up."""
        if not self._scratch.replace(user, _name(key), _STOP):
            raise NotFound(
                "No question of yours is running under this key.", fixes=("look whether its answer is there",)
            )
        if (cancel := _here.get((self._place, user, key))) is not None:
            cancel.cancel()

    def _watch(
        self, user: str, key: str, cancel: Cancellation, over: threading.Event, beat: Callable[[], None]
    ) -> None:
        looks, stopped = itertools.count(1), False
        while not over.wait(_EVERY):
            if not stopped and self._scratch.get(user, _name(key)) == _STOP:
                stopped = True
                cancel.cancel()
            if next(looks) % _BEAT == 0:
                with suppress(WorkspaceError):  # others hold the workspace: the next beat may come through
                    beat()


def _name(key: str) -> str:
    return f"running {key}"
