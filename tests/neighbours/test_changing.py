"""A policy that follows another counts what was lost before it."""

from __future__ import annotations

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import CHANGING, PLACES, TERMS, Scope

WORLDS = 400


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, Scope(CHANGING, places=PLACES, terms=TERMS), WORLDS, share=0.2)
