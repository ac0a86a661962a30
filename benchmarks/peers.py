"""Other libraries beside this one, in one run: ε for the same accuracy, error for the same ε, time, noise.

    python -m benchmarks.peers [--rows N] [--bins K] [--repeats R]

OpenDP is a tool of developers here; diffprivlib and SmartNoise SQL are skipped with a message where they do
not load. Ratios count, not seconds, and ε means what the neighbours of its row say: *add/remove*, one record
more or less; *replace*, one record becomes any other; *within d*, one record moves by at most d. A mechanism
for add/remove loses twice its ε under replace.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np

import blowfishdb as bf
from benchmarks.noise_rate import opendp_sampler, rate
from benchmarks.tables import show
from benchmarks.timing import p50, seconds

SALARIES = 200_000
ALPHA, BETA, EPSILON = 50, 0.05, 1.0
Row = dict[str, Any]


# --- ε for the same accuracy ------------------------------------------------------------------------


def apex(sensitivity: int, answers: int) -> float:
    """APEx's translation for the Laplace mechanism: independent answers within ±α at once."""
    return sensitivity * math.log(1 / (1 - (1 - BETA) ** (1 / answers))) / ALPHA


def apex_top(answers: int, alpha: float) -> float:
    """APEx's translation for the fullest bins, add/remove: none more than α out of its place."""
    return 2 * math.log(answers / (2 * BETA)) / alpha


def opendp_epsilon(sensitivity: int, answers: int) -> float | None:
    """OpenDP's own conversion of an accuracy into a scale, β divided among the answers."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    scale = dp.accuracy_to_discrete_laplacian_scale(accuracy=float(ALPHA + 1), alpha=BETA / answers)
    return float(sensitivity / scale)


def ours(workload: bf.workloads.Workload, graph: bf.graphs.PolicyGraph) -> float:
    plan = bf.mechanisms.Best().plan(workload, graph)
    return float(plan.epsilon_for(alpha=ALPHA, beta=BETA))


def policies(bins: int) -> dict[str, bf.graphs.PolicyGraph]:
    """The same salaries under three notions of neighbours, over bins."""
    cut = bf.Bins.width(SALARIES, -(-SALARIES // bins))
    return {
        "add/remove": bf.graphs.AddRemove(bins),
        "replace": bf.graphs.Full(SALARIES).project(cut),
        "within 1,000": bf.graphs.Threshold(SALARIES, 1_000).project(cut),
    }


def accuracy(bins: int) -> Iterator[Row]:
    """±50 for every answer at once, 95 times in 100."""
    for question, workload in _questions(bins):
        for notion, graph in policies(bins).items():
            sensitivity = int(bf.sensitivity(workload, graph))
            answers = bins if question == "histogram" or notion == "add/remove" else bins - 1
            mine = ours(workload, graph)
            row: Row = {"question": question, "neighbours": notion, "BlowfishDB ε": mine}
            for name, theirs in (
                ("APEx, Laplace ε", apex(sensitivity, answers)),
                ("OpenDP, Laplace ε", opendp_epsilon(sensitivity, answers)),
            ):
                row[name] = "not installed" if theirs is None else theirs
                row[f"{name.split(',')[0]} ÷ ours"] = "" if theirs is None else theirs / mine
            yield row


def _questions(bins: int) -> list[tuple[str, bf.workloads.Workload]]:
    return [("histogram", bf.workloads.Histogram(bins)), ("cumulative", bf.workloads.Cumulative(bins))]


# --- error for the same ε ---------------------------------------------------------------------------


def error(bins: int) -> Iterator[Row]:
    """Root mean squared error of an answer at ε = 1, beside a noisy histogram that is added up."""
    for question, workload in _questions(bins):
        for notion, graph in policies(bins).items():
            plan = bf.mechanisms.Best().plan(workload, graph)
            mine = math.sqrt(plan.squared_error(epsilon=EPSILON))
            scale = (1 if notion == "add/remove" else 2) / EPSILON  # as OpenDP and diffprivlib users do
            q = math.exp(-1 / scale)
            added = (bins + 1) / 2 if question == "cumulative" else 1
            cells = math.sqrt(added * 2 * q / (1 - q) ** 2)
            yield {
                "question": question,
                "neighbours": notion,
                "BlowfishDB": mine,
                "noisy cells": cells,
                "ratio": cells / mine,
                "ours is": plan.name,
            }


# --- time -------------------------------------------------------------------------------------------


def _opendp(counts: Callable[[], np.ndarray], rows: Path) -> Callable[[], object] | str:
    sampler = opendp_sampler(2 / EPSILON)
    if sampler is None:
        return "skipped: pip install opendp"

    def release() -> object:
        found = counts()
        return found + np.asarray(sampler(found.size))

    return release


def _diffprivlib(counts: Callable[[], np.ndarray], rows: Path) -> Callable[[], object] | str:
    try:
        from diffprivlib.tools import histogram
    except ImportError as why:
        return f"skipped: {why} (pip install diffprivlib)"
    with duckdb.connect(str(rows), read_only=True) as connection:
        salaries = connection.execute("SELECT salary FROM people").fetchnumpy()["salary"]
    bins = counts().size
    return lambda: histogram(salaries, epsilon=EPSILON, bins=bins, range=(0, SALARIES))


def _smartnoise(counts: Callable[[], np.ndarray], rows: Path) -> Callable[[], object] | str:
    try:
        import snsql
    except ImportError as why:
        return f"skipped: {why} (pip install smartnoise-sql, in an environment of its own)"
    width = SALARIES // counts().size
    with duckdb.connect(str(rows), read_only=True) as connection:
        frame = connection.execute(f"SELECT salary // {width} AS bin FROM people").df()
    column = {"type": "int", "lower": 0, "upper": SALARIES // width}
    table = {"people": {"row_privacy": True, "rows": len(frame), "bin": column}}
    reader = snsql.from_df(
        frame, privacy=snsql.Privacy(epsilon=EPSILON, delta=1e-6), metadata={"": {"main": table}}
    )
    return lambda: reader.execute("SELECT bin, COUNT(*) FROM main.people GROUP BY bin")


PEERS = {
    "OpenDP's noise on the counts": (_opendp, "replace"),
    "diffprivlib, rows in memory": (_diffprivlib, "add/remove"),
    "SmartNoise SQL, rows in memory": (_smartnoise, "add/remove"),
}


def latency(rows: int, bins: int, repeats: int) -> Iterator[Row]:
    """A histogram of the same rows at ε = 1, as a multiple of its GROUP BY in DuckDB."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "people.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("SELECT setseed(0.5)")
            connection.execute(
                f"CREATE TABLE people AS SELECT (random() * {SALARIES - 1})::INT AS salary FROM range({rows})"
            )
        yield from _timed(folder, file, bins, repeats)


