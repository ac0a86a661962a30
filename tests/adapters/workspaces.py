"""For the tests of a workspace's tables: a clock that is set by hand, and a file of an older format."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from blowfishdb.adapters import migrations, store
from blowfishdb.adapters.ledger import Ledger
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import START, heads, meta
from blowfishdb.core.budget import Epsilon


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **amount: float) -> None:
        self.now += timedelta(**amount)


def make_format_1(place: str) -> list[object]:
    """A workspace as the first version of this package made it, with a charge in its books."""
    engine, name = store._engine(place)
    with engine.begin() as connection:
        migrations.upgrade(connection, 0, 1)
        connection.execute(meta.insert().values(name="schema", value="1"))
        connection.execute(heads.insert().values(id=1, seq=0, hash=START))
    opened = Store(engine, name)
    opened._file = opened._identity()
    ledger = Ledger(opened)
    ledger.set_budget("people", Epsilon(1), "carla")
    charge = ledger.reserve("people", "ana", Epsilon("0.1"), "q", {})
    ledger.settle(ledger.mark_reading(charge), "[1]")
    content = [ledger.charges(), ledger.grants("people"), ledger.budget("people")]
    ledger.close()
    return content
