"""Problems on pages: what the interface refuses as JSON is shown as a page to someone with a browser.

Every refusal is made once, in one place; here it only gets another face. Who is not signed in is led to where
they can.
"""

from __future__ import annotations

import json
from typing import Any, Final, final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.server.access import Caller
from blowfishdb.entrypoints.server.problems import MEDIA_TYPE, reference_of, unexpected
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.frame import render

_FOR_PROGRAMS: Final = ("/api/", "/metrics", "/static/")
_KEPT: Final = ("retry-after", "connection")
_TITLES: Final = {
    402: "Not enough budget",
    403: "This page is for another role",
    404: "There is nothing here",
    405: "There is nothing here",
    409: "Something changed in the meantime",
    413: "That was too long",
    422: "This cannot be used as it is",
    429: "A little slower, please",
    500: "Something went wrong",
    502: "The data could not be reached",
    503: "The data could not be reached",
}


@final
class ProblemPages:
    """Replaces a problem by a page, except for programs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(_FOR_PROGRAMS):
            await self._app(scope, receive, send)
            return
        started: Message | None = None
        under_way = False
        body = b""

        async def shown(message: Message) -> None:
            nonlocal started, under_way, body
            if message["type"] == "http.response.start":
                if Headers(raw=message["headers"]).get("Content-Type", "").startswith(MEDIA_TYPE):
                    started = message
                    return
                under_way = True
            if started is None:
                await send(message)
                return
            body += message.get("body", b"")
            if not message.get("more_body", False):
                page = await _page(Request(scope), json.loads(body), Headers(raw=started["headers"]))
                await page(scope, receive, send)

        try:
            await self._app(scope, receive, shown)
        except Exception as error:
            if not under_way and started is None:
                charged = bool(getattr(error, "charged", False))
                said = unexpected(reference_of(Request(scope)), charged=charged)
                page = await _page(Request(scope), json.loads(bytes(said.body)), said.headers)
                await page(scope, receive, send)
            raise  # the log tells what happened, the page does not


async def _page(request: Request, said: dict[str, Any], headers: Headers) -> Response:
    if said["status"] == 401:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        wanted = f"?next={quote(here, safe='')}" if request.method == "GET" and here != "/" else ""
        return RedirectResponse(f"/signin{wanted}", 303)
    return await run_in_threadpool(_render, request, said, headers)


def _render(request: Request, said: dict[str, Any], headers: Headers) -> Response:
    status, caller = said["status"], _caller(request)
    page = render(
        request,
        "problem.html",
        caller=caller,
        status=status,
        problem=said,
        fitting=_fitting(request, caller) if status == 403 else [],
        title=_TITLES.get(status, said["title"]),
    )
    page.headers.update({name: headers[name] for name in _KEPT if name in headers})
    return page


def _fitting(request: Request, caller: Caller | None) -> list[str]:
    """The roles that would have been let in, where a demonstration lets one choose."""
    wanted = getattr(request.state, "wanted", ())
    if caller is None or caller.role in wanted or not server_of(request).settings.demo:
        return []
    return [role.value for role in wanted]


def _caller(request: Request) -> Caller | None:
    """Whoever is signed in, for the navigation; a page that says what went wrong must not fail itself."""
    known = getattr(request.state, "caller", None)
    if isinstance(known, Caller):
        return known
    server = server_of(request)
    secret = request.cookies.get(server.settings.cookie)
    try:
        account = server.tokens.who(secret, purpose="session") if secret else None
    except BlowfishError:
        return None
    if account is None:
        return None
    return Caller(account, server.workspace.as_user(account.user), server, secret)
