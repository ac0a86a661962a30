"""For every test: property tests are judged by what they find, not by how busy the machine is, and one
PostgreSQL server is started if anything asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import NoPostgres, Server, running

settings.register_profile("blowfishdb", deadline=None, print_blob=True)
settings.load_profile("blowfishdb")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        with running() as server:
            yield server
    except NoPostgres as missing:
        pytest.skip(str(missing))
