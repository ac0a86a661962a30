"""Loops are compiled once, by whoever comes first, and run without a compiler too."""

from __future__ import annotations

import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blowfishdb.mechanisms import compiled as compiled_loops
from blowfishdb.mechanisms.compiled import Loop, _Patience, compiled

VALUES = np.arange(10.0)


def _doubled(value):  # type: ignore[no-untyped-def]
    return 2.0 * value


def summing(*, at_once=True):  # type: ignore[no-untyped-def]
    """A loop that nobody has called yet."""

    @compiled(_doubled, at_once=at_once)
    def total(values):  # type: ignore[no-untyped-def]
        found = 0.0
        for value in values:
            found += _doubled(value)
        return found

    return total


def test_threads_may_be_the_first_together() -> None:
    total, ready = summing(), threading.Barrier(8)

    def first() -> float:
        ready.wait()
        return float(total(VALUES))

    with ThreadPoolExecutor(8) as pool:
        assert {found.result() for found in [pool.submit(first) for _ in range(8)]} == {90.0}


def test_a_loop_of_planning_is_compiled_once_there_is_something_to_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []

    def machine_code(loop: Loop, _: tuple[Loop, ...]) -> Loop:
        loaded.append(loop.__name__)
        return loop

    monkeypatch.setattr(compiled_loops, "_machine_code", machine_code)
    monkeypatch.setattr(_Patience, "seconds", 1.0)
    total = summing(at_once=False)
    assert total(VALUES) == 90.0 and not loaded and _Patience.seconds < 1
    assert total(np.arange(1_000.0)) == 999_000.0 and loaded == ["total"]  # many numbers
    monkeypatch.setattr(_Patience, "seconds", 0.0)
    assert summing(at_once=False)(VALUES) == 90.0 and loaded == ["total"] * 2  # or patience is over
    assert summing()(VALUES) == 90.0 and loaded == ["total"] * 3


def test_what_a_loop_calls_stays_as_it_is() -> None:
    assert summing()(VALUES) == summing()(VALUES) == 90.0
    assert _doubled(3) == 6 and inspect.isfunction(_doubled)


def test_it_runs_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert summing()(VALUES) == 90.0
