"""The same table of people in DuckDB and in PostgreSQL, to be asked about and to be counted directly."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, final

import duckdb
from tests.postgres import NoPostgres, Server, running

import blowfishdb as bf
from blowfishdb.adapters.backends.duckdb import connect
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

BATCH = 5_000_000
DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999, missing="clamp"), x=bf.Integer(0, 99), y=bf.Integer(0, 99))
POLICY = bf.Policy.by_column(
    DOMAIN,
    {
        "salary": bf.graphs.Threshold(100_000, 1_000),
        "x": bf.graphs.Threshold(100, 5),
        "y": bf.graphs.Threshold(100, 5),
    },
)
AskAbout = Callable[[Dataset], Asking]
QUESTIONS: dict[str, AskAbout] = {
    "100 bins": lambda people: people["salary"].histogram(width=1_000),
    "10,000 bins": lambda people: people["salary"].histogram(width=10),
    "10 × 10": lambda people: people["x", "y"].histogram(width=10),
    "100 × 100": lambda people: people["x", "y"].histogram(width=1),
}
WIDE = {f"a{i}": 10 if i < 6 else 1_000 for i in range(8)}  # 10⁶ · 10⁶ cells
_numbers = count()
_PASSWORD = "BLOWFISHDB_SOURCE_PEOPLE"

Select = Callable[[str], Any]


@final
@dataclass(frozen=True)
class People:
    """A table ``people`` somewhere; ``opened`` is a connection that sends a SELECT and takes its result."""

    database: str
    rows: int
    location: str
    opened: Callable[[], AbstractContextManager[Select]]


@contextmanager
def made(duckdb_rows: Sequence[int], postgres_rows: Sequence[int]) -> Iterator[tuple[Path, list[People]]]:
    """Tables of these sizes, and a folder for workspaces; a missing PostgreSQL is said and left out."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tables = [in_duckdb(folder, rows) for rows in duckdb_rows]
        if postgres_rows:
            try:
                server = stack.enter_context(running(durable=True))
                tables += [in_postgres(server, rows) for rows in postgres_rows]
            except NoPostgres as missing:
                print(f"without PostgreSQL: {missing}")
        yield folder, tables


def in_duckdb(folder: Path, rows: int) -> People:
    """One row in 97 without a salary, one in eleven outside the declared bounds."""
    row = (
        "CASE WHEN i % 97 = 0 THEN NULL ELSE (hash(i) % 110000)::INT - 5000 END AS salary, "
        "(hash(i + 7) % 100)::INT AS x, (hash(i + 13) % 100)::INT AS y, "
        + ", ".join(f"(hash(i + {k}) % {size})::INT AS {name}" for k, (name, size) in enumerate(WIDE.items()))
    )
    path = folder / f"{rows}.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CREATE TABLE people AS SELECT {row} FROM range(0) t(i)")
        for start in range(0, rows, BATCH):
            stop = min(start + BATCH, rows)
            connection.execute(f"INSERT INTO people SELECT {row} FROM range({start}, {stop}) t(i)")

    @contextmanager
    def opened() -> Iterator[Select]:
        with connect(path) as connection:
            yield lambda statement: connection.cursor().execute(statement).fetchnumpy()

    return People("DuckDB", rows, str(path), opened)


def in_postgres(server: Server, rows: int) -> People:
    """The same, without the wide columns."""
    schema = server.new_schema()
    row = (
        "CASE WHEN i % 97 = 0 THEN NULL ELSE (hashint8(i) & 2147483647) % 110000 - 5000 END AS salary, "
        "(hashint8(i + 7) & 2147483647) % 100 AS x, (hashint8(i + 13) & 2147483647) % 100 AS y"
    )
    with server.connect(schema) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT {row} FROM generate_series(0, {rows - 1}) t(i)")
        connection.execute("VACUUM ANALYZE people")

    @contextmanager
    def opened() -> Iterator[Select]:
        with server.connect(schema) as connection:
            yield lambda statement: connection.execute(statement).fetchall()

    os.environ[_PASSWORD] = "pw"  # any will do; a workspace keeps no password, only the name of where it is
    return People("PostgreSQL", rows, server.url(schema, password=f"${{{_PASSWORD}}}"), opened)


Fresh = Callable[[AskAbout], Asking]


@contextmanager
def asked_for_the_first_time(
    folder: Path, people: People, domain: bf.Domain = DOMAIN, policy: bf.Policy | None = POLICY
) -> Iterator[Fresh]:
    """A workspace, as a function that puts a question to a dataset of its own, at an accuracy of its own.

    Nothing that tells about it was ever released there, so it cannot be answered from what is stored. One
    question about the last column has opened the connection, as the first question of anyone does.
    """
    with Workspace(folder / f"{next(_numbers)}.blowfish", user="ana") as workspace:

        def fresh(ask_about: AskAbout) -> Asking:
            number = next(_numbers)
            added = workspace.add_dataset(
                f"people {number}", people.location, domain=domain, table="people", same_rows=True
            )
            added.budget.set(1_000)
            if policy is not None:
                added.publish(policy)
            added[list(domain)[-1]].ranges([(0, 4)]).accurate_to(5_000 + number).ask()
            return ask_about(added).accurate_to(500 + number)

        yield fresh
