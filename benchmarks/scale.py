"""What a question costs against the number of rows, and what a ledger does when many ask at once.

    python -m benchmarks.scale [--rows 100000 1000000 10000000] [--repeats 5] [--write]

Rows are measured on DuckDB: a histogram of 100 bins, beside its SELECT. The ledger is simulated: questions
come at random, each takes the one lock of the workspace twice (reserve, settle) for as long as a durable
commit takes on this machine, measured in the same run, and waits in line for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np

import blowfishdb as bf
from benchmarks.latency import durable_commits
from benchmarks.tables import Row, show, write
from benchmarks.timing import p50, seconds

SALARIES, BINS = 200_000, 100
QUESTIONS = 200_000
"""Per simulated line: enough for a 99th percentile that is steady to a few per cent."""
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)


def against_rows(folder: Path, sizes: list[int], repeats: int) -> Iterator[Row]:
    """One line for each number of rows."""
    width = SALARIES // BINS
    for size in sizes:
        file = folder / f"people{size}.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("SELECT setseed(0.5)")
            connection.execute(
                f"CREATE TABLE people AS SELECT (random() * {SALARIES - 1})::INT AS salary FROM range({size})"
            )
        with bf.open(folder / f"w{size}.blowfish") as workspace:
            domain = bf.Domain(salary=bf.Integer(0, SALARIES - 1))
            people = workspace.add_dataset("people", str(file), domain=domain, table="people")
            people.budget.set("1000")
            asks, statement = [], ""
            for turn in range(repeats + 1):  # the first loads what a process loads once
                q = people["salary"].histogram(width=width).spend(f"1.00000{turn}")
                q.quote()
                took = seconds(q.ask)
                asks.append(took)
                statement = q.ask().receipt.sql
        with duckdb.connect(str(file), read_only=True) as connection:
            connection.execute(statement).fetchall()
            select = [seconds(lambda: connection.execute(statement).fetchall()) for _ in range(repeats)]  # noqa: B023
        ask, plain = p50(asks[1:]), p50(select)
        yield {"rows": size, "SELECT ms": plain, "ask ms": ask, "more ms": ask - plain, "ratio": ask / plain}
        file.unlink()


def waiting(service: float, load: float, stream: np.random.Generator) -> np.ndarray:
    """How long each question waits for the lock: Lindley's recursion, commits as long as they take."""
    between = stream.exponential(service / load, QUESTIONS)
    spans = service * stream.gamma(4, 1 / 4, QUESTIONS)  # commits vary: half of them within 30 % of the mean
    steps = np.concatenate(([0.0], np.cumsum(spans - between)[:-1]))
    return steps - np.minimum.accumulate(steps)


def contention(commit_ms: float) -> list[Row]:
    """Questions a second on one lock, and how long they wait for it."""
    service, stream = 2 * commit_ms, np.random.default_rng(2014)
    rows: list[Row] = []
    for load in LOADS:
        wait = waiting(service, load, stream)
        rows.append(
            {
                "busy": load,
                "questions/s on one lock": 1000 * load / service,
                "wait p50 ms": float(np.quantile(wait, 0.5)),
                "wait p95 ms": float(np.quantile(wait, 0.95)),
                "wait p99 ms": float(np.quantile(wait, 0.99)),
            }
        )
    return rows


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [
        {
            "questions a second": row["questions/s on one lock"],
            "wait, ms": row[f"wait {which} ms"],
            "of all": which,
        }
        for row in rows
        for which in ("p50", "p95", "p99")
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(point=True)
        .encode(
            x="questions a second:Q",
            y=alt.Y("wait, ms:Q", scale=alt.Scale(type="symlog")),
            color="of all:N",
        )
        .properties(width=360, height=220, title="Waiting for one ledger, simulated")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows, and a ledger that many want at once.")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write docs/figures/ledger.*")
    args = parser.parse_args()
    with TemporaryDirectory() as name:
        show(list(against_rows(Path(name), args.rows, args.repeats)))
        with durable_commits(Path(name)) as durable:
            commit = p50([seconds(durable) for _ in range(50)])
    print(f"\na durable commit: {commit:.2f} ms\n")
    rows = contention(commit)
    show(rows)
    if args.write:
        write("ledger", rows, chart(rows))


if __name__ == "__main__":
    main()
