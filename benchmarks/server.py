"""A server under load: 32 analysts at once, each with a dataset of their own, two workers.

    python -m benchmarks.server [--clients N] [--seconds S] [--rows N] [--workers W]

*Quotes* ask for one accuracy after another, which plans nothing new. *Answers* are new questions: each is
charged with two durable commits, counted, released and stored. *Again* asks for what is already owned. Every
phase ends after ``--seconds``, so the whole takes less than a minute; the clients share the machine.
"""

from __future__ import annotations

import argparse
import itertools
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

import blowfishdb as bf
from benchmarks.tables import show
from benchmarks.timing import p50, p95
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.entrypoints.demo_data import salary_domain, write_salaries
from blowfishdb.workspace.embedded import Workspace

_SERVE = """
import sys
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.entrypoints.serve import serve
fast = Settings(requests_per_second=1e6, burst=10**6)
serve(sys.argv[1], port=int(sys.argv[2]), workers=int(sys.argv[3]), settings=fast)
"""
Body = Callable[[int], dict[str, Any]]


def p99(times: list[float]) -> float:
    """The 99th percentile, in milliseconds."""
    return 1e3 * sorted(times)[-(-99 * len(times) // 100) - 1]


def workspace(folder: Path, clients: int, rows: int) -> tuple[Path, str]:
    """A dataset for each client on the same rows, salaries hidden within $1,000, and a token."""
    write_salaries(folder / "salaries.duckdb", rows)
    domain = salary_domain()
    hide = bf.graphs.Threshold(domain["salary"].size, domain["salary"].threshold(1_000))
    policy = bf.Policy.by_column(domain, {"salary": hide})
    place = folder / "load.blowfish"
    with Workspace(place, user="curator") as made:
        for client in range(clients):
            name = f"salaries-{client}"
            made.add_dataset(
                name, folder / "salaries.duckdb", domain=domain, table="salaries", same_rows=True
            ).publish(policy)
            made[name].budget.set(10**6)
        Accounts(made.store).add("analyst", Role.ANALYST, None)
        return place, Tokens(made.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))[0]


@contextmanager
def served(place: Path, workers: int) -> Iterator[str]:
    """A server as ``blowfishdb serve`` runs it, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _SERVE, str(place), str(port), str(workers)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"http://127.0.0.1:{port}/api/v1"
            _wait_for(f"{address}/health", process)
            yield address
        finally:
            process.terminate()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            if httpx.get(address, timeout=5).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
        if process.poll() is not None:
            break
    raise SystemExit("The server did not start.")


def load(address: str, token: str, clients: int, seconds: float, path: str, body: Body) -> dict[str, Any]:
    """All clients at once, each one request after another, for so many seconds."""
    times: list[list[float]] = [[] for _ in range(clients)]
    failed: list[str] = []
    ready = threading.Barrier(clients + 1)

    def client(number: int) -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
            url = f"{address}/datasets/salaries-{number}/{path}"
            http.post(url, json=body(0))  # plans are made and connections opened before the clock runs
            ready.wait()
            until = time.perf_counter() + seconds
            for turn in itertools.count(1):
                start = time.perf_counter()
                if start > until:
                    return
                response = http.post(url, json=body(turn))
                times[number].append(time.perf_counter() - start)
                if not response.is_success:
                    failed.append(response.text)
                    return

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    if failed:
        raise SystemExit(f"{len(failed)} requests failed, the first with {failed[0][:300]}")
    every = [each for one in times for each in one]
    return {
        "requests": len(every),
        "per second": len(every) / took,
        "p50 ms": p50(every),
        "p95 ms": p95(every),
        "p99 ms": p99(every),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="A server under load.")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="for each phase (default 10)")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    def asked(error: float) -> dict[str, Any]:
        return {"question": "cumulative(salary, bins=20)", "error": error}

    phases: dict[str, tuple[str, Body]] = {
        "quotes": ("quotes", lambda turn: asked(50 + turn)),
        "answers": ("answers", lambda turn: asked(1_000 * 0.97**turn)),  # closer than all that is owned
        "again": ("answers", lambda _: asked(1_000)),
    }
    with tempfile.TemporaryDirectory() as folder:
        place, token = workspace(Path(folder), args.clients, args.rows)
        with served(place, args.workers) as address:
            rows = [
                {"what": name, **load(address, token, args.clients, args.seconds, path, body)}
                for name, (path, body) in phases.items()
            ]
        with Workspace(place) as after:
            problems = after.verify()
    print(f"{args.clients} clients, {args.workers} workers, {args.rows:,} rows in DuckDB")
    show(rows)
    print(f"the ledger {'verifies' if not problems else 'DOES NOT VERIFY: ' + problems[0]} afterwards")


if __name__ == "__main__":
    main()
