"""Every mechanism that is proven, and not only those whose laws are plain: the planner that answers people.

What is measured for an answer, and what is kept of it, depends on the mechanism: true counts behind exact
answers were once kept by one that the quick planner does not take.
"""

from __future__ import annotations

from dataclasses import replace

from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from tests.neighbours.living import WHOLE, arena
from tests.neighbours.questions import Terms
from tests.neighbours.runs import live_through
from tests.neighbours.test_sharper import COPIES
from tests.neighbours.worlds import AT_ONCE, EVERYTHING, IN_TIME, SHARPER

WORLDS = 6
"""In tests: each takes the time of thirty of the others."""
BY_NAME = tuple(Terms("0.5", mechanism=name) for name in (*NAMED, *DATA_DEPENDENT))
_OF_COUNTS = ("histogram", "rows", "count", "top", "cumulative", "ranges", "median")


def test_neighbours() -> None:
    with arena(WHOLE) as place:
        live_through(place, replace(EVERYTHING, acts=AT_ONCE + IN_TIME), WORLDS, share=0.06)


def test_neighbours_of_finer_answers() -> None:
    with arena(WHOLE) as place:
        scope = replace(EVERYTHING, acts=SHARPER, places=COPIES)
        live_through(place, scope, WORLDS // 2, share=0.02)


def test_neighbours_of_mechanisms_by_name() -> None:
    with arena(WHOLE) as place:
        scope = replace(EVERYTHING, acts=AT_ONCE + IN_TIME, terms=BY_NAME, kinds=_OF_COUNTS)
        live_through(place, scope, WORLDS, share=0.04)
