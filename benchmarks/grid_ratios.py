"""Two dimensions: squared error over the lower bound on a 256 × 256 grid, and all two-way marginals of 8⁵."""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import altair as alt

from benchmarks.tables import Row, show, write
from blowfishdb.core.graphs import Full, Grid, PolicyGraph, Product, Threshold
from blowfishdb.core.lower_bound import grid_bound
from blowfishdb.core.workloads import AllRanges, Cumulative, Marginals, Workload
from blowfishdb.core.workloads import Product as Questions
from blowfishdb.mechanisms import Laplace, Optimized

SIDE = 256
LINES = {theta: Threshold(SIDE, theta) for theta in (1, 4)}
POLICIES: dict[str, PolicyGraph] = {
    "everything (plain DP)": Full(SIDE**2),
    "1 cell, one attribute at a time": Product(LINES[1], LINES[1], joint=False),
    "1 cell, jointly": Product(LINES[1], LINES[1]),
    "4 cells, one attribute at a time": Product(LINES[4], LINES[4], joint=False),
    "4 cells, jointly": Product(LINES[4], LINES[4]),
    "4 cells × everything": Product(LINES[4], Full(SIDE)),
    "2 cells in L1": Grid((SIDE, SIDE), 2),
}
WORKLOADS: dict[str, Workload] = {
    "all prefixes": Questions(Cumulative(SIDE), Cumulative(SIDE)),
    "all rectangles": Questions(AllRanges(SIDE), AllRanges(SIDE)),
}


def cells_error(workload: Workload) -> float:
    """Laplace on the cells with the public total: 8(t₁t₂ − 1ᵀM₁1·1ᵀM₂1/N), without listing questions."""
    assert isinstance(workload, Questions)
    grams = [factor.gram() for factor in workload.factors]
    traces = [float(gram.trace()) for gram in grams]
    sums = [float(gram.sum()) for gram in grams]
    return 8 * (traces[0] * traces[1] - sums[0] * sums[1] / workload.size)


def ratios() -> list[Row]:
    rows: list[Row] = []
    for policy, graph in POLICIES.items():
        for name, workload in WORKLOADS.items():
            bound = grid_bound(workload, graph)
            assert bound is not None
            start = time.perf_counter()
            plan = Optimized().plan(workload, graph)
            rows.append(
                {
                    "hide within": policy,
                    "questions": name,
                    "Laplace on cells": cells_error(workload) / bound,
                    "Optimized": plan.unit_error / bound,
                    "plan": plan.name,
                    "seconds": time.perf_counter() - start,
                }
            )
    return rows


def marginals() -> list[Row]:
    shape, pairs = (8,) * 5, list(itertools.combinations(range(5), 2))
    rows: list[Row] = []
    for joint in (True, False):
        graph = Product(*(Full(8) for _ in shape), joint=joint)
        workload = Marginals(shape, pairs)
        plans: dict[str, Any] = {"Laplace on cells": Laplace(on="cells"), "Optimized": Optimized()}
        errors = {name: mechanism.plan(workload, graph).unit_error for name, mechanism in plans.items()}
        rows.append({"all pairs of 8⁵": "jointly" if joint else "one attribute at a time", **errors})
    return rows


def figure(rows: list[Row]) -> Any:
    long = [
        {"policy": r["hide within"], "questions": r["questions"], "mechanism": m, "ratio": r[m]}
        for r in rows
        for m in ("Laplace on cells", "Optimized")
    ]
    return (
        alt.Chart(alt.InlineData(values=long), title=f"{SIDE} × {SIDE} cells: error over the lower bound")
        .mark_point(filled=True, size=70)
        .encode(
            x=alt.X("ratio:Q", scale=alt.Scale(type="log"), title="error over bound"),
            y=alt.Y("policy:N", sort=list(POLICIES), title=None, axis=alt.Axis(labelLimit=220)),
            color=alt.Color("mechanism:N", title=None),
            column=alt.Column("questions:N", title=None),
        )
        .properties(width=260, height=190)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="also write docs/figures/grid_ratios.*")
    arguments = parser.parse_args()
    rows = ratios()
    show(rows)
    print()
    show(marginals())
    if arguments.write:
        write("grid_ratios", rows, figure(rows))


if __name__ == "__main__":
    main()
