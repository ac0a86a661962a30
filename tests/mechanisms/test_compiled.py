"""Loops are compiled once, by whoever comes first, and run without a compiler too."""

from __future__ import annotations

import inspect
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from blowfishdb.mechanisms.compiled import compiled

VALUES = np.arange(10.0)


def _doubled(value):  # type: ignore[no-untyped-def]
    return 2.0 * value


def summing():  # type: ignore[no-untyped-def]
    """A loop that nobody has called yet."""

    @compiled(_doubled)
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


def test_what_a_loop_calls_stays_as_it_is() -> None:
    assert summing()(VALUES) == summing()(VALUES) == 90.0
    assert _doubled(3) == 6 and inspect.isfunction(_doubled)


def test_it_runs_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    assert summing()(VALUES) == 90.0
