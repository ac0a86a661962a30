"""Attack me: what an attacker finds out about made-up people; for everyone, and about nobody."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query

from blowfishdb.entrypoints.server.access import Anyone
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.messages.attack import Attack
from blowfishdb.noise import secure
from blowfishdb.service.attack import MOST_ANSWERS, STEP, TARGETS, attack

router: Final = Router(PREFIX, tags=["Guarantees"])

Person = Annotated[int, Query(ge=1, le=TARGETS, description="Which of the made-up people.")]
Apart = Annotated[int, Query(description="How far apart the two salaries are: 1000, 2000 or 5000.")]
Answers = Annotated[int, Query(ge=1, le=MOST_ANSWERS, description="How many answers the attacker uses.")]


@router.get("/attack", summary="Attack a made-up person")
def attack_made_up(
    _: Anyone, person: Person = 1, apart: Apart = STEP, answers: Answers = MOST_ANSWERS, noise: bool = True
) -> dict[str, Any]:
    """How sure an attacker who knows everybody else becomes about one of the made-up people.

    Nobody is in these rows, and no dataset can be attacked. Each call draws noise anew.
    """
    return attacked(person, apart, answers, noise=noise).to_plain()


def attacked(person: int, apart: int, answers: int, *, noise: bool) -> Attack:
    """An attack with the noise of real answers, or without any."""
    return attack(person=person, apart=apart, answers=answers, noise=secure() if noise else None)
