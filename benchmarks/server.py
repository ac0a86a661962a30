"""A server under load: 32 analysts at once, each with a dataset of their own, two workers.

    python -m benchmarks.server [--clients N] [--seconds S] [--rows N] [--workers W] [--only P] [--slow ROWS]

*Quotes* ask for one accuracy after another, never the same one twice; *prices* the same without what plain
privacy costs and what is cheaper (``more=false``); *new plans* for other bins each time; *pages* are the form
with its price. *Answers* are new questions: each is charged with two durable commits, counted, released and
stored. *Again* asks for what is already owned. ``--only`` names the phases to run. With ``--slow``, quotes
and pages are measured twice more: alone, and while one question reads that many rows again and again.

Requests are written to sockets as bytes and read back by their length, by one thread: ``client ms`` is what
that takes of a processor, ``server ms`` what all processes of the server take, each for one request. Every
phase ends after ``--seconds``; the clients share the machine. The clock starts when the workers are ready:
they price usual questions and start the charts' engine once, in the background.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import selectors
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
_TICKS = os.sysconf("SC_CLK_TCK")
Ask = Callable[[int, int], tuple[str, str, dict[str, Any] | None]]
"""The method, address and body of a client's next request."""


def p99(times: list[float]) -> float:
    """The 99th percentile, in milliseconds."""
    return 1e3 * sorted(times)[-(-99 * len(times) // 100) - 1]


def workspace(
    folder: Path, clients: int, rows: int, slow: int = 0, place: str | None = None
) -> tuple[Path | str, str]:
    """A dataset for each client on the same rows, salaries hidden within $1,000, and a token."""
    write_salaries(folder / "salaries.duckdb", rows)
    if slow:
        write_salaries(folder / "slow.duckdb", slow)
    domain = salary_domain()
    hide = bf.graphs.Threshold(domain["salary"].size, domain["salary"].threshold(1_000))
    policy = bf.Policy.by_column(domain, {"salary": hide})
    at = folder / "load.blowfish" if place is None else place
    with Workspace(at, user="curator") as made:
        names = {f"salaries-{client}": "salaries.duckdb" for client in range(clients)}
        for name, file in {**names, **({"slow": "slow.duckdb"} if slow else {})}.items():
            made.add_dataset(name, folder / file, domain=domain, table="salaries", same_rows=True).publish(
                policy
            )
            made[name].budget.set(10**6)
        Accounts(made.store).add("analyst", Role.ANALYST, None)
        return at, Tokens(made.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))[0]


@contextmanager
def served(place: Path | str, workers: int) -> Iterator[tuple[int, int]]:
    """A server as ``blowfishdb serve`` runs it: its port and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _SERVE, str(place), str(port), str(workers)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(f"http://127.0.0.1:{port}/api/v1/health", process)
            _wait_until_ready(process.pid)
            yield port, process.pid
        finally:
            process.terminate()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1200):
        try:
            if httpx.get(address, timeout=5).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
        if process.poll() is not None:
            break
    raise SystemExit("The server did not start.")


def _wait_until_ready(process: int) -> None:
    """Until nothing is left to do but to wait for requests."""
    before, resting = processor_seconds(process), 0
    while resting < 3:
        time.sleep(0.5)
        now = processor_seconds(process)
        resting, before = (resting + 1 if now - before < 0.03 else 0), now


def processor_seconds(process: int) -> float:
    """What a process and those that it started have taken of a processor."""
    taken, children = 0, [process]
    while children:
        here = children.pop()
        try:
            said = Path(f"/proc/{here}/stat").read_text().rpartition(")")[2].split()
            started = Path(f"/proc/{here}/task/{here}/children").read_text().split()
        except OSError:
            continue
        taken += int(said[11]) + int(said[12])
        children += [int(child) for child in started]
    return taken / _TICKS


class Connection:
    """One client: a request at a time, as bytes."""

    def __init__(self, port: int, token: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        self._got = b""

    def send(self, method: str, path: str, body: dict[str, Any] | None) -> None:
        """Write a request."""
        self._got, text = b"", b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(text)}\r\n\r\n"
        self.socket.sendall(head.encode() + text)

    def received(self) -> bytes | None:
        """The response once it is all there; None before."""
        got = self.socket.recv(1 << 20)
        if not got:
            raise SystemExit("The server closed a connection.")
        self._got += got
        head, found, body = self._got.partition(b"\r\n\r\n")
        if not found:
            return None
        length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
        whole = len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")  # pages come in pieces
        return self._got if whole else None


def load(port: int, process: int, token: str, clients: int, seconds: float, ask: Ask) -> dict[str, Any]:
    """All clients at once, each one request after another, for so many seconds."""
    chosen = selectors.DefaultSelector()
    first = Connection(port, token)
    for number in range(clients):  # what has to be there for the first request is made before the clock runs
        first.send(*ask(number, 0))
        while (answered := first.received()) is None:
            pass
        _check(answered)
    for number in range(clients):  # a server closes a connection on which nothing comes for some seconds
        one = Connection(port, token)
        chosen.register(one.socket, selectors.EVENT_READ, (one, number, itertools.count(1)))
    times: list[float] = []
    before, own = processor_seconds(process), time.process_time()
    begun: dict[int, float] = {}
    start = time.perf_counter()
    for key in list(chosen.get_map().values()):
        one, number, turns = key.data
        begun[number] = time.perf_counter()
        one.send(*ask(number, next(turns)))
    while begun:
        for key, _ in chosen.select():
            one, number, turns = key.data
            answered = one.received()
            if answered is None:
                continue
            now = time.perf_counter()
            times.append(now - begun.pop(number))
            _check(answered)
            if now - start < seconds:
                begun[number] = now
                one.send(*ask(number, next(turns)))
            else:  # others may take longer than a server keeps a connection on which nothing comes
                chosen.unregister(one.socket)
                one.socket.close()
    took = time.perf_counter() - start
    own, taken = time.process_time() - own, processor_seconds(process) - before
    return {
        "requests": len(times),
        "per second": len(times) / took,
        "p50 ms": p50(times),
        "p95 ms": p95(times),
        "p99 ms": p99(times),
        "server ms": 1e3 * taken / len(times),
        "client ms": 1e3 * own / len(times),
    }


def _check(answered: bytes) -> None:
    if not answered.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"A request failed with {answered[-400:]!r}")


@contextmanager
def a_slow_question(port: int, token: str) -> Iterator[list[float]]:
    """Somebody asks about the large dataset again and again, each time more closely; how long each took."""
    over, times = threading.Event(), list[float]()

    def ask() -> None:
        one = Connection(port, token)
        for turn in itertools.count():
            if over.is_set():
                return
            begun = time.perf_counter()
            one.send(*_post("slow", "answers", _cumulative(20, 1_000 * 0.97**turn)))
            while (answered := one.received()) is None:
                pass
            _check(answered)
            times.append(time.perf_counter() - begun)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield times
    finally:
        over.set()
        asking.join()


def _cumulative(bins: int, error: float) -> dict[str, Any]:
    return {"question": f"cumulative(salary, bins={bins})", "error": error}


def _post(dataset: object, path: str, body: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    name = dataset if isinstance(dataset, str) else f"salaries-{dataset}"
    return "POST", f"/api/v1/datasets/{name}/{path}", body


def _page(client: int, turn: int) -> tuple[str, str, None]:
    asked = f"column=salary&shape=cumulative&cut=bins&bins=20&error={50 + turn}"
    return "GET", f"/datasets/salaries-{client}/ask?{asked}", None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="A server under load.")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10, help="for each phase (default 10)")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="phases, such as quotes,pages (default: all of them)")
    parser.add_argument("--slow", type=int, default=0, help="rows of one slow question (default: none)")
    args = parser.parse_args()
    clients = args.clients
    phases: dict[str, Ask] = {
        "quotes": lambda c, turn: _post(c, "quotes", _cumulative(20, 50 + turn + c / clients)),
        "prices": lambda c, turn: _post(c, "quotes?more=false", _cumulative(20, 50.5 + turn + c / clients)),
        "new plans": lambda c, turn: _post(
            c, "quotes?more=false", _cumulative(25 + c + clients * (turn % 25), 500 + turn)
        ),
        "pages": _page,
        "answers": lambda c, turn: _post(c, "answers", _cumulative(20, 1_000 * 0.97**turn)),
        "again": lambda c, _: _post(c, "answers", _cumulative(20, 1_000)),
    }
    with tempfile.TemporaryDirectory() as folder:
        place, token = workspace(Path(folder), clients, args.rows, args.slow)
        with served(place, args.workers) as (port, process):

            def measured(name: str, ask: Ask) -> dict[str, Any]:
                return {"what": name, **load(port, process, token, clients, args.seconds, ask)}

            chosen = args.only.split(",") if args.only else list(phases)
            rows = [measured(name, phases[name]) for name in chosen]
            if args.slow:
                watched = ("quotes", "pages")  # once more alone: what they needed for the first time is there
                rows += [measured(f"{name}, alone", phases[name]) for name in watched]
                with a_slow_question(port, token) as answered:
                    rows += [measured(f"{name}, one slow", phases[name]) for name in watched]
        with Workspace(place) as after:
            problems = after.verify()
    print(f"{clients} clients, {args.workers} workers, {args.rows:,} rows in DuckDB")
    show(rows)
    if args.slow:
        took = {row["what"]: row["p95 ms"] for row in rows}
        ratios = (f"{name} {took[f'{name}, one slow'] / took[f'{name}, alone']:.2f}" for name in watched)
        print(f"p95 beside one slow question ÷ alone: {', '.join(ratios)}")
        each = f"{len(answered)} times, p50 {p50(answered):,.0f} ms"
        print(f"that question reads {args.slow:,} rows; it was answered {each}")
    print(f"the ledger {'verifies' if not problems else 'DOES NOT VERIFY: ' + problems[0]} afterwards")


if __name__ == "__main__":
    main()
