"""Attack me: pick a made-up person, and see how far an attacker comes."""

from __future__ import annotations

from typing import Final

from fastapi import Request, Response

from blowfishdb.entrypoints.server.access import PageVisitor
from blowfishdb.entrypoints.server.api.attack import Answers, Apart, Person, attacked
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.figures import figure
from blowfishdb.entrypoints.server.web.frame import render
from blowfishdb.service.attack import APART, BUDGET, MOST_ANSWERS, STEP, people
from blowfishdb.show.charts.attack import attack_chart, attack_table

router: Final = Router(include_in_schema=False)


@router.get("/attack")
def attack_page(
    request: Request,
    caller: PageVisitor,
    person: Person = 1,
    apart: Apart = STEP,
    answers: Answers = MOST_ANSWERS,
    noise: str = "on",
) -> Response:
    """With the noise of real answers the attacker is stuck; without it the person is caught."""
    found = attacked(person, apart, answers, noise=noise != "off")
    drawn = figure(
        lambda width: attack_chart(found, width=width), attack_table(found), id="attack", headed=False
    )
    return render(
        request,
        "attack.html",
        caller=caller,
        attack=found,
        figure=drawn,
        people=list(enumerate(people(), start=1)),
        distances=APART,
        answers=answers,
        apart=apart,
        most_answers=MOST_ANSWERS,
        budget=BUDGET,
    )
