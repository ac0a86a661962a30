"""Two databases that a promise joins look the same in everything that is free, and lose no more than is
accounted for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.neighbours.living import Arena, arena
from tests.neighbours.questions import REACH, SPEND
from tests.neighbours.worlds import PLACES, Scope, World, worlds

WORLDS = 60
ONE_POLICY = Scope(
    places=tuple(PLACES),
    terms=(*SPEND, *REACH),
    policies=1,
    kinds=("ask", "ask", "batch", "batch", "budget", "refresh"),
)
QUIETLY = settings(
    suppress_health_check=list(HealthCheck),
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
)


@pytest.fixture(scope="module")
def place() -> Iterator[Arena]:
    with arena() as made:
        yield made


@settings(QUIETLY, max_examples=WORLDS)
@given(world=worlds(ONE_POLICY))
def test_neighbours(place: Arena, world: World) -> None:
    place.live(world)
