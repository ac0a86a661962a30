"""[D14] Figures 4–6: the parts of DAWA alone, other ways to choose buckets, other ways to count them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from benchmarks.baselines import GreedyH, Php
from benchmarks.baselines.asking import Noisy
from benchmarks.dawa_intervals import row
from benchmarks.dawa_not_private import not_private_optimum, not_private_partition
from benchmarks.dawa_setting import (
    CELLS,
    KINDS,
    LINE,
    Estimate,
    Trials,
    chart,
    estimator,
    run,
    seed,
    spread,
    tracked,
)
from benchmarks.tables import Row, show, write
from blowfishdb.core.budget import NANO
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.dawa import _PENALTY, Dawa
from blowfishdb.mechanisms.dawa.measuring import (
    coverage,
    greedy_scaling,
    integer_weights,
    noisy_sums,
    tree_least_squares,
)
from blowfishdb.mechanisms.dawa.partition import (
    Candidates,
    Ranked,
    deviations,
    expand,
    least_cost,
    private_partition,
)
from blowfishdb.noise import seeded

EPSILON = 0.1
SPAN = ("nettrace", "searchlogs", "hepth")  # from easy to hard, as in Figure 6
Scaling = Callable[[Workload, np.ndarray], list[np.ndarray]]
"""The weights of a binary tree over buckets, leaves first."""


def _levels(buckets: np.ndarray) -> list[int]:
    sizes = [buckets.size]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return sizes


def greedy(asked: Workload, buckets: np.ndarray) -> list[np.ndarray]:
    return integer_weights(greedy_scaling(coverage(asked, None, buckets), buckets.size))


def laplace(asked: Workload, buckets: np.ndarray) -> list[np.ndarray]:
    return [np.full(size, int(level == 0)) for level, size in enumerate(_levels(buckets))]


def uniform(asked: Workload, buckets: np.ndarray) -> list[np.ndarray]:
    return [np.ones(size, dtype=np.int64) for size in _levels(buckets)]


def geometric(asked: Workload, buckets: np.ndarray) -> list[np.ndarray]:
    return [np.full(size, round(2**16 * 2 ** (-level / 3))) for level, size in enumerate(_levels(buckets))]


SCALINGS: dict[str, Scaling] = {
    "DAWA": greedy,
    "Partition + Laplace": laplace,
    "Partition + Uniform": uniform,
    "Partition + Geometric": geometric,
}


def partitioned(scaling: Scaling, x: np.ndarray, asked: Workload, epsilon: float, noise: Noise) -> np.ndarray:
    """DAWA with another second stage; all stages at the noise of their proofs."""
    first, second = Fraction(str(epsilon)) / 4, Fraction(str(epsilon)) * 3 / 4
    buckets = private_partition(x, Candidates.usual(x.size), _PENALTY, first, second, noise)
    weights = scaling(asked, buckets)
    measured = noisy_sums(np.add.reduceat(x, buckets), weights, second, noise)
    return expand(buckets, tree_least_squares(measured, weights), None, x.size)


def isolated(data: dict[str, np.ndarray], trials: Trials) -> list[Row]:
    """Figure 4: both stages, only the first, only the second."""
    algorithms: dict[str, Estimate] = {
        "DAWA": estimator(Dawa(split=0.25)),
        "Partition + Laplace": partial(partitioned, laplace),
        "Greedy H, no partition": estimator(GreedyH()),
        "AdaptiveTree": estimator(AdaptiveTree()),
    }
    return [
        row(name, EPSILON, "uniform", label, run(estimate, data[name], "uniform", EPSILON, trials, label))
        for name in tracked(LINE, "Figure 4")
        for label, estimate in algorithms.items()
    ]


def second_stages(data: dict[str, np.ndarray], trials: Trials) -> list[Row]:
    """Figure 6: other weights on the same tree."""
    return [
        row(name, EPSILON, kind, label, run(estimate, data[name], kind, EPSILON, trials, label))
        for name, kind in tracked([(name, kind) for kind in KINDS for name in SPAN], "Figure 6")
        for label, estimate in [(label, partial(partitioned, scaling)) for label, scaling in SCALINGS.items()]
        + [("AdaptiveTree", estimator(AdaptiveTree()))]
    ]


def partition_costs(data: dict[str, np.ndarray], trials: Trials) -> list[Row]:
    """Figure 5: Σ deviation + 1/ε₂ of partitions chosen at ε₁ = 0.1 for counts at ε₂ = 0.1."""
    first = second = Fraction(1, 10)
    every = Candidates.all(CELLS)
    rows = []
    for name in tracked(LINE, "Figure 5"):
        x = data[name]
        exact = all_deviations(x, every)
        choices: dict[str, Callable[[Noise], np.ndarray]] = {
            "optimal, not private": lambda noise, e=exact: not_private_optimum(e, every, second),
            "DAWA-subset, not private": lambda noise, x=x: not_private_partition(x, first, second, noise),
            "DAWA-subset": lambda noise, x=x: private_partition(
                x, Candidates.powers_of_two(CELLS), _PENALTY, first, second, noise
            ),
            "DAWA-all": lambda noise, e=exact: noisy_optimum(e, every, first, second, noise),
            "P-HP": lambda noise, x=x: Php().partition(
                np.arange(CELLS), Noisy(x, noise), NANO // 10, NANO // 10
            ),
        }
        for label, choose in choices.items():
            runs = 1 if label.startswith("optimal") else trials.releases
            found = [choose(seeded(seed(label, name, r))) for r in range(runs)]
            mean, deviation = spread([cost(x, buckets, second) for buckets in found])
            rows.append(
                {
                    "data": name,
                    "epsilon": EPSILON,
                    "algorithm": label,
                    "partition cost": mean,
                    "standard error": deviation,
                    "buckets": float(np.mean([buckets.size for buckets in found])),
                }
            )
    return rows


def all_deviations(x: np.ndarray, every: Candidates) -> np.ndarray:
    ranked = Ranked(x)
    found = np.zeros((len(every.lengths), x.size), dtype=np.int64)
    for line, length in zip(found, every.lengths, strict=True):
        line[: x.size - length + 1] = deviations(ranked, length, every.units)
    return found


def noisy_optimum(
    exact: np.ndarray, every: Candidates, first: Fraction, second: Fraction, noise: Noise
) -> np.ndarray:
    """`private_partition` over all intervals, with deviations that were worked out before."""
    costs = exact.copy()
    for line, length in zip(costs, every.lengths, strict=True):
        starts = every.size - length + 1
        line[:starts] += noise.discrete_laplace(every.scale(length, first), starts)
        line[:starts] += _PENALTY.units(every, length, first, second)
    return least_cost(costs, every.lengths)


def cost(x: np.ndarray, buckets: np.ndarray, second: Fraction) -> float:
    """[D14] Def. 5."""
    lengths = np.diff(buckets, append=x.size)
    means = np.repeat(np.add.reduceat(x, buckets) / lengths, lengths)
    return float(np.abs(x - means).sum() + buckets.size / second)


def figures(data: dict[str, np.ndarray], trials: Trials, *, save: bool) -> None:
    """Figures 4, 5 and 6."""
    parts, costs, steps = isolated(data, trials), partition_costs(data, trials), second_stages(data, trials)
    for rows in (parts, costs, steps):
        show(rows)
        print()
    if save:
        title = "Parts of DAWA alone, uniform intervals, ε = 0.1 (D14, Figure 4)"
        write("dawa_isolated", parts, chart(parts, facet="epsilon", x="data", y="error", title=title))
        title = "Cost of the partition (D14, Figure 5)"
        panel = chart(costs, facet="epsilon", x="data", y="partition cost", title=title)
        write("dawa_partitions", costs, panel)
        title = "Other second stages, ε = 0.1 (D14, Figure 6)"
        write("dawa_second_stage", steps, chart(steps, facet="workload", x="data", y="error", title=title))
