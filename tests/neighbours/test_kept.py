"""While promises are kept beside newer ones, charges are lost, overtaken, and budgets move."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import EVERYTHING, KEEPING

WORLDS = 300
OF_KNOWN = 40
BECOMING_KNOWN = replace(
    EVERYTHING,
    acts=(("ask", "publish", "ask"),),
    columns=("integer",),
    people=(None,),
    widths=(1, 2),
    missing=("clamp",),
    outside=("clamp",),
    known=((False,), (True,)),
    steady=True,
)
"""What an earlier policy hides may follow from what is known under a later one, beside which it is kept."""


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=KEEPING), WORLDS, share=0.2)


def test_neighbours_where_something_becomes_known() -> None:
    with arena() as place:
        live_through(place, BECOMING_KNOWN, OF_KNOWN, share=0.05)
