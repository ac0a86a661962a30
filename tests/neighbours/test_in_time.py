"""While policies change, promises are kept beside newer ones, charges are lost and budgets move."""

from __future__ import annotations

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import IN_TIME, PLACES, TERMS, Scope

WORLDS = 30


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, Scope(IN_TIME, places=PLACES, terms=TERMS), WORLDS, share=0.35)
