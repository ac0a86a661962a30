"""The longest files of tests begin first, by how long they took the last time."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.turns import KEY, UNKNOWN, Turns, longest_first


class Remembered:
    """A cache in memory, and the configuration of a run that has it."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, float]] = {}
        self.cache = self

    def get(self, key: str, default: dict[str, float]) -> dict[str, float]:
        return self.held.get(key, default)

    def set(self, key: str, value: dict[str, float]) -> None:
        self.held[key] = value


class Test:
    """A test, or what was reported of one."""

    __test__ = False

    def __init__(self, nodeid: str, duration: float = 0.0) -> None:
        self.nodeid, self.duration = nodeid, duration


def turns(run: Remembered) -> Turns:
    return Turns(cast(pytest.Config, run))


def test_what_was_never_run_comes_as_it_is_but_for_worlds() -> None:
    files = ["tests/test_a.py", "tests/neighbours/test_alone.py", "tests/test_b.py"]
    assert longest_first(files, {}) == [files[1], files[0], files[2]]
    assert longest_first(files, {files[2]: 300.0}) == [files[2], files[1], files[0]]


def test_what_is_known_to_take_long_does_not_wait_for_a_first_run() -> None:
    files = ["tests/web/test_frame.py", "tests/test_a.py", "tests/web/test_axe.py"]
    assert longest_first(files, {}) == [files[2], files[0], files[1]]
    assert longest_first(files, {files[2]: 1.0}) == [files[0], files[2], files[1]]
    assert [file for file in UNKNOWN if not Path(file).exists()] == []  # it moves along with what it names


def test_a_run_remembers_for_the_next() -> None:
    run = Remembered()
    first = turns(run)
    for nodeid, duration in (("a.py::one", 1.0), ("b.py::one", 2.5), ("b.py::two[x::y]", 1.5)):
        first.pytest_runtest_logreport(cast(pytest.TestReport, Test(nodeid, duration)))
    first.pytest_sessionfinish()
    assert run.held[KEY] == {"a.py": 1.0, "b.py": 4.0}
    items = [Test("c.py::one"), Test("a.py::one"), Test("b.py::two[x::y]"), Test("b.py::one")]
    turns(run).pytest_collection_modifyitems(cast(list[pytest.Item], items))
    assert [item.nodeid for item in items] == ["b.py::two[x::y]", "b.py::one", "a.py::one", "c.py::one"]


def test_what_was_not_run_this_time_is_not_forgotten() -> None:
    run = Remembered()
    run.set(KEY, {"a.py": 9.0, "b.py": 1.0})
    second = turns(run)
    second.pytest_runtest_logreport(cast(pytest.TestReport, Test("b.py::one", 2.0)))
    second.pytest_sessionfinish()
    assert run.held[KEY] == {"a.py": 9.0, "b.py": 2.0}
