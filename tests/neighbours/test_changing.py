"""A policy that follows another counts what was lost before it."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import CHANGING, EVERYTHING

WORLDS = 400


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=CHANGING), WORLDS, share=0.2)
