"""What a private answer costs in time: ``ask`` beside the same SELECT sent to DuckDB directly.

    python -m benchmarks.latency [--rows N …] [--repeats R] [--scale]

Everything is a ratio within one run on one machine. The SELECT is the very statement that ``ask`` sends,
with its clamp and NULL rules, on a connection that is already open. Every question is new, so each is
planned, charged with three durable commits, counted, released and stored. *quote, first* plans a workload
that this process has not planned yet (so only on the first number of rows), *again* asks for it at another
accuracy, *same* repeats a quote.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import blowfishdb as bf
from benchmarks.tables import show
from blowfishdb.adapters.backends.duckdb_files import connect
from blowfishdb.workspace import Asking, Dataset, Workspace

BATCH = 5_000_000
ANALYSTS = 8
DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999), x=bf.Integer(0, 99), y=bf.Integer(0, 99))
POLICY = bf.Policy.by_column(
    DOMAIN,
    {
        "salary": bf.graphs.Threshold(100_000, 1_000),
        "x": bf.graphs.Threshold(100, 5),
        "y": bf.graphs.Threshold(100, 5),
    },
)
QUESTIONS: dict[str, Callable[[Dataset], Asking]] = {
    "100 bins": lambda people: people["salary"].histogram(width=1_000),
    "10,000 bins": lambda people: people["salary"].histogram(width=10),
    "10 × 10": lambda people: people["x", "y"].histogram(width=10),
    "100 × 100": lambda people: people["x", "y"].histogram(width=1),
}
WIDE = {f"a{i}": 10 if i < 6 else 1_000 for i in range(8)}  # 10⁶ · 10⁶ cells
NARROW = {f"a{i}": 10 for i in range(3)}
_steps = count()


# --- data -------------------------------------------------------------------------------------


def make_data(path: Path, rows: int) -> None:
    """Rows of numbers, one in a hundred missing and one in eleven outside the declared bounds."""
    row = (
        "CASE WHEN i % 97 = 0 THEN NULL ELSE (hash(i) % 110000)::INT - 5000 END AS salary, "
        "(hash(i + 7) % 100)::INT AS x, (hash(i + 13) % 100)::INT AS y, "
        + ", ".join(f"(hash(i + {k}) % {size})::INT AS {name}" for k, (name, size) in enumerate(WIDE.items()))
    )
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT {row} FROM range(0) t(i)")
        for start in range(0, rows, BATCH):
            stop = min(start + BATCH, rows)
            connection.execute(f"INSERT INTO people SELECT {row} FROM range({start}, {stop}) t(i)")


Fresh = Callable[[Callable[[Dataset], Asking]], Asking]


@contextmanager
def opened(folder: Path, data: Path, domain: bf.Domain, policy: bf.Policy | None) -> Iterator[Fresh]:
    """A workspace, as a function that puts a question to a dataset of its own, at an accuracy of its own.

    Nothing was ever released there, so nothing can be answered from what is stored.
    """
    with Workspace(folder / f"{next(_steps)}.blowfish", user="ana") as workspace:

        def fresh(ask_about: Callable[[Dataset], Asking]) -> Asking:
            number = next(_steps)
            people = workspace.add_dataset(f"people {number}", data, domain=domain, table="people")
            people.budget.set(1_000)
            if policy is not None:
                people.publish(policy)
            return ask_about(people).accurate_to(500 + number)

        yield fresh


# --- measures ---------------------------------------------------------------------------------


def seconds(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def p95(times: list[float]) -> float:
    return sorted(times)[-(-95 * len(times) // 100) - 1]


def peak() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB"


def against_sql(folder: Path, data: Path, rows: int, repeats: int) -> Iterator[dict[str, Any]]:
    """One row for each shape of question."""
    for name, ask_about in QUESTIONS.items():
        with opened(folder, data, DOMAIN, POLICY) as fresh, connect(data) as raw:
            first = seconds(fresh(ask_about).quote)
            statement = fresh(ask_about).ask().receipt.sql
            select: list[float] = []
            again: list[float] = []
            same: list[float] = []
            ask: list[float] = []
            for _ in range(repeats):
                asking = fresh(ask_about)
                select.append(seconds(lambda: raw.execute(statement).fetchnumpy()))  # noqa: B023
                again.append(seconds(asking.quote))
                same.append(seconds(asking.quote))
                ask.append(seconds(asking.ask))
        base = statistics.median(select)
        yield {
            "rows": f"{rows:,}",
            "question": name,
            "SELECT ms": 1e3 * base,
            "ask p50 ms": 1e3 * statistics.median(ask),
            "ask p95 ms": 1e3 * p95(ask),
            "p50 ratio": statistics.median(ask) / base,
            "p95 ratio": p95(ask) / p95(select),
            "quote, first ms": 1e3 * first,
            "again ms": 1e3 * statistics.median(again),
            "same ms": 1e3 * statistics.median(same),
            "same / SELECT": statistics.median(same) / base,
        }


def throughput(folder: Path, data: Path, rows: int, each: int) -> dict[str, Any]:
    """Analysts who all ask at once, beside as many who send the SELECT."""
    with opened(folder, data, DOMAIN, POLICY) as fresh, connect(data) as raw:
        askings = [fresh(QUESTIONS["100 bins"]) for _ in range(ANALYSTS * each)]
        statement = fresh(QUESTIONS["100 bins"]).ask().receipt.sql
        with ThreadPoolExecutor(ANALYSTS) as pool:
            private = seconds(lambda: list(pool.map(lambda asking: asking.ask(), askings)))
            plain = seconds(
                lambda: list(pool.map(lambda _: raw.cursor().execute(statement).fetchnumpy(), askings))
            )
    return {
        "rows": f"{rows:,}",
        "analysts": ANALYSTS,
        "asks/s": len(askings) / private,
        "SELECTs/s": len(askings) / plain,
        "time ratio": private / plain,
        "peak memory": peak(),
    }


def _two_columns(people: Dataset) -> Asking:
    return people["a0", "a1"].histogram()


def domains(folder: Path, data: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """The same question on a domain of 10³ cells and on one of 10¹²."""
    for label, sizes in (("10³ cells, 3 columns", NARROW), ("10¹² cells, 8 columns", WIDE)):
        domain = bf.Domain(**{name: bf.Integer(0, size - 1) for name, size in sizes.items()})
        with opened(folder, data, domain, None) as fresh:
            first = seconds(fresh(_two_columns).quote)
            askings = [fresh(_two_columns) for _ in range(repeats)]
            quote = statistics.median(seconds(asking.quote) for asking in askings)
            ask = statistics.median(seconds(asking.ask) for asking in askings)
        yield {
            "domain": label,
            "quote, first ms": 1e3 * first,
            "again ms": 1e3 * quote,
            "ask p50 ms": 1e3 * ask,
        }


def start_up(repeats: int) -> Iterator[dict[str, Any]]:
    """New processes: the import, and the help text of the command line, beside Python itself."""
    commands = {
        "python -c pass": "pass",
        "import blowfishdb": "import blowfishdb",
        "blowfishdb --help": "import sys; sys.argv = ['blowfishdb', '--help']; "
        "from blowfishdb.entrypoints.cli import app; app()",
        "import and open a workspace": "import blowfishdb, tempfile; "
        "blowfishdb.open(tempfile.mkdtemp() + '/w.blowfish').close()",
    }
    for label, code in commands.items():
        command = [sys.executable, "-c", code]
        times = [
            seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # noqa: B023
            for _ in range(repeats)
        ]
        yield {"start-up": label, "best ms": 1e3 * min(times)}


def steps(folder: Path, data: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """Where the time of an ``ask`` goes."""
    from blowfishdb import service
    from blowfishdb.adapters.backends.duckdb import DuckDB
    from blowfishdb.adapters.ledger import Ledger

    watched: list[tuple[Any, str, str]] = [
        (service, "project", "1 project"),
        (service, "identity", "  the name of the question"),
        (Ledger, "answer", "  look for a stored answer"),
        (service.Service, "_offer", "  what follows from stored answers"),
        (service.Service, "_choose", "2–3 plan, translate"),
        (DuckDB, "check", "  check the source"),
        (DuckDB, "sql", "  write the SQL"),
        (Ledger, "reserve", "4 reserve"),
        (Ledger, "mark_reading", "4 reading mark"),
        (DuckDB, "count", "5 count"),
        (service, "_answer", "6 interval, labels"),
        (service, "_body", "  answer as JSON"),
        (Ledger, "settle", "7 settle"),
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

    with opened(folder, data, DOMAIN, POLICY) as fresh:
        fresh(QUESTIONS["100 bins"]).ask()
        askings = [fresh(QUESTIONS["100 bins"]) for _ in range(repeats)]
        for asking in askings:
            asking.quote()
        restore = [watch(*place) for place in watched]
        try:
            total = statistics.mean(seconds(asking.ask) for asking in askings)
        finally:
            for put_back in restore:
                put_back()
    shown = {label: sum(times) / repeats for label, times in spent.items()}
    shown["  all the rest (catalogue, release)"] = total - sum(shown.values())
    for label, value in shown.items():
        yield {"step of ask": label.ljust(36), "ms": 1e3 * value, "% of ask": 100 * value / total}


def main() -> None:
    """Print every table."""
    parser = argparse.ArgumentParser(description="Private answers beside the plain SELECT: time, memory.")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=15, help="questions of each shape (default 15)")
    parser.add_argument("--scale", action="store_true", help="100 million rows as well")
    args = parser.parse_args()
    sizes = [*args.rows, 100_000_000] if args.scale else args.rows
    print(f"peak memory before any data: {peak()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shapes, crowds = [], []
        for rows in sizes:
            data = folder / f"{rows}.duckdb"
            print(f"{rows:,} rows made in {seconds(lambda: make_data(data, rows)):.1f} s", flush=True)  # noqa: B023
            shapes += list(against_sql(folder, data, rows, args.repeats))
            crowds.append(throughput(folder, data, rows, 4))
        print()
        show(shapes)
        print()
        show(crowds)
        print()
        show(list(steps(folder, folder / f"{sizes[-1]}.duckdb", args.repeats)))
        print()
        show(list(domains(folder, folder / f"{sizes[0]}.duckdb", args.repeats)))
    print()
    show(list(start_up(3)))


if __name__ == "__main__":
    main()
