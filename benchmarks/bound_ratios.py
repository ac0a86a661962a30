"""How far from the lower bound? Total squared error over the bound, on a line.

    python -m benchmarks.bound_ratios [--sizes 64 256 1024] [--presence] [--write]

The bound is an L2 relaxation (docs/accuracy.md), so a ratio of one is in general out of reach. Up to 256
cells it is tightened over edge weights; at 1,024 it is the plain SVD bound or that of grids, which are lower,
so ratios look larger there.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from benchmarks.tables import Row, show, write
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph, Threshold
from blowfishdb.core.lower_bound import lower_bound
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Workload
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import OrderedHierarchical
from blowfishdb.mechanisms.plan import Mechanism

WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "identity": Histogram,
    "prefix": Cumulative,
    "ranges": AllRanges,
}
MECHANISMS: dict[str, Mechanism] = {
    "Laplace on cells": Laplace(on="cells"),
    "OH + least squares": OrderedHierarchical(),
    "Optimized": Optimized(),
}
THETAS = (1, 4, 16, 64, None)


def measure(size: int, theta: int | None, name: str, *, presence: bool = False) -> Row:
    workload, near = WORKLOADS[name](size), Threshold(size, size - 1 if theta is None else theta)
    graph = near.hide_presence() if presence else near
    least = lower_bound(workload, graph)
    row = {"cells": size, "theta": "full" if theta is None else theta, "workload": name, "bound": least}
    return row | {label: _error(one, workload, graph) / least for label, one in MECHANISMS.items()}


def _error(mechanism: Mechanism, workload: Workload, graph: PolicyGraph) -> float:
    """Not a number where a mechanism is not proven for what is hidden."""
    try:
        return mechanism.plan(workload, graph).unit_error
    except NotProven:
        return math.nan


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [
        {
            "cells": f"{row['cells']} cells",
            "θ": str(row["theta"]),
            "workload": row["workload"],
            "mechanism": label,
            "ratio": row[label],
        }
        for row in rows
        for label in MECHANISMS
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("θ:N", sort=[str(t) if t else "full" for t in THETAS], axis=alt.Axis(labelAngle=0)),
            y=alt.Y("ratio:Q", scale=alt.Scale(type="log"), title="error over bound"),
            color=alt.Color("mechanism:N", sort=list(MECHANISMS), title=None),
            column=alt.Column("workload:N", sort=list(WORKLOADS), title=None),
            row=alt.Row("cells:N", sort=None, title=None),
        )
        .properties(width=200, height=160)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Squared error over the lower bound.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1024], help="numbers of cells")
    parser.add_argument("--presence", action="store_true", help="hide who is there at all, too")
    parser.add_argument("--write", action="store_true", help="write docs/figures/bound_ratios.*")
    args = parser.parse_args()
    cases = [(k, theta) for k in args.sizes for theta in THETAS if theta is None or theta < k - 1]
    rows = [measure(size, theta, name, presence=args.presence) for size, theta in cases for name in WORKLOADS]
    show(rows)
    if args.write and not args.presence:
        write("bound_ratios", rows, chart(rows))


if __name__ == "__main__":
    main()
