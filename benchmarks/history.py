"""What does a workspace weigh after a year: quotes, answers, lists and publishing, against stored answers?

    python -m benchmarks.history [--answers 10 100 1000 10000] [--columns one mixed five] [--grids 600]

True releases are stored through the ledger's own steps, without reading the rows again for each: many
questions on one column, on two and both together, or on five, over up to so many different grids. Everything
is processor time; the last columns are ratios to the first number of answers in the same run, which is what
counts. The question that is quoted anew has other bins in every run, as many at any number of answers.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import multiprocessing
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np

import blowfishdb as bf
from benchmarks.tables import Row, show
from benchmarks.timing import clocks
from blowfishdb.core.budget import Epsilon
from blowfishdb.messages.questions import Request
from blowfishdb.service.identity import counted, identity
from blowfishdb.service.reuse import stored_release
from blowfishdb.service.service import _receipt
from blowfishdb.service.tasks import CountTask
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(
    age=bf.Integer(18, 90),
    salary=bf.Integer(0, 199_999),
    years=bf.Integer(0, 45),
    score=bf.Integer(0, 999),
    region=bf.Category([f"region {number}" for number in range(12)]),
)
COLUMNS = {"one": ("salary",), "mixed": ("age", "salary"), "five": DOMAIN.names}
WITHIN = {"salary": 1_000, "age": 5, "years": 2, "score": 50}
ROWS = 20_000
SAMPLES = 9


def policy(times: int = 1) -> bf.Policy:
    """Hide small differences; ``times`` as large ones."""
    near = {name: bf.graphs.Threshold(DOMAIN[name].size, times * within) for name, within in WITHIN.items()}
    return bf.Policy.by_column(DOMAIN, {**near, "region": bf.graphs.Full(12)})


def workspace(folder: Path) -> Workspace:
    """One dataset, with room for whatever is asked."""
    draws = np.random.Generator(np.random.Philox(7))
    columns = {name: draws.integers(0, DOMAIN[name].size, ROWS) for name in DOMAIN.names}
    lines = ["age,salary,years,score,region"]
    lines += [
        f"{18 + age},{salary},{years},{score},region {region}"
        for age, salary, years, score, region in zip(*columns.values(), strict=True)
    ]
    (folder / "people.csv").write_text("\n".join(lines))
    opened = Workspace(folder / "w.blowfish", user="curator")
    people = opened.add_dataset("people", folder / "people.csv", domain=DOMAIN)
    people.publish(policy())
    people.budget.set("1000000")
    return opened


def questions(opened: Workspace, columns: tuple[str, ...], grids: int) -> Iterator[Request]:
    """What is asked over a year: dashboards in their usual bins, and ranges of every kind."""
    people, draws = opened["people"], np.random.Generator(np.random.Philox(11))
    numeric = [name for name in columns if name != "region"]

    def some() -> Iterator[object]:
        for bins in (20, 10, 8, 5):
            for name in numeric:
                yield people[name].histogram(bins=bins)
                yield people[name].cumulative(bins=bins)
        if "region" in columns:
            yield people["region"].histogram()
        for first, second in itertools.combinations(columns, 2):
            bins = None if "region" in (first, second) else 5
            if bins is not None:
                yield people[first, second].histogram(bins=bins)
        for _ in range(grids):
            name = numeric[int(draws.integers(len(numeric)))]
            low, high = sorted(int(value) for value in draws.integers(0, DOMAIN[name].size, 2))
            offset = 18 if name == "age" else 0
            yield people[name].ranges([(offset + low, offset + max(low, high - 1))])

    for question in itertools.islice(some(), grids):
        yield question.spend("0.001").request()  # type: ignore[attr-defined]


def fill(opened: Workspace, requests: list[Request], count: int) -> None:
    """Store ``count`` answers more, each a true release of its own size."""
    service, ledger = opened._service, opened._ledger
    dataset = service.datasets("people")
    tasks = [service.plan(request) for request in requests[:count]]
    prepared = [task.problem.cells for task in tasks if isinstance(task, CountTask)]
    counts = [service.backend(dataset).prepare(cells).count() for cells in prepared]
    start = ledger.head().number
    noise = bf.noise.seeded(start)
    for number in range(count):
        at = number % len(tasks)
        task = tasks[at]
        assert isinstance(task, CountTask)
        epsilon = Epsilon.from_nano(1_000_000 + 1_000 * (start + number))
        seen = task.choice.plan.observe(counts[at], epsilon=epsilon, noise=noise)
        release = stored_release(task.choice.plan, seen, epsilon, task.problem.cells.axes)
        detail = {
            "question": task.request.question.describe(),
            "mechanism": task.mechanism,
            "alone": str(epsilon),
            "policy_version": dataset.policy_version,
            "snapshot": dataset.snapshot,
        }
        name = f"{identity(task.request, dataset, task.problem)}-{start + number}"
        charge = ledger.reserve("people", "curator", epsilon, name, detail, reading=True)
        answer = task.answer(seen, _receipt(task.request, dataset, charge, task.mechanism, ""))
        stored = {
            "answer": answer.to_plain(),
            "release": release,
            "about": counted(dataset, task.problem),
        }
        ledger.settle(charge, json.dumps(stored))


def sampled(act: Callable[[int], object]) -> float:
    """The median of some runs, in milliseconds of a processor; the first one warms up."""
    act(-1)
    return 1e3 * median(clocks(lambda n=n: act(n))[1] for n in range(SAMPLES))  # type: ignore[misc]


def measured(folder: Path, columns: str, count: int, grids: int) -> Row:
    """One workspace with ``count`` answers, opened anew."""
    with workspace(folder) as opened:
        fill(opened, list(questions(opened, COLUMNS[columns], grids)), count)
    with Workspace(folder / "w.blowfish", user="curator") as opened:
        people, name = opened["people"], COLUMNS[columns][0]
        together = people[COLUMNS[columns][:2]] if columns == "mixed" else people[name]
        past = clocks(lambda: opened.past("people", policy(2)))[1]
        first = clocks(lambda: people[name].histogram(bins=10).accurate_to(7).quote())[1]
        last = opened._ledger.head().number

        def quote(number: int) -> None:
            people[name].histogram(bins=20).accurate_to(3 + 0.01 * number).quote()
            together.histogram(bins=5).accurate_to(3 + 0.01 * number).quote()

        ends = np.random.Generator(np.random.Philox(13)).integers(0, DOMAIN[name].size, (SAMPLES + 1, 4, 2))
        lowest = 18 if name == "age" else 0

        def new_quote(number: int) -> None:
            ranges = [(lowest + min(pair), lowest + max(pair)) for pair in ends[number].tolist()]
            people[name].ranges(ranges).accurate_to(3).quote()

        def ask(number: int) -> None:
            people[name].histogram(bins=20).accurate_to(2 + 0.001 * number).ask()

        return {
            "columns": columns,
            "answers": count,
            "first quote ms": 1e3 * first,
            "2 quotes ms": sampled(quote),
            "new plan ms": sampled(new_quote),
            "ask ms": sampled(ask),
            "one answer ms": sampled(lambda _: opened.answer(last - 2)),
            "page ms": sampled(lambda _: opened.answers("people", limit=50)),
            "log ms": sampled(lambda _: opened.events("people", limit=50)),
            "budget ms": sampled(lambda _: opened.budget("people")),
            "memory MB": memory(folder, name),
            "past ms": 1e3 * past,
        }


def memory(folder: Path, name: str) -> float:
    """What a workspace holds after a few quotes, above one that has not been asked."""
    gc.collect()
    tracemalloc.start()
    with Workspace(folder / "w.blowfish", user="curator") as opened:
        for bins in (20, 10, 7):
            opened["people"][name].histogram(bins=bins).accurate_to(30).quote()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return held / 2**20


def apart(act: Callable[..., Row], *given: object) -> Row:
    """In a process of its own, which remembers nothing of others."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(act, *given).result()


def main() -> None:
    words = argparse.ArgumentParser(description="What history weighs.")
    words.add_argument("--answers", nargs="+", type=int, default=[10, 100, 1_000, 10_000])
    words.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    words.add_argument("--grids", type=int, default=600)
    asked = words.parse_args()
    for columns in asked.columns:
        rows: list[Row] = []
        for count in asked.answers:
            with tempfile.TemporaryDirectory() as folder:
                start = time.monotonic()
                rows.append(apart(measured, Path(folder), columns, count, asked.grids))
                print(f"{columns}, {count:,} answers: {time.monotonic() - start:.0f} s", flush=True)
        for row in rows:
            row["quotes / first"] = float(row["2 quotes ms"]) / float(rows[0]["2 quotes ms"])  # type: ignore[arg-type]
            row["new / first"] = float(row["new plan ms"]) / float(rows[0]["new plan ms"])  # type: ignore[arg-type]
            row["ask / first"] = float(row["ask ms"]) / float(rows[0]["ask ms"])  # type: ignore[arg-type]
        show(rows)
        print()


if __name__ == "__main__":
    main()
