"""Real databases for the tests of this folder: files of every kind, PostgreSQL, MariaDB and Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon
from tests.adapters import places
from tests.adapters.workspaces import HandClock
from tests.mariadb import NoMariaDB, running
from tests.mariadb import Server as MariaServer

_FILES: dict[str, Callable[[Path], places.Place]] = {
    "duckdb": places.DuckFile,
    "csv": lambda folder: places.Copied(folder / "people.csv", "FORMAT csv, HEADER"),
    "tsv": lambda folder: places.Copied(
        folder / "people.tsv.gz", "FORMAT csv, HEADER, DELIMITER '\t', COMPRESSION gzip"
    ),
    "parquet": lambda folder: places.Copied(folder / "people.parquet", "FORMAT parquet"),
    "folder": places.Folder,
    "pandas": lambda _: places.Memory("pandas"),
    "arrow": lambda _: places.Memory("arrow"),
    "polars": lambda _: places.Memory("polars"),
    "sqlite": places.SqliteFile,
    "spark": places.SparkFolder,
}
_QUICK_START = '--driver-java-options "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" pyspark-shell'
DATABASES = ("duckdb", "sqlite", "postgres", "mariadb", "spark")
EVERYWHERE = (*_FILES, "postgres", "mariadb")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``place`` is every place; ``database`` one of each kind of database."""
    for fixture, names in (("place", EVERYWHERE), ("database", DATABASES)):
        if fixture in metafunc.fixturenames and not _is_local(metafunc, fixture):
            metafunc.parametrize(fixture, [_quick_enough(name) for name in names], indirect=True)


def _quick_enough(name: str) -> object:
    """Spark takes as long as all the others together, so audits ask it, and tests do not."""
    return pytest.param(name, marks=pytest.mark.thorough) if name == "spark" else name


def _is_local(metafunc: pytest.Metafunc, fixture: str) -> bool:
    """A module that has a fixture of this name means its own."""
    return hasattr(metafunc.module, fixture)


def _place(request: pytest.FixtureRequest, folder: Path) -> places.Place:
    if request.param == "postgres":
        return places.PostgresSchema(request.getfixturevalue("postgres"))
    if request.param == "mariadb":
        return places.MariaDatabase(request.getfixturevalue("mariadb"))
    if request.param == "spark":
        pytest.importorskip("pyspark", reason="no Spark: pip install 'blowfishdb[spark]'")
        if shutil.which("java") is None:
            pytest.skip("no Java, which Spark needs: install a Java runtime of version 17")
        os.environ.setdefault("PYSPARK_SUBMIT_ARGS", _QUICK_START)
    return _FILES[request.param](folder)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaServer]:
    """A MariaDB server for the whole run."""
    try:
        with running() as server:
            yield server
    except NoMariaDB as missing:
        pytest.skip(str(missing))


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> places.Place:
    """Everywhere a table can be."""
    return _place(request, tmp_path)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> places.Place:
    """One of each kind of database."""
    return _place(request, tmp_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger goes."""
    return tmp_path / "workspace.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A ledger with a budget of 1 for ``people``."""
    opened = Ledger.open(path)
    opened.set_budget("people", Epsilon(1), "carla")
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a workspace may be kept."""
    if request.param == "sqlite":
        return str(tmp_path / "workspace.db")
    return str(request.getfixturevalue("postgres").new_workspace())


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """An empty workspace at that address."""
    with closing(Store.open(address)) as opened:
        yield opened


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still until it is set."""
    return HandClock()
