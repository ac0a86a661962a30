"""The app: every route behind its gate, every error a problem, every response with its headers.

Getting ready in the background, so that the first question is not the slow one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, FastAPI

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import Cumulative
from blowfishdb.entrypoints.server import access, docs, problems
from blowfishdb.entrypoints.server import web as pages
from blowfishdb.entrypoints.server.api import (
    accounts,
    attack,
    books,
    datasets,
    desk,
    policies,
    questions,
    synthesis,
    wire,
)
from blowfishdb.entrypoints.server.middleware import (
    BodyLimit,
    Metrics,
    RequestLog,
    SecurityHeaders,
    templates_of,
)
from blowfishdb.entrypoints.server.routing import PREFIX
from blowfishdb.entrypoints.server.server import Server, Settings
from blowfishdb.entrypoints.server.waiting import Waiting, leave_within
from blowfishdb.entrypoints.server.web import frame
from blowfishdb.language.text import name_text
from blowfishdb.mechanisms import Best

if TYPE_CHECKING:
    from pwdlib import PasswordHash


def warm_up(server: Server | None = None) -> threading.Thread:
    """Start the charts' engine, make what pages draw with, compile the planner, price usual questions.

    A server may be stopped before it is through.
    """
    thread = threading.Thread(target=_prepare, args=(server,), name="warm-up", daemon=True)
    thread.start()
    return thread


def _prepare(server: Server | None) -> None:
    Best().for_accuracy(Cumulative(64), Threshold(64, 4), Accuracy(_USUAL_ERROR, 0.05))
    if server is not None:
        _price_usual(server)
    import vl_convert

    frame.vega()
    vl_convert.vegalite_to_svg({"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {}})


_USUAL_ERROR: Final = 50.0
_USUAL_BINS: Final = 20
_MOST_PRICED: Final = 200  # questions, which take a second or two altogether


def _price_usual(server: Server) -> None:
    """Price a usual question about every declared column, so that its plan and its law are at hand."""
    workspace = server.workspace
    columns = ((name, column) for name in workspace.datasets() for column in workspace[name].schema.names)
    for name, column in islice(columns, _MOST_PRICED):
        if server.underway.ending:
            return
        ordered = workspace[name].schema[column].ordered
        shape = f"cumulative({name_text(column)}, bins={_USUAL_BINS})"
        with suppress(BlowfishError):  # what has no price is not warmed up
            usual = shape if ordered else f"histogram({name_text(column)})"
            workspace[name].question(usual).accurate_to(_USUAL_ERROR).quote()


_AROUND: Final = 10_000  # bytes of a form around the file in it
_LAST_WORDS: Final = 1.5  # seconds in which questions that are given up may write down that they were

_ROUTERS: Final[tuple[APIRouter, ...]] = (
    accounts.signing,
    accounts.router,
    wire.router,
    datasets.router,
    policies.router,
    policies.guarantees,
    attack.router,
    books.budgets,
    questions.router,
    questions.stored_answers,
    synthesis.router,
    questions.curating,
    desk.router,
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
    app.state.server, app.state.reset, app.state.leaving = server, reset, None
    app.state.door = None
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
    most, questions_at_once = settings.requests_at_once, settings.questions_at_once
    files = (access.takes_files, settings.longest_upload + _AROUND)
    app.add_middleware(BodyLimit, longest=settings.longest_body, files=files)  # the last is the outermost
    app.add_middleware(Waiting, most=most, questions=questions_at_once)
    app.add_middleware(RequestLog, metrics=metrics, templates=templates_of(app))
    app.add_middleware(SecurityHeaders, https=settings.https)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    if app.state.server.settings.warm_up:
        warm_up(app.state.server)
    door = None if app.state.door is None else await app.state.door(app.state.server, app.state.metrics)
    yield
    server: Server = app.state.server
    if app.state.leaving is not None:
        leave_within(app.state.leaving)
    server.underway.stop()
    if door is not None:
        await door.close()
    closing = threading.Thread(target=_closed, args=(server,), name="blowfishdb-close", daemon=True)
    closing.start()
    while closing.is_alive():  # the loop goes on: what was given up still has to be told
        await asyncio.sleep(0.01)


def _closed(server: Server) -> None:
    """Let go of the workspace once nobody uses it any more."""
    server.underway.wait(_LAST_WORDS)
    server.close()
