"""The front door: what this is in ten seconds, what this server promises, and where to sign in.

The five still pictures were worked out by the real planner on made-up salaries (``benchmarks/door.py``, and a
test compares them with it), so that a visitor waits for nothing and needs no JavaScript.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, final

from fastapi import Request, Response

from blowfishdb.entrypoints.server.access import PageVisitor, from_this_machine
from blowfishdb.entrypoints.server.api.policies import public_promises
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.entrypoints.server.web.frame import redirect, render

router: Final = Router(include_in_schema=False)

FILE: Final = Path(__file__).with_name("door.json")
_HEIGHT: Final = 180  # of the drawing, in its own units
_BAR: Final = 24
_SCALE: Final = (400, 800)  # people, at the lines behind the bars
_FIRST: Final = 2  # the picture that a visitor sees first


@final
@dataclass(frozen=True)
class Bar:
    """One bar of a drawing: where it ends, where the truth is, and how far its whisker reaches."""

    label: str
    x: int
    count: int
    top: float
    true_top: float
    high: float
    low: float


@final
@dataclass(frozen=True)
class Still:
    """One position of the slider: a policy, what it costs, how well it hides, and a noisy picture."""

    words: str
    price: str
    error: int
    hidden: str
    apart: str
    bars: tuple[Bar, ...]


@router.get("/")
def front_door(request: Request, caller: PageVisitor) -> Response:
    """For whoever is not signed in; everyone else begins with the datasets."""
    if caller is not None:
        return redirect("/datasets")
    server = server_of(request)
    shown = _stored()
    return render(
        request,
        "door.html",
        caller=None,
        shown=shown,
        stills=stills(),
        first=_FIRST,
        width=_BAR * len(shown["truth"]),
        height=_HEIGHT,
        scale=tuple((people, _height(people)) for people in _SCALE),
        promises=public_promises(server.workspace),
        playing=server.settings.demo and from_this_machine(request),
    )


@cache
def _stored() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return read


@cache
def stills() -> tuple[Still, ...]:
    """The five pictures, on one scale."""
    shown = _stored()
    return tuple(_still(still, shown["truth"], shown["width"]) for still in shown["stills"])


@cache
def _most() -> float:
    return max(float(bar + still["error"]) for still in _stored()["stills"] for bar in still["bars"])


def _height(count: float) -> float:
    return round(_HEIGHT * (1 - max(0.0, count) / _most()), 1)


def _still(still: dict[str, Any], truth: list[int], width: int) -> Still:
    error, distance = still["error"], still["distance"]
    bars = tuple(
        Bar(
            f"${number * width:,} to ${(number + 1) * width - 1:,}",
            number * _BAR,
            max(0, noisy),
            _height(noisy),
            _height(true),
            _height(noisy + error),
            _height(noisy - error),
        )
        for number, (noisy, true) in enumerate(zip(still["bars"], truth, strict=True))
    )
    words = "entirely" if distance is None else f"within ${distance:,} of each other"
    return Still(words, still["price"], round(error), still["hidden"], still["apart"], bars)
