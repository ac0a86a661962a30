"""A small dataset for the whole engine, and questions about it that all cost the same."""

from __future__ import annotations

from pathlib import Path

import duckdb

import blowfishdb as bf
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(age=bf.Integer(0, 999), floor=bf.Integer(0, 99))
PRICE = bf.Epsilon("0.01")


def make_data(path: Path, rows: int = 2_000) -> Path:
    """A DuckDB file with the table ``people``."""
    with duckdb.connect(str(path)) as connection:
        rows_of = f"SELECT (i * 7919 % 1000)::INT AS age, (i % 100)::INT AS floor FROM range({rows}) t(i)"
        connection.execute(f"CREATE TABLE people AS {rows_of}")
    return path


def make_workspace(place: str | Path, data: Path, budget: str) -> None:
    """A workspace over it."""
    with Workspace(place, user="carla") as workspace:
        workspace.add_dataset("people", data, domain=DOMAIN, table="people").budget.set(budget)


def question(people: Dataset, number: int) -> Asking:
    """Another question for every number below 400, each for ``PRICE``."""
    return people["age"].histogram(width=100 + number).spend(PRICE)
