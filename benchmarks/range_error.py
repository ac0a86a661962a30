"""[B14] Figure 2(b) and 2(c): the error of range queries against ε and θ, then and now.

    python -m benchmarks.range_error [--data ../shared/data] [--write]

Mean squared error of 10,000 random ranges on capital loss (4,357 values) and on latitude (256 rows of the
Twitter grid), fan-out 16 as in the paper. Four series: the ordered hierarchical mechanism *as published,
which is not private* (it spends more than ε, see the column "spends"), the same corrected with the paper's
decoding, corrected with least squares and a tuned split and fan-out, and Optimized. These errors do not
depend on the data, so they are computed exactly; one column is confirmed by releases on the data itself.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import Row, show, write
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import Ranges
from blowfishdb.mechanisms.hierarchical import LeastSquaresPlan
from blowfishdb.mechanisms.linear.strategy import Contrasts
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import OrderedHierarchical
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.noise import seeded

FANOUT = 16
EPSILONS = [round(0.1 * step, 1) for step in range(1, 11)]
THETAS = {"capital loss": [10**6, 1000, 500, 100, 50, 10, 1], "latitude": [10**6, 100, 50, 10, 1]}
PUBLISHED = "OH as published (not private)"
CORRECTED = "OH corrected, paper's decoding"
TUNED = "OH corrected, least squares, tuned"
OURS = "Optimized"


def capital_loss(folder: Path) -> np.ndarray:
    """Counts of the 4,357 values of capital loss; a look-alike without the file."""
    file, counts = folder / "adult.csv", np.zeros(4357, dtype=np.int64)
    if file.exists():
        with file.open() as rows:
            for row in csv.DictReader(rows, skipinitialspace=True):
                counts[min(int(row["caploss"]), 4356)] += 1
        return counts
    print(f"{file} is not there: a synthetic look-alike stands in (mostly zero, the rest near 1,900).")
    rng = np.random.default_rng(0)
    counts[0] = 31_042
    np.add.at(counts, np.clip(rng.normal(1_900, 350, 1_519).astype(int), 1, 4356), 1)
    return counts


def latitude(folder: Path) -> np.ndarray:
    """Row sums of the Twitter grid; a look-alike without the file."""
    file = folder / "dpbench" / "twitter_2d.npy"
    if file.exists():
        return np.load(file).sum(axis=1)
    print(f"{file} is not there: a synthetic look-alike stands in (a few cities).")
    rng = np.random.default_rng(0)
    cities = np.concatenate([rng.normal(centre, 4, 40_000) for centre in (60, 110, 140, 200)])
    return np.bincount(np.clip(cities.astype(int), 0, 255), minlength=256)


def random_ranges(size: int) -> Ranges:
    ends = np.sort(np.random.default_rng(14).integers(0, size, (10_000, 2)), axis=1)
    return Ranges(size, ends[:, 0], ends[:, 1])


def published_split(size: int, theta: int) -> float:
    """ε_S/ε of [B14] §7.2, which minimises its equation (14)."""
    c1 = 4 * (size - theta) / (size + 1)
    c2 = 8 * (FANOUT - 1) * math.log(theta, FANOUT) ** 3 * size / (size + 1)
    return c1 ** (1 / 3) / (c1 ** (1 / 3) + c2 ** (1 / 3))


def published_not_private(plan: LeastSquaresPlan, theta: int, share: float) -> tuple[float, float]:
    """(mean squared error, loss) at ε = 1 of the budget of [B14] §7.2 on the rows of ``plan``.

    H_1 and its root s_1 get scale 2h/ε, the other trees 2h/ε_H, the other S nodes 1/ε_S.
    """
    rows, height = plan.strategy, math.ceil(math.log(theta, FANOUT) - 1e-9)
    assert isinstance(rows, Contrasts)
    prefix = rows.starts == 0
    prefix &= np.arange(len(rows)) < math.ceil(plan.workload.size / theta) - 1
    first = rows.stops <= theta
    budget = np.where(first, 1 / (2 * height), np.where(prefix, share, (1 - share) / (2 * height)))
    error = plan.estimator.total_variance(plan.workload, 2 / budget**2) / plan.workload.count
    unit = 2**20
    weighted = Contrasts(rows.size, rows.starts, rows.stops, np.round(budget * unit).astype(np.int64))
    return error, weighted.cost(plan.graph) / unit


def series(size: int, theta: int, ranges: Ranges) -> tuple[dict[str, Plan], tuple[float, float] | None]:
    graph = Threshold(size, theta)
    plans: dict[str, Plan] = {
        TUNED: OrderedHierarchical().plan(ranges, graph),
        OURS: Optimized().plan(ranges, graph),
    }
    if theta == 1 or theta >= size - 1:
        fixed = OrderedHierarchical(fanout=FANOUT, decoding="paper").plan(ranges, graph)
        return {CORRECTED: fixed, **plans}, None  # nothing to correct but the total
    share = published_split(size, theta)
    fixed = OrderedHierarchical(fanout=FANOUT, decoding="paper", split=share).plan(ranges, graph)
    assert isinstance(fixed, LeastSquaresPlan)
    return {CORRECTED: fixed, **plans}, published_not_private(fixed, theta, share)


def measure(name: str, x: np.ndarray) -> Iterator[Row]:
    ranges = random_ranges(len(x))
    for theta in THETAS[name]:
        shown = "full" if theta >= len(x) - 1 else str(theta)
        plans, published = series(len(x), min(theta, len(x)), ranges)
        for epsilon in EPSILONS:
            row = {"data": name, "theta": shown, "epsilon": epsilon}
            row[PUBLISHED] = published[0] / epsilon**2 if published else math.nan
            row["spends"] = f"{published[1]:.3f} ε" if published else "–"
            yield row | {label: plan.squared_error(epsilon=epsilon) for label, plan in plans.items()}
        if theta == 100:
            confirm(x, plans[OURS], epsilon=0.5)


def confirm(x: np.ndarray, plan: Plan, *, epsilon: float, runs: int = 200) -> None:
    """Releases on the data err as the formula says."""
    noise, truth = seeded(1), plan.workload.answer(x)
    errors = [((plan.release(x, epsilon=epsilon, noise=noise) - truth) ** 2).mean() for _ in range(runs)]
    mean, spread = float(np.mean(errors)), float(np.std(errors) / math.sqrt(runs))
    print(
        f"{runs} releases of {plan.name} at ε = {epsilon}: {mean:.4g} ± {spread:.2g}, "
        f"exact {plan.squared_error(epsilon=epsilon):.4g}"
    )


def chart(rows: list[Row]) -> object:
    import altair as alt

    labels = (PUBLISHED, CORRECTED, TUNED, OURS)
    points = [
        {"data": row["data"], "θ": row["theta"], "ε": row["epsilon"], "mechanism": label, "error": row[label]}
        for row in rows
        for label in labels
        if not math.isnan(row[label])
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("ε:Q"),
            y=alt.Y("error:Q", scale=alt.Scale(type="log"), title="mean squared error"),
            color=alt.Color("θ:N", sort=["full", "1000", "500", "100", "50", "10", "1"]),
            column=alt.Column("mechanism:N", sort=list(labels), title=None),
            row=alt.Row("data:N", title=None),
        )
        .properties(width=200, height=220, title="Random range queries under the θ-line")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="The error of range queries, [B14] Figure 2.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--write", action="store_true", help="write docs/figures/range_error.*")
    args = parser.parse_args()
    data = {"capital loss": capital_loss(args.data), "latitude": latitude(args.data)}
    rows = [row for name, x in data.items() for row in measure(name, x)]
    show([row for row in rows if row["epsilon"] in (0.1, 0.5, 1.0)])
    if args.write:
        write("range_error", rows, chart(rows))


if __name__ == "__main__":
    main()
