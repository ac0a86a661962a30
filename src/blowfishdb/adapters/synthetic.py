"""Synthetic salaries for the demonstration: deterministic, and about nobody.

Salaries depend on age, occupation, region and sex as they do in labour statistics: log-normal within an
occupation, rising and flattening with age, with a part-time bump near zero and a long right tail.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blowfishdb.core.attributes import Category, Integer
from blowfishdb.core.domain import Domain

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
        age=Integer(18, 90),
        salary=Integer(0, 199_999),
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
        "age": age,
        "salary": np.clip(salary, 0, 199_999).astype(np.int64),
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
