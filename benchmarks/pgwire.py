"""The door for PostgreSQL clients beside a real PostgreSQL on the same machine, in one run.

    python -m benchmarks.pgwire [--seconds S] [--clients N] [--rows N]

*SELECT 1* and *an answer that is out already* (a histogram of 20 bins) are sent as simple queries, byte by
byte, by one thread that takes turns with its connections: first one connection that waits for each answer,
then several. Both servers are asked in turns of a quarter of a second, so that whatever else the machine does
slows down both. BlowfishDB is ``blowfishdb proxy`` with one process; PostgreSQL answers the same histogram
from a table of as many rows, exactly and without privacy. Processor time counts all threads of a server.
"""

from __future__ import annotations

import argparse
import os
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg
from tests import postgres

import blowfishdb as bf
from benchmarks.tables import show
from benchmarks.timing import p50, p95
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.entrypoints.demo_data import salary_domain, write_salaries
from blowfishdb.workspace.embedded import Workspace

_SERVE = """
import sys
from blowfishdb.entrypoints.pgwire.proxy import run
from blowfishdb.entrypoints.serve import PLAIN, WireDoor
from blowfishdb.entrypoints.server.server import Settings
fast = Settings(requests_per_second=1e6, burst=10**6, warm_up=False)
run(sys.argv[1], WireDoor.of("127.0.0.1", int(sys.argv[2]), PLAIN), fast)
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_TURN = 0.25
ONE = "SELECT 1"
BARS = "SELECT BIN(salary, 10000) AS bin, COUNT(*) AS n FROM salaries GROUP BY 1 WITH ERROR 50"
PLAIN_BARS = "SELECT salary / 10000 * 10000 AS bin, COUNT(*) AS n FROM salaries GROUP BY 1"


class Measured(NamedTuple):
    """How many, how long each took, and what the server took of a processor for one."""

    per_second: float
    times: list[float]
    server: float


def workspace(folder: Path, rows: int) -> tuple[Path, str]:
    """Salaries hidden within $1,000, an analyst, and the wire password."""
    write_salaries(folder / "salaries.duckdb", rows)
    domain = salary_domain()
    hide = bf.graphs.Threshold(domain["salary"].size, domain["salary"].threshold(1_000))
    place = folder / "wire.blowfish"
    with Workspace(place, user="curator") as made:
        dataset = made.add_dataset("salaries", folder / "salaries.duckdb", domain=domain, table="salaries")
        dataset.publish(bf.Policy.by_column(domain, {"salary": hide}))
        dataset.budget.set(100)
        Accounts(made.store).add("analyst", Role.ANALYST, None)
        return place, WirePasswords(made.store).issue("analyst")


@contextmanager
def door(place: Path) -> Iterator[tuple[int, int]]:
    """The door in a process of its own: its port, and the process."""
    port = postgres.free_port()
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(place), str(port)], stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield port, process.pid
        finally:
            process.terminate()


def processor(processes: list[int]) -> float:
    """What processes took of a processor so far, in seconds."""
    total = 0
    for process in processes:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


class Load:
    """Connections in turn, each with the next statement as soon as the last one is answered."""

    def __init__(self, url: str, statement: str, clients: int, process: int | None) -> None:
        self._sent = b"Q" + struct.pack("!i", len(statement) + 5) + statement.encode() + b"\0"
        self._connections = [psycopg.connect(url, autocommit=True) for _ in range(clients)]
        for connection in self._connections:
            connection.execute("SET client_min_messages = error")
            connection.execute(statement.encode())
        backends = [connection.info.backend_pid for connection in self._connections]
        self._processes = backends if process is None else [process]
        self._lines = [socket.socket(fileno=os.dup(connection.fileno())) for connection in self._connections]
        self._times: list[float] = []
        self._took = self._worked = 0.0

    def turn(self, seconds: float) -> None:
        """Ask for so long, and then fall silent."""
        before, start, begun = processor(self._processes), time.perf_counter(), {}
        with selectors.DefaultSelector() as ready:
            for line in self._lines:
                line.setblocking(True)
                ready.register(line, selectors.EVENT_READ)
                line.sendall(self._sent)
                begun[line] = time.perf_counter()
            while begun:
                for key, _ in ready.select(1):
                    line = key.fileobj
                    assert isinstance(line, socket.socket)
                    if line.recv(65_536)[-6:-1] != b"Z\0\0\0\5":
                        continue
                    now = time.perf_counter()
                    self._times.append(now - begun.pop(line))
                    if now - start < seconds:
                        begun[line] = time.perf_counter()
                        line.sendall(self._sent)
        self._took += time.perf_counter() - start
        self._worked += processor(self._processes) - before

    def measured(self) -> Measured:
        """What all turns were together."""
        for line in self._lines:
            line.close()
        for connection in self._connections:
            connection.close()
        count = len(self._times)
        return Measured(count / self._took, self._times, 1e3 * self._worked / count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rows", type=int, default=100_000)
    told = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, postgres.running() as real:
        place, password = workspace(Path(folder), told.rows)
        with real.connect() as connection:
            connection.execute(
                "CREATE TABLE salaries AS SELECT (i * 7919 % 200000) AS salary "
                f"FROM generate_series(1, {told.rows}) i"
            )
            connection.execute("ANALYZE salaries")
        with door(place) as (port, process):
            url = f"postgresql://analyst:{password}@127.0.0.1:{port}/blowfishdb"
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("SET blowfishdb.max_cost = '1'")
                connection.execute(BARS.encode())
            for what, ours, theirs in (("SELECT 1", ONE, ONE), ("20 bars", BARS, PLAIN_BARS)):
                for clients in (1, told.clients):
                    loads = Load(url, ours, clients, process), Load(real.url(), theirs, clients, None)
                    for _ in range(max(1, round(told.seconds / _TURN))):
                        for load in loads:
                            load.turn(_TURN)
                    here, there = (load.measured() for load in loads)
                    for name, one in (("BlowfishDB", here), ("PostgreSQL", there)):
                        ratio = f"{p50(here.times) / p50(there.times):.2f}" if one is here else ""
                        rows.append(
                            [
                                what,
                                str(clients),
                                name,
                                f"{one.per_second:,.0f}",
                                f"{p50(one.times):.3f}",
                                f"{p95(one.times):.3f}",
                                f"{one.server:.3f}",
                                ratio,
                            ]
                        )
    head = ["what", "connections", "server", "per second", "p50 ms", "p95 ms", "server ms", "p50 ratio"]
    show([dict(zip(head, row, strict=True)) for row in rows])


if __name__ == "__main__":
    main()
