"""Under one policy: two databases that it joins look the same in everything that is free, and no question
loses more than is accounted for."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import ALONE, EVERYTHING

WORLDS = 600
OF_CONDITIONS = 100


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=ALONE), WORLDS, share=0.15)


def test_neighbours_of_conditions() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=ALONE, kinds=("counts",)), OF_CONDITIONS, share=0.05)
