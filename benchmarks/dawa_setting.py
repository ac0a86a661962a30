"""The setting of [D14] §5.1: data sets, workloads, trials, and how their figures are drawn."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import Row
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.graphs import AddRemove, PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Histogram, Ranges, Rectangles, Workload
from blowfishdb.mechanisms.plan import DataDependentMechanism, Mechanism
from blowfishdb.noise import seeded

LINE = ("nettrace", "adult", "medcost", "searchlogs", "income", "patent", "hepth")  # easy to hard, as there
GRIDS = ("adult", "gowalla", "twitter")
CELLS = 4096
QUERIES = 2000
KINDS = ("uniform", "identity", "clustered", "large clustered")
EPSILONS = (0.01, 0.05, 0.1, 0.5)

_BARS = 200  # points up to which a figure has room for error bars; the tables always have them

Estimate = Callable[[np.ndarray, Workload, float, Noise], np.ndarray]
"""Cells from (counts, workload, ε, noise)."""


@dataclass(frozen=True)
class Trials:
    """How many random workloads there are, and how many releases for each."""

    workloads: int = 5
    releases: int = 3

    def pairs(self) -> list[tuple[int, int]]:
        return [(w, r) for w in range(self.workloads) for r in range(self.releases)]


def line_data(folder: Path) -> dict[str, np.ndarray]:
    return {name: np.load(folder / "dpbench" / f"{name}.npy") for name in LINE}


def grid_data(folder: Path, side: int) -> dict[str, np.ndarray]:
    """Grids of 256 × 256 cells, added up to ``side`` × ``side``, or divided where that is more."""
    found = {}
    for name in GRIDS:
        grid = np.load(folder / "dpbench" / f"{name}_2d.npy").astype(np.int64)
        stream = np.random.default_rng([7, GRIDS.index(name)])
        while grid.shape[0] < side:
            grid = divided(grid, stream)
        found[name] = _quarters(grid, grid.shape[0] // side).sum(axis=2).ravel()
    return found


def divided(grid: np.ndarray, stream: np.random.Generator) -> np.ndarray:
    """A grid twice as fine: each cell's people in its quarters, as unevenly as its own cells fill theirs.

    The data is no finer than this, so it is made up: each cell takes the shares of a random block of 2 × 2
    cells with at least ten people.
    """
    side = grid.shape[0]
    blocks = _quarters(grid, 2).reshape(-1, 4)
    full = blocks[blocks.sum(axis=1) >= 10]
    shares = full / full.sum(axis=1, keepdims=True)
    quarters = stream.multinomial(grid.ravel(), shares[stream.integers(0, len(shares), side * side)])
    return quarters.reshape(side, side, 2, 2).transpose(0, 2, 1, 3).reshape(2 * side, 2 * side)


def _quarters(grid: np.ndarray, block: int) -> np.ndarray:
    """The cells of each block of ``block`` × ``block``, row by row."""
    side = grid.shape[0] // block
    return grid.reshape(side, block, side, block).transpose(0, 2, 1, 3).reshape(side, side, block * block)


def workload(kind: str, number: int) -> Workload:
    """The ``number``-th random workload of its kind; the same in every run."""
    stream = np.random.default_rng([2014, KINDS.index(kind), number])
    if kind == "identity":
        return Histogram(CELLS)
    if kind == "uniform":
        ends = stream.integers(0, CELLS, (QUERIES, 2))
        return Ranges(CELLS, ends.min(axis=1), ends.max(axis=1))
    spread = 256 if kind == "clustered" else 1024
    centres = np.repeat(stream.integers(0, CELLS, 5), QUERIES // 5)
    left, right = np.rint(np.abs(stream.normal(0, spread, (2, QUERIES)))).astype(np.int64)
    return Ranges(CELLS, np.maximum(centres - left, 0), np.minimum(centres + right, CELLS - 1))


def rectangles(side: int, share: tuple[float, float], number: int) -> Rectangles:
    """Rectangles that cover a share of both axes, anywhere on the grid."""
    stream = np.random.default_rng([7, number, *(round(1000 * part) for part in share)])
    lengths = np.array([max(1, round(part * side)) for part in share])
    lows = stream.integers(0, side - lengths + 1, (QUERIES // 4, 2))
    return Rectangles((side, side), lows, lows + lengths - 1)


def estimator(mechanism: Mechanism | DataDependentMechanism) -> Estimate:
    """Cells by a mechanism of the library: the release of a histogram, planned for the workload."""

    def estimate(x: np.ndarray, asked: Workload, epsilon: float, noise: Noise) -> np.ndarray:
        plan = _planned(mechanism, asked, AddRemove(x.size))
        if isinstance(mechanism, Mechanism):
            measured = plan.measure(x) + plan.scales.draw(noise, Epsilon(epsilon))
            return _cells(plan, measured, x)
        return plan.estimate(x, epsilon=Epsilon(epsilon), noise=noise)

    return estimate


_PLANS: dict[tuple[object, Workload], Any] = {}


def _planned(mechanism: Any, asked: Workload, graph: PolicyGraph) -> Any:
    key = (mechanism, asked)
    if key not in _PLANS:
        if len(_PLANS) > 64:
            _PLANS.clear()
        _PLANS[key] = mechanism.plan(asked, graph)
    return _PLANS[key]


def _cells(plan: Any, measured: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The cells behind a linear plan's answers: what least squares estimates, or the cells themselves."""
    estimator = getattr(plan, "estimator", None)
    return measured if estimator is None else estimator.estimate(measured, x)


