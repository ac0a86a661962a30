"""The curator's experiments: prices under other policies, and true answers beside noisy ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, BackgroundTasks, Header, Response
from fastapi.responses import JSONResponse

from blowfishdb.core import codec
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import Policy
from blowfishdb.entrypoints.api import jobs
from blowfishdb.entrypoints.api.access import Curator
from blowfishdb.entrypoints.api.bodies import Plain
from blowfishdb.entrypoints.api.bodies_questions import PreviewOf, TradeoffOf
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.messages import Progress

router: Final = APIRouter(tags=["Curating"])
router.include_router(jobs.router)

Prefer = Annotated[str | None, Header(description="respond-async: do not wait, ask for the job instead.")]


@router.post(
    "/datasets/{dataset}/tradeoff",
    summary="What a question costs under several policies",
    responses={202: {"description": "Under way; Location says where to ask for the job."}},
)
def tradeoff(
    dataset: str, body: TradeoffOf, caller: Curator, tasks: BackgroundTasks, prefer: Prefer = None
) -> Response:
    """Cost and error under each policy, or for each distance within which values are hidden."""
    source = caller.gateway[dataset]
    asking = body.asking(source)
    policies = None if body.policies is None else _policies(body.policies, source.policy)
    if (policies is None) == (not body.thresholds):
        raise InvalidInput(
            "Send policies or thresholds, one of the two.", fixes=('"thresholds": [1000, 10000, 50000]',)
        )

    def work(progress: Progress | None) -> dict[str, Any]:
        return source.tradeoff(
            asking,
            policies,
            column=body.column,
            thresholds=body.thresholds,
            thetas=body.thetas,
            at_epsilon=body.at_epsilon,
            progress=progress,
        ).to_plain()

    if "respond-async" in (prefer or ""):
        return jobs.started(work, caller, tasks)
    return JSONResponse(work(None), headers={"Cache-Control": "no-store"})


@router.post("/datasets/{dataset}/preview", summary="True and noisy answers side by side")
def preview(dataset: str, body: PreviewOf, caller: Curator) -> dict[str, Any]:
    """CURATOR VIEW, TRUE DATA. Nothing is charged; that someone looked is written into the ledger."""
    source = caller.gateway[dataset]
    policy = None if body.policy is None else _policy(body.policy, source.policy)
    return source.preview(body.asking(source), policy=policy, stand_in=body.stand_in).to_plain()


def _policies(said: Mapping[str, Plain], published: Policy) -> dict[str, Policy]:
    return {name: _policy(policy, published) for name, policy in said.items()}


def _policy(said: Plain, published: Policy) -> Policy:
    """A graph with what is known, or a graph alone: then the same is known as today."""
    if "graph" not in said:
        return read("policy", lambda: Policy(published.domain, codec.graph(said), published.constraints))
    known = said.get("known")
    return read(
        "policy",
        lambda: Policy(
            published.domain,
            codec.graph(said["graph"]),
            published.constraints if known is None else codec.constraints(known),
        ),
    )
