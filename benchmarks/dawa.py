"""DAWA and matching: error on the DPBench histograms, time and memory against the number of cells.

    python -m benchmarks.dawa [--data ../shared/data] [--trials 10] [--largest 20] [--write]

Range questions under add/remove (mean absolute error, 2,000 ranges); without the files, synthetic data stands
in. Histograms under the line policy: `benchmarks.line_histograms`; here only how ε is divided for them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import Row, show, write
from benchmarks.timing import clocks, peak
from blowfishdb.core.graphs import AddRemove, Threshold
from blowfishdb.core.workloads import Histogram, Ranges, Rectangles
from blowfishdb.mechanisms.dawa import Dawa
from blowfishdb.mechanisms.dawa.matching import MatchingTransformed
from blowfishdb.mechanisms.plan import DataDependentPlan
from blowfishdb.noise import secure, seeded

NAMES = ("nettrace", "adult", "medcost", "searchlogs", "income", "patent", "hepth")
SIZE = 4096


def histograms(folder: Path) -> dict[str, np.ndarray]:
    files = {name: folder / "dpbench" / f"{name}.npy" for name in NAMES}
    found = {name: np.load(file) for name, file in files.items() if file.exists()}
    return found or {"piecewise": piecewise(SIZE), "random": random_cells(SIZE)}


def piecewise(size: int) -> np.ndarray:
    stream = np.random.default_rng(0)
    cuts = np.sort(stream.choice(np.arange(1, size), size // 128 - 1, replace=False))
    return np.repeat(stream.integers(0, 2_000, size // 128), np.diff(np.concatenate(([0], cuts, [size]))))


def random_cells(size: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 5_000, size)


def ranges(size: int) -> Ranges:
    ends = np.random.default_rng(2014).integers(0, size, size=(2_000, 2))
    return Ranges(size, ends.min(axis=1), ends.max(axis=1))


def spread(errors: list[float]) -> str:
    return f"{np.mean(errors):.3g} ± {np.std(errors) / math.sqrt(len(errors)):.1g}"


def range_errors(data: dict[str, np.ndarray], trials: int) -> Iterator[Row]:
    for epsilon in (0.01, 0.1, 0.5):
        row = {"epsilon": epsilon}
        for name, x in data.items():
            workload, noise = ranges(x.size), seeded(1)
            plan = Dawa().plan(workload, AddRemove(x.size))
            truth = workload.answer(x)
            answers = (plan.release(x, epsilon=epsilon, noise=noise) for _ in range(trials))
            row[name] = spread([float(np.abs(answer - truth).mean()) for answer in answers])
        yield row


def splits(data: dict[str, np.ndarray], trials: int) -> Iterator[Row]:
    """Histograms: the squared error with half of ε on the buckets over that with a quarter."""
    for label, graph_of in (("add/remove", AddRemove), ("line", lambda size: Threshold(size, 1))):
        for epsilon in (0.01, 0.1):
            row = {"policy": label, "epsilon": epsilon}
            for name, x in data.items():
                errors = []
                for split in (0.5, 0.25):
                    plan = Dawa(split=split).plan(Histogram(x.size), graph_of(x.size))
                    answers = [plan.release(x, epsilon=epsilon, noise=seeded(t)) for t in range(trials)]
                    errors.append(float(np.mean((np.array(answers) - x) ** 2)))
                row[name] = errors[0] / errors[1]
            yield row


def times(largest: int) -> Iterator[Row]:
    """Warm, on a cryptographic source of noise; the quickest of a few, on the clock and on the processor."""
    warm = Dawa().plan(ranges(SIZE), AddRemove(SIZE))
    warm.release(piecewise(SIZE), epsilon=0.1, noise=secure())
    for power in range(12, largest + 1, 2):
        for label, make in (("piecewise", piecewise), ("random", random_cells)):
            x = make(1 << power)
            yield timed(f"2^{power}", label, Dawa().plan(ranges(x.size), AddRemove(x.size)), x)
    if largest >= 20:
        side, stream = 1024, np.random.default_rng(2014)
        corners = stream.integers(0, side, size=(2_000, 2, 2))
        rectangles = Rectangles((side, side), corners.min(axis=1), corners.max(axis=1))
        x = np.kron(stream.integers(0, 2_000, (32, 32)), np.ones((32, 32), dtype=np.int64)).ravel()
        yield timed("1024×1024", "squares", Dawa().plan(rectangles, AddRemove(x.size)), x)


def timed(cells: str, data: str, plan: DataDependentPlan, x: np.ndarray) -> Row:
    noise, runs = secure(), 15 if x.size == SIZE else 1

    def release() -> None:
        plan.release(x, epsilon=0.1, noise=noise)

    clock, processor = zip(*(clocks(release) for _ in range(runs)), strict=True)
    return {
        "cells": cells,
        "data": data,
        "clock ms": 1e3 * min(clock),
        "processor ms": 1e3 * min(processor),
        "memory": peak(),
    }


def matchings() -> Iterator[Row]:
    """Both matchings of a release, on counts that differ and on counts that are all alike, the slowest."""
    from rich.progress import Progress

    cases = [
        (cells, label, x)
        for cells in (256, 512, 1024)
        for label, x in (("random", random_cells(cells)), ("equal", np.full(cells, 50)))
    ]
    with Progress(transient=True) as bar:
        for cells, label, x in cases:
            task = bar.add_task(f"{cells:,} cells, {label}", total=2)
            planner = MatchingTransformed(
                progress=lambda done, of, task=task: bar.update(task, completed=done, total=of)
            )
            plan = planner.plan(Histogram(cells), Threshold(cells, 1))
            clock, processor = clocks(lambda p=plan, y=x: p.release(y, epsilon=0.1, noise=secure()))
            yield {"cells": cells, "counts": label, "clock s": clock, "processor s": processor}


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [
        {"cells": 2 ** int(row["cells"][2:]), "data": row["data"], "ms": row["processor ms"]}
        for row in rows
        if row["cells"].startswith("2^")
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("cells:Q", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("ms:Q", scale=alt.Scale(type="log"), title="milliseconds of a processor"),
            color=alt.Color("data:N"),
        )
        .properties(width=420, height=260, title="One release of DAWA, 2,000 ranges")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--largest", type=int, default=20, help="the binary logarithm of the most cells")
    parser.add_argument("--write", action="store_true", help="write docs/figures/dawa_time.*")
    chosen = parser.parse_args()
    print("DAWA, 2,000 ranges, add/remove: mean absolute error ± standard error")
    show(list(range_errors(histograms(chosen.data), chosen.trials)))
    print("\nHistograms: squared error with ε₁ = ε/2 over that with ε/4")
    show(list(splits(histograms(chosen.data), chosen.trials)))
    print("\nOne release of DAWA with 2,000 ranges", flush=True)
    rows = list(times(chosen.largest))
    show(rows)
    print("\nMatching", flush=True)
    show(list(matchings()))
    if chosen.write:
        kept = ("cells", "data", "processor ms", "memory")  # the clock depends on what else is running
        write("dawa_time", [{name: row[name] for name in kept} for row in rows], chart(rows))


if __name__ == "__main__":
    main()
