"""Synthetic check-ins for the demonstration: where and when people were seen; deterministic, about nobody.

A made-up region of 100 by 100 kilometres: the sea in the west, a river from the hills in the east down to
the harbour, towns along both, and each district busy at its own hours. One row is one person.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from blowfishdb.core.attributes import Category, Integer
from blowfishdb.core.domain import Domain

CHECKINS: Final = 300_000
KILOMETRES: Final = 100
_SEED: Final = 2014

# share of the check-ins, centre (east, north), spread east and north, the hour that is busiest
_DISTRICTS: Final = {
    "harbour": (0.27, 24, 46, 4.0, 6.0, 12.0),
    "old town": (0.19, 33, 52, 3.5, 3.5, 20.0),
    "university": (0.12, 47, 57, 4.0, 4.0, 14.0),
    "beaches": (0.16, 20, 74, 2.5, 11.0, 15.0),
    "mill valley": (0.11, 63, 60, 7.0, 4.5, 9.0),
    "hills": (0.06, 84, 70, 8.0, 10.0, 11.0),
    "farmland": (0.09, 62, 24, 16.0, 12.0, 8.0),
}


def checkin_domain() -> Domain:
    """What a row may hold: kilometres from the south-western corner, the district, the hour."""
    return Domain(
        east=Integer(0, KILOMETRES - 1),
        north=Integer(0, KILOMETRES - 1),
        district=Category(list(_DISTRICTS)),
        hour=Integer(0, 23),
    )


def checkins(people: int = CHECKINS) -> dict[str, np.ndarray]:
    """The columns, the same every time."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    facts = np.array(list(_DISTRICTS.values()))
    seen = rng.choice(len(facts), size=people, p=facts[:, 0])
    north = facts[seen, 2] + rng.normal(size=people) * facts[seen, 4]
    east = facts[seen, 1] + rng.normal(size=people) * facts[seen, 3]
    shore = _shore(north)
    east = np.where(east < shore, 2 * shore - east, east)  # nobody checks in at sea
    place = np.clip(np.stack([east, north]), 0, KILOMETRES - 1).astype(np.int64)
    hour = np.mod(facts[seen, 5] + rng.normal(scale=4.0, size=people), 24).astype(np.int64)
    return {
        "east": place[0],
        "north": place[1],
        "district": np.array(list(_DISTRICTS))[_nearest(place, facts)],
        "hour": hour,
    }


def write_checkins(path: Path, people: int = CHECKINS) -> None:
    """A DuckDB file with one table, ``checkins``."""
    import duckdb
    import pyarrow as pa

    table = pa.table(checkins(people))
    with duckdb.connect(str(path)) as connection:
        connection.register("columns_of_places", table)
        connection.execute("CREATE OR REPLACE TABLE checkins AS SELECT * FROM columns_of_places")


def _shore(north: np.ndarray) -> np.ndarray:
    """How far east the sea reaches: a coast with a bay in the middle."""
    return 14.0 + 5.0 * np.sin(north / 9.0) + 3.0 * np.exp(-(((north - 46.0) / 12.0) ** 2))


def _nearest(place: np.ndarray, facts: np.ndarray) -> np.ndarray:
    """The district whose centre is nearest in its own spread: computed from the position alone."""
    away = [
        ((place[0] - east) / wide) ** 2 + ((place[1] - north) / high) ** 2
        for _, east, north, wide, high, _ in facts
    ]
    return np.asarray(np.argmin(away, axis=0))
