"""Under one policy: two databases that it joins look the same in everything that is free, and no question
loses more than is accounted for, alone or together with others."""

from __future__ import annotations

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import AT_ONCE, PLACES, TERMS, Scope

WORLDS = 60


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, Scope(AT_ONCE, places=PLACES, terms=TERMS), WORLDS, share=0.35)
