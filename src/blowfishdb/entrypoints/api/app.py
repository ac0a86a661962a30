"""The app: every route behind its gate, every error a problem, every response with its headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, FastAPI

from blowfishdb.entrypoints.api import (
    access,
    accounts,
    answers,
    books,
    budgets,
    curating,
    datasets,
    docs,
    guarantees,
    policies,
    problems,
    questions,
    signing,
)
from blowfishdb.entrypoints.api.body_limit import BodyLimit
from blowfishdb.entrypoints.api.headers import SecurityHeaders
from blowfishdb.entrypoints.api.metrics import Metrics
from blowfishdb.entrypoints.api.request_log import RequestLog, templates_of
from blowfishdb.entrypoints.api.server import Server
from blowfishdb.entrypoints.api.settings import Settings
from blowfishdb.entrypoints.api.warm_up import warm_up
from blowfishdb.entrypoints.web import routers as pages
from blowfishdb.entrypoints.web.problem_pages import ProblemPages

if TYPE_CHECKING:
    from pwdlib import PasswordHash

PREFIX: Final = "/api/v1"

_ROUTERS: Final[tuple[APIRouter, ...]] = (
    signing.router,
    accounts.router,
    datasets.router,
    policies.router,
    guarantees.router,
    budgets.router,
    questions.router,
    answers.router,
    curating.router,
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
        app.include_router(signing.demo, prefix=PREFIX, responses=problems.COMMON)
    access.check_gates(app)
    app.add_middleware(BodyLimit, longest=settings.longest_body)  # the last one added is the outermost
    app.add_middleware(ProblemPages)
    app.add_middleware(RequestLog, metrics=metrics, templates=templates_of(app))
    app.add_middleware(SecurityHeaders, https=settings.https)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    if app.state.server.settings.warm_up:
        warm_up()
    yield
    app.state.server.close()
