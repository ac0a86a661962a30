"""How long do plans and quotes take? Optimized on a line, cold and warm.

    python -m benchmarks.plan_time [--most 1000000] [--write]

*Plan*: choosing the strategy, with its exact error. *Cold*: the first quote of a plan, which simulates.
*Warm*: the next quote with another α. Kernels are compiled beforehand (numba keeps them on disk). One core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from benchmarks.tables import Row, show, write
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Ranges, Workload
from blowfishdb.mechanisms.optimized import Optimized

SIZES = (20, 100, 1_000, 10_000, 100_000, 1_000_000)
QUOTED_UP_TO = 100_000
T = TypeVar("T")


def timed(run: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = run()
    return result, time.perf_counter() - began


def listed(size: int) -> Ranges:
    ends = np.sort(np.random.default_rng(1).integers(0, size, (min(size, 1_000), 2)), axis=1)
    return Ranges(size, ends[:, 0], ends[:, 1])


WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "prefix": Cumulative,
    "all ranges": AllRanges,
    "1,000 ranges": listed,
}


def measure(size: int, theta: int, name: str) -> Row:
    workload, graph = WORKLOADS[name](size), Threshold(size, theta)
    plan, planning = timed(lambda: Optimized().plan(workload, graph))
    _, error = timed(lambda: plan.unit_error)
    row: dict[str, object] = {
        "cells": size,
        "theta": "full" if theta >= size - 1 else theta,
        "workload": name,
    }
    row |= {"plan s": planning + error}
    for label, simultaneous in (("all", True), ("each", False)):
        cold = warm = float("nan")
        if size <= QUOTED_UP_TO:
            cold = timed(lambda s=simultaneous: plan.epsilon_for(alpha=1_000, beta=0.05, simultaneous=s))[1]
            warm = timed(lambda s=simultaneous: plan.epsilon_for(alpha=900.5, beta=0.05, simultaneous=s))[1]
        row |= {f"cold s ({label})": cold, f"warm ms ({label})": 1e3 * warm}
    return row


def chart(rows: list[Row]) -> object:
    import altair as alt

    steps = ("plan s", "cold s (all)", "cold s (each)")
    points = [
        {
            "cells": row["cells"],
            "workload": row["workload"],
            "θ": str(row["theta"]),
            "step": step,
            "seconds": row[step],
        }
        for row in rows
        for step in steps
        if row[step] == row[step]  # not a number where it was not measured
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True)
        .encode(
            x=alt.X("cells:Q", scale=alt.Scale(type="log")),
            y=alt.Y("seconds:Q", scale=alt.Scale(type="log")),
            color=alt.Color("workload:N", sort=list(WORKLOADS), title=None),
            shape=alt.Shape("θ:N"),
            column=alt.Column("step:N", sort=list(steps), title=None),
        )
        .properties(width=220, height=240)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to plan and to quote.")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="the largest number of cells")
    parser.add_argument("--write", action="store_true", help="write docs/figures/plan_time.*")
    args = parser.parse_args()
    for theta in (4, 64):  # compiles, or loads what was compiled
        measure(64, theta, "all ranges")
    cases = [(k, theta) for k in SIZES if k <= args.most for theta in dict.fromkeys((1, max(4, k // 100), k))]
    rows = [measure(size, theta, name) for size, theta in cases for name in WORKLOADS]
    show(rows)
    if args.write:
        write("plan_time", rows, chart(rows))


if __name__ == "__main__":
    main()
