"""DAWA and what replaces it: error on the DPBench histograms, time and memory against the number of cells.

    python -m benchmarks.dawa [--data ../shared/data] [--trials 10] [--largest 20]

Range questions under add/remove (mean absolute error, 2,000 ranges) and the histogram under the line policy
(mean squared error per cell). Without the files, synthetic data stands in.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.tables import Row, show
from benchmarks.timing import peak, seconds
from blowfishdb.core.graphs import AddRemove, PolicyGraph, Threshold
from blowfishdb.core.workloads import Histogram, Ranges, Workload
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.dawa import Dawa
from blowfishdb.mechanisms.dawa_transformed import DawaTransformed
from blowfishdb.mechanisms.matching import MatchingTransformed
from blowfishdb.mechanisms.ordered_denoised import OrderedDenoised
from blowfishdb.noise import secure, seeded

NAMES = ("nettrace", "adult", "medcost", "searchlogs", "income", "patent", "hepth")
SIZE = 4096


class Planner(Protocol):
    def plan(self, workload: Workload, graph: PolicyGraph) -> DataDependentPlan: ...


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


def line_errors(data: dict[str, np.ndarray], trials: int) -> Iterator[Row]:
    planners: dict[str, Planner] = {
        "OrderedDenoised": OrderedDenoised(),
        "DawaTransformed": DawaTransformed(),
    }
    for epsilon in (0.1, 0.01, 0.001):
        for label, planner in planners.items():
            row = {"epsilon": epsilon, "mechanism": label}
            for name, x in data.items():
                plan, noise = planner.plan(Histogram(x.size), Threshold(x.size, 1)), seeded(1)
                answers = (plan.release(x, epsilon=epsilon, noise=noise) for _ in range(trials))
                row[name] = spread([float(((answer - x) ** 2).mean()) for answer in answers])
            yield row


def times(largest: int) -> Iterator[Row]:
    """Warm, on a cryptographic source of noise; the quickest of a few."""
    for power in range(12, largest + 1, 2):
        row = {"cells": f"2^{power}"}
        for label, make in (("piecewise", piecewise), ("random", random_cells)):
            x = make(1 << power)
            plan, noise = Dawa().plan(ranges(x.size), AddRemove(x.size)), secure()
            runs = 10 if power == 12 else 1
            plan.release(piecewise(SIZE)[: x.size], epsilon=0.1, noise=noise) if power == 12 else None
            taken = min(
                seconds(lambda p=plan, y=x, n=noise: p.release(y, epsilon=0.1, noise=n)) for _ in range(runs)
            )
            row[f"{label}, ms"] = f"{1e3 * taken:,.0f}"
        yield row | {"memory": peak()}


def matchings() -> Iterator[Row]:
    for cells in (128, 256, 512, 1024):
        x = random_cells(cells)
        plan = MatchingTransformed().plan(Histogram(cells), Threshold(cells, 1))
        taken = seconds(lambda p=plan, y=x: p.release(y, epsilon=0.1, noise=secure()))
        print(f"matching {cells:,} cells: {taken:.2f} s", flush=True)
        yield {"cells": cells, "seconds": taken}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--largest", type=int, default=20, help="the binary logarithm of the most cells")
    chosen = parser.parse_args()
    data = histograms(chosen.data)
    print("DAWA, 2,000 ranges, add/remove: mean absolute error ± standard error")
    show(list(range_errors(data, chosen.trials)))
    print("\nHistogram, line policy: mean squared error per cell ± standard error")
    show(list(line_errors(data, chosen.trials)))
    print("\nOne release of DAWA with 2,000 ranges")
    show(list(times(chosen.largest)))
    print("\nMatching")
    show(list(matchings()))


if __name__ == "__main__":
    main()
