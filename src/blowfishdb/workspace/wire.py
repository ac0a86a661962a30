"""What the client sends and how it is read: once or again, waiting or not, and a problem as its error.

What a server refuses, as the errors that the same question would have raised in this process.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, final

import httpx

from blowfishdb.core import errors
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.errors import AnswerInProgress, InvalidInput

_KINDS: Final = {
    re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(): kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.BlowfishError)
} | {"policy-changed": errors.PolicyConflict}


def error_of(problem: Any, headers: Mapping[str, str] | None = None) -> errors.BlowfishError:
    """The error that a problem stands for: its class, its words, and what became of the charge."""
    facts: Mapping[str, Any] = problem if isinstance(problem, Mapping) else {}
    kind = _KINDS.get(str(facts.get("type", "")).rpartition(":")[2], errors.SourceError)
    words = str(facts.get("detail", "The server refused without saying why."))
    fixes = tuple(str(fix) for fix in facts.get("fixes", ()))
    error = _made(kind, words, fixes, facts, headers or {})
    error.charged = bool(facts.get("charged", False))
    return error


def _made(
    kind: type[errors.BlowfishError],
    words: str,
    fixes: tuple[str, ...],
    facts: Mapping[str, Any],
    headers: Mapping[str, str],
) -> errors.BlowfishError:
    if issubclass(kind, errors.BudgetExhausted):
        return kind(words, needed=facts.get("needed"), left=facts.get("left"), fixes=fixes)
    if issubclass(kind, errors.TooManyAttempts | errors.AnswerInProgress):
        wait = headers.get("Retry-After", "")
        return kind(words, wait=int(wait) if wait.isdecimal() else 1, fixes=fixes)
    return kind(words, fixes=fixes)


def unreachable(host: str, *lost: httpx.TransportError, asked: bool = False) -> errors.SourceError:
    """Nobody answered; a question that may have arrived is counted as charged, to be on the safe side."""
    error = errors.SourceError(
        f"The server at {host} did not answer ({type(lost[-1]).__name__}).",
        fixes=("check that it runs, and its address", "again in a moment"),
    )
    if asked and not all(isinstance(each, httpx.ConnectError | httpx.ConnectTimeout) for each in lost):
        error.message += (
            " The question may have been charged; if so, asking again returns its answer for nothing."
        )
        error.charged = True
    return error


def not_ours(host: str) -> errors.SourceError:
    """Somebody answered, in another language."""
    return errors.SourceError(
        f"What answers at {host} is not a BlowfishDB server.", fixes=("check the address and the port",)
    )


_PATIENCE: Final = 600.0  # seconds that a database may take to count
_POLL: Final = 0.2
_TRIES: Final = 3


@final
class Wire:
    """The connection to a server, in the name of whoever a token belongs to."""

    def __init__(self, url: str, token: str, transport: httpx.BaseTransport | None = None) -> None:
        if not (token.isascii() and token.isprintable() and token.strip()):
            raise InvalidInput("This is not a token.", fixes=("the text that was shown once, whole",))
        try:
            self._http = httpx.Client(
                base_url=f"{url.rstrip('/')}/api/v1",
                headers={"Authorization": f"Bearer {token.strip()}"},
                timeout=httpx.Timeout(_PATIENCE, connect=10.0),
                transport=transport,
            )
        except httpx.InvalidURL:
            raise InvalidInput(f"'{url}' is not an address.", fixes=("http://127.0.0.1:8787",)) from None

    @property
    def host(self) -> str:
        """Where the server is."""
        return self._http.base_url.host

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """What is at an address."""
        return self._reply(lambda: self._http.get(path, params=query), tries=_TRIES)

    def look(self, path: str, body: Mapping[str, Any]) -> Any:
        """Something that changes nothing, and so may be sent again."""
        return self._reply(lambda: self._http.post(path, json=body), tries=_TRIES)

    def send(self, method: str, path: str, body: Mapping[str, Any]) -> Any:
        """A change, sent once."""
        return self._reply(lambda: self._http.request(method, path, json=body))

    def once(
        self,
        path: str,
        body: Mapping[str, Any],
        cancel: Cancellation | None = None,
        key: str | None = None,
    ) -> Any:
        """A question, under one key; again if the connection is lost, because a key is charged once."""
        key = key or uuid.uuid4().hex
        lost: list[httpx.TransportError] = []
        until = time.monotonic() + _PATIENCE
        with self._cancelled_by(cancel, key):
            while True:
                try:
                    response = self._http.post(path, json=body, headers={"Idempotency-Key": key})
                    return self._read(response)
                except httpx.TransportError as error:
                    lost.append(error)
                    if len(lost) == _TRIES:
                        raise unreachable(self.host, *lost, asked=True) from error
                except AnswerInProgress:
                    if not lost or time.monotonic() > until:
                        raise
                    time.sleep(_POLL)  # what was sent before the connection was lost still runs

    def job(self, path: str, body: Mapping[str, Any], progress: Progress | None) -> Any:
        """Long work that changes nothing: without waiting if someone wants to see how far it is."""
        if progress is None:
            return self.look(path, body)
        headers = {"Prefer": "respond-async"}
        started = self._reply(lambda: self._http.post(path, json=body, headers=headers), tries=_TRIES)
        while True:
            job = self.get(f"/jobs/{started['id']}")
            progress(job["done"], job["of"])
            if job["state"] == "done":
                return job["result"]
            if job["state"] == "failed":
                raise error_of(job["problem"])
            time.sleep(_POLL)

    @contextmanager
    def _cancelled_by(self, cancel: Cancellation | None, key: str) -> Iterator[None]:
        """While inside, cancelling tells the server, again and again until it has heard of the question."""
        if cancel is None:
            yield
            return
        cancel.check()
        over = threading.Event()

        def tell() -> None:
            while not over.is_set() and not self._stopped(key):
                over.wait(_POLL)

        with cancel.calling(lambda: threading.Thread(target=tell, daemon=True).start()):
            try:
                yield
            finally:
                over.set()

    def _stopped(self, key: str) -> bool:
        try:
            return self._http.delete(f"/answers/running/{key}").is_success
        except httpx.TransportError:
            return False

    def _reply(self, send: Callable[[], httpx.Response], *, tries: int = 1) -> Any:
        while True:
            tries -= 1
            try:
                return self._read(send())
            except httpx.TransportError as error:
                if not tries:
                    raise unreachable(self.host, error) from error

    def _read(self, response: httpx.Response) -> Any:
        try:
            body = response.json() if response.content else {}
        except ValueError:
            raise not_ours(self.host) from None
        if response.is_success:
            return body
        raise error_of(body, response.headers)
