"""Under one policy: two databases that it joins look the same in everything that is free, and no question
loses more than is accounted for."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.questions import OF_SEVERAL
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import ALONE, EVERYTHING

WORLDS = 540
OF_CONDITIONS = 100
ON_COLUMNS = 40


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=ALONE), WORLDS, share=0.15)


def test_neighbours_of_conditions() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=ALONE, kinds=("counts",)), OF_CONDITIONS, share=0.05)


def test_neighbours_of_questions_about_several_columns() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=ALONE, kinds=OF_SEVERAL), ON_COLUMNS, share=0.05)
