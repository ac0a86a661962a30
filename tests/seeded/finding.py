"""Looking for a planted fault: worlds of the kind that it shows in, until a promise does not hold."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.neighbours.living import QUICK, WHOLE, Arena, arena
from tests.neighbours.questions import REACH, SPEND, Terms
from tests.neighbours.rows import People
from tests.neighbours.sources import FILTERED, Place
from tests.neighbours.worlds import TABLES, Acts, Scope, World, worlds
from tests.seeded.planting import Fault, planted

_ASK: Acts = (("ask",),)
_BATCH: Acts = (("batch",),)
_CHANGE: Acts = (("ask", "publish"), ("batch", "publish"))
_PLAIN = ("integer", "category")
_PEOPLE = (People(2, keyed=True), People(2, keyed=False))
_ALONE = Scope(_ASK, _PLAIN, people=(None,))
_LINE = Scope(
    (("ask", "publish"),),
    ("integer",),
    people=(None,),
    widths=(1,),
    kinds=("cumulative",),
    sizes=(4,),
    rules=(("line",), ("full",)),
    presence=(False, False, False),
    missing=("clamp",),
    outside=("clamp",),
    conditions=(0,),
    steady=True,
)
"""What was a step away is hidden altogether."""
_LOOSER = replace(
    _LINE,
    acts=(("ask", "publish", "ask"),),
    kinds=("histogram", "cumulative", "count"),
    rules=(("full",), ("line", "groups", "none")),
)
"""What was hidden altogether is a step away, or public."""
_STORED = Scope(
    (("ask", "ask", "ask"),),
    ("integer",),
    people=(None,),
    terms=REACH,
    widths=(1,),
    kinds=("histogram",),
    conditions=(0,),
)
_KNOWN = Scope(
    _ASK,
    ("integer",),
    people=(None,),
    widths=(1, 2),
    presence=(False,),
    missing=("clamp",),
    outside=("clamp",),
    known=((True,),),
)
_SHARPER = Scope(
    (("ask", "sharper"),),
    ("integer",),
    places=(Place("csv"),),
    people=(None,),
    terms=REACH,
    widths=(1,),
    kinds=("histogram",),
    rules=(("full",), ("line", "full")),
    presence=(False, False),
    missing=("clamp",),
    outside=("clamp",),
    conditions=(0,),
    steady=True,
)
_GRANTED = Scope((("ask",), ("ask", "ask")), ("integer",), people=(None,), widths=(1,), grants=(1, 2))
_AGGREGATES = Scope(
    _ASK, ("integer",), people=(None,), widths=(2,), kinds=("aggregates",), sizes=(4, 3), terms=SPEND
)
_CROSSING = replace(
    _LOOSER,
    kinds=("histogram", "cumulative", "ranges"),
    terms=(*SPEND, *REACH),
    rules=(("line", "groups", "pairs"), ("groups", "line", "none")),
)
"""What was hidden and what is hidden now are neither more nor less."""
_MADE_UP = Scope(
    (("synthesize",),),
    _PLAIN,
    people=(None,),
    widths=(3,),
    sizes=(2, 3),
    rules=(("full", "line"),),
    presence=(False, False),
    missing=("clamp",),
    outside=("clamp",),
)
SCOPES = {
    "made up": _MADE_UP,
    "made up and kept": replace(_MADE_UP, rules=(("full", "line", "none"),)),
    "made up in time": replace(
        _MADE_UP,
        acts=(("synthesize", "publish"),),
        rules=(("line",), ("full",)),
        sizes=(3,),
        columns=("integer",),
        steady=True,
    ),
    "alone": _ALONE,
    "conditions": replace(_ALONE, widths=(2,), conditions=(1,)),
    "dropping": replace(_ALONE, missing=("drop", "clamp"), outside=("drop",)),
    "present": replace(_ALONE, presence=(True,)),
    "missing": replace(_ALONE, missing=("value",)),
    "lines": replace(_ALONE, columns=("integer",), kinds=("histogram", "cumulative"), rules=(("line",),)),
    "cells": replace(
        _ALONE, columns=("integer",), widths=(1,), kinds=("ranges", "cumulative", "count"), terms=REACH
    ),
    "reading": replace(_ALONE, columns=("date", "ordered"), outside=("drop",), rules=(("none",),)),
    "people": Scope(_ASK, _PLAIN, people=_PEOPLE, kinds=("histogram", "rows")),
    "people together": Scope(_BATCH, _PLAIN, people=_PEOPLE),
    "people in time": replace(_LINE, people=_PEOPLE),
    "together": Scope(_BATCH, _PLAIN, people=(None,)),
    "basket": Scope(
        _BATCH,
        ("integer",),
        people=(None,),
        widths=(1,),
        members=7,
        kinds=("rows", "count"),
        rules=(("groups",),),
        conditions=(1,),
    ),
    "basket lost": Scope(
        (("lost batch",),),
        ("integer",),
        people=(None,),
        widths=(1,),
        members=4,
        kinds=("rows", "count"),
        rules=(("groups",),),
        conditions=(1,),
    ),
    "picked together": Scope(
        _BATCH,
        ("integer",),
        people=(None,),
        terms=REACH,
        widths=(1,),
        kinds=("histogram", "top", "above"),
        conditions=(0,),
    ),
    "together dropping": Scope(_BATCH, _PLAIN, people=(None,), outside=("drop",)),
    "dropping without edges": Scope(
        _BATCH, _PLAIN, people=(None,), outside=("drop",), rules=(("none",),), presence=(False,)
    ),
    "together present": Scope(_BATCH, _PLAIN, people=(None,), presence=(True,)),
    "conditions together dropping": Scope(
        _BATCH,
        _PLAIN,
        people=(None,),
        widths=(2,),
        outside=("drop", "clamp"),
        conditions=(1,),
        rules=(("none",),),
        presence=(False,),
    ),
    "present without edges": Scope(_BATCH, _PLAIN, people=(None,), rules=(("none",),), presence=(True,)),
    "people together dropping": Scope(_BATCH, _PLAIN, people=_PEOPLE, outside=("drop",)),
    "people present in time": replace(
        _LINE,
        people=_PEOPLE,
        kinds=("histogram",),
        presence=(True, True),
        rules=(("none",), ("full",)),
    ),
    "present in time": replace(
        _LINE,
        acts=(("batch", "publish"),),
        kinds=("ranges",),
        presence=(False, True),
        rules=(("line",), ("none",)),
    ),
    "people lost": replace(_LINE, acts=(("lost", "publish"),), people=_PEOPLE),
    "people looser": replace(_LOOSER, people=_PEOPLE),
    "looser lost": replace(_LOOSER, acts=(("ask", "publish", "lost", "ask"),)),
    "looser after a loss": replace(_LOOSER, acts=(("lost", "publish", "ask"),)),
    "granted lost": replace(_GRANTED, acts=(("lost",), ("lost", "ask"))),
    "in time": Scope(_CHANGE, ("integer",), people=(None,)),
    "in time dropping": Scope(_CHANGE, _PLAIN, people=(None,)),
    "farther": _LINE,
    "farther odd": replace(_LINE, terms=(Terms("0.37"),)),
    "farther and on": replace(_LINE, acts=(("ask", "publish", "ask"),)),
    "farther twice": replace(_LINE, acts=(("ask", "ask", "publish"),)),
    "farther refreshed": replace(
        _LINE, acts=(("ask", "refresh", "ask", "publish"),), widths=(2,), sizes=(3,)
    ),
    "farther lost": replace(_LINE, acts=(("lost", "publish"),)),
    "farther lost together": replace(
        _LINE, acts=(("lost batch", "publish"),), kinds=("rows",), conditions=(1,)
    ),
    "farther baskets": replace(_LINE, acts=(("batch", "publish"),), kinds=("rows",), conditions=(1,)),
    "small budgets": replace(_LINE, acts=(("ask", "budget", "publish"),)),
    "exact once": replace(_LINE, kinds=("histogram",), rules=(("none", "groups"), ("full",))),
    "overtaken": replace(_LINE, acts=(("overtaken",),)),
    "looser": _LOOSER,
    "looser for long": replace(_LOOSER, acts=(("ask", "publish", "ask", "ask", "ask"),)),
    "looser twice": replace(
        _LOOSER, acts=(("ask", "publish", "ask", "publish", "ask"),), rules=(("full",), ("line",), ("none",))
    ),
    "crossing": _CROSSING,
    "crossing presence": replace(_CROSSING, presence=(True, False)),
    "views": Scope(
        _ASK,
        ("integer",),
        places=(Place("sqlite", view=FILTERED),),
        people=(None,),
        widths=(1,),
        missing=("value", "clamp"),
        kinds=("rows", "histogram"),
    ),
    "told": Scope(_ASK, ("integer",), people=(People(2, keyed=False, told="person"),)),
    "again": Scope((("again",),), ("integer",), people=(None,)),
    "lost": Scope((("lost", "publish"), ("lost", "ask")), ("integer",), people=(None,)),
    "stored": _STORED,
    "stored otherwise": replace(_STORED, widths=(2,), terms=REACH[:1]),
    "believed": replace(_STORED, acts=_ASK, kinds=("histogram", "count")),
    "believed top": replace(_STORED, acts=_ASK, columns=("category",), kinds=("top",)),
    "believed above": replace(_STORED, acts=_ASK, columns=("category",), kinds=("above",)),
    "believed sums": replace(_STORED, kinds=("sum",), terms=SPEND, conditions=(0, 1)),
    "known": _KNOWN,
    "known steps": replace(_KNOWN, kinds=("cumulative",), rules=(("line", "full"),), widths=(1,), sizes=(4,)),
    "known overlapping": replace(
        _KNOWN, kinds=("pairs",), widths=(2, 3), sizes=(2,), facts=("table",), rules=(("full",),)
    ),
    "known groups": replace(
        _KNOWN, kinds=("histogram", "ranges"), widths=(1,), sizes=(4,), rules=(("groups",),), facts=("count",)
    ),
    "known later": replace(_KNOWN, acts=(("ask", "publish"),), known=((False,), (True,)), steady=True),
    "known later present": replace(
        _KNOWN,
        acts=(("ask", "publish"),),
        kinds=("rows",),
        known=((False,), (True,)),
        presence=(False, True),
        conditions=(0,),
        steady=True,
    ),
    "known together": replace(_KNOWN, acts=_BATCH, kinds=("rows", "count"), conditions=(1,)),
    "sharper": _SHARPER,
    "sharper lost": replace(_SHARPER, acts=(("ask", "lost sharper", "sharper"),)),
    "sharper refreshed": replace(_SHARPER, acts=(("ask", "refresh", "sharper"),)),
    "sharper in time": replace(
        _SHARPER,
        acts=(("ask", "sharper", "publish"),),
        kinds=("cumulative",),
        sizes=(4,),
        rules=(("line",), ("full",)),
    ),
    "aggregates": _AGGREGATES,
    "aggregates present": replace(_AGGREGATES, presence=(True,), rules=(("line", "none"),)),
    "aggregates of people": replace(_AGGREGATES, people=_PEOPLE),
    "granted": _GRANTED,
    "granted twice": replace(_GRANTED, grants=(2,)),
    "csv": Scope(_ASK, ("integer",), places=(Place("csv"),), people=(None,)),
    "collated": Scope(
        _ASK,
        ("many",),
        places=(Place("sqlite", collation="NOCASE"),),
        people=(None,),
        widths=(1,),
        kinds=("histogram",),
    ),
    "tables": Scope(_ASK, ("integer",), places=TABLES, people=(None,), kinds=("histogram", "rows")),
    "tables of people": Scope(
        _ASK,
        ("integer",),
        places=TABLES,
        people=(People(2, keyed=True), People(1, keyed=True)),
        widths=(1, 2),
        missing=("value", "clamp"),
        kinds=("histogram", "rows"),
    ),
    "tables present": Scope(
        _ASK, ("integer",), places=TABLES, people=(None,), kinds=("histogram", "rows"), presence=(True,)
    ),
    "looser together": replace(_LOOSER, acts=(("ask", "publish", "batch"),), terms=REACH),
    "shared": Scope(
        _BATCH,
        ("integer",),
        people=(None,),
        terms=REACH,
        widths=(1,),
        sizes=(4,),
        kinds=("histogram", "cumulative", "count", "ranges"),
        conditions=(0,),
    ),
    "crossing sums": replace(
        _CROSSING,
        kinds=("aggregates",),
        terms=SPEND,
        widths=(2,),
        sizes=(4,),
        rules=(("line", "full"), ("full", "line")),
    ),
    "known beside": replace(
        _KNOWN, acts=(("ask", "publish", "ask"),), known=((False,), (True,)), steady=True
    ),
    "looking beside": replace(
        _CROSSING,
        kinds=("histogram", "cumulative"),
        terms=tuple(Terms("0.5", mechanism=name) for name in ("adaptive", "policy-tree", "dawa")),
        rules=(("full", "line", "pairs"), ("line", "pairs")),
    ),
    "conditions planned": replace(
        _ALONE,
        columns=("integer",),
        widths=(1,),
        sizes=(4,),
        kinds=("histogram", "cumulative"),
        rules=(("line", "full"),),
        conditions=(1,),
    ),
    "edges planned": replace(
        _ALONE, columns=("category",), widths=(1,), sizes=(4,), kinds=("histogram",), rules=(("pairs",),)
    ),
    "told later": replace(
        _LINE,
        acts=(("ask", "publish", "ask"),),
        terms=(REACH[2],),
        kinds=("histogram",),
        last=("rows", "count"),
        rules=(("groups",), ("full", "line")),
        presence=(False, True),
    ),
}
"""Worlds by what is special about them."""
_PLANNED = ("conditions planned", "edges planned")
"""Worlds that show what is wrong with mechanisms of the whole planner alone."""
_ROUND = 150
_ROUNDS = 2
_ALSO = 40  # worlds of each scope without a fault
_ENOUGH = 20  # worlds after which beliefs are judged


class _GivenAway(BaseException):
    """Nothing more has to be lived through."""


def found(fault: Fault) -> str | None:
    """What gives the fault away; None if nothing does.

    The books are not asked: what they say of themselves is no look at what two databases show.
    """
    with planted(fault):
        return _seen(fault.shows_in, _ROUNDS, _ROUND, audits=False)


def found_without(scope: str) -> str | None:
    """What is wrong in such worlds although no fault is planted: nothing, or what is found proves nothing."""
    return _seen(scope, 1, _ALSO, audits=True)


def _seen(name: str, rounds: int, most: int, *, audits: bool) -> str | None:
    try:
        with arena(WHOLE if name in _PLANNED else QUICK, audits=audits) as place:
            for number in range(rounds):
                _look(place, SCOPES[name], number, most)
    except (AssertionError, _GivenAway) as given_away:
        return str(given_away).partition("\n")[0]
    return None


def _look(place: Arena, scope: Scope, number: int, most: int) -> None:
    """Worlds of a scope, until a promise does not hold."""
    lived = 0

    @seed(13 + number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(world=worlds(scope))
    def look(world: World) -> None:
        nonlocal lived
        lived += 1
        try:
            place.live(world)
            if lived % _ENOUGH == 0:
                place.beliefs.judge()
        except AssertionError as wrong:
            raise _GivenAway(str(wrong)) from wrong

    look()
