"""What is promised to the people in the data: a page for everyone, which needs nobody to sign in."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from blowfishdb.charts import protection_chart, protection_table
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import UnknownDataset
from blowfishdb.core.guarantee import Clause
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_words import sentences
from blowfishdb.core.protection import curve, percent
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.web.figures import Figure, figure
from blowfishdb.entrypoints.web.frame import render
from blowfishdb.entrypoints.web.gates import PageVisitor

router: Final = APIRouter(include_in_schema=False)


@router.get("/datasets/{dataset}/guarantee")
def guarantee_page(request: Request, dataset: str, caller: PageVisitor) -> Response:
    """The guarantee in words, what it does not cover, and how it fades with distance."""
    workspace = server_of(request).workspace
    if dataset not in workspace:
        raise UnknownDataset("There is no such dataset.")  # which ones there are is for those inside
    facts, promised = workspace.facts(dataset), workspace.guarantee(dataset)
    return render(
        request,
        "analyst/guarantee.html",
        caller=caller,
        dataset=dataset,
        guarantee=promised,
        marked=_marked,
        sentences=sentences(facts.policy),
        version_of_policy=facts.policy_version,
        curves=[
            _curve(facts.policy, place, column, promised.budget)
            for place, column in enumerate(facts.domain.names)
        ],
    )


def _marked(clause: Clause) -> tuple[str, str, str]:
    """A promise, cut around the number that matters most."""
    return (
        clause.promise.partition(percent(clause.certainty)) if clause.certainty else (clause.promise, "", "")
    )


def _curve(policy: Policy, place: int, column: str, budget: Epsilon) -> Figure:
    steps = curve(policy, column, budget)
    return figure(
        lambda width: protection_chart(steps, column, budget, width=width),
        protection_table(steps, column, budget),
        id=f"protection-{place}",
        width=480,
    )
