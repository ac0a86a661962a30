"""Every benchmark can be started: what it imports is there, and `make bench` knows those that it runs."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks
import pytest
from benchmarks.__main__ import BENCHMARKS

NAMES = sorted(
    module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__"
)


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_imported(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__ and (name not in BENCHMARKS or callable(module.main))


def test_those_that_are_run_are_there() -> None:
    assert BENCHMARKS.keys() <= set(NAMES)
