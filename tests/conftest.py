"""For every test: property tests are judged by what they find, not by how busy the machine is, the longest
files begin first, and one PostgreSQL server is started if anything asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import NoPostgres, Server, running
from tests.turns import Turns

settings.register_profile("blowfishdb", deadline=None, print_blob=True)
settings.load_profile("blowfishdb")


def pytest_configure(config: pytest.Config) -> None:
    """What takes longest begins first."""
    config.pluginmanager.register(Turns(config), "turns")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        with running() as server:
            yield server
    except NoPostgres as missing:
        pytest.skip(str(missing))
