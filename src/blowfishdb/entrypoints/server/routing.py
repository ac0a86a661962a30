"""Routers that know how their addresses begin, so that a request is not compared with every route."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, final

from fastapi import APIRouter
from fastapi.routing import iter_route_contexts
from starlette.routing import Match
from starlette.types import Scope

PREFIX: Final = "/api/v1"
"""How the addresses for programs begin."""


Shape = tuple[str | None, int, str | None]
"""The first word of an address, how many it has, and the last one; None for one that is filled in."""


@final
class Router(APIRouter):
    """Routes ``under`` a prefix; it passes a request on whose words fit none of its addresses."""

    def __init__(self, under: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self._under = under

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Which of the routes a request is for."""
        under, path = self._under, scope["path"]
        if not scope.get("root_path"):
            if not path.startswith(under):
                return Match.NONE, {}
            first, count, last = _shape(path[len(under) :])
            fits = ((first, count, last), (first, count, None), (None, count, last), (None, count, None))
            if self._shapes.isdisjoint(fits):
                return Match.NONE, {}
        return super().matches(scope)

    @cached_property
    def _shapes(self) -> frozenset[Shape]:
        """Those of its addresses, in none of which a word may hold a slash; all routes are there by now."""
        shapes = (_shape(str(context.path)) for context in iter_route_contexts(self.routes))
        return frozenset((_fixed(first), count, _fixed(last)) for first, count, last in shapes)


def _shape(path: str) -> tuple[str, int, str]:
    words = path[1:].split("/")
    return words[0], len(words), words[-1]


def _fixed(word: str) -> str | None:
    return None if "{" in word else word
