"""Samples: synthetic datasets to try things with, about nobody.

Synthetic salaries for the demonstration: deterministic, and about nobody.

Salaries depend on age, occupation, region and sex as they do in labour statistics: log-normal within an
occupation, rising and flattening with age, with a part-time bump near zero and a long right tail.

Synthetic check-ins for the demonstration: where and when people were seen; deterministic, about nobody.

A made-up region of 100 by 100 kilometres: the sea in the west, a river from the hills in the east down to
the harbour, towns along both, and each district busy at its own hours. One row is one person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

import numpy as np

from blowfishdb.adapters.copies import make_private
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.policy.policy import Policy

PEOPLE = 500_000
_SEED = 2021

# share of the workforce, median full-time salary at forty, spread of log salary, share of men
_OCCUPATIONS = {
    "care": (0.14, 41_000, 0.30, 0.18),
    "education": (0.09, 52_000, 0.28, 0.29),
    "engineering": (0.08, 88_000, 0.34, 0.77),
    "management": (0.10, 97_000, 0.45, 0.58),
    "manual": (0.21, 39_000, 0.33, 0.81),
    "office": (0.16, 46_000, 0.30, 0.34),
    "sales": (0.14, 37_000, 0.48, 0.51),
    "science": (0.08, 79_000, 0.36, 0.55),
}
_REGIONS = {"north": (0.22, 0.94), "east": (0.18, 0.90), "south": (0.27, 1.00), "west": (0.33, 1.13)}


def salary_domain() -> Domain:
    """What a row of the demonstration may hold."""
    return Domain(
        salary=Integer(0, 199_999),
        age=Integer(18, 90),
        occupation=Category(list(_OCCUPATIONS)),
        region=Category(list(_REGIONS)),
        sex=Category(["female", "male"]),
    )


def salaries(people: int = PEOPLE) -> dict[str, np.ndarray]:
    """The columns of the demonstration, the same every time."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    names, facts = list(_OCCUPATIONS), np.array(list(_OCCUPATIONS.values()))
    occupation = rng.choice(len(names), size=people, p=facts[:, 0])
    male = rng.random(people) < facts[occupation, 3]
    shares = np.array([share for share, _ in _REGIONS.values()])
    region = rng.choice(len(shares), size=people, p=shares)
    age = np.clip(18 + rng.gamma(3.6, 7.4, size=people), 18, 90).astype(np.int64)
    experience = 1.0 - 0.45 * np.exp(-(age - 18) / 11.0) - 0.012 * np.maximum(0, age - 58)
    level = np.array([factor for _, factor in _REGIONS.values()])[region]
    full_time = np.exp(rng.normal(0.0, facts[occupation, 2]))
    part_time = np.where(rng.random(people) < np.where(male, 0.10, 0.27), rng.beta(2.2, 2.6, people), 1.0)
    gap = np.where(male, 1.0, 0.93)
    salary = facts[occupation, 1] * level * experience * gap * full_time * part_time
    return {
        "salary": np.clip(salary, 0, 199_999).astype(np.int64),
        "age": age,
        "occupation": np.array(names)[occupation],
        "region": np.array(list(_REGIONS))[region],
        "sex": np.where(male, "male", "female"),
    }


def write_salaries(path: Path, people: int = PEOPLE) -> None:
    """A DuckDB file with one table, ``salaries``."""
    import duckdb
    import pyarrow as pa

    table = pa.table(salaries(people))
    with duckdb.connect(str(path)) as connection:
        connection.register("columns_of_people", table)
        connection.execute("CREATE OR REPLACE TABLE salaries AS SELECT * FROM columns_of_people")


CHECKINS: Final = 300_000
KILOMETRES: Final = 100
_CHECKINS_SEED: Final = 2014

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
    rng = np.random.Generator(np.random.PCG64(_CHECKINS_SEED))
    facts = np.array(list(_DISTRICTS.values()))
    seen = rng.choice(len(facts), size=people, p=facts[:, 0])
    north = facts[seen, 2] + rng.normal(size=people) * facts[seen, 4]
    east = facts[seen, 1] + rng.normal(size=people) * facts[seen, 3]
    shore = _shore(north)
    east = np.where(east < shore, 2 * shore - east, east)  # nobody checks in at sea
    position = np.clip(np.stack([east, north]), 0, KILOMETRES - 1).astype(np.int64)
    hour = np.mod(facts[seen, 5] + rng.normal(scale=4.0, size=people), 24).astype(np.int64)
    return {
        "east": position[0],
        "north": position[1],
        "district": np.array(list(_DISTRICTS))[_nearest(position, facts)],
        "hour": hour,
    }


def _shore(north: np.ndarray) -> np.ndarray:
    """How far east the sea reaches: a coast with a bay in the middle."""
    return 14.0 + 5.0 * np.sin(north / 9.0) + 3.0 * np.exp(-(((north - 46.0) / 12.0) ** 2))


def _nearest(position: np.ndarray, facts: np.ndarray) -> np.ndarray:
    """The district whose centre is nearest in its own spread: computed from the position alone."""
    away = [
        ((position[0] - east) / wide) ** 2 + ((position[1] - north) / high) ** 2
        for _, east, north, wide, high, _ in facts
    ]
    return np.asarray(np.argmin(away, axis=0))


@final
@dataclass(frozen=True)
class Sample:
    """A synthetic dataset: how it is made, and what its rows may hold."""

    name: str
    about: str
    rows: Callable[[], Mapping[str, np.ndarray]]
    domain: Callable[[], Domain]
    title: str = ""
    hidden_within: Mapping[str, int] = field(default_factory=dict)
    """Distances within which values are hidden in the demonstration; where none is named, everything is."""

    def policy(self) -> Policy:
        """What is hidden in the demonstration."""
        domain = self.domain()
        graphs = {
            name: Threshold(domain[name].value_count, domain[name].threshold(distance))
            for name, distance in self.hidden_within.items()
        }
        return Policy.by_column(domain, graphs)

    def file(self, folder: Path) -> Path:
        """Where its rows are."""
        return folder / f"{self.name}.parquet"

    def make(self, folder: Path) -> None:
        """Its file; half a file is never mistaken for it.

        A file of rows is copied when it is declared, so that answers about it can be sharpened.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        part = folder / f"{self.name}.part"
        part.unlink(missing_ok=True)
        pq.write_table(pa.table(dict(self.rows())), part)
        make_private(part)
        part.replace(self.file(folder))


SAMPLES: Final = (
    Sample("salaries", f"{PEOPLE:,} synthetic salaries", salaries, salary_domain, "Salaries"),
    Sample(
        "checkins",
        f"{CHECKINS:,} synthetic check-ins on a map",
        checkins,
        checkin_domain,
        "Check-ins",
        {"east": 5, "north": 5, "hour": 2},
    ),
)
