"""The pages: the same data as the interface for programs, for people in front of a browser.

``ROUTERS`` lists them in the order of the navigation; each file holds one page or one flow. They work without
JavaScript, which only adds live quotes and charts that can be pointed at.

A problem is a page, too; who is not signed in is led to where they can.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response

from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.server.access import Caller
from blowfishdb.entrypoints.server.problems import Problem, told
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web import (
    about,
    access,
    answers,
    ask,
    attack,
    audit,
    datasets,
    desk,
    door,
    figures,
    frame,
    helping,
    imports,
    plans,
    policy,
    starting,
    synthesis,
    tradeoff,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    frame.static_files,
    door.router,
    helping.router,
    attack.router,
    access.signing_pages,
    datasets.demonstration,
    imports.router,
    datasets.router,
    about.router,
    starting.router,
    policy.router,
    policy.known_pages,
    tradeoff.router,
    audit.budget_pages,
    access.router,
    audit.router,
    ask.router,
    synthesis.router,
    answers.router,
    answers.comparing,
    desk.router,
    plans.router,
    datasets.guarantee_pages,
    figures.pictures,
)
_HEADERS: Final = ("Retry-After", "Connection")
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


def install(app: FastAPI) -> None:
    """Serve the pages of an app, and its problems as pages."""
    app.state.problem_page = problem_page
    for router in ROUTERS:
        app.include_router(router)


def problem_page(request: Request, problem: Problem) -> Response:
    """What was refused, on the page where it was typed if there is one; nobody signed in is to sign in."""
    again, request.state.again = getattr(request.state, "again", None), None
    if again is not None and problem.status != 500:
        try:
            page: Response = again(problem)
            return page
        except BlowfishError as error:
            problem = told(request, error)
    if problem.status == 401:
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        # what stood in the form of a question is in its address: a session that ended does not lose it
        again = request.method == "GET" or request.url.path.endswith("/ask")
        wanted = f"?next={quote(here, safe='')}" if again and here != "/" else ""
        return RedirectResponse(f"/signin{wanted}", 303)
    caller = _caller(request)
    page = frame.render(
        request,
        "problem.html",
        caller=caller,
        problem=problem,
        fitting=_fitting(request, caller) if problem.status == 403 else [],
        title=_TITLES.get(problem.status, problem.title),
    )
    page.headers.update({name: text for name, text in problem.headers.items() if name in _HEADERS})
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
