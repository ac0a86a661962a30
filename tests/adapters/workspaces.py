"""For the tests of a workspace's tables: a clock that is set by hand, and a file of an older format."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import inspect, text

from blowfishdb.adapters.store import database, migrations
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon

_FIRST_TABLES = ("blowfish_meta", "heads", "budgets", "accounts", "charges", "events", "catalogue")


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
    with TemporaryDirectory() as folder, closing(Ledger.open(Path(folder) / "now.db")) as ledger:
        ledger.set_budget("people", Epsilon(1), "carla")
        charge = ledger.reserve("people", "ana", Epsilon("0.1"), "q", {})
        ledger.settle(ledger.mark_reading(charge), "[1]")
        engine, _ = database._engine(place)
        with engine.begin() as old, ledger.store.reading() as now:
            migrations.upgrade(old, 0, 1)
            for table in _FIRST_TABLES:
                columns = [column["name"] for column in inspect(old).get_columns(table)]
                names = ", ".join(columns)
                for row in now.execute(text(f"SELECT {names} FROM {table}")):
                    values = ", ".join(f":{name}" for name in columns)
                    old.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row._asdict())
            old.execute(text("UPDATE blowfish_meta SET value = '1'"))
        engine.dispose()
        return [ledger.charges(), ledger.grants("people"), ledger.budget("people")]
