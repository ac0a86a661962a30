"""Planting a fault: one function of the package is replaced for a while, wherever it is kept and imported.

A function is found by its own name (``total_loss``, ``ByRows.worst``), not by its file, so that a fault
survives moves of files.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import blowfishdb

Replacement = Callable[[Callable[..., Any]], Any]


@dataclass(frozen=True)
class Fault:
    """A fault: what is wrong with it, the function that it replaces, and the world it shows in."""

    name: str
    words: str
    symbol: str
    replaced: Replacement
    shows_in: str


class Moved(Exception):
    """There is not exactly one function of that name."""


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of the package."""
    for found in pkgutil.walk_packages(blowfishdb.__path__, "blowfishdb."):
        importlib.import_module(found.name)
    named = [module for name, module in sys.modules.items() if name.partition(".")[0] == "blowfishdb"]
    return tuple(named)


def located(symbol: str) -> tuple[Any, str, Any]:
    """Who owns the function, its name there, and the function as it is kept there.

    Where several share a name, ``encode/_ends`` is the one beside ``encode``.
    """
    beside, _, named = symbol.rpartition("/")
    first, _, rest = named.partition(".")
    owners = {
        id(found): found
        for module in modules()
        if (found := vars(module).get(first)) is not None
        and getattr(found, "__module__", "").startswith("blowfishdb")
        and getattr(found, "__qualname__", first) == first
        and (not rest or rest in vars(found))
        and (not beside or beside in vars(sys.modules[found.__module__]))
    }
    if len(owners) != 1:
        raise Moved(f"{len(owners)} things are called {symbol}")
    (owner,) = owners.values()
    if not rest:
        return sys.modules[owner.__module__], first, owner
    return owner, rest, vars(owner)[rest]


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Within, the package has the fault; nothing that was computed before is remembered."""
    owner, name, original = located(fault.symbol)
    new = _kept_alike(original, fault.replaced)
    if isinstance(owner, ModuleType):
        places: list[tuple[Any, str]] = [
            (module, other)
            for module in modules()
            for other, held in vars(module).items()
            if held is original
        ]
    else:
        places = [(owner, name)]
    _forget()
    for place, held in places:
        setattr(place, held, new)
    try:
        yield
    finally:
        for place, held in places:
            setattr(place, held, original)
        _forget()


def _kept_alike(original: Any, replaced: Replacement) -> Any:
    """A property stays a property, a class method a class method."""
    if isinstance(original, property):
        return property(replaced(original.fget))  # type: ignore[arg-type]
    if isinstance(original, cached_property):
        return property(replaced(original.func))
    if isinstance(original, classmethod | staticmethod):
        return type(original)(replaced(original.__func__))
    return replaced(getattr(original, "__wrapped__", original))


def _forget() -> None:
    """Empty every cache of the package."""
    for module in modules():
        for held in list(vars(module).values()):
            for kept in (held, *(vars(held).values() if isinstance(held, type) else ())):
                if hasattr(kept, "cache_clear") and kept is not modules:
                    kept.cache_clear()
    gc.collect()
