"""Histograms under the line policy: Figures 4 and 5 of "Data-dependent Blowfish" ([A]), all as proven.

    python -m benchmarks.line_histograms [--data ../shared/data] [--figure 5] [--half] [--trials 10] [--write]

Mean squared error per cell with its standard error. *Figure 4*: seven histograms of 4,096 cells. *Figure 5*:
matching beside the others on 512 cells, of the income histogram and of one that jumps at every cell; with
``--half`` on half of income, 2,048 cells, as in the paper: two releases, in one round, because it is slow.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.tables import Row, show, write
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Cumulative, Histogram
from blowfishdb.mechanisms.adaptive.denoised import OrderedDenoised
from blowfishdb.mechanisms.dawa import Dawa, DawaTransformed
from blowfishdb.mechanisms.dawa.matching import MatchingTransformed
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.noise import seeded

NAMES = ("adult", "hepth", "income", "medcost", "nettrace", "patent", "searchlogs")
EPSILONS = (0.001, 0.01, 0.1)
MATCHED, HALF = 512, 2_048
OURS, LAPLACE, DAWAS = "OrderedDenoised", "Transformed + Laplace", ("DAWA", "DAWA + Transformed")
Release = Callable[[np.ndarray, float, Noise], np.ndarray]


def algorithms(size: int, *, rounds: Sequence[int] = ()) -> dict[str, Release]:
    """Every algorithm by its name in the figures, planned once; matching in each number of rounds."""
    histogram, line = Histogram(size), Threshold(size, 1)
    planners = {
        "Laplace": Laplace(on="workload"),
        LAPLACE: Ordered(),
        "DAWA": Dawa(split=0.25),
        "DAWA + Transformed": DawaTransformed(),
        OURS: OrderedDenoised(),
    }
    for number in rounds:
        more = f", {number} rounds" if number > 1 else ""
        planners[f"Matching + Transformed{more}"] = MatchingTransformed(rounds=number)
    plans = {label: planner.plan(histogram, line) for label, planner in planners.items()}
    prefixes = Ordered().plan(Cumulative(size), line)

    def consistent(x: np.ndarray, epsilon: float, noise: Noise) -> np.ndarray:
        from scipy.optimize import isotonic_regression

        noisy = np.asarray(prefixes.release(x, epsilon=epsilon, noise=noise), dtype=float)
        rising = np.clip(isotonic_regression(noisy[:-1]).x, 0.0, noisy[-1])
        return np.diff(rising, prepend=0.0, append=noisy[-1])

    return {
        label: lambda x, epsilon, noise, plan=plan: plan.release(x, epsilon=epsilon, noise=noise)
        for label, plan in plans.items()
    } | {"ConsistentEst": consistent}


def errors(
    figure: int, data: str, x: np.ndarray, trials: int, *, rounds: Sequence[int] = ()
) -> Iterator[Row]:
    for label, release in algorithms(x.size, rounds=rounds).items():
        for epsilon in EPSILONS:
            answers = (release(x, epsilon, seeded(trial)) for trial in range(trials))
            found = [float(((answer - x) ** 2).mean()) for answer in answers]
            yield {
                "figure": figure,
                "data": data,
                "algorithm": label,
                "epsilon": epsilon,
                "mean squared error": float(np.mean(found)),
                "standard error": float(np.std(found, ddof=1) / math.sqrt(trials)),
                "trials": trials,
            }


def jumping(size: int) -> np.ndarray:
    """No two neighbours alike, many alike elsewhere: what buckets that are no intervals are for."""
    return np.random.default_rng(5).choice([0, 400, 1_500, 6_000], size)


def misses(rows: list[Row]) -> Iterator[str]:
    """Where a claim of the page does not hold in these rows."""
    cells: dict[tuple[str, float], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["data"], row["epsilon"]), {})[row["algorithm"]] = row
    for (data, epsilon), of in cells.items():
        ours, where = of[OURS], f"{data}, ε = {epsilon}"
        if ours["mean squared error"] >= of[LAPLACE]["mean squared error"]:
            yield f"{where}: {OURS} is not below {LAPLACE}"
        for label in DAWAS:
            slack = 2 * math.hypot(ours["standard error"], of[label]["standard error"])
            if ours["mean squared error"] > of[label]["mean squared error"] + slack:
                yield f"{where}: {OURS} is above {label}"
        if of["DAWA + Transformed"]["mean squared error"] >= of["DAWA"]["mean squared error"]:
            yield f"{where}: DAWA + Transformed is not below DAWA"


def table(rows: list[Row]) -> list[Row]:
    """One line for each algorithm and ε, one column for each data set."""
    found: dict[tuple[float, str], dict[str, object]] = {}
    for row in rows:
        line = found.setdefault(
            (row["epsilon"], row["algorithm"]), {"epsilon": row["epsilon"], "algorithm": row["algorithm"]}
        )
        line[row["data"]] = f"{row['mean squared error']:.3g} ± {row['standard error']:.1g}"
    return [found[key] for key in sorted(found)]


def chart(rows: list[Row], title: str) -> object:
    import altair as alt

    return (
        alt.Chart(alt.InlineData(values=[{**row, "ε": f"{row['epsilon']:g}"} for row in rows]))
        .mark_point(filled=True, size=45)
        .encode(
            x=alt.X("ε:N", title="ε"),
            y=alt.Y("mean squared error:Q", scale=alt.Scale(type="log"), title="mean squared error per cell"),
            color=alt.Color("algorithm:N"),
            shape=alt.Shape("algorithm:N"),
            facet=alt.Facet("data:N", columns=4, title=None),
        )
        .properties(width=130, height=220, title=title)
    )


def figure_four(data: dict[str, np.ndarray], trials: int, *, keep: bool) -> None:
    rows = [row for name, x in data.items() for row in errors(4, name, x, trials)]
    show(table(rows))
    print("\n".join(["", "claims that fail:", *misses(rows)]), flush=True)
    if keep:
        write("line_histograms", rows, chart(rows, "Histograms under the line policy"))


def figure_five(data: dict[str, np.ndarray], trials: int, *, keep: bool) -> None:
    small = {f"income, {MATCHED} cells": data["income"][:MATCHED], "jumping": jumping(MATCHED)}
    rows = [row for name, x in small.items() for row in errors(5, name, x, trials, rounds=(1, 3))]
    show(table(rows))
    if keep:
        write("matching", rows, chart(rows, f"Matching on {MATCHED} cells"))


def half_of_income(data: dict[str, np.ndarray], *, keep: bool) -> None:
    rows = list(errors(5, f"income, {HALF:,} cells", data["income"][:HALF], 2, rounds=(1,)))
    show(table(rows))
    if keep:
        write(f"matching_{HALF}", rows, chart(rows, f"Matching on {HALF:,} cells"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Histograms under the line policy, as in [A].")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of data sets")
    parser.add_argument("--figure", type=int, choices=(4, 5), help="only this one")
    parser.add_argument("--half", action="store_true", help="Figure 5 on 2,048 cells, alone: five minutes")
    parser.add_argument("--trials", type=int, default=10, help="releases per figure; a third for matching")
    parser.add_argument(
        "--write", action="store_true", help="write docs/figures/line_histograms.*, matching.*"
    )
    args = parser.parse_args()
    folder = args.data / "dpbench"
    if not folder.is_dir():
        print(f"{folder} is not there: nothing to compare on.")
        return
    data = {name: np.load(folder / f"{name}.npy") for name in NAMES}
    if args.figure != 5 and not args.half:
        figure_four(data, args.trials, keep=args.write)
    if args.half:
        half_of_income(data, keep=args.write)
    elif args.figure != 4:
        figure_five(data, max(3, args.trials // 3), keep=args.write)


if __name__ == "__main__":
    main()
