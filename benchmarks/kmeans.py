"""[B14] Figure 1: k-means under Blowfish policies, as published (not private), corrected, and by a histogram.

    python -m benchmarks.kmeans [--data …] [--runs 50] [--rounds 10] [--epsilons E …] [--write]

The objective over that of k-means without noise, k = 4. *As published* uses Lemma 6.1, which is false, so it
is NOT PRIVATE wherever the policy is not the full one; *rounds* has the true sensitivity of every round;
*histogram* clusters one private histogram. Twitter is 256×256 cells here, the paper had 400×300. Rounds solve
linear programs and take most of the seven minutes, so they get fewer runs.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.not_private_kmeans import Data, not_private_best, not_private_published
from benchmarks.points import Points
from benchmarks.tables import Row, show, write
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.graphs import Full, Grid, Partitioned, PolicyGraph, Product
from blowfishdb.core.questions.clusters import PointSpace
from blowfishdb.mechanisms.kmeans import KMeans
from blowfishdb.noise import seeded

CLUSTERS = 4
EPSILONS = tuple(round(0.1 * step, 1) for step in range(1, 11))
KM_PER_CELL = (2222 / 256 + 1442 / 256) / 2
METHODS = ("as published, not private", "rounds", "histogram")


@dataclass(frozen=True, eq=False)
class Case:
    """One policy on one data set: what Lemma 6.1 says that a move changes, and what is true."""

    figure: str
    data: Data
    policy: str
    graph: PolicyGraph
    lemma: int
    exact: bool = False


# --- data ---------------------------------------------------------------------------------------


def twitter(folder: Path) -> Data:
    path = folder / "dpbench" / "twitter_2d.npy"
    counts = np.load(path) if path.exists() else _look_alike()
    cells = np.argwhere(counts > 0)
    return Data("twitter", PointSpace.cells(*counts.shape), cells, counts[counts > 0].astype(np.int64))


def _look_alike() -> np.ndarray:
    """Where the data is not there: towns of very different sizes on a plane."""
    print("twitter_2d.npy is not there: a synthetic look-alike takes its place.")
    stream = np.random.default_rng(1)
    towns, counts = stream.uniform(20, 236, (60, 2)), np.zeros((256, 256), np.int64)
    people = towns[stream.zipf(1.3, 190_000) % 60] + stream.normal(0, 4, (190_000, 2))
    np.add.at(counts, tuple(np.clip(people, 0, 255).astype(np.int64).T), 1)
    return counts


def skin(folder: Path, share: float, name: str) -> Data:
    path = folder / "skin.csv"
    if path.exists():
        cells = np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1, 2), dtype=np.int64)
    else:
        print("skin.csv is not there: a synthetic look-alike takes its place.")
        stream = np.random.default_rng(2)
        centres = stream.uniform(30, 225, (5, 3))
        wide = centres[stream.integers(0, 5, 245_056)] + stream.normal(0, 25, (245_056, 3))
        cells = np.clip(wide, 0, 255).astype(np.int64)
    rows = np.random.default_rng(2014).permutation(len(cells))[: round(share * len(cells))]
    return Data(name, PointSpace.cells(256, 256, 256), *np.unique(cells[rows], axis=0, return_counts=True))


def synthetic() -> Data:
    """1,000 points of (0, 1)⁴ around four centres with σ = 0.2, in hundredths."""
    stream = np.random.default_rng(2014)
    points = stream.uniform(0, 1, (CLUSTERS, 4))[stream.integers(0, CLUSTERS, 1000)]
    cells = np.clip(100 * (points + stream.normal(0, 0.2, points.shape)), 0, 99).astype(np.int64)
    return Data("synthetic", PointSpace.cells(*(100,) * 4), cells, np.ones(1000, np.int64))


# --- policies -----------------------------------------------------------------------------------


def full(figure: str, data: Data) -> Case:
    return Case(figure, data, "full", Full(data.space.size), 2 * int(data.space.last.sum()))


def within(figure: str, data: Data, label: str, theta: int) -> Case:
    return Case(figure, data, label, Grid(data.space.shape, theta), 2 * theta)


def attribute(figure: str, data: Data) -> Case:
    graph = Product(*(Full(n) for n in data.space.shape), joint=False)
    return Case(figure, data, "attribute", graph, 2 * int(data.space.last.max()))


def partition(figure: str, data: Data, side: int) -> Case:
    width = math.ceil(256 / side)
    graph = Product(*(Partitioned(Bins.width(256, width)) for _ in range(2)))
    return Case(figure, data, f"partition|{side * side}", graph, 4 * (width - 1), exact=width == 1)


def cases(folder: Path) -> Iterator[Case]:
    tweets, small, made = twitter(folder), skin(folder, 0.01, "skin01"), synthetic()
    yield full("a twitter", tweets)
    for km in (2000, 1000, 500, 100):
        yield within("a twitter", tweets, f"θ={km} km", round(km / KM_PER_CELL))
    yield full("b skin01", small)
    for theta in (256, 128, 64, 32):
        yield within("b skin01", small, f"θ={theta}", theta)
    yield full("c synthetic", made)
    for share in (1.0, 0.5, 0.25, 0.1):
        yield within("c synthetic", made, f"θ={share}", round(100 * share))
    for data in (skin(folder, 1.0, "skin"), skin(folder, 0.1, "skin10"), small):
        yield full(f"d {data.name}", data)
        yield within(f"d {data.name}", data, "θ=128", 128)
    for data in (tweets, small, made):
        yield full(f"e {data.name}", data)
        yield attribute(f"e {data.name}", data)
    for side in (10, 32, 128, 256):
        yield partition("f twitter", tweets, side)


# --- runs ---------------------------------------------------------------------------------------


def measured(case: Case, method: str, epsilon: float, runs: int) -> list[float]:
    """The objective of every run."""
    data, noise, exact = case.data, seeded(2014), Fraction(str(epsilon))
    if method == METHODS[0]:
        sizes = 0 if case.exact else 2
        return [
            data.objective(not_private_published(data, CLUSTERS, case.lemma, sizes, exact, noise, seed))
            for seed in range(runs)
        ]
    way = "rounds" if method == "rounds" else "histogram"
    plan = KMeans(CLUSTERS, method=way).plan(data.space, case.graph, epsilon=exact, rows=data.rows)
    points = Points(data.space, data.cells, data.times)
    once = 1 if plan.free else runs
    found = (plan.release(points, epsilon=exact, noise=noise) for _ in range(once))
    return [data.objective(each.centroids) for each in found]


def rows_of(every: list[Case], runs: dict[str, int], epsilons: Sequence[float]) -> Iterator[Row]:
    from rich.progress import track

    best: dict[str, float] = {}
    seen: dict[tuple[str, str, str, float], list[float]] = {}
    work = list(itertools.product(every, METHODS, epsilons))
    for case, method, epsilon in track(work, description="k-means"):
        name = case.data.name
        if name not in best:
            best[name] = not_private_best(case.data, CLUSTERS)
        key = (
            name,
            "any" if method == "histogram" and not case.policy.startswith("p") else case.policy,
            method,
            epsilon,
        )
        if key not in seen:  # figures share curves, and the histogram's noise is that of the full policy
            seen[key] = measured(case, method, epsilon, runs[method])
        ratios = np.array(seen[key]) / best[name]
        low, high = np.quantile(ratios, (0.25, 0.75))
        yield {
            "figure": case.figure,
            "policy": case.policy,
            "method": method,
            "epsilon": epsilon,
            "ratio": float(ratios.mean()),
            "lower quartile": float(low),
            "upper quartile": float(high),
            "runs": ratios.size,
        }


def chart(rows: list[Row]) -> object:
    import altair as alt

    line = (
        alt.Chart(alt.InlineData(values=list(rows)))
        .mark_line(point={"size": 12})
        .encode(
            x=alt.X(
                "epsilon:Q", title="ε", scale=alt.Scale(type="log"), axis=alt.Axis(values=[0.1, 0.2, 0.5, 1])
            ),
            y=alt.Y("ratio:Q", title="objective ÷ without noise", scale=alt.Scale(type="log")),
            color=alt.Color(
                "method:N",
                sort=list(METHODS),
                title="one line per policy",
                legend=alt.Legend(orient="top", labelLimit=300),
            ),
            detail="policy:N",
        )
        .properties(width=230, height=170)
    )
    return line.facet(alt.Facet("figure:N", title=None), columns=3)


def main() -> None:
    parser = argparse.ArgumentParser(description="[B14] Figure 1: private k-means.")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--runs", type=int, default=50, help="runs per point (default 50)")
    parser.add_argument("--rounds", type=int, default=10, help="runs per point in rounds (default 10)")
    parser.add_argument(
        "--epsilons", type=float, nargs="+", default=EPSILONS, help="0.1, 0.2 … 1 unless said"
    )
    parser.add_argument("--write", action="store_true", help="write docs/figures/kmeans.*")
    args = parser.parse_args()
    runs = {method: args.rounds if method == "rounds" else args.runs for method in METHODS}
    rows = list(rows_of(list(cases(args.data)), runs, args.epsilons))
    show([row for row in rows if row["epsilon"] in (0.1, 1.0)])
    if args.write:
        write("kmeans", rows, chart(rows))


if __name__ == "__main__":
    main()
