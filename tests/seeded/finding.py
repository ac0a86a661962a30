"""Looking for a planted fault: worlds of the kind that it shows in, until a promise does not hold."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.neighbours.living import arena
from tests.neighbours.questions import REACH, SPEND
from tests.neighbours.rows import People
from tests.neighbours.sources import FILTERED, Place
from tests.neighbours.worlds import PLACES, Acts, Scope, World, worlds
from tests.seeded.planting import Fault, planted

_ASK: Acts = (("ask",),)
_BATCH: Acts = (("batch",),)
_CHANGE: Acts = (("ask", "publish"), ("batch", "publish"))
_PLAIN = ("integer", "category")
_PEOPLE = (People(2, keyed=True), People(2, keyed=False))
SCOPES = {
    "alone": Scope(_ASK, _PLAIN, people=(None,)),
    "conditions": Scope(_ASK, _PLAIN, people=(None,)),
    "dropping": Scope(_ASK, _PLAIN, people=(None,)),
    "present": Scope(_ASK, _PLAIN, people=(None,)),
    "missing": Scope(_ASK, _PLAIN, people=(None,)),
    "reading": Scope(_ASK, ("category", "date", "ordered"), people=(None,)),
    "people": Scope(_ASK, _PLAIN, people=_PEOPLE),
    "people together": Scope(_BATCH, _PLAIN, people=_PEOPLE),
    "people in time": Scope(_CHANGE, _PLAIN, people=_PEOPLE),
    "together": Scope(_BATCH, _PLAIN, people=(None,)),
    "basket": Scope(_BATCH, ("integer",), people=(None,), members=4),
    "together dropping": Scope(_BATCH, _PLAIN, people=(None,)),
    "together present": Scope(_BATCH, _PLAIN, people=(None,)),
    "in time": Scope(_CHANGE, ("integer",), people=(None,)),
    "in time dropping": Scope(_CHANGE, _PLAIN, people=(None,)),
    "small budgets": Scope((("ask", "budget", "publish"),), ("integer",), people=(None,)),
    "views": Scope(_ASK, ("integer",), places=(Place("sqlite", view=FILTERED),), people=(None,)),
    "kept": Scope((("ask", "publish", "ask"),), ("integer",), people=(None,)),
    "lost": Scope((("lost", "publish"), ("lost", "ask")), ("integer",), people=(None,)),
    "budget": Scope((("ask", "ask", "ask", "ask"),), ("integer",), people=(None,)),
    "stored": Scope((("ask", "ask"), ("batch",)), ("integer",), people=(None,), terms=REACH),
    "stored dropping": Scope((("ask", "ask"), ("batch",)), ("integer",), people=(None,), terms=REACH),
    "believed": Scope((("ask", "ask"),), ("integer", "category"), people=(None,), terms=(*SPEND, *REACH)),
    "believed top": Scope((("ask", "ask"),), ("category",), people=(None,), terms=REACH),
    "believed sums": Scope((("ask", "ask"),), ("integer", "wide"), people=(None,), terms=SPEND),
    "csv": Scope(_ASK, ("integer",), places=(Place("csv"),), people=(None,)),
    "collated": Scope(_ASK, ("many",), places=(Place("duckdb", collation="NOCASE"),), people=(None,)),
    "told later": Scope(
        (("ask", "publish", "ask"),), ("integer",), people=(None,), terms=(SPEND[0], REACH[2])
    ),
    "sources": Scope(_ASK, places=PLACES, people=(None,)),
}
"""Worlds by what is special about them."""
_MOST = 250
_ENOUGH = 50  # worlds after which beliefs are judged


def found(fault: Fault, most: int = _MOST) -> str | None:
    """What gives the fault away; None if nothing does."""
    try:
        with planted(fault), arena() as place:
            lived = 0

            @seed(13)
            @settings(
                max_examples=most,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),
            )
            @given(world=worlds(SCOPES[fault.shows_in]))
            def look(world: World) -> None:
                nonlocal lived
                lived += 1
                place.live(world)
                if lived % _ENOUGH == 0:
                    place.beliefs.judge()

            look()
    except AssertionError as given_away:
        return str(given_away).partition("\n")[0]
    return None
