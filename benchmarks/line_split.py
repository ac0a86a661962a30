"""[A]'s question about ε₁: how much of ε should choose the buckets, and how much count them?

    python -m benchmarks.line_split [--data ../shared/data] [--trials 10] [--write]

The paper finds a quarter of ε better for DAWA and half for DAWA on the transformed data. Here both, with the
noise of their proofs, on histograms of 4,096 cells under the line policy (θ = 1); and matching on the
transformed data, on 64 cells (64 of the others each; a matching of 512 takes minutes). Squared error with
half of ε on the buckets over that with a quarter: below 1, half is better.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import blowfishdb as bf
from benchmarks.dawa_setting import line_data
from benchmarks.tables import Row, show, write
from blowfishdb.mechanisms.plan import DataDependentMechanism

COARSE = 64
EPSILONS = (0.01, 0.1)


def mechanisms(split: float) -> dict[str, DataDependentMechanism]:
    return {
        "DAWA": bf.mechanisms.Dawa(split=split),
        "DAWA transformed": bf.mechanisms.DawaTransformed(split=split),
        "matching transformed": bf.mechanisms.MatchingTransformed(split=split),
    }


def errors(x: np.ndarray, mechanism: DataDependentMechanism, epsilon: float, trials: int) -> np.ndarray:
    """Mean squared error of a cell, for every release; the same seeds whatever the split."""
    plan = mechanism.plan(bf.workloads.Histogram(x.size), bf.graphs.Threshold(x.size, 1))
    releases = (plan.release(x, epsilon=epsilon, noise=bf.noise.seeded(t)) for t in range(trials))
    return np.array([((answer - x) ** 2).mean() for answer in releases])


def measured(data: dict[str, np.ndarray], trials: int) -> Iterator[Row]:
    half, quarter = mechanisms(0.5), mechanisms(0.25)
    for label in half:
        for epsilon in EPSILONS:
            row: Row = {"mechanism": label, "epsilon": epsilon}
            for name, counts in data.items():
                x = counts if label.startswith("DAWA") else counts.reshape(COARSE, -1).sum(axis=1)
                one, other = (errors(x, each[label], epsilon, trials) for each in (half, quarter))
                row |= {name: float(one.mean() / other.mean()), f"{name} ±": _error(one, other)}
            yield row


def _error(one: np.ndarray, other: np.ndarray) -> float:
    """The standard error of a ratio of means, to first order; releases with the same seed are paired."""
    ratio = one.mean() / other.mean()
    return float(np.std(one - ratio * other, ddof=1) / other.mean() / np.sqrt(one.size))


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [
        {"mechanism": row["mechanism"], "ε": str(row["epsilon"]), "data": name, "ratio": value}
        for row in rows
        for name, value in row.items()
        if name not in ("mechanism", "epsilon") and not name.endswith("±")
    ]
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("data:N", sort=None, title=None),
            y=alt.Y("ratio:Q", title="error with ε/2 over error with ε/4"),
            color="ε:N",
            column=alt.Column("mechanism:N", title=None),
        )
        .properties(width=240, height=200, title="How much of ε chooses the buckets, line policy")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Half or a quarter of ε for the buckets, under the line policy."
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="write docs/figures/line_split.*")
    chosen = parser.parse_args()
    if not (chosen.data / "dpbench").is_dir():
        print(f"{chosen.data / 'dpbench'} is not there: this table needs the data sets of the paper.")
        return
    rows = list(measured(line_data(chosen.data), chosen.trials))
    show(rows)
    if chosen.write:
        write("line_split", rows, chart(rows))


if __name__ == "__main__":
    main()
