"""Rows of one of several tables, in all that happens to them: what is joined and looked up tells nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.neighbours.living import arena
from tests.neighbours.rows import People
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import AT_ONCE, CHANGING, TABLES, TERMS, Scope

WORLDS = 45
_PEOPLE = (None, People(2, keyed=True), People(2, keyed=False), People(1, keyed=True))
_SEVERAL = Scope(acts=AT_ONCE, places=TABLES, people=_PEOPLE, terms=TERMS)


def test_neighbours_of_several_tables() -> None:
    with arena() as place:
        live_through(place, _SEVERAL, WORLDS, share=0.05)


def test_neighbours_of_several_tables_under_several_policies() -> None:
    with arena() as place:
        live_through(place, replace(_SEVERAL, acts=CHANGING), WORLDS // 3, share=0.05)
