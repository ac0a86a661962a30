"""For every test: property tests are judged by what they find, not by how busy the machine is, and look
longer in an audit; the longest files begin first, and one PostgreSQL server is started if anything asks."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.postgres import NoPostgres, Server, running
from tests.turns import Turns

EXAMPLES = 100 if "BLOWFISHDB_AUDIT_MINUTES" in os.environ else 25
"""Of a property that says no number of its own."""
settings.register_profile("blowfishdb", deadline=None, print_blob=True, max_examples=EXAMPLES)
settings.load_profile("blowfishdb")


def pytest_configure(config: pytest.Config) -> None:
    """What takes longest begins first."""
    config.pluginmanager.register(Turns(config), "turns")


def pytest_collection_finish() -> None:
    """What is there by now stays: a tenth of the time goes into looking at it again for what is garbage."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_unconfigure() -> None:
    """In the end it goes like everything else."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server for the whole run."""
    try:
        with running() as server:
            yield server
    except NoPostgres as missing:
        pytest.skip(str(missing))