def seed(*parts: object) -> int:
    return zlib.crc32(repr(parts).encode())


def error(cells: np.ndarray, asked: Workload, x: np.ndarray) -> float:
    """The average L1 error per question."""
    return float(np.abs(asked.answer(cells) - asked.answer(x)).mean())


def spread(errors: Sequence[float]) -> tuple[float, float]:
    """Mean and standard error."""
    if len(errors) < 2:
        return float(np.mean(errors)), math.nan
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / math.sqrt(len(errors)))


def run(
    estimate: Estimate, x: np.ndarray, kind: str, epsilon: float, trials: Trials, label: str
) -> list[float]:
    """The error of every release on random workloads of one kind."""
    found = []
    for number, release in trials.pairs():
        asked = workload(kind, number)
        noise = seeded(seed(label, kind, epsilon, number, release))
        found.append(error(estimate(x, asked, epsilon, noise), asked, x))
    return found


def tracked(things: Sequence[Any], what: str) -> Iterable[Any]:
    """``things``, with a bar that says how far it is."""
    from rich.progress import track

    return track(things, description=what)


def known(deviation: float) -> float:
    """Of a single run the standard error is not known, and no bar is drawn."""
    return 0.0 if math.isnan(deviation) else deviation


def chart(rows: Sequence[Row], *, facet: str, x: str, y: str, title: str) -> Any:
    """Panels with a colour per algorithm, a logarithmic axis, and two standard errors if there is room."""
    import altair as alt

    order, names, panels = (
        list(dict.fromkeys(str(row[part]) for row in rows)) for part in (x, "algorithm", facet)
    )
    points = [
        {
            "x": str(row[x]),
            "y": float(f"{row[y]:.4g}"),
            "low": float(f"{max(row[y] / 10, row[y] - 2 * known(row['standard error'])):.4g}"),
            "high": float(f"{row[y] + 2 * known(row['standard error']):.4g}"),
            "panel": str(row[facet]),
            "algorithm": row["algorithm"],
        }
        for row in rows
    ]
    base = alt.Chart().encode(
        x=alt.X("x:N", sort=order, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("algorithm:N", sort=names),
        color=alt.Color("algorithm:N", sort=names, scale=alt.Scale(scheme="tableau20")),
    )
    axis = alt.Axis(values=[10.0**power for power in range(-2, 10)], format=",~g")
    error_axis = alt.Y("y:Q", scale=alt.Scale(type="log"), title=y, axis=axis)
    layers = [base.mark_point(filled=True, opacity=1, size=22).encode(y=error_axis)]
    if len(rows) <= _BARS:
        layers.append(base.mark_rule().encode(y="low:Q", y2="high:Q"))
    width = max(230, 6 * len(order) * len(names))
    return (
        alt.layer(*layers)
        .properties(width=width, height=170)
        .facet(
            facet=alt.Facet("panel:N", sort=panels, title=None if len(panels) == 1 else facet),
            columns=1 if width > 300 else 2,
            data=alt.InlineData(values=points),
            title=title,
        )
        .resolve_scale(y="independent")
        .configure(aria=False)
    )
