"""How many worlds: in tests a fixed number, always the same; in audits others, for as long as it is told."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.neighbours.living import Arena
from tests.neighbours.worlds import Scope, World, worlds

MINUTES = float(os.environ.get("BLOWFISHDB_AUDIT_MINUTES", "0"))
"""How long an audit takes; 0 in tests."""
SEED = os.environ.get("BLOWFISHDB_AUDIT_SEED", "")
"""Where an audit begins, to be repeated; anywhere, if nothing is said."""
_CORES = 2
_FOR_FAULTS = 10.0
"""Minutes of one core that looking for every fault takes, as measured; worlds have the rest."""
_ROUND = 50
_QUIETLY = settings(
    suppress_health_check=list(HealthCheck),
    database=None,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
)


def live_through(arena: Arena, scope: Scope, count: int, *, share: float) -> None:
    """``count`` worlds of a scope, always the same; in an audit others, for a ``share`` of its time."""
    if not MINUTES:
        _worlds(arena, scope, count, number=count)()
    numbers = random.Random(f"{SEED} {count} {scope}") if SEED else random.SystemRandom()
    until = time.monotonic() + 60 * share * max(_CORES * MINUTES - _FOR_FAULTS, MINUTES / 2)
    while MINUTES and time.monotonic() < until:
        _worlds(arena, scope, _ROUND, number=numbers.randrange(2**32))()
    arena.beliefs.judge()


def _worlds(arena: Arena, scope: Scope, count: int, *, number: int) -> Callable[[], None]:
    @seed(number)
    @settings(_QUIETLY, max_examples=count)
    @given(world=worlds(scope))
    def one(world: World) -> None:
        arena.live(world)

    return one
