"""Strange messages change nothing: no crash, no hang, no charge, and no memory that grows with them."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from blowfishdb.entrypoints.pgwire.protocol import Malformed, first_message, next_message
from tests.pgwire import fuzz
from tests.pgwire.door import Opened, opened

MESSAGES = 100_000 if "BLOWFISHDB_AUDIT_MINUTES" in os.environ else 10_000
SEED = int.from_bytes(os.environ.get("BLOWFISHDB_AUDIT_SEED", "a").encode()[:6])


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("fuzz")) as made:
        yield made


def resident() -> int:
    """The memory of this process, in pages."""
    return int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0


def test_strange_messages_change_nothing(there: Opened) -> None:
    fuzz.fuzz(there, MESSAGES // 5, SEED)
    gc.collect()
    before, spent = resident(), there.spent()
    answered = fuzz.fuzz(there, MESSAGES, SEED + 1)
    assert answered > MESSAGES // 3
    assert there.spent() == spent == "0"
    assert (resident() - before) * 4096 < 80_000_000
    assert not there.door.waiting
    assert not there.door._by_user  # nobody is left inside
    with there.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert there.web.workspace.verify() == []


@pytest.mark.parametrize(
    "sent", [b"Q\0\0\0\3", b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"!\0\0\0\4", b"\0\0\0\0\0"]
)
def test_what_is_no_message_is_refused_at_once(sent: bytes) -> None:
    with pytest.raises(Malformed):
        next_message(bytearray(sent), 1_000_000)


def test_a_first_message_that_is_too_long_is_refused_before_it_has_come() -> None:
    with pytest.raises(Malformed):
        first_message(bytearray(b"\0\x01\0\0" + b"\0" * 4))
    assert first_message(bytearray(b"\0\0\0")) is None
