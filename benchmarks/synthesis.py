"""Synthetic tables: how far off tables of two and three columns are, and what a model trained on the rows is
worth.

    python -m benchmarks.synthesis [--data ../shared/data] [--seeds 5] [--epsilons 0.1,0.3,1]

On adult (14 columns, fnlwgt included and education left out) and on skin (three colours and a label), one
fixed split each. TV: half the L1 distance of two tables, per row, averaged over all pairs (and over pairs
with a hidden column); KS: the largest error of a cumulative count, averaged over ordered columns; AUC and
accuracy of a logistic regression that is trained on synthetic rows and tested on real ones. Beside it:
columns that are drawn independently from exact counts, a bootstrap of the real rows, and the real rows
themselves. Constants of the mechanism were chosen on adult; skin was looked at once.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.tables import Row, show
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.graphs import Explicit, PolicyGraph, Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.synthesis import SynthesisPlan, release
from blowfishdb.noise import seeded

ADULT_EDGES = {
    "age": list(range(15, 95, 5)),
    "fnlwgt": list(range(0, 500_000, 50_000)),
    "edunum": list(range(1, 17)),
    "capgain": [0, 1, 3_000, 5_000, 7_000, 10_000, 15_000, 20_000, 50_000],
    "caploss": [0, 1, 1_500, 1_700, 1_900, 2_100, 2_500],
    "hourweek": [1, 10, 20, 30, 35, 40, 41, 45, 50, 60, 70],
}
TRIPLES = 60
KEEPING = "(c) a few columns hidden, the others kept"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in bins, split once, and the columns that they are of."""

    name: str
    axes: tuple[Axis, ...]
    train: Any
    test: Any
    target: int
    secret: frozenset[int]
    """What the third policy hides."""

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.bins.count for axis in self.axes)

    @property
    def domain(self) -> Domain:
        return Domain.of({axis.column: axis.attribute for axis in self.axes})

    def counts(self, columns: tuple[int, ...]) -> Secret[Any]:
        return Secret(counted(self.train, columns, self.sizes))

    def kinds(self, columns: tuple[int, ...]) -> Secret[Any]:
        lines, held = np.unique(self.train[:, columns], axis=0, return_counts=True)
        cells = [self.axes[at].bins.first(lines[:, i]) for i, at in enumerate(columns)]
        return Secret(np.column_stack((*cells, held)))

    @property
    def shown(self) -> list[str]:
        """What the third policy does not hide."""
        return [axis.column for at, axis in enumerate(self.axes) if at not in self.secret]


def counted(rows: Any, columns: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    shape = tuple(sizes[column] for column in columns)
    place = np.ravel_multi_index(tuple(rows[:, column] for column in columns), shape)
    return np.bincount(place, minlength=int(np.prod(shape)))


# --- data -------------------------------------------------------------------------------------------


def split(name: str, axes: list[Axis], columns: list[Any], target: str, secret: list[str]) -> Table:
    rows = np.column_stack(
        [axis.bins.assign(axis.attribute.encode(column)) for axis, column in zip(axes, columns, strict=True)]
    )
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    cut, names = len(rows) * 4 // 5, [axis.column for axis in axes]
    hidden = frozenset(names.index(column) for column in secret)
    return Table(name, tuple(axes), rows[:cut], rows[cut:], names.index(target), hidden)


def adult(folder: Path) -> Table:
    path = folder / "adult.csv"
    if not path.exists():
        print("adult.csv is not there: made-up people in its place.")
        return made_up()
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    axes, columns = [], []
    for name in (name for name in lines[0] if name != "education"):
        texts = [line[name] for line in lines]
        if name in ADULT_EDGES:
            numbers = np.array([int(text) for text in texts])
            attribute: Any = Integer(ADULT_EDGES[name][0], int(numbers.max()))
            axes.append(Axis(name, attribute, attribute.bins(edges=ADULT_EDGES[name])))
            columns.append(numbers)
        else:
            attribute = Category(sorted(set(texts)), missing="clamp", outside="clamp")
            axes.append(Axis(name, attribute, attribute.bins()))
            columns.append(texts)
    return split("adult", axes, columns, "salary", ["sex", "race", "salary"])


def skin(folder: Path) -> Table | None:
    path = folder / "skin.csv"
    if not path.exists():
        return None
    rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)[::8]
    names = ("b", "g", "r", "label")
    axes = []
    for at, name in enumerate(names):
        attribute = Integer(0, 255) if at < 3 else Integer(int(rows[:, 3].min()), int(rows[:, 3].max()))
        axes.append(Axis(name, attribute, attribute.bins(count=16 if at < 3 else 2)))
    return split("skin", axes, list(rows.T), "label", ["label", "r"])


