"""Whose turn it is: the files that took longest begin first, so that no process is left with one in the end.

How long each took is remembered from run to run, where pytest keeps what it remembers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePosixPath

import pytest

KEY = "blowfishdb/seconds"
UNKNOWN = {
    "tests/neighbours/test_alone.py": 110.0,
    "tests/neighbours/test_together.py": 100.0,
    "tests/neighbours/test_changing.py": 85.0,
    "tests/neighbours/test_kept.py": 70.0,
    "tests/neighbours/test_over_http.py": 45.0,
    "tests/neighbours": 15.0,
    "tests/web/test_axe.py": 80.0,
    "tests/test_tutorials.py": 60.0,
    "tests/engine/test_crash.py": 60.0,
    "tests/mechanisms/test_catalogue.py": 50.0,
    "tests/adapters/test_backend_types.py": 50.0,
    "tests/test_service.py": 50.0,
    "tests/test_every_question.py": 40.0,
    "tests/adapters/test_sql.py": 30.0,
    "tests/web": 30.0,
    "tests/test_suggestions.py": 20.0,
    "tests/entrypoints": 15.0,
    "tests/adapters": 10.0,
}
"""Seconds of files, or of each file in a folder, that were never run here; none elsewhere."""


def file_of(nodeid: str) -> str:
    """The file of a test."""
    return nodeid.partition("::")[0]


def longest_first(files: Iterable[str], seconds: dict[str, float]) -> list[str]:
    """Files by how long they take; those that take equally long as they were."""

    def taken(file: str) -> float:
        guessed = UNKNOWN.get(file, UNKNOWN.get(str(PurePosixPath(file).parent), 0.0))
        return seconds.get(file, guessed)

    return sorted(files, key=lambda file: -taken(file))


class Turns:
    """A plugin that puts tests in order, and writes down how long they took."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)
        self._leads = not hasattr(config, "workerinput")
        self._taken: dict[str, float] = defaultdict(float)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """The longest files first; within one, tests stay as they were."""
        seconds = {} if self._cache is None else self._cache.get(KEY, {})
        files = dict.fromkeys(file_of(item.nodeid) for item in items)
        places = {file: place for place, file in enumerate(longest_first(files, seconds))}
        items.sort(key=lambda item: places[file_of(item.nodeid)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setting up, running and letting go, each."""
        self._taken[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """The process that leads has heard of all of them."""
        if self._cache is not None and self._leads and self._taken:
            known = self._cache.get(KEY, {})
            self._cache.set(KEY, known | {file: round(taken, 1) for file, taken in self._taken.items()})
