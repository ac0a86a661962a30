"""Where a new dataset begins: three policies in words, and what common questions would cost under each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

from fastapi import Request, Response

from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import render
from blowfishdb.entrypoints.server.web.policy_form import PolicyForm
from blowfishdb.messages.policies import PricedStart

router: Final = Router(include_in_schema=False)

_SHARE: Final = 100  # errors of a hundredth of the rows are usual, but for small tables
_LEAST: Final = 50


@router.get("/datasets/{dataset}/start")
def start_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Three starting points, from strict to open. Prices follow from declarations alone."""
    facts, budget = caller.gateway.facts(dataset), caller.gateway.budget(dataset)
    error = usual_error(caller, dataset)
    starts: list[PricedStart] = []

    def priced() -> list[PricedStart]:
        """Worked out once, when the page has begun to travel."""
        starts[:] = starts or caller.gateway.starts(dataset, error=error)
        return starts

    def prices() -> Iterator[tuple[str, list[Epsilon | None]]]:
        for number, question in enumerate(priced()[0].questions):
            yield question, [start.prices[number] for start in priced()]

    return render(
        request,
        "curator/start.html",
        caller=caller,
        dataset=dataset,
        facts=facts,
        total=budget.total,
        error=error,
        priced=priced,
        prices=prices,
        address=lambda start: urlencode(PolicyForm.of(start.policy).query()),
    )


def usual_error(caller: Caller, dataset: str) -> int:
    """A hundredth of the rows in round numbers, and at least fifty; a curator knows how many there are."""
    copy = caller.gateway.source(dataset).copy
    wanted = 0 if copy is None else copy.rows // _SHARE
    if wanted <= _LEAST:
        return _LEAST
    unit = 10 ** (len(str(wanted)) - 2)
    return int(wanted // unit * unit)
