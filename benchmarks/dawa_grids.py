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


QUICK = ("Identity", "HB", "Quadtree", "Adaptive grid", "AdaptiveTree", "DAWA")
"""What is compared on grids that are finer than the usual one; MWEM and others take too long there."""


def measured(
    data: dict[str, np.ndarray], trials: Trials, epsilons: tuple[float, ...], side: int = SIDE
) -> list[Row]:
    """Average error of every algorithm on rectangles of every shape."""
    cells = Product(Histogram(side), Histogram(side))
    blind, aware = (
        {label: each for label, each in group.items() if side == SIDE or label in QUICK}
        for group in (BLIND, AWARE)
    )
    rows = []
    cases = [(epsilon, name) for epsilon in epsilons for name in data]
    for epsilon, name in tracked(cases, "Figure 7"):
        x, found = data[name], {}
        for number, release in trials.pairs():
            asked = {shape: rectangles(side, share, number) for shape, share in SHAPES.items()}
            for label, mechanism in blind.items():
                noise = seeded(seed(label, name, epsilon, number, release))
                estimate = estimator(mechanism)(x, cells, epsilon, noise)
                for shape, boxes in asked.items():
                    found.setdefault((label, shape), []).append(error(estimate, boxes, x))
            for label, mechanism in aware.items():
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


def figures(folder: Path, trials: Trials, *, save: bool, side: int = SIDE) -> None:
    """Figure 7 at two privacy budgets."""
    rows = measured(grid_data(folder, side), trials, EPSILONS, side)
    show(rows)
    if save:
        drawn = [
            row | {"grid": f"{row['data']}, ε = {row['epsilon']}"} for row in rows if row["epsilon"] != 0.5
        ]
        title = f"Rectangles on {side}×{side} grids (D14, Figure 7)"
        name = "dawa_grids" if side == SIDE else f"dawa_grids_{side}"
        write(name, rows, chart(drawn, facet="grid", x="shape", y="error", title=title))