def _timed(folder: Path, file: Path, bins: int, repeats: int) -> Iterator[Row]:
    width = -(-SALARIES // bins)
    statement = f"SELECT salary // {width} AS bin, COUNT(*) AS n FROM people GROUP BY bin ORDER BY bin"
    with duckdb.connect(str(file), read_only=True) as connection:

        def counts() -> np.ndarray:
            return np.asarray(connection.execute(statement).fetchnumpy()["n"])

        counts()
        plain = p50([seconds(counts) for _ in range(repeats)])
        runs = {label: (prepare(counts, file), notion) for label, (prepare, notion) in PEERS.items()}
        for label, (run, notion) in runs.items():
            took: Any = run if isinstance(run, str) else _median(run, repeats) / plain
            yield {"who": label, "neighbours": notion, "times the GROUP BY": took, "ledger": "none"}
    domain = bf.Domain(salary=bf.Integer(0, SALARIES - 1))
    with bf.open(folder / "w.blowfish") as workspace:
        people = workspace.add_dataset("people", str(file), domain=domain, table="people")
        people.budget.set("1000")
        times = []
        for turn in range(repeats + 1):  # the first loads what a process loads once; every question is new
            q = people["salary"].histogram(width=width).spend(f"1.00000{turn}")
            q.quote()
            times.append(seconds(q.ask))
    mine = p50(times[1:]) / plain
    yield {"who": "BlowfishDB", "neighbours": "replace", "times the GROUP BY": mine, "ledger": "durable"}


def _median(run: Callable[[], object], repeats: int) -> float:
    run()
    return p50([seconds(run) for _ in range(repeats)])


# --- noise ------------------------------------------------------------------------------------------


def noise(samples: int, repeats: int) -> Iterator[Row]:
    """Exact samples of discrete Laplace noise of scale 10 in a second, one core."""
    mine = rate(lambda: bf.noise.secure().discrete_laplace(10, samples), samples, repeats)
    yield {"who": "BlowfishDB", "samples/s": f"{mine:,.0f}", "ours is": 1.0}
    sampler = opendp_sampler(10.0)
    if sampler is None:
        yield {"who": "OpenDP", "samples/s": "not installed", "ours is": ""}
        return
    few = max(1, samples // 50)
    theirs = rate(lambda: sampler(few), few, repeats)
    yield {"who": "OpenDP", "samples/s": f"{theirs:,.0f}", "ours is": mine / theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description="Other libraries beside this one.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bins", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    parts = (
        (f"ε for ±{ALPHA}, 95 times in 100, {args.bins} bins", accuracy(args.bins)),
        (f"root mean squared error at ε = 1, {args.bins} bins", error(args.bins)),
        (f"time, {args.rows:,} rows, 100 bins", latency(args.rows, 100, args.repeats)),
        ("exact noise of scale 10", noise(2**19, args.repeats)),
    )
    for title, rows in parts:
        print(f"\n{title}\n")
        show(list(rows))


if __name__ == "__main__":
    main()
