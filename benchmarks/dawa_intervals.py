"""[D14] Figure 3 and Table 2: every algorithm on interval workloads, and as a multiple of DAWA."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.baselines import (
    HB,
    Ahp,
    DpCube,
    Efpa,
    GreedyH,
    Identity,
    Mwem,
    Php,
    Privelet,
    StructureFirst,
    Uniform,
)
from benchmarks.dawa_not_private import not_private_dawa
from benchmarks.dawa_setting import (
    CELLS,
    EPSILONS,
    KINDS,
    LINE,
    Estimate,
    Trials,
    chart,
    error,
    estimator,
    run,
    seed,
    spread,
    tracked,
    workload,
)
from benchmarks.tables import Row, show, write
from blowfishdb.core.workloads import Histogram
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.dawa import Dawa
from blowfishdb.noise import seeded

DAWA, NOT_PRIVATE, MWEM = "DAWA", "DAWA, not private", "MWEM"
ROUNDS = (10, 20, 50, 100)
FIXED = {"Identity": Identity(), "Privelet": Privelet(), "HB": HB()}
"""Data-independent and the same for all questions."""
BLIND = {
    "Uniform": Uniform(),
    "EFPA": Efpa(),
    "P-HP": Php(),
    "StructureFirst": StructureFirst(),
    "AHP": Ahp(),
    "DPCube": DpCube(),
    "AdaptiveTree": AdaptiveTree(),
}
"""Data-dependent, but the same for all questions: one release is measured on every workload."""


def tuned_rounds(data: dict[str, np.ndarray], trials: Trials) -> dict[str, int]:
    """The number of rounds of least error at ε = 0.1, as in [D14]: found on the data, hence not private."""
    found = {}
    for name in tracked(LINE, "MWEM, rounds"):
        short = Trials(min(3, trials.workloads), 1)
        errors = {
            rounds: np.mean(run(estimator(Mwem(rounds)), data[name], "uniform", 0.1, short, "tuning"))
            for rounds in ROUNDS
        }
        found[name] = min(errors, key=lambda rounds: float(errors[rounds]))
    return found


def aware(name: str, rounds: dict[str, int]) -> dict[str, Estimate]:
    """What is planned for its questions."""
    return {
        MWEM: estimator(Mwem(rounds[name])),
        DAWA: estimator(Dawa(split=0.25)),
        NOT_PRIVATE: not_private_dawa,
    }


def row(name: str, epsilon: float, kind: str, algorithm: str, errors: list[float]) -> Row:
    mean, deviation = spread(errors)
    return {
        "data": name,
        "epsilon": epsilon,
        "workload": kind,
        "algorithm": algorithm,
        "error": mean,
        "standard error": deviation,
    }


def measured(
    data: dict[str, np.ndarray], trials: Trials, kinds_at: dict[float, tuple[str, ...]]
) -> list[Row]:
    """All errors. What does not look at the data is run once for all data sets."""
    rounds = tuned_rounds(data, trials)
    rows = []
    for epsilon, kinds in kinds_at.items():
        fixed = fixed_errors(epsilon, kinds, trials)
        for name in tracked(LINE, f"ε = {epsilon}"):
            found = fixed | blind_errors(data[name], name, epsilon, kinds, trials)
            for label, estimate in aware(name, rounds).items():
                for kind in kinds:
                    found[label, kind] = run(estimate, data[name], kind, epsilon, trials, f"{label} {name}")
            rows += [row(name, epsilon, kind, label, errors) for (label, kind), errors in found.items()]
    return rows


def fixed_errors(
    epsilon: float, kinds: tuple[str, ...], trials: Trials
) -> dict[tuple[str, str], list[float]]:
    nothing = np.zeros(CELLS, dtype=np.int64)
    found = {}
    for kind in kinds:
        for label, mechanism in FIXED.items():
            found[label, kind] = run(estimator(mechanism), nothing, kind, epsilon, trials, label)
        found["Greedy H", kind] = run(estimator(GreedyH()), nothing, kind, epsilon, trials, "Greedy H")
    return found


def blind_errors(
    x: np.ndarray, name: str, epsilon: float, kinds: tuple[str, ...], trials: Trials
) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for label, mechanism in BLIND.items():
        estimate = estimator(mechanism)
        for number, release in trials.pairs():
            cells = estimate(
                x, Histogram(CELLS), epsilon, seeded(seed(label, name, epsilon, number, release))
            )
            for kind in kinds:
                found.setdefault((label, kind), []).append(error(cells, workload(kind, number), x))
    return found


def table_2(rows: list[Row]) -> list[Row]:
    """The smallest and the largest ratio to DAWA over the data sets, by ε and algorithm."""
    table = []
    for epsilon in dict.fromkeys(one["epsilon"] for one in rows):
        of = {(one["data"], one["algorithm"]): one for one in rows if one["epsilon"] == epsilon}
        for algorithm in dict.fromkeys(label for _, label in of):
            if algorithm == DAWA:
                continue
            pairs = [(of[name, algorithm], of[name, DAWA]) for name in LINE]
            ratios = [(a["error"] / b["error"], *_relative(a, b), a["data"]) for a, b in pairs]
            least, most = min(ratios), max(ratios)
            table.append(
                {
                    "epsilon": epsilon,
                    "algorithm": algorithm,
                    "smallest": least[0],
                    "± smallest": least[0] * least[1],
                    "on": least[2],
                    "largest": most[0],
                    "± largest": most[0] * most[1],
                    "on that": most[2],
                }
            )
    return table


def _relative(above: Row, below: Row) -> tuple[float]:
    """The relative standard error of a ratio of independent means."""
    return (math.hypot(above["standard error"] / above["error"], below["standard error"] / below["error"]),)


def figures(data: dict[str, np.ndarray], trials: Trials, *, save: bool) -> None:
    """Figure 3, Table 2, and the other three workloads at ε = 0.1."""
    kinds_at = {epsilon: KINDS if epsilon == 0.1 else KINDS[:1] for epsilon in EPSILONS}
    rows = measured(data, trials, kinds_at)
    uniform = [one for one in rows if one["workload"] == "uniform"]
    others = [one for one in rows if one["epsilon"] == 0.1]
    table = table_2(uniform)
    show(uniform)
    print()
    show(table)
    if not save:
        return
    title = "Uniform intervals: average error (D14, Figure 3)"
    write(
        "dawa_intervals", uniform, chart(_drawn(uniform), facet="epsilon", x="data", y="error", title=title)
    )
    title = "ε = 0.1: average error by workload"
    write("dawa_workloads", others, chart(_drawn(others), facet="workload", x="data", y="error", title=title))
    ratios = [
        {
            "side": side,
            "epsilon": one["epsilon"],
            "algorithm": one["algorithm"],
            "ratio to DAWA": one[side],
            "standard error": one[f"± {side}"],
        }
        for side in ("smallest", "largest")
        for one in _drawn(table)
    ]
    title = "Error over DAWA's, over the data sets (D14, Table 2)"
    write("dawa_ratios", table, chart(ratios, facet="side", x="epsilon", y="ratio to DAWA", title=title))


def _drawn(rows: list[Row]) -> list[Row]:
    """Without Uniform, whose error would flatten all others."""
    return [one for one in rows if one["algorithm"] != "Uniform"]