def made_up(rows: int = 30_000) -> Table:
    """Where the data is not there: seven columns, each depending on the one before it."""
    stream, columns, axes = np.random.default_rng(5), [], []
    last = stream.integers(0, 12, rows)
    for number in range(7):
        size = 2 if number == 6 else 12
        moved = np.where(stream.random(rows) < 0.3, stream.integers(0, size, rows), last * size // 12)
        attribute = Integer(0, size - 1)
        axes.append(Axis(f"c{number}", attribute, attribute.bins()))
        columns.append(moved)
        last = moved if size == 12 else last
    return split("made up", axes, columns, "c6", ["c5", "c6"])


def policies(table: Table) -> dict[str, Policy]:
    """Everything hidden; numbers within 5 % and one column at a time; only a few columns hidden."""
    domain = table.domain
    near: dict[str, PolicyGraph] = {
        axis.column: Threshold(axis.attribute.size, max(1, -(-axis.attribute.size // 20)))
        for axis in table.axes
        if axis.attribute.ordered and axis.attribute.size > 2
    }
    shown: dict[str, PolicyGraph] = {
        axis.column: Explicit(axis.attribute.size, ())
        for at, axis in enumerate(table.axes)
        if at not in table.secret
    }
    return {
        "plain DP": Policy.differential_privacy(domain),
        "(a) near values, together": Policy.by_column(domain, near),
        "(b) near values, one column at a time": Policy.by_column(domain, near, joint=False),
        "(c) a few columns hidden, all drawn": Policy.by_column(domain, shown),
        KEEPING: Policy.by_column(domain, shown),
    }


# --- measures ---------------------------------------------------------------------------------------


def distance(table: Table, rows: Any, groups: list[tuple[int, ...]]) -> float:
    far = []
    for group in groups:
        one, other = (counted(each, group, table.sizes) / len(each) for each in (rows, table.train))
        far.append(np.abs(one - other).sum() / 2)
    return float(np.mean(far))


def largest_gap(table: Table, rows: Any) -> float:
    gaps = []
    for at, axis in enumerate(table.axes):
        if axis.attribute.ordered and axis.bins.count > 2:
            one, other = (
                np.cumsum(counted(each, (at,), table.sizes)) / len(each) for each in (rows, table.train)
            )
            gaps.append(np.abs(one - other).max())
    return float(np.mean(gaps))


def features(table: Table, rows: Any) -> tuple[Any, Any]:
    parts = [np.eye(size)[rows[:, at]] for at, size in enumerate(table.sizes) if at != table.target]
    return np.hstack([*parts, np.ones((len(rows), 1))]), rows[:, table.target].astype(float)


def learnt(table: Table, rows: Any) -> tuple[float, float]:
    """AUC and accuracy on real rows of a regression that saw these."""
    x, y = features(table, rows)
    if y.min() == y.max():
        return 0.5, float(max(table.test[:, table.target].mean(), 1 - table.test[:, table.target].mean()))

    def loss(w: Any) -> tuple[float, Any]:
        z = x @ w
        value = np.logaddexp(0, z) - y * z
        slope = x.T @ (1 / (1 + np.exp(-z)) - y)
        return float(value.sum() + 0.5 * w @ w), slope + w

    w = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    xt, yt = features(table, table.test)
    score = xt @ w
    ranks = np.argsort(np.argsort(score)) + 1
    some = int(yt.sum())
    auc = (ranks[yt == 1].sum() - some * (some + 1) / 2) / (some * (len(yt) - some))
    return float(auc), float(((score > 0) == yt).mean())


def measured(table: Table, rows: Any) -> dict[str, float]:
    count = len(table.sizes)
    pairs = list(itertools.combinations(range(count), 2))
    triples = list(itertools.combinations(range(count), 3))
    some = [triples[i] for i in np.random.default_rng(1).permutation(len(triples))[:TRIPLES]]
    auc, accuracy = learnt(table, rows)
    return {
        "TV2": distance(table, rows, pairs),
        "TV2 hidden": distance(table, rows, [pair for pair in pairs if table.secret & set(pair)]),
        "TV3": distance(table, rows, some),
        "KS": largest_gap(table, rows),
        "AUC": auc,
        "accuracy": accuracy,
    }


def baselines(table: Table) -> list[Row]:
    stream = np.random.default_rng(3)
    alone = np.column_stack([stream.permutation(column) for column in table.train.T])
    again = table.train[stream.integers(0, len(table.train), len(table.train))]
    named = {"exact columns, independent": alone, "bootstrap of the rows": again, "the rows": table.train}
    return [
        {"data": table.name, "policy": name, "ε": "", "way": "", **measured(table, rows), "s": 0.0, "MB": 0}
        for name, rows in named.items()
    ]


def synthesized(table: Table, name: str, policy: Policy, epsilon: str, seeds: int) -> Row:
    runs, seconds, plan = [], [], None
    keep = table.shown if name == KEEPING else ()
    for seed in range(seeds):
        started = time.process_time()
        plan = SynthesisPlan.under([policy], table.axes, rows=len(table.train), epsilon=epsilon, keep=keep)
        made = release(plan, table, noise=seeded(seed))
        rows = made.model.drawn(len(table.train), np.random.default_rng(seed))
        seconds.append(time.process_time() - started)
        runs.append(measured(table, rows))
    assert plan is not None
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    row = {"data": table.name, "policy": name, "ε": epsilon, "way": plan.way, **mean}
    return {**row, "s": float(np.mean(seconds)), "MB": most}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epsilons", default="0.1,0.3,1")
    options = parser.parse_args()
    for table in filter(None, (adult(options.data), skin(options.data))):
        rows = baselines(table)
        for epsilon in options.epsilons.split(","):
            for name, policy in policies(table).items():
                rows.append(synthesized(table, name, policy, epsilon, options.seeds))
                print(rows[-1], flush=True)
        show(rows)


if __name__ == "__main__":
    main()
