"""Every page, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, FastAPI

from blowfishdb.entrypoints.web import (
    answers,
    ask,
    compare,
    curator_access,
    curator_audit,
    curator_budget,
    curator_known,
    curator_policy,
    curator_tradeoff,
    datasets,
    demonstration,
    guarantee,
    imports,
    pictures,
    signing_pages,
    static_files,
)

ROUTERS: Final[tuple[APIRouter, ...]] = (
    static_files.router,
    signing_pages.router,
    demonstration.router,
    imports.router,
    datasets.router,
    curator_policy.router,
    curator_known.router,
    curator_tradeoff.router,
    curator_budget.router,
    curator_access.router,
    curator_audit.router,
    ask.router,
    answers.router,
    compare.router,
    guarantee.router,
    pictures.router,
)


def install(app: FastAPI) -> None:
    """Serve the pages of an app."""
    for router in ROUTERS:
        app.include_router(router)
