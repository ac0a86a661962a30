"""Eight analysts who all ask at once, beside as many who send the same SELECT.

python -m benchmarks.concurrency [--rows N …] [--postgres N …] [--each K]
"""

from __future__ import annotations

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.people import QUESTIONS, People, asked_for_the_first_time, made
from benchmarks.tables import show
from benchmarks.timing import p50, p95, peak, seconds

ANALYSTS = 8


def throughput(folder: Path, people: People, each: int) -> dict[str, Any]:
    """One process and one thread for each analyst; the ledger lets one write at a time."""
    local = threading.local()
    with asked_for_the_first_time(folder, people) as fresh, ExitStack() as connections:
        askings = [fresh(QUESTIONS["100 bins"]) for _ in range(ANALYSTS * each)]
        statement = fresh(QUESTIONS["100 bins"]).ask().receipt.sql

        def send(_: object) -> float:
            if not hasattr(local, "send"):
                local.send = connections.enter_context(people.opened())
                local.send(statement)
            return seconds(lambda: local.send(statement))

        with ThreadPoolExecutor(ANALYSTS) as pool:
            list(pool.map(send, range(2 * ANALYSTS)))
            plain: list[float] = []
            plain_in_all = seconds(lambda: plain.extend(pool.map(send, askings)))
            private: list[float] = []
            in_all = seconds(lambda: private.extend(pool.map(lambda asking: seconds(asking.ask), askings)))
    return {
        "database": people.database,
        "rows": f"{people.rows:,}",
        "analysts": ANALYSTS,
        "asks/s": len(askings) / in_all,
        "SELECTs/s": len(askings) / plain_in_all,
        "time ratio": in_all / plain_in_all,
        "ask p50 ms": p50(private),
        "ask p95 ms": p95(private),
        "SELECT p50 ms": p50(plain),
        "peak memory": peak(),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Eight analysts at once.")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000], help="in DuckDB")
    parser.add_argument("--postgres", type=int, nargs="*", default=[1_000_000], help="in PostgreSQL")
    parser.add_argument("--each", type=int, default=4, help="questions of each analyst (default 4)")
    args = parser.parse_args()
    with made(args.rows, args.postgres) as (folder, tables):
        show([throughput(folder, people, args.each) for people in tables])


if __name__ == "__main__":
    main()
