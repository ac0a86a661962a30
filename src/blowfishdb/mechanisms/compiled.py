"""Loops that numba compiles when they first run; where it is not installed the same code runs, slowly.

numba takes a while to load, so it is imported by the first call. Several threads may make that call at once.
Loops of planning have it wait until there is something to gain: on a few numbers they run as they are, with
the same result to the last bit, until that has taken a tenth of what loading takes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, Final, final

import numpy as np

Loop = Callable[..., Any]

_FEW: Final = 512  # numbers in the arguments of a loop that need no compiler
_PATIENCE: Final = 0.05  # seconds that a process may spend on loops that are not compiled


@final
class _Patience:
    """What is left of it in this process."""

    seconds = _PATIENCE


def compiled(*calls: Loop, at_once: bool = True) -> Callable[[Loop], Loop]:
    """A decorator of loops over arrays and numbers.

    ``calls`` are the plain functions that the loop calls, those that others of them call before these. Unless
    ``at_once``, the first calls run as they are if they are about a few numbers.
    """

    def decorate(loop: Loop) -> Loop:
        lock, machine = threading.Lock(), list[Loop]()

        @wraps(loop)
        def run(*arguments: Any) -> Any:
            if not machine:
                if not at_once and _Patience.seconds > 0 and _numbers(arguments) <= _FEW:
                    return _as_it_is(loop, arguments)
                with lock:
                    if not machine:
                        machine.append(_machine_code(loop, calls))
            return machine[0](*arguments)

        return run

    return decorate


def _numbers(arguments: tuple[Any, ...]) -> int:
    return sum(each.size for each in arguments if isinstance(each, np.ndarray))


def _as_it_is(loop: Loop, arguments: tuple[Any, ...]) -> Any:
    begun = time.thread_time()
    try:
        with np.errstate(all="ignore"):  # machine code says nothing either
            return loop(*arguments)
    finally:
        _Patience.seconds -= time.thread_time() - begun


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
