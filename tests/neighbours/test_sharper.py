"""Questions that are asked again more closely, and pay the difference: on copies, which cannot change."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.questions import REACH
from tests.neighbours.runs import live_through
from tests.neighbours.sources import Place
from tests.neighbours.worlds import EVERYTHING, SHARPER

WORLDS = 60
COPIES = (Place("csv"), Place("parquet"))
SCOPE = replace(EVERYTHING, acts=SHARPER, terms=REACH, places=COPIES)


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, SCOPE, WORLDS, share=0.1)
