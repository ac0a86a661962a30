"""The same worlds with their rows in PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.neighbours.living import arena
from tests.neighbours.rows import Rows
from tests.neighbours.runs import live_through
from tests.neighbours.sources import TABLE, Located, Place, create, insert
from tests.neighbours.worlds import AT_ONCE, EVERYTHING, World
from tests.postgres import Server

WORLDS = 50


def test_neighbours(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_PASSWORD", "pw")

    def put(folder: Path, world: World, rows: Rows) -> Located:
        schema, table = postgres.new_schema(), folder.name.partition("-")[0]  # no two worlds have one name
        with postgres.connect(schema) as connection:
            connection.execute(create(world.place, world.columns))
            connection.execute(insert(world.place, world.columns, rows))
            connection.execute(f"ALTER TABLE {TABLE} RENAME TO {table}")
        return Located(postgres.url(schema, password="${BLOWFISHDB_SOURCE_PASSWORD}"), table)

    with arena(put=put) as place:
        scope = replace(EVERYTHING, acts=AT_ONCE, places=(Place("postgres"),))
        live_through(place, scope, WORLDS, share=0.08)
