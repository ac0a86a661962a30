"""The pages: the same data as the interface for programs, for people in front of a browser.

``ROUTERS`` lists them in the order of the navigation; each file holds one page or one flow. They work without
JavaScript, which only adds live quotes and charts that can be pointed at.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from blowfishdb.entrypoints.server.web import (
    access,
    answers,
    ask,
    audit,
    datasets,
    figures,
    frame,
    imports,
    policy,
    tradeoff,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    frame.static_files,
    access.signing_pages,
    datasets.demonstration,
    imports.router,
    datasets.router,
    policy.router,
    policy.known_pages,
    tradeoff.router,
    audit.budget_pages,
    access.router,
    audit.router,
    ask.router,
    answers.router,
    answers.comparing,
    datasets.guarantee_pages,
    figures.pictures,
)


def install(app: FastAPI) -> None:
    """Serve the pages of an app."""
    for router in ROUTERS:
        app.include_router(router)
