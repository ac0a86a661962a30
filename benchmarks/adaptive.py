"""Data-dependent trees on real histograms: error beside the best that does not look, and time.

    python -m benchmarks.adaptive [--data ../shared/data] [--trials 40] [--write]

Mean L1 error per question, with its standard error. *line*: 2,000 uniform ranges of 4,096 cells, records
come and go, beside a hierarchy of fan-out 16. *threshold*: the same ranges under θ-line policies, beside
Optimized. *cells*: mean squared error of histograms under θ-line policies, beside Optimized. *grid*: 2,000
uniform rectangles of 256×256 cells, records come and go, beside an adaptive grid (AGrid, as we measured it).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import Row, show, write
from benchmarks.timing import clocks
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import AddRemove, Threshold
from blowfishdb.core.workloads import Cumulative, Histogram, Ranges, Rectangles, Workload
from blowfishdb.mechanisms.adaptive.policy_tree import PolicyTree
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.hierarchical import Hierarchical
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.plan import DataDependentPlan, Plan
from blowfishdb.noise import secure, seeded

LINE = ("adult", "hepth", "income", "medcost", "nettrace", "patent", "searchlogs")
GRID = ("adult", "gowalla", "twitter")
EPSILONS = (0.01, 0.1, 0.5)
THETAS = (4, 16, 64, 256)
CELLS, SIDE = 4096, 256
AGRID = {0.01: (453, 2780, 993), 0.1: (58, 341, 256), 0.5: (20, 138, 63)}
NOT_PRIVATE_DAWA = dict(zip(LINE, (38, 186, 120, 35, 24, 186, 121), strict=True))  # at ε = 0.1
Error = Callable[[np.ndarray], float]


def absolute(errors: np.ndarray) -> float:
    return float(np.abs(errors).mean())


def squared(errors: np.ndarray) -> float:
    return float((errors**2).mean())


def ranges() -> Ranges:
    ends = np.random.default_rng(2014).integers(0, CELLS, size=(2000, 2))
    return Ranges(CELLS, ends.min(1), ends.max(1))


def rectangles() -> Rectangles:
    corners = np.random.default_rng(2014).integers(0, SIDE, size=(2000, 2, 2))
    return Rectangles((SIDE, SIDE), corners.min(1), corners.max(1))


def trials(
    plan: Plan | DataDependentPlan, x: np.ndarray, epsilon: float, runs: int, error: Error
) -> tuple[float, float]:
    """The mean error over runs, and its standard error."""
    noise, truth = seeded(1), plan.workload.answer(x)
    found = [error(plan.release(x, epsilon=epsilon, noise=noise) - truth) for _ in range(runs)]
    return float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(runs))


def row(case: str, data: str, epsilon: float, ours: tuple[float, float], beside: float) -> Row:
    return {
        "case": case,
        "data": data,
        "epsilon": epsilon,
        "error": ours[0],
        "standard error": ours[1],
        "beside": beside,
        "ratio": ours[0] / beside,
    }


def on_the_line(data: dict[str, np.ndarray], runs: int) -> Iterator[Row]:
    workload, graph = ranges(), AddRemove(CELLS)
    tree, hierarchy = AdaptiveTree().plan(workload, graph), Hierarchical(fanout=16).plan(workload, graph)
    for epsilon in EPSILONS:
        beside, _ = trials(hierarchy, np.zeros(CELLS, np.int64), epsilon, runs, absolute)
        for name in LINE:
            yield row("line", name, epsilon, trials(tree, data[name], epsilon, runs, absolute), beside)


def under_thresholds(
    data: dict[str, np.ndarray], runs: int, case: str, workload: Workload, error: Error
) -> Iterator[Row]:
    for theta in THETAS:
        graph = Threshold(CELLS, theta)
        tree, fixed = PolicyTree().plan(workload, graph), Optimized().plan(workload, graph)
        for epsilon in EPSILONS:
            beside, _ = trials(fixed, np.zeros(CELLS, np.int64), epsilon, runs, error)
            for name in LINE:
                found = trials(tree, data[name], epsilon, runs, error)
                yield row(f"{case}, θ = {theta}", name, epsilon, found, beside)


def on_the_grid(folder: Path, runs: int) -> Iterator[Row]:
    workload = rectangles()
    tree = AdaptiveTree().plan(workload, AddRemove(SIDE * SIDE))
    for epsilon in EPSILONS:
        for name, beside in zip(GRID, AGRID[epsilon], strict=True):
            x = np.load(folder / f"{name}_2d.npy").ravel()
            yield row("grid", name, epsilon, trials(tree, x, epsilon, runs, absolute), beside)


def summary(rows: list[Row]) -> list[Row]:
    """Geometric means of the ratios over the data sets."""
    groups: dict[tuple[str, float], list[float]] = {}
    for one in rows:
        groups.setdefault((one["case"], one["epsilon"]), []).append(one["ratio"])
    return [
        {"case": case, "epsilon": epsilon, "geometric mean": math.exp(np.mean(np.log(r))), "worst": max(r)}
        for (case, epsilon), r in groups.items()
    ]


def speed() -> list[Row]:
    """Milliseconds per estimate, noise included, on sparse and on dense counts; the least of some runs."""
    found, stream, epsilon = [], np.random.default_rng(3), Epsilon("0.1")
    for size in (CELLS, 2**20):
        x = np.zeros(size, np.int64)
        x[stream.choice(size, size // 100, replace=False)] = 10**4
        for kind, counts in (("sparse", x), ("dense", stream.integers(0, 10**4, size))):
            for label, plan in (
                ("AdaptiveTree", AdaptiveTree().plan(Cumulative(size), AddRemove(size))),
                ("PolicyTree, θ = 64", PolicyTree().plan(Cumulative(size), Threshold(size, 64))),
            ):
                noise, runs = secure(), 30 if size == CELLS else 4

                def estimate(plan=plan, counts=counts, noise=noise) -> None:
                    plan.estimate(counts, epsilon=epsilon, noise=noise)

                estimate()
                clock, processor = zip(*(clocks(estimate) for _ in range(runs)), strict=True)
                found.append(
                    {
                        "cells": size,
                        "counts": kind,
                        "plan": label,
                        "clock ms": 1e3 * min(clock),
                        "processor ms": 1e3 * min(processor),
                    }
                )
    return found


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [{key: one[key] for key in ("case", "data", "ratio")} for one in rows if one["epsilon"] == 0.1]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="error over the data-independent one's"),
            y=alt.Y("case:N", title=None, sort=None),
            color=alt.Color("data:N"),
        )
        .properties(width=420, height=260, title="Real histograms at ε = 0.1")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Data-dependent trees: accuracy and time.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--trials", type=int, default=40, help="releases per figure")
    parser.add_argument("--write", action="store_true", help="write docs/figures/adaptive.*")
    args = parser.parse_args()
    show(speed())
    folder = args.data / "dpbench"
    if not folder.is_dir():
        print(f"\n{folder} is not there: accuracy on real histograms is left out.")
        return
    data = {name: np.load(folder / f"{name}.npy") for name in LINE}
    rows = [
        *on_the_line(data, args.trials),
        *under_thresholds(data, args.trials, "threshold", ranges(), absolute),
        *under_thresholds(data, args.trials, "cells", Histogram(CELLS), squared),
        *on_the_grid(folder, args.trials),
    ]
    print()
    show([one for one in rows if one["case"] in ("line", "grid")])
    print()
    show(summary(rows))
    below = [one for one in rows if one["case"] == "line" and one["epsilon"] == 0.1]
    better = sum(one["error"] < NOT_PRIVATE_DAWA[one["data"]] for one in below)
    print(f"\nbelow the reference DAWA, which is not private, on {better} of {len(below)} at ε = 0.1")
    if args.write:
        write("adaptive", rows, chart(rows))


if __name__ == "__main__":
    main()
