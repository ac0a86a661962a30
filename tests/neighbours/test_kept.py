"""While promises are kept beside newer ones, charges are lost, overtaken, and budgets move."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import EVERYTHING, KEEPING

WORLDS = 300


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=KEEPING), WORLDS, share=0.2)
