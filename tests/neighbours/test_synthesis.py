"""Synthetic tables through the whole stack: what is not noise is the same, what is noise is accounted for."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import EVERYTHING, MADE_UP

WORLDS = 24
POSSIBLE = replace(
    EVERYTHING,
    acts=MADE_UP,
    known=((False,),),
    presence=(False, False),
    widths=(2, 3, 3),
    missing=("clamp", "clamp", "value", "public", "drop"),
    outside=("clamp", "clamp", "clamp", "drop"),
)
"""Where synthetic tables are not refused."""
KEEPABLE = replace(
    POSSIBLE, rules=(("none", "public", "line"), ("none", "full")), missing=("clamp",), outside=("clamp",)
)
"""Where some columns are hidden by nothing and leave out nobody, so that rows of them may be kept."""


def test_neighbours() -> None:
    with arena() as place:
        live_through(place, POSSIBLE, WORLDS, share=0.05)


def test_neighbours_with_kept_rows() -> None:
    with arena() as place:
        live_through(place, KEEPABLE, WORLDS, share=0.05)


def test_neighbours_where_they_are_refused() -> None:
    with arena() as place:
        live_through(place, replace(EVERYTHING, acts=MADE_UP), WORLDS // 2, share=0.02)
