"""The catalogue keeps every version of everything."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blowfishdb.adapters.store.catalogue import Catalogue
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "workspace.db")
    yield opened
    opened.close()


def test_what_is_not_there(store: Store) -> None:
    catalogue = Catalogue(store)
    assert catalogue.get("dataset", "people") is None
    assert catalogue.version("dataset", "people") == 0
    assert catalogue.names("dataset") == []


def test_versions_are_kept(store: Store) -> None:
    catalogue = Catalogue(store)
    assert [catalogue.put("dataset", "people", body) for body in ("a", "b", "b")] == [1, 2, 3]
    assert [catalogue.get("dataset", "people", version) for version in (1, 2, 3, 4)] == ["a", "b", "b", None]
    assert catalogue.get("dataset", "people") == "b"
    assert catalogue.version("dataset", "people") == 3


def test_kinds_and_names_are_apart(store: Store) -> None:
    catalogue = Catalogue(store)
    nasty = "'; DROP TABLE catalogue; --"
    for kind, name in (("policy", "people"), ("dataset", "zebra"), ("dataset", "😀"), ("dataset", nasty)):
        catalogue.put(kind, name, f"{kind}/{name}")
    assert catalogue.names("dataset") == sorted(["zebra", "😀", nasty])
    assert catalogue.get("policy", "people") == "policy/people"
    assert catalogue.get("dataset", "people") is None
    assert catalogue.get("dataset", nasty) == f"dataset/{nasty}"


@pytest.mark.parametrize("name", ["", "x" * 256])
def test_names_that_cannot_be_stored(store: Store, name: str) -> None:
    with pytest.raises(InvalidInput):
        Catalogue(store).put("dataset", name, "{}")


def test_writers_at_once_get_different_versions(store: Store) -> None:
    catalogue = Catalogue(store)
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda k: catalogue.put("dataset", "people", str(k)), range(40)))
    assert sorted(versions) == list(range(1, 41))


def test_it_survives_closing_and_shares_the_file_with_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    store = Store.open(path)
    Catalogue(store).put("dataset", "people", "{}")
    Ledger(store).set_budget("people", Epsilon(1), "carla")
    store.close()
    again = Store.open(path)
    assert Catalogue(again).get("dataset", "people") == "{}"
    assert Ledger(again).budget("people").total == Epsilon(1)
    again.close()
