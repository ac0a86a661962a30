"""Notes between processes: by owner, replaced and dropped, out of reach for idempotency keys."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.once import Idempotency, Scratch
from blowfishdb.core.errors import InvalidInput


def test_notes_are_left_changed_and_dropped(tmp_path: Path) -> None:
    one, other = (Scratch(Store.open(tmp_path / "workspace.db")) for _ in range(2))
    assert one.get("ann", "job") is None and not one.replace("ann", "job", "new")
    one.put("ann", "job", "first")
    one.put("ann", "job", "second")
    assert other.get("ann", "job") == "second" and other.get("bob", "job") is None
    assert other.replace("ann", "job", "third") and one.get("ann", "job") == "third"
    other.drop("bob", "job")
    other.drop("ann", "job")
    assert one.get("ann", "job") is None


def test_notes_and_keys_of_requests_do_not_meet(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "workspace.db")
    Scratch(store).put("ann", "job", "note")
    memory = Idempotency(store)
    assert memory.once("ann", "job", "a" * 64) is None
    assert Scratch(store).get("ann", "job") == "note"
    with pytest.raises(InvalidInput):
        memory.once("ann", "\x1fjob", "a" * 64)


def test_notes_are_gone_after_a_week(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "workspace.db")
    Scratch(store).put("ann", "job", "note")
    Idempotency(store, lambda: datetime.now(UTC) + timedelta(days=8)).once("bob", "key", "b" * 64)
    assert Scratch(store).get("ann", "job") is None
