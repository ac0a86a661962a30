"""The curator's experiments: what a question costs under other policies, and true answers beside noisy ones."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, Header, Response
from fastapi.responses import JSONResponse

from blowfishdb.core import codec
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import Policy
from blowfishdb.core.typed_values import typed_value
from blowfishdb.entrypoints.api import jobs
from blowfishdb.entrypoints.api.access import Curator
from blowfishdb.entrypoints.api.bodies_questions import PreviewOf, TradeoffOf
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.tradeoff import Progress

router = APIRouter(tags=["curating"])
router.include_router(jobs.router)
