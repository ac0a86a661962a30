"""Headers that keep a browser from doing with our pages what they were not made for.

How long a request and its address may be; longer ones are refused before anything reads them.

How fast one caller may send requests: a bucket of tokens that fills up again, in each process.

One line for every request, and nothing in it that was asked, answered, or secret.

A line names the route, never the address that was typed: queries and answers stay out of the log. What
nobody foresaw is logged by its kind and the lines of code it passed; its message may quote a value.

What happens to the server itself, as JSON lines like those of requests.

What a monitoring system may know: how many requests, how long they took, and what the ledger says.

With several workers, each writes its numbers into one folder (``PROMETHEUS_MULTIPROC_DIR``, which ``serve``
makes), and whichever of them is asked adds them up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import threading
import time
import traceback
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, final

from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfishdb.adapters.store.values import stamp, utc_now
from blowfishdb.core.errors import TooManyAttempts
from blowfishdb.entrypoints.server.problems import problem, respond, unexpected

if TYPE_CHECKING:
    from prometheus_client import Metric

    from blowfishdb.workspace.embedded import Workspace


_FOR_DATA: Final = "default-src 'none'; frame-ancestors 'none'"
_FOR_PAGES: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}
_ONE_YEAR: Final = "max-age=31536000; includeSubDomains"


@final
class SecurityHeaders:
    """On every response, unless the route has set a header itself."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self._app = app
        self._https = https
        self._always = {**_ALWAYS, **({"Strict-Transport-Security": _ONE_YEAR} if https else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                page = headers.get("Content-Type", "").startswith("text/html")
                headers.setdefault("Content-Security-Policy", _FOR_PAGES if page else _FOR_DATA)
                for name, value in self._always.items():
                    headers.setdefault(name, value)
                if self._https:
                    message["headers"] = [_secured(*each) for each in message["headers"]]
            await send(message)

        await self._app(scope, receive, with_headers)


def _secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A cookie that travels by TLS only, whatever it is for."""
    if name.lower() != b"set-cookie" or b"; secure" in value.lower():
        return name, value
    return name, value + b"; Secure"


_LONGEST_PATH: Final = 1_500  # a name in it has at most 255 characters
_MOST_DIGITS: Final = 18
_A_MOMENT: Final = 0.5  # seconds


@final
class BodyLimit:
    """Refuses by the announced length, and counts what comes in case it was a lie."""

    def __init__(self, app: ASGIApp, *, longest: int, files: tuple[Callable[[str], bool], int]) -> None:
        """``files``: at which paths they are sent, and how long they may be; whoever serves these looks first
        at who sends it."""
        self._app = app
        self._usual = longest
        self._takes_files, self._longest_file = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        longest = self._longest_file if self._takes_files(scope["path"]) else self._usual
        if len(scope["path"]) > _LONGEST_PATH:
            detail = f"An address may have at most {_LONGEST_PATH:,} characters before its '?'."
            refusal = problem(414, "too-long", detail, fixes=("a shorter one",))
            await (await respond(Request(scope), refusal))(scope, receive, send)
            return
        announced = Headers(scope=scope).get("Content-Length", "0")
        if not _is_length(announced) or int(announced) > longest:
            await self._refuse(scope, receive, send, longest)
            return
        received, refused, started = 0, False, False

        async def counted() -> Message:
            nonlocal received, refused
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > longest:
                    refused = True
                    return {"type": "http.disconnect"}  # whoever reads the body stops here
            return message

        async def unless_refused(message: Message) -> None:
            nonlocal started
            if refused and not started:
                return
            started = True
            await send(message)

        try:
            await self._app(scope, counted, unless_refused)
        except Exception:
            if not refused or started:
                raise
        if refused and not started:
            await self._refuse(scope, receive, send, longest)

    async def _let_by(self, receive: Receive) -> None:
        """Whoever is still sending hears nothing: a little more is taken in and forgotten, for a moment."""
        let_by, more = 0, True
        with suppress(TimeoutError):
            async with asyncio.timeout(_A_MOMENT):
                while more and let_by <= self._usual:
                    message = await receive()
                    more = message["type"] == "http.request" and bool(message.get("more_body"))
                    let_by += len(message.get("body", b""))

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, longest: int) -> None:
        await self._let_by(receive)
        detail = f"A request may have at most {longest:,} bytes."
        fixes = ("a smaller request", "a file that the server can read instead of its contents")
        refusal = problem(413, "too-large", detail, fixes=fixes, headers={"Connection": "close"})
        await (await respond(Request(scope), refusal))(scope, receive, send)


def _is_length(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


_MOST_CALLERS: Final = 10_000  # beyond this the one who called longest ago is forgotten


@final
class Rates:
    """One bucket for each caller; safe to share between threads."""

    def __init__(
        self, per_second: float, burst: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._now = monotonic
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request, or refuse it and say when the next one counts."""
        now = self._now()
        with self._lock:
            full, then = self._buckets.pop(caller, (self._burst, now))
            full = min(self._burst, full + (now - then) * self._per_second)
            allowed = full >= 1
            self._buckets[caller] = (full - 1 if allowed else full, now)
            if len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            wait = max(1, math.ceil((1 - full) / self._per_second))
            raise TooManyAttempts(
                "These are more requests than one caller may send at a time.",
                wait=wait,
                fixes=(f"again in {wait} second{'s' if wait > 1 else ''}",),
            )


LOGGER: Final = logging.getLogger("blowfishdb.server")
ID_HEADER: Final = "X-Request-ID"
_GOOD_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


@final
class RequestLog:
    """Gives each request an id, answers what nobody foresaw, and writes the line."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, templates: Mapping[int, str]) -> None:
        self._app = app
        self._metrics = metrics
        self._templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        reference = state["id"] = _id(scope)
        started, status, seconds = time.perf_counter(), 0, 0.0

        async def noted(message: Message) -> None:
            nonlocal status, seconds
            seconds = time.perf_counter() - started  # work that goes on after the response does not count
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[ID_HEADER] = reference
            await send(message)

        error: Exception | None = None
        try:
            await self._app(scope, receive, noted)
        except Exception as raised:
            error = raised
            if not status:
                failure = unexpected(reference, charged=bool(getattr(raised, "charged", False)))
                try:
                    response = await respond(Request(scope), failure)
                except Exception:  # a page about what went wrong may go wrong for the same reason
                    response = failure.response()
                await response(scope, receive, noted)
        finally:
            template = self._template(scope)
            self._metrics.count(template, scope["method"], status, seconds)
            LOGGER.log(
                logging.INFO if status < 500 else logging.ERROR,
                _line(state, scope["method"], template, status, seconds, error),
            )

    def _template(self, scope: Scope) -> str:
        """The route as it was declared, without what was filled in."""
        route = scope.get("route")
        return self._templates.get(id(route)) or str(getattr(route, "path_format", None) or "unmatched")


def templates_of(app: FastAPI) -> dict[int, str]:
    """The whole path of each route; a route by itself knows only the part after its router's prefix."""
    return {
        id(context.original_route): str(context.path_format) for context in iter_route_contexts(app.routes)
    }


def _id(scope: Scope) -> str:
    given = Headers(scope=scope).get(ID_HEADER, "")
    return given if _GOOD_ID.fullmatch(given) else uuid.uuid4().hex


def _line(
    state: dict[str, Any], method: str, template: str, status: int, seconds: float, error: Exception | None
) -> str:
    line = {
        "time": stamp(utc_now),
        "id": state["id"],
        "method": method,
        "route": template,
        "status": status,
        "ms": round(1000 * seconds, 1),
        "user": state.get("user"),
    }
    if "problem" in state:
        line["problem"] = state["problem"]
    if error is not None:
        line["problem"] = type(error).__name__
        line["passed"] = [
            f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-8:]
        ]
    return json.dumps(line)


@final
class ServerLines(logging.Formatter):
    """One line for each record; of an exception only its kind, for its message may quote a value."""

    def format(self, record: logging.LogRecord) -> str:
        """A record as a line."""
        line = {"time": stamp(utc_now), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            line["message"] = "Something went wrong inside the server."
            line["problem"] = record.exc_info[0].__name__
        return json.dumps(line)


SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "SQL"})


