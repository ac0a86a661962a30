"""[D14] Figure 7: rectangles on spatial data. Its road data is not available: three other grids stand in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.baselines import (
    AdaptiveGrid,
    DpCube,
    HBGrid,
    HybridTree,
    Identity,
    Mwem,
    QuadTree,
    UniformGrid,
)
from benchmarks.dawa_setting import (
    Trials,
    chart,
    error,
    estimator,
    grid_data,
    rectangles,
    seed,
    spread,
    tracked,
)
from benchmarks.tables import Row, show, write
from blowfishdb.core.workloads import Histogram, Product
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.dawa import Dawa
from blowfishdb.noise import seeded

SIDE = 64
EPSILONS = (0.01, 0.1)
SHAPES = {  # shares of the axes: those of (1, 1), (5, 5), (10, 10) and (15, 0.2) degrees on 26 × 18
    "small": (0.05, 0.05),
    "middle": (0.2, 0.2),
    "large": (0.45, 0.45),
    "thin": (0.65, 0.01),
}
AWARE = {"MWEM": Mwem(10), "DAWA": Dawa(split=0.25)}
BLIND = {
    "Identity": Identity(),
    "HB": HBGrid(),
    "Quadtree": QuadTree(),
    "Hybrid tree": HybridTree(),
    "DPCube": DpCube(),
    "Uniform grid": UniformGrid(),
    "Adaptive grid": AdaptiveGrid(),
    "AdaptiveTree": AdaptiveTree(),
}


def measured(data: dict[str, np.ndarray], trials: Trials, epsilons: tuple[float, ...]) -> list[Row]:
    cells = Product(Histogram(SIDE), Histogram(SIDE))
    rows = []
    cases = [(epsilon, name) for epsilon in epsilons for name in data]
    for epsilon, name in tracked(cases, "Figure 7"):
        x, found = data[name], {}
        for number, release in trials.pairs():
            asked = {shape: rectangles(SIDE, share, number) for shape, share in SHAPES.items()}
            for label, mechanism in BLIND.items():
                noise = seeded(seed(label, name, epsilon, number, release))
                estimate = estimator(mechanism)(x, cells, epsilon, noise)
                for shape, boxes in asked.items():
                    found.setdefault((label, shape), []).append(error(estimate, boxes, x))
            for label, mechanism in AWARE.items():
                for shape, boxes in asked.items():
                    noise = seeded(seed(label, name, epsilon, number, release, shape))
                    estimate = estimator(mechanism)(x, boxes, epsilon, noise)
                    found.setdefault((label, shape), []).append(error(estimate, boxes, x))
        for (label, shape), errors in found.items():
            mean, deviation = spread(errors)
            rows.append(
                {
                    "data": name,
                    "epsilon": epsilon,
                    "shape": shape,
                    "algorithm": label,
                    "error": mean,
                    "standard error": deviation,
                }
            )
    return rows


def figures(folder: Path, trials: Trials, *, save: bool) -> None:
    """Figure 7 at two privacy budgets."""
    rows = measured(grid_data(folder, SIDE), trials, EPSILONS)
    show(rows)
    if save:
        drawn = [
            row | {"grid": f"{row['data']}, ε = {row['epsilon']}"} for row in rows if row["epsilon"] != 0.5
        ]
        title = f"Rectangles on {SIDE}×{SIDE} grids (D14, Figure 7)"
        write("dawa_grids", rows, chart(drawn, facet="grid", x="shape", y="error", title=title))
