"""Thousands of ``kill -9`` at random points of ``ask``, and what they leave behind.

    python -m benchmarks.crashes [--kills N] [--postgres M] [--seed S]

Askers are forked from a warm process and killed: some exactly at each stage, the others at moments spread
over the whole of an ``ask`` and over what follows its reservation. After every twenty the workspace is
reopened, every promise is checked, what was left unfinished is recovered, and every question is asked again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tests.engine.people import make_data
from tests.engine.remains import PROMISES, Findings, Run, kill_many, warm
from tests.postgres import NoPostgres, running

from benchmarks.tables import show

AT_EACH_STAGE = 5


@contextmanager
def postgres_workspaces() -> Iterator[Callable[[], str] | None]:
    """New databases for workspaces; None where there is no PostgreSQL."""
    try:
        with running() as server:
            yield server.new_workspace
    except NoPostgres as missing:
        print(f"without PostgreSQL: {missing}")
        yield None


def timed(run: Run, data: Path, place: Callable[[], str], number: int, seed: int) -> tuple[Findings, float]:
    start = time.perf_counter()
    found = kill_many(run, data, place, number, at_each_stage=AT_EACH_STAGE, seed=seed)
    return found, time.perf_counter() - start


def tables(found: dict[str, tuple[Findings, float]]) -> None:
    """How far the killed had come, and how often each promise was checked and broken."""
    show(
        [
            {
                "workspace": name,
                "kills": f"{findings.killed:,}",
                "too late": sum(findings.states.values()) - findings.killed,
                **{f"left {state}": findings.states[state] for state in ("nothing", "reading", "settled")},
                "seconds": seconds,
            }
            for name, (findings, seconds) in found.items()
        ]
    )
    print()
    width = max(map(len, PROMISES))
    show(
        [
            {
                "promise": promise.ljust(width),
                "checked": f"{sum(f.checked[promise] for f, _ in found.values()):,}",
                "broken": sum(f.broken[promise] for f, _ in found.values()),
            }
            for promise in PROMISES
        ]
    )


def main() -> None:
    """Kill, and print what was found."""
    parser = argparse.ArgumentParser(description="kill -9 at random points of ask.")
    parser.add_argument("--kills", type=int, default=2_000, help="in all (default 2,000)")
    parser.add_argument("--postgres", type=int, default=200, help="of them on PostgreSQL (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    found: dict[str, tuple[Findings, float]] = {}
    numbers = count()
    with tempfile.TemporaryDirectory() as name, postgres_workspaces() as databases:
        folder = Path(name)
        data = make_data(folder / "people.duckdb")
        on_postgres = args.postgres if databases is not None else 0
        with warm(data) as run:
            files = lambda: str(folder / f"{next(numbers)}.blowfish")  # noqa: E731
            found["SQLite"] = timed(run, data, files, args.kills - on_postgres, args.seed)
            if databases is not None and on_postgres:
                found["PostgreSQL"] = timed(run, data, databases, on_postgres, args.seed)
    tables(found)


if __name__ == "__main__":
    main()