@final
class Metrics:
    """The numbers of one app; apps in the same process do not mix theirs."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._own = CollectorRegistry()
        self._ledger = LedgerNumbers(workspace)
        self._requests = Counter(
            "blowfishdb_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._own,
        )
        self._seconds = Histogram(
            "blowfishdb_request_seconds",
            "How long requests took.",
            ("route", "method"),
            buckets=_BOUNDS,
            registry=self._own,
        )
        self._found: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Note one request; made-up methods share a name, so that nobody can fill the memory with them."""
        known = method if method in _METHODS else "other"
        found = self._found.get((route, known, status))
        if found is None:
            found = self._requests.labels(route, known, str(status)), self._seconds.labels(route, known)
            self._found[route, known, status] = found
        found[0].inc()
        found[1].observe(round(seconds, 6))  # no digit is left over to be taken for a number of people

    def text(self) -> bytes:
        """Everything, in the form that Prometheus reads."""
        requests = self._own
        if SHARED_FOLDER in os.environ:
            requests = CollectorRegistry()
            MultiProcessCollector(requests)  # type: ignore[no-untyped-call]
        ledger = CollectorRegistry()
        ledger.register(self._ledger)
        return generate_latest(requests) + generate_latest(ledger)


@final
class LedgerNumbers(Collector):
    """Budgets as the ledger has them at this moment; every worker would say the same."""

    def __init__(self, workspace: Callable[[], Workspace]) -> None:
        self._workspace = workspace  # asked each time: the demonstration replaces it when it starts over

    def collect(self) -> Iterable[Metric]:
        """One number for each dataset and state."""
        budgets = GaugeMetricFamily(
            "blowfishdb_epsilon", "Privacy loss by dataset.", labels=("dataset", "state")
        )
        for name, state, epsilon in self._numbers():
            budgets.add_metric((name, state), epsilon)
        yield budgets

    def _numbers(self) -> Iterator[tuple[str, str, float]]:
        workspace = self._workspace()
        for name in workspace.datasets():
            budget = workspace.budget(name)
            yield name, "total", float(budget.total)
            yield name, "spent", float(budget.spent)
            yield name, "held", float(budget.held)
