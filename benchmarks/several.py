"""Several machines, on one: Spark with two executors, and two servers that share a ledger in PostgreSQL.

    python -m benchmarks.several [--rows 10000000] [--repeats 5] [--clients 8] [--seconds 8] [--only spark]

*Spark*: a master and two workers with a core each, all on the loopback; a histogram of 100 bins over Parquet,
beside its own SELECT. *Ledger*: new questions, each charged, counted and settled, on one server and then on
two with as many clients together; afterwards what was spent has to be the sum of what was asked, and the
books have to verify. Executors, servers and clients share this machine, so only ratios mean something.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import duckdb
from tests import postgres

import blowfishdb as bf
from benchmarks.server import Ask, load, served, workspace
from benchmarks.tables import show
from benchmarks.timing import p50, seconds
from blowfishdb.workspace.embedded import Workspace

SALARIES, BINS, EXECUTORS = 200_000, 100, 2


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a Spark master with two workers of one core each."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = postgres.free_port()
    given = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_DAEMON_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
    }
    address = f"spark://127.0.0.1:{port}"
    deploy, host = "org.apache.spark.deploy", ("--host", "127.0.0.1")
    master = (f"{deploy}.master.Master", *host, "--port", str(port), "--webui-port", "0")
    worker = (
        f"{deploy}.worker.Worker",
        *host,
        "--webui-port",
        "0",
        "--cores",
        "1",
        "--memory",
        "1g",
        address,
    )
    with ExitStack() as stack:
        for arguments in (master, *(worker,) * EXECUTORS):
            process = stack.enter_context(
                subprocess.Popen(
                    [str(home / "bin" / "spark-class"), *arguments],
                    env=given,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(process.terminate)
            time.sleep(3)  # a worker looks for its master once, when it starts
        yield address


def on_spark(folder: Path, rows: int, repeats: int) -> dict[str, Any]:
    """A question and its SELECT on the same two executors."""
    place = folder / "people.parquet"
    place.mkdir()
    for part in range(2 * EXECUTORS):
        duckdb.sql(
            f"SELECT (hash(i + {part * rows}) % {SALARIES})::INT AS salary "
            f"FROM range({rows // (2 * EXECUTORS)}) t(i)"
        ).write_parquet(str(place / f"{part}.parquet"))
    with cluster(folder) as address, Workspace(folder / "spark.blowfish") as made:
        domain = bf.Domain(salary=bf.Integer(0, SALARIES - 1))
        people = made.add_dataset("people", f"{address}{place}", domain=domain)
        people.budget.set(1_000)
        questions = [
            people["salary"].histogram(width=SALARIES // BINS).spend(f"1.00000{turn}")
            for turn in range(repeats + 1)
        ]
        for question in questions:
            question.quote()
        asks = [seconds(question.ask) for question in questions]
        statement = questions[0].ask().receipt.sql

        from pyspark.sql import SparkSession

        running = SparkSession.getActiveSession()
        assert running is not None
        spark = running.newSession()
        spark.read.parquet(str(place)).createOrReplaceTempView("people")
        selects = [seconds(lambda: spark.sql(statement).collect()) for _ in range(repeats + 1)]
        hosts = running.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # one is the driver
        running.stop()
    ask, plain = p50(asks[1:]), p50(selects[1:])
    return {"rows": rows, "executors": hosts, "SELECT ms": plain, "ask ms": ask, "ratio": ask / plain}


def on_servers(count: int, clients: int, span: float, rows: int) -> dict[str, Any]:
    """New questions through so many servers of one process each, over one ledger."""
    with tempfile.TemporaryDirectory() as name, postgres.running(durable=True) as database:
        place, token = workspace(Path(name), clients, rows, place=database.new_workspace())
        each, found = clients // count, [dict[str, Any]() for _ in range(count)]

        def ask(first: int) -> Ask:
            def one(client: int, turn: int) -> tuple[str, str, dict[str, Any]]:
                body = {"question": "cumulative(salary, bins=20)", "error": 1_000 * 0.97**turn}
                return "POST", f"/api/v1/datasets/salaries-{first + client}/answers", body

            return one

        with ExitStack() as stack:
            servers = [stack.enter_context(served(place, 1)) for _ in range(count)]

            def run(index: int) -> None:
                found[index] = load(*servers[index], token, each, span, ask(index * each))

            threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with Workspace(place) as after:
            problems = after.verify()
            names = (f"salaries-{client}" for client in range(clients))
            spent = sum((after.budget(name).spent for name in names), bf.Epsilon(0))
            charged = sum(
                (event.amount for event in after.events() if event.kind == "settled"), bf.Epsilon(0)
            )
    requests = sum(one["requests"] for one in found)
    return {
        "servers": count,
        "answers": requests,
        "per second": sum(one["per second"] for one in found),
        "p50 ms": max(one["p50 ms"] for one in found),
        "p95 ms": max(one["p95 ms"] for one in found),
        "server ms": sum(one["server ms"] * one["requests"] for one in found) / requests,
        "books": "add up" if not problems and spent == charged else f"DO NOT: {problems}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Spark with two executors; two servers, one ledger.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", choices=("spark", "ledger"))
    told = parser.parse_args()
    if told.only != "ledger":
        with tempfile.TemporaryDirectory() as name:
            show([on_spark(Path(name), told.rows, told.repeats)])
    if told.only != "spark":
        show([on_servers(count, told.clients, told.seconds, 100_000) for count in (1, 2)])


if __name__ == "__main__":
    main()
