"""The loss of whole answers, from outside, through every door: the library, REST and PostgreSQL's protocol.

    python -m benchmarks.doors [--releases 500] [--doors library rest wire]

Two datasets of eight cells under a policy that hides everything; one person is in another cell. Both are
asked for the same histogram again and again, each time for an ε that is a billionth larger. On half of the
answers an event is chosen that tells the two apart best, on the other half it is counted, as
`blowfishdb audit mechanisms` does. At ε = 1 the loss that this proves may not be above 1; at ε = 4 it has to
be, or so few answers would not find a fault.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path

import duckdb
import httpx
import numpy as np
import psycopg

import blowfishdb as bf
from benchmarks.pgwire import door
from benchmarks.server import served
from benchmarks.tables import Row, show
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.mechanisms.auditing import least_loss
from blowfishdb.workspace.embedded import Workspace

WORLDS = {"here": (0, 1, 6, 0, 0, 3, 0, 2), "there": (1, 0, 6, 0, 0, 3, 0, 2)}
EPSILONS = (1, 4)
Ask = Callable[[str, str], list[float]]
"""The numbers of an answer about a world, for an ε."""


def made(folder: Path) -> tuple[Path, str, str]:
    """The workspace, the token of an analyst, and the wire password."""
    place = folder / "doors.blowfish"
    with Workspace(place, user="curator") as workspace:
        for name, counts in WORLDS.items():
            file = folder / f"{name}.duckdb"
            with duckdb.connect(str(file)) as connection:
                connection.execute("CREATE TABLE people (cell INT)")
                connection.executemany(
                    "INSERT INTO people VALUES (?)", [[cell] for cell in np.repeat(range(8), counts).tolist()]
                )
            domain = bf.Domain(cell=bf.Integer(0, 7))
            workspace.add_dataset(name, file, domain=domain, table="people", kind="live").budget.set(10**6)
        Accounts(workspace.store).add("analyst", Role.ANALYST, None)
        token, _ = Tokens(workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))
        return place, token, WirePasswords(workspace.store).issue("analyst")


@contextmanager
def library(place: Path, _token: str, _password: str) -> Iterator[Ask]:
    with Workspace(place, user="analyst") as workspace:
        yield lambda world, epsilon: workspace[world]["cell"].histogram().spend(epsilon).ask().values.tolist()


@contextmanager
def rest(place: Path, token: str, _password: str) -> Iterator[Ask]:
    with served(place, 1) as (port, _), httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1") as client:
        client.headers["Authorization"] = f"Bearer {token}"

        def ask(world: str, epsilon: str) -> list[float]:
            body = {"question": "histogram(cell)", "epsilon": epsilon}
            found = client.post(f"/datasets/{world}/answers", json=body, timeout=60).raise_for_status()
            return [float(value) for value in found.json()["values"]]

        yield ask


@contextmanager
def wire(place: Path, _token: str, password: str) -> Iterator[Ask]:
    with (
        door(place) as (port, _),
        psycopg.connect(
            f"postgresql://analyst:{password}@127.0.0.1:{port}/blowfishdb", autocommit=True
        ) as connection,
    ):
        connection.execute("SET blowfishdb.max_cost = '5'")

        def ask(world: str, epsilon: str) -> list[float]:
            statement = (
                f"SELECT cell, COUNT(*) FROM {world} GROUP BY cell ORDER BY cell WITH EPSILON {epsilon}"
            )
            found = dict(connection.execute(statement.encode()).fetchall())
            return [float(found.get(cell, 0)) for cell in range(8)]

        yield ask


DOORS = {"library": library, "rest": rest, "wire": wire}


def audited(name: str, releases: int) -> Iterator[Row]:
    """What answers through a door prove, at each ε."""
    numbers = count(1)
    with tempfile.TemporaryDirectory() as folder, DOORS[name](*made(Path(folder))) as ask:
        for epsilon in EPSILONS:
            found = {
                world: np.array([ask(world, f"{epsilon}.{next(numbers):09d}") for _ in range(releases)])
                for world in WORLDS
            }
            loss = least_loss(found["here"], found["there"])
            asked = "may not be above 1" if epsilon == 1 else "has to be above 1"
            fine = loss <= 1 if epsilon == 1 else loss > 1
            yield {
                "door": name,
                "epsilon": epsilon,
                "answers": 2 * releases,
                "loss at least": loss,
                "which": asked,
                "verdict": "fine" if fine else "FAULT",
            }


def main() -> None:
    parser = argparse.ArgumentParser(description="The loss of answers, through every door.")
    parser.add_argument("--releases", type=int, default=500, help="of each of the two databases")
    parser.add_argument("--doors", nargs="+", choices=list(DOORS), default=list(DOORS))
    told = parser.parse_args()
    rows = [row for name in told.doors for row in audited(name, told.releases)]
    show(rows)
    if any(row["verdict"] != "fine" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
