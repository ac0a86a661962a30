"""Two databases that a promise joins look the same in everything that is free, and lose no more than is
accounted for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.neighbours.living import Arena, arena
from tests.neighbours.worlds import AT_ONCE, PLACES, TERMS, Scope, World, worlds

WORLDS = 60
NOW = Scope(AT_ONCE, places=tuple(PLACES), terms=TERMS)
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
@given(world=worlds(NOW))
def test_neighbours(place: Arena, world: World) -> None:
    place.live(world)
