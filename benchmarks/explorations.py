"""Explorations: what analysts ask one after the other, and what that costs in all.

Only the public surface is used, so that the same file runs with older versions. Prices depend on questions,
policy and what was answered before, never on the rows: a few made-up ones are enough.
"""

from __future__ import annotations

import csv
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import blowfishdb as bf
from blowfishdb.core.errors import BlowfishError

ROWS = 400
OCCUPATIONS = ("care", "education", "engineering", "management", "manual", "office", "sales", "science")
REGIONS = ("north", "east", "south", "west")
DECILES = (0, 13_600, 24_400, 31_200, 37_600, 44_000, 51_200, 60_000, 72_800, 94_400)
"""Where the tenths of the demonstration's salaries begin, in round numbers."""
_TOP = 199_999

Step = Callable[[Any], Any]
"""A question about a dataset, with its accuracy."""


def domain() -> Any:
    """The columns of the demonstration."""
    return bf.Domain(
        age=bf.Integer(18, 90),
        salary=bf.Integer(0, _TOP),
        occupation=bf.Category(list(OCCUPATIONS)),
        region=bf.Category(list(REGIONS)),
        sex=bf.Category(["female", "male"]),
    )


def policies() -> dict[str, Any]:
    """What is hidden: everything; salaries within 1,000; these, and who is there at all."""
    columns = domain()
    near = {"salary": bf.graphs.Threshold(200_000, 1_000)}
    return {
        "everything": bf.Policy.differential_privacy(columns),
        "within 1,000": bf.Policy.by_column(columns, near),
        "within 1,000, presence hidden": bf.Policy.by_column(columns, near, hide_presence=True),
    }


def five() -> dict[str, tuple[Step, ...]]:
    """The five explorations that every version is measured by."""
    tenths = [(a, b - 1) for a, b in zip(DECILES, (*DECILES[1:], _TOP + 1), strict=True)]
    first, last = tenths[-1]
    middle = (first + last + 1) // 2
    female, male = (bf.col("sex").isin([value]) for value in ("female", "male"))
    young, old = bf.col("age") < 30, bf.col("age") >= 30
    return {
        "closer and closer": tuple(
            (lambda ds, a=alpha: ds["salary"].histogram(bins=20).accurate_to(a)) for alpha in (200, 100, 50)
        ),
        "quartiles": (
            lambda ds: ds["salary"].cumulative(bins=50).accurate_to(100),
            lambda ds: ds["salary"].quantiles([0.25, 0.5, 0.75], bins=50).accurate_to(100),
            lambda ds: ds.where(female)["salary"].median(bins=50).accurate_to(100),
            lambda ds: ds.where(male)["salary"].median(bins=50).accurate_to(100),
        ),
        "finer and finer": (
            lambda ds: ds["region"].histogram().accurate_to(100),
            lambda ds: ds["region", "sex"].histogram().accurate_to(100),
            lambda ds: ds["region", "sex", "occupation"].histogram().accurate_to(200),
        ),
        "into the top": (
            lambda ds: ds["salary"].ranges(tenths).accurate_to(100),
            lambda ds: ds["salary"].ranges([(first, middle - 1), (middle, last)]).accurate_to(100),
            lambda ds: ds["salary"].histogram(edges=[*DECILES]).accurate_to(200),
        ),
        "young and old": (
            lambda ds: ds.where(young).count().accurate_to(50),
            lambda ds: ds.where(young)["salary"].histogram(bins=20).accurate_to(100),
            lambda ds: ds.where(old)["salary"].histogram(bins=20).accurate_to(100),
            lambda ds: ds["salary"].histogram(bins=20).accurate_to(200),
        ),
    }


def at_random(count: int, seed: int = 2021) -> dict[str, tuple[Step, ...]]:
    """Explorations of three to six questions; some go on from the one before, some begin anew."""
    draw = random.Random(seed)
    return {f"random {number}": tuple(_steps(draw)) for number in range(1, count + 1)}


def _steps(draw: random.Random) -> Iterator[Step]:
    kind = _kind(draw)
    alpha = draw.choice((400, 200, 100))
    for _ in range(draw.randint(3, 6)):
        yield lambda ds, ask=kind, a=alpha: ask(ds).accurate_to(a)
        turn = draw.random()
        if turn < 0.4:
            alpha = draw.choice((alpha / 2, alpha * 0.8))
        else:
            alpha = draw.choice((400, 200, 100))
            kind = _filtered(draw, kind) if turn < 0.55 else _kind(draw)


def _kind(draw: random.Random) -> Step:
    bins = draw.choice((10, 20, 40))
    column = draw.choice(("salary", "salary", "salary", "age", "region", "occupation"))
    if column in ("region", "occupation"):
        if draw.random() < 0.4:
            return lambda ds, name=column: ds[name, "sex"].histogram()
        return lambda ds, name=column: ds[name].histogram()
    bins = bins if column == "salary" else min(bins, 20)
    form = draw.choice(("histogram", "histogram", "cumulative", "median", "quartiles"))
    if form == "quartiles":
        return lambda ds, name=column, n=bins: ds[name].quantiles([0.25, 0.5, 0.75], bins=n)
    return lambda ds, name=column, n=bins, f=form: getattr(ds[name], f)(bins=n)


def _filtered(draw: random.Random, kind: Step) -> Step:
    condition = draw.choice(
        (bf.col("sex").isin(["female"]), bf.col("region").isin(["west"]), bf.col("age") >= 40)
    )
    return lambda ds: kind(ds.where(condition))


def paid(policy: Any, steps: tuple[Step, ...]) -> list[float | None]:
    """What each question costs; None where it is refused."""
    with opened(policy) as workspace:
        return [_cost(step, workspace["people"]) for step in steps]


def planned(policy: Any, steps: tuple[Step, ...]) -> float:
    """What all questions cost that are settled on together, before the first is asked."""
    with opened(policy) as workspace:
        return float(workspace.plan(*(step(workspace["people"]) for step in steps)).quote())


@contextmanager
def opened(policy: Any) -> Iterator[Any]:
    """A workspace over a few rows, under a policy."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (place / "people.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["age", "salary", "occupation", "region", "sex"])
            for i in range(ROWS):
                sex = ("female", "male")[i % 2]
                lines.writerow([18 + i % 73, i * 499, OCCUPATIONS[i % 8], REGIONS[i // 8 % 4], sex])
        with bf.open(place / "work.blowfish") as workspace:
            workspace.add_dataset("people", place / "people.csv", domain=domain())
            workspace.set_budget("people", bf.Epsilon(1_000))
            workspace["people"].publish(policy)
            yield workspace


def _cost(step: Step, dataset: Any) -> float | None:
    try:
        return float(step(dataset).ask().receipt.cost)
    except BlowfishError:
        return None


def main() -> None:
    """Every figure as JSON: policy, exploration, the cost of each question."""
    import json
    import sys

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    found = {}
    for name, policy in policies().items():
        for title, steps in {**five(), **at_random(count)}.items():
            found[f"{name} | {title}"] = paid(policy, steps)
            print(f"{name} | {title}: {found[f'{name} | {title}']}", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
