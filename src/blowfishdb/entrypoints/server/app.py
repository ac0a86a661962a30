"""The app: every route behind its gate, every error a problem, every response with its headers.

Getting ready in the background, so that the first question is not the slow one.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, FastAPI

from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import Cumulative
from blowfishdb.entrypoints.server import access, docs, problems
from blowfishdb.entrypoints.server import web as pages
from blowfishdb.entrypoints.server.api import accounts, books, datasets, policies, questions
from blowfishdb.entrypoints.server.middleware import (
    BodyLimit,
    Metrics,
    RequestLog,
    SecurityHeaders,
    templates_of,
)
from blowfishdb.entrypoints.server.server import Server, Settings
from blowfishdb.entrypoints.server.web import frame
from blowfishdb.mechanisms import Best

if TYPE_CHECKING:
    from pwdlib import PasswordHash


def warm_up() -> threading.Thread:
    """Start the charts' engine, make what pages draw with, and compile the planner.

    A server may be stopped before it is through.
    """
    thread = threading.Thread(target=_prepare, name="warm-up", daemon=True)
    thread.start()
    return thread


def _prepare() -> None:
    Best().plan(Cumulative(64), Threshold(64, 4))
    import vl_convert

    frame.vega()
    vl_convert.vegalite_to_svg({"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {}})


PREFIX: Final = "/api/v1"

_ROUTERS: Final[tuple[APIRouter, ...]] = (
    accounts.signing,
    accounts.router,
    datasets.router,
    policies.router,
    policies.guarantees,
    books.budgets,
    questions.router,
    questions.stored_answers,
    questions.curating,
    books.router,
)


def create_app(
    workspace: str | Path,
    *,
    settings: Settings = Settings(),  # noqa: B008 (frozen)
    hasher: PasswordHash | None = None,
    reset: Callable[[Path], None] | None = None,
) -> FastAPI:
    """The server of a workspace; ``hasher`` is argon2id with pwdlib's costs unless given. ``reset`` makes the
    workspace anew for whoever starts the demonstration over; without it nobody can.

    The workspace is open from here until the app is shut down, so that a wrong path is told at once.
    """
    server = Server.open(workspace, settings, hasher)
    app = FastAPI(
        title="BlowfishDB",
        description=docs.DESCRIPTION,
        version=version("blowfishdb"),
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=docs.operation_id,
        lifespan=_lifespan,
    )
    app.state.server, app.state.reset = server, reset
    metrics = app.state.metrics = Metrics(lambda: app.state.server.workspace)
    problems.install(app)
    for router in _ROUTERS:
        app.include_router(router, prefix=PREFIX, responses=problems.COMMON)
    app.include_router(books.at_the_root)
    app.include_router(docs.router)
    pages.install(app)
    if settings.demo:
        app.include_router(accounts.demo, prefix=PREFIX, responses=problems.COMMON)
    access.check_gates(app)
    app.add_middleware(BodyLimit, longest=settings.longest_body)  # the last one added is the outermost
    app.add_middleware(RequestLog, metrics=metrics, templates=templates_of(app))
    app.add_middleware(SecurityHeaders, https=settings.https)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    if app.state.server.settings.warm_up:
        warm_up()
    yield
    app.state.server.close()
