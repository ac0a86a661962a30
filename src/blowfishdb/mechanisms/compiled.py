"""Loops that numba compiles when they first run; where it is not installed the same code runs, slowly.

numba takes a while to load, so it is imported by the first call. Several threads may make that call at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

Loop = Callable[..., Any]


def compiled(*calls: Loop) -> Callable[[Loop], Loop]:
    """A decorator of loops over arrays and numbers.

    ``calls`` are the plain functions that the loop calls, those that others of them call before these.
    """

    def decorate(loop: Loop) -> Loop:
        lock, machine = threading.Lock(), list[Loop]()

        @wraps(loop)
        def run(*arguments: Any) -> Any:
            if not machine:
                with lock:
                    if not machine:
                        machine.append(_machine_code(loop, calls))
            return machine[0](*arguments)

        return run

    return decorate


def _machine_code(loop: Loop, calls: tuple[Loop, ...]) -> Loop:
    try:
        from numba import njit
    except ImportError:
        return loop
    names = dict(loop.__globals__)
    for each in (*calls, loop):
        names[each.__name__] = njit(cache=True)(FunctionType(each.__code__, names, each.__name__))
    machine: Loop = names[loop.__name__]
    return machine
