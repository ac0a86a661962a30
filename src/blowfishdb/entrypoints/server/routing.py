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


@final
class Router(APIRouter):
    """Routes ``under`` a prefix; it passes a request on whose next word begins none of its addresses."""

    def __init__(self, under: str = "", **settings: Any) -> None:
        super().__init__(**settings)
        self._under = under

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Which of the routes a request is for."""
        under, path = self._under, scope["path"]
        if not scope.get("root_path"):
            if not path.startswith(under):
                return Match.NONE, {}
            if None not in self._words and _word(path[len(under) :]) not in self._words:
                return Match.NONE, {}
        return super().matches(scope)

    @cached_property
    def _words(self) -> frozenset[str | None]:
        """The first words of its addresses, None for one that is filled in; all routes are there by now."""
        words = (_word(str(context.path)) for context in iter_route_contexts(self.routes))
        return frozenset(None if "{" in word else word for word in words)


def _word(path: str) -> str:
    return path[1:].partition("/")[0]
