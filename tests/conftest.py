"""For every test: property tests are judged by what they find, not by how busy the machine is, and one
PostgreSQL server is started if anything asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import NoPostgres, Server, running

settings.register_profile("blowfishdb", deadline=None, print_blob=True)
settings.load_profile("blowfishdb")


LONGEST = (
    "neighbours/test_together.py",
    "neighbours/test_alone.py",
    "neighbours/test_changing.py",
    "neighbours/test_kept.py",
    "neighbours/test_over_http.py",
    "neighbours/test_on_postgres.py",
    "tests/test_service.py",
    "tests/test_tutorials.py",
    "tests/test_suggestions.py",
    "tests/test_every_question.py",
    "web/test_axe.py",
    "engine/test_crash.py",
)
"""Files that take minutes: begun first, so that no process works on one alone when the others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, all others as they were."""
    places = {name: place for place, name in enumerate(LONGEST)}

    def turn(item: pytest.Item) -> int:
        path = item.path.as_posix()
        return next((place for name, place in places.items() if path.endswith(name)), len(places))

    items.sort(key=turn)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        with running() as server:
            yield server
    except NoPostgres as missing:
        pytest.skip(str(missing))
