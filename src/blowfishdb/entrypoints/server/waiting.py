"""Waiting and giving up: how many requests a worker takes, and what ends when nobody waits any more.

A worker takes so many requests at a time and refuses what comes beyond (503, with the seconds after which to
try again); of those, so many may be questions that read rows, so that slow ones leave room for prices and
pages. A price is given up when whoever asked for it has gone, as a page does that asks for the next one.
When a server ends, questions under way are given up in time: free before the reading mark, charged after it.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfishdb.core.cancellation import Cancellation
from blowfishdb.entrypoints.server.problems import problem

_ALWAYS: Final = ("/api/v1/health", "/static/")
"""What a busy worker still answers: that it is alive, and what is quick."""
_QUESTIONS: Final = ("/answers", "/batches", "/ask", "/preview")
"""How addresses end to which a question is posted that reads rows."""
_PRICES: Final = ("/quotes", "/ask", "/explain", "/plans", "/plan", "/plan/set")
_AGAIN: Final = 1  # seconds after which it is worth trying again
_STATE: Final = "given_up"


@final
class Waiting:
    """Takes at most ``most`` requests at a time, ``questions`` of them such that read rows."""

    def __init__(self, app: ASGIApp, *, most: int, questions: int) -> None:
        self._app = app
        self._most = most
        self._inside = 0
        self._turns = asyncio.Semaphore(questions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_ALWAYS):
            await self._app(scope, receive, send)
            return
        if self._inside >= self._most:
            detail = "The server has as many requests as it can take. Nothing was charged."
            headers = {"Retry-After": str(_AGAIN)}
            busy = problem(503, "busy", detail, fixes=(f"again in {_AGAIN} second",), headers=headers)
            await busy.response()(scope, receive, send)  # a page would have to wait for a thread
            return
        self._inside += 1
        try:
            await self._taken(scope, receive, send)
        finally:
            self._inside -= 1

    async def _taken(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = scope["method"] == "POST"
        if posted and scope["path"].endswith(_QUESTIONS):
            async with self._turns:
                await self._app(scope, receive, send)
        elif scope["path"].endswith(_PRICES):
            await _watched(self._app, scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _watched(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """A request whose work is given up when the one who sent it has gone."""
    cancel: Cancellation = Cancellation()
    scope.setdefault("state", {})[_STATE] = cancel
    gone, watch = asyncio.Event(), set[asyncio.Task[None]]()

    async def until_gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        cancel.cancel()
        gone.set()

    async def received() -> Message:
        if watch:  # everything was read: what may still come is that they leave
            await gone.wait()
            return {"type": "http.disconnect"}
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body", False):
            watch.add(asyncio.create_task(until_gone()))
        return message

    if scope["method"] == "GET":
        await received()
    try:
        await app(scope, received, send)
    finally:
        for task in watch:
            task.cancel()


def given_up(scope: Scope) -> Cancellation | None:
    """What is cancelled when the one who sent a request has gone; None where nobody watches."""
    state: dict[str, Any] = scope.get("state", {})
    cancel = state.get(_STATE)
    return cancel if isinstance(cancel, Cancellation) else None


@final
class Underway:
    """The questions that one process is answering, so that they can be given up when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Cancellation] = set()
        self._ending = False

    @contextmanager
    def question(self, cancel: Cancellation | None = None) -> Iterator[Cancellation]:
        """While inside, the question is one of them."""
        own = Cancellation() if cancel is None else cancel
        with self._lock:
            self._running.add(own)
            ending = self._ending
        if ending:
            own.cancel()
        try:
            yield own
        finally:
            with self._lock:
                self._running.discard(own)

    @property
    def ending(self) -> bool:
        """Whether they were given up, because the process ends."""
        return self._ending

    def stop(self) -> None:
        """Give all of them up, and those that still come."""
        with self._lock:
            self._ending, running = True, tuple(self._running)
        for each in running:
            each.cancel()

    def wait(self, seconds: float) -> bool:
        """Whether all of them are through within so many seconds."""
        until = time.monotonic() + seconds
        while self._running and time.monotonic() < until:
            time.sleep(0.02)
        return not self._running


def leave_within(seconds: float) -> threading.Thread:
    """End this process after so many seconds, whatever hangs in it: a source that never answers, say.

    What was committed is durable, and a charge behind its reading mark stays spent.
    """

    def leave() -> None:
        time.sleep(seconds)
        with suppress(OSError):
            os.write(2, b'{"level": "warning", "message": "Something hung, and was left behind."}\n')
        os._exit(0)

    thread = threading.Thread(target=leave, name="blowfishdb-leave", daemon=True)
    thread.start()
    return thread
