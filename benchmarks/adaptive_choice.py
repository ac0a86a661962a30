"""The rule of Adaptive: what it takes, and its squared error over Best's, policy by policy.

    python -m benchmarks.adaptive_choice [--data ../shared/data] [--trials 10] [--write] [--dense 200]

Geometric means over the real histograms, on 1,024 cells or 16×16; 500 uniform ranges or rectangles, or the
cells themselves. Best's error is exact. The rule was chosen by looking at such figures: not held out.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from benchmarks.adaptive import EPSILONS, GRID, LINE, squared, trials
from benchmarks.tables import Row, show, write
from blowfishdb.core.graphs import AddRemove, Full, Grid, Partitioned, PolicyGraph, Threshold
from blowfishdb.core.graphs import Product as ProductGraph
from blowfishdb.core.workloads import Cumulative, Histogram, Product, Ranges, Rectangles, Workload
from blowfishdb.mechanisms import Adaptive, Best, DataDependentPlan, DawaTransformed, Plan
from blowfishdb.noise import seeded

CELLS, SIDE, QUESTIONS = 1024, 16, 500
DENSE, MOST = 64, 2_000
"""Cells where nothing repeats, and what each may hold."""


@final
@dataclass(frozen=True, eq=False)
class Case:
    """A policy, questions, and the histograms to try them on."""

    policy: str
    graph: PolicyGraph
    questions: str
    workload: Workload
    data: tuple[np.ndarray, ...]

    def rows(self, runs: int) -> Iterator[Row]:
        best = Best().plan(self.workload, self.graph)
        taken = Adaptive().plan(self.workload, self.graph)
        dawa = DawaTransformed().plan(self.workload, self.graph)
        for epsilon in EPSILONS:
            beside = best.squared_error(epsilon=epsilon)
            found = {
                "ratio": 1.0 if isinstance(taken, Plan) else self._ratio(taken, epsilon, runs, beside),
                "dawa-transformed": self._ratio(dawa, epsilon, runs, beside),
            }
            name = "best" if isinstance(taken, Plan) else taken.name
            yield {
                "policy": self.policy,
                "questions": self.questions,
                "epsilon": epsilon,
                "takes": name,
                **found,
            }

    def _ratio(self, plan: DataDependentPlan, epsilon: float, runs: int, beside: float) -> float:
        errors = [trials(plan, x, epsilon, runs, squared)[0] for x in self.data]
        return math.exp(float(np.mean(np.log(np.maximum(errors, 1e-9) / beside))))


def cases(folder: Path) -> Iterator[Case]:
    line = tuple(np.load(folder / f"{name}.npy").reshape(CELLS, -1).sum(axis=1) for name in LINE)
    ends = np.random.default_rng(2014).integers(0, CELLS, size=(QUESTIONS, 2))
    policies: dict[str, PolicyGraph] = {
        "everything": Full(CELLS),
        "θ = 1": Threshold(CELLS, 1),
        "θ = 16": Threshold(CELLS, 16),
        "eight groups": Partitioned(np.arange(CELLS) // (CELLS // 8)),
        "add/remove": AddRemove(CELLS),
        "θ = 16 and presence": Threshold(CELLS, 16).hide_presence(),
    }
    for name, graph in policies.items():
        yield Case(name, graph, "ranges", Ranges(CELLS, ends.min(axis=1), ends.max(axis=1)), line)
        yield Case(name, graph, "cells", Histogram(CELLS), line)
    part = 256 // SIDE
    plane = tuple(
        np.load(folder / f"{name}_2d.npy").reshape(SIDE, part, SIDE, part).sum(axis=(1, 3)).ravel()
        for name in GRID
    )
    corners = np.random.default_rng(2014).integers(0, SIDE, size=(QUESTIONS, 2, 2))
    rectangles = Rectangles((SIDE, SIDE), corners.min(axis=1), corners.max(axis=1))
    planes: dict[str, PolicyGraph] = {
        "2-D, everything": ProductGraph(Full(SIDE), Full(SIDE)),
        "2-D, θ = 2": Grid((SIDE, SIDE), 2),
    }
    for name, graph in planes.items():
        yield Case(name, graph, "rectangles", rectangles, plane)
        yield Case(name, graph, "cells", Product(Histogram(SIDE), Histogram(SIDE)), plane)


def dense(size: int, seeds: int) -> Iterator[Row]:
    """Where nothing repeats: counts that are drawn one by one, others for every seed."""
    policies = {"everything": Full(size), "θ = 1": Threshold(size, 1), "θ = 4": Threshold(size, 4)}
    draws = [np.random.default_rng(seed).integers(0, MOST, size) for seed in range(seeds)]
    for (policy, graph), workload in itertools.product(
        {**policies, "add/remove": AddRemove(size)}.items(), (Cumulative(size), Histogram(size))
    ):
        best, taken = Best().plan(workload, graph), Adaptive().plan(workload, graph)
        for epsilon in (0.1, 1.0) if isinstance(taken, DataDependentPlan) else ():
            beside = best.squared_error(epsilon=epsilon)
            each = [
                squared(taken.release(x, epsilon=epsilon, noise=seeded(seed)) - workload.answer(x)) / beside
                for seed, x in enumerate(draws)
            ]
            over = 1.96 * float(np.std(each, ddof=1)) / math.sqrt(seeds)
            yield {
                "policy": policy,
                "questions": "curve" if isinstance(workload, Cumulative) else "cells",
                "epsilon": epsilon,
                "takes": taken.name,
                "ratio": float(np.mean(each)),
                "at most": float(np.mean(each)) + over,
            }


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [{**one, "case": f"{one['policy']}, {one['questions']}"} for one in rows]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="squared error over Best's"),
            y=alt.Y("case:N", title=None, sort=None),
            color=alt.Color("epsilon:N", title="ε"),
            shape=alt.Shape("takes:N"),
        )
        .properties(width=420, height=320, title="What Adaptive takes")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What Adaptive takes, and how close that is.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--trials", type=int, default=10, help="releases per figure")
    parser.add_argument("--write", action="store_true", help="write docs/figures/adaptive_choice.*")
    parser.add_argument("--dense", type=int, default=0, help="seeds of data with nothing to adapt to")
    args = parser.parse_args()
    if args.dense:
        show(list(dense(DENSE, args.dense)))
        return
    folder = args.data / "dpbench"
    if not folder.is_dir():
        print(f"\n{folder} is not there, and without real histograms there is nothing to measure.")
        return
    rows = [row for case in cases(folder) for row in case.rows(args.trials)]
    show(rows)
    if args.write:
        write("adaptive_choice", rows, chart(rows))


if __name__ == "__main__":
    main()
