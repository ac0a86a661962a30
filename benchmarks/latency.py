"""What a private answer costs in time: ``ask`` beside the same SELECT sent to the database directly.

    python -m benchmarks.latency [--rows N …] [--postgres N …] [--repeats R] [--scale]

Everything is a ratio within one run on one machine, the SELECT and the ``ask`` in turn. The SELECT is the
very statement that ``ask`` sends, with its clamp and NULL rules, on a connection that is already open. Every
question is new to its dataset, so each is charged with two durable commits (SQLite, synchronous), counted,
released and stored. A *cold* quote plans what this process has not planned yet, or has forgotten; a *warm*
one asks for another accuracy.

The *floor* is what no proxy with a durable ledger can do without: the SELECT, two durable commits of a file
of SQLite (each is measured in turn with the rest, in a file beside the workspace), and the keystream behind
the noise of one answer.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import blowfishdb as bf
from benchmarks.people import QUESTIONS, WIDE, People, asked_for_the_first_time, made
from benchmarks.tables import show
from benchmarks.timing import forget, p50, p95, peak, seconds
from blowfishdb.adapters.randomness import SecureBits
from blowfishdb.messages.answers import Answer
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

NARROW = {f"a{i}": 10 for i in range(3)}
COLD = 5
NOISE = 20_000  # words of keystream: at least as many as the noise of any answer here takes
SCALE = 100_000_000


def against_sql(folder: Path, people: People, repeats: int) -> Iterator[dict[str, Any]]:
    """One row for each shape of question."""
    keystream = SecureBits()
    for name, ask_about in QUESTIONS.items():
        with (
            asked_for_the_first_time(folder, people) as fresh,
            people.opened() as send,
            durable_commits(folder) as durable,
        ):
            statement = fresh(ask_about).ask().receipt.sql
            send(statement)
            select: list[float] = []
            commit: list[float] = []
            stream: list[float] = []
            ask: list[float] = []
            for _ in range(repeats):
                asking = fresh(ask_about)
                asking.quote()
                select.append(seconds(lambda: send(statement)))  # noqa: B023
                commit.append(seconds(durable))
                stream.append(seconds(lambda: keystream.words(NOISE)))
                ask.append(seconds(asking.ask))
        yield {
            "database": people.database,
            "rows": f"{people.rows:,}",
            "question": name,
            "SELECT p50 ms": p50(select),
            "p95 ms": p95(select),
            "ask p50 ms": p50(ask),
            "ask p95 ms": p95(ask),
            "p50 ratio": p50(ask) / p50(select),
            "p95 ratio": p95(ask) / p95(select),
            "commit ms": p50(commit),
            "keystream ms": p50(stream),
            "ask ÷ floor": p50(ask) / (p50(select) + 2 * p50(commit) + p50(stream)),
            "peak memory": peak(),
        }


@contextmanager
def durable_commits(folder: Path) -> Iterator[Callable[[], object]]:
    """A function that commits one row durably, to a file of SQLite as the ledger's: one fsync."""
    connection = sqlite3.connect(folder / "commits.sqlite", isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS charges (event TEXT)")
        yield lambda: connection.execute("INSERT INTO charges VALUES (?)", ("x" * 500,))
    finally:
        connection.close()


def quotes(folder: Path, people: People, repeats: int) -> Iterator[dict[str, Any]]:
    """Prices alone; they do not depend on the database or on its rows."""
    for name, ask_about in QUESTIONS.items():
        with asked_for_the_first_time(folder, people) as fresh:
            cold: list[float] = []
            for _ in range(COLD):
                asking = fresh(ask_about)
                forget()
                cold.append(seconds(asking.quote))
            askings = [fresh(ask_about) for _ in range(repeats)]
            warm = [seconds(asking.quote) for asking in askings]
            same = [seconds(asking.quote) for asking in askings]
        yield {
            "quote": name,
            "cold p50 ms": p50(cold),
            "cold p95 ms": p95(cold),
            "warm p50 ms": p50(warm),
            "warm p95 ms": p95(warm),
            "the same p50 ms": p50(same),
            "the same p95 ms": p95(same),
        }


def _two_columns(people: Dataset) -> Asking:
    return people["a0", "a1"].histogram()


def domains(folder: Path, people: People, repeats: int) -> Iterator[dict[str, Any]]:
    """The same question on a domain of 10³ cells and on one of 10¹²."""
    for label, sizes in (("10³ cells, 3 columns", NARROW), ("10¹² cells, 8 columns", WIDE)):
        domain = bf.Domain(**{name: bf.Integer(0, size - 1) for name, size in sizes.items()})
        with asked_for_the_first_time(folder, people, domain, None) as fresh:
            first = seconds(fresh(_two_columns).quote)
            askings = [fresh(_two_columns) for _ in range(repeats)]
            quote = [seconds(asking.quote) for asking in askings]
            ask = [seconds(asking.ask) for asking in askings]
        yield {
            "domain": label,
            "quote, first ms": 1e3 * first,
            "warm p50 ms": p50(quote),
            "ask p50 ms": p50(ask),
        }


def steps(folder: Path, people: People, repeats: int, question: str) -> Iterator[dict[str, Any]]:
    """Where the time of an ``ask`` goes."""
    from blowfishdb.adapters.backends.base import DeclaredBackend, Prepared
    from blowfishdb.adapters.store.ledger import Ledger
    from blowfishdb.mechanisms.plan import Plan
    from blowfishdb.service import planning, service, stored, tasks

    watched: list[tuple[Any, str, str]] = [
        (service, "project_any", "1 project"),
        (service, "identity", "  the name of the question"),
        (Ledger, "answer", "  look for a stored answer"),
        (stored.StoredAnswers, "offer", "  what follows from stored answers"),
        (planning.Planner, "price", "2–3 plan, translate"),
        (DeclaredBackend, "prepare", "  check the source, write the SQL"),
        (Ledger, "reserve_all", "4 reserve, with the reading mark"),
        (Prepared, "count", "5 count"),
        (Plan, "observe", "6 noise"),
        (tasks, "stored_release", "  what is kept of it"),
        (tasks, "answer_of", "  interval, labels"),
        (Answer, "to_plain", "7 plain form"),
        (Ledger, "settle", "  settle"),
    ]
    spent: dict[str, list[float]] = {}

    def watch(owner: Any, name: str, label: str) -> Callable[[], None]:
        inner = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*args, **options)
            finally:
                spent.setdefault(label, []).append(time.perf_counter() - start)

        setattr(owner, name, timed)
        return lambda: setattr(owner, name, inner)

    with asked_for_the_first_time(folder, people) as fresh:
        fresh(QUESTIONS[question]).ask()
        askings = [fresh(QUESTIONS[question]) for _ in range(repeats)]
        for asking in askings:
            asking.quote()
        restore = [watch(*place) for place in watched]
        try:
            total = mean(seconds(asking.ask) for asking in askings)
        finally:
            for put_back in restore:
                put_back()
    shown = {label: sum(times) / repeats for label, times in spent.items()}
    shown["  all the rest (catalogue, release)"] = total - sum(shown.values())
    for label, value in shown.items():
        yield {
            f"step of ask, {question}, {people.database}, {people.rows:,} rows": label.ljust(36),
            "ms": 1e3 * value,
            "% of ask": 100 * value / total,
        }


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description="Private answers beside the plain SELECT: time, memory.")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 10_000_000], help="in DuckDB")
    parser.add_argument("--postgres", type=int, nargs="*", default=[1_000_000], help="in PostgreSQL")
    parser.add_argument("--repeats", type=int, default=15, help="questions of each shape (default 15)")
    parser.add_argument("--scale", action="store_true", help="100 million rows in DuckDB as well")
    args = parser.parse_args()
    print(f"peak memory before any data: {peak()}", flush=True)
    sizes = [*args.rows, SCALE] if args.scale else args.rows
    with made(sizes, args.postgres) as (folder, tables):
        show([row for people in tables for row in against_sql(folder, people, args.repeats)])
        for people in tables:
            print()
            for question in ("100 bins", "10,000 bins"):
                show(list(steps(folder, people, args.repeats, question)))
        print()
        show(list(quotes(folder, tables[0], 2 * args.repeats)))
        if sizes:
            print()
            show(list(domains(folder, tables[0], args.repeats)))


if __name__ == "__main__":
    main()
