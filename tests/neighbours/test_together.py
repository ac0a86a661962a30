"""Questions that are settled on together, some of which are free or lost, lose no more than they pay."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import EVERYTHING, TOGETHER

WORLDS = 500


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=TOGETHER), WORLDS, share=0.2)
