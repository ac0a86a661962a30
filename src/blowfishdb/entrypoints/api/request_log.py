"""One line for every request, and nothing in it that was asked, answered, or secret.

A line names the route, never the address that was typed: queries and answers stay out of the log. What
nobody foresaw is logged by its kind and the lines of code it passed; its message may quote a value.
"""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, final

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfishdb.adapters.clock import stamp, utc_now
from blowfishdb.entrypoints.api.problems import unexpected

if TYPE_CHECKING:
    from blowfishdb.entrypoints.api.metrics import Metrics

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
                charged = bool(getattr(raised, "charged", False))
                await unexpected(reference, charged=charged)(scope, receive, noted)
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
    return {id(found.original_route): str(found.path_format) for found in iter_route_contexts(app.routes)}


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
