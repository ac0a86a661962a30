"""The front door's still pictures, worked out by the real planner: python -m benchmarks.door --write.

Made-up salaries of 4,000 people who do not exist, one histogram, five policies. A visitor should not wait for
a planner, so what it says is kept beside the page; a test compares every price and error with the planner.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from typing import Any

import numpy as np

import blowfishdb as bf
from blowfishdb.core.policy.protection import certainty_at, percent, probe
from blowfishdb.entrypoints.demo_data import salaries
from blowfishdb.entrypoints.server.web.door import FILE

PEOPLE, WIDTH, TOP = 4_000, 10_000, 199_999
SPENT, ERROR, BETA, BUDGET = bf.Epsilon("0.1"), 50, 0.05, bf.Epsilon(1)
DISTANCES = (1_000, 10_000, 20_000, 30_000, None)
PAIR = ("40000", "60000")
BINS = bf.Bins.width(TOP + 1, WIDTH)


def policy(distance: int | None) -> bf.Policy:
    """Salaries hidden within a distance, or entirely."""
    domain = bf.Domain(salary=bf.Integer(0, TOP))
    size = domain["salary"].size
    graph = bf.graphs.Full(size) if distance is None else bf.graphs.Threshold(size, distance)
    return bf.Policy.by_column(domain, {"salary": graph})


def plan(distance: int | None) -> Any:
    """The cheapest way to a histogram of salaries under a policy."""
    small = policy(distance).graph.project(BINS)
    return bf.mechanisms.Best().plan(bf.workloads.Histogram(BINS.count), small)


def facts(distance: int | None, planned: Any) -> dict[str, Any]:
    """What a visitor is told about one policy, but for the noisy bars."""
    asked = probe(policy(distance), "salary", *PAIR, BUDGET)
    return {
        "distance": distance,
        "price": str(planned.epsilon_for(alpha=ERROR, beta=BETA)),
        "error": float(Fraction(planned.alpha_for(epsilon=SPENT, beta=BETA))),
        "hidden": percent(certainty_at(1, BUDGET)),
        "apart": percent(asked.certainty),
    }


def truth() -> np.ndarray:
    """How many of the made-up people earn how much."""
    return np.bincount(salaries(PEOPLE)["salary"] // WIDTH, minlength=BINS.count)


def main(arguments: list[str] | None = None) -> int:
    """Work everything out, and write it if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args(arguments).write
    stills = []
    for distance in DISTANCES:
        planned = plan(distance)
        noisy = planned.release(truth(), epsilon=SPENT, noise=bf.noise.secure())
        stills.append({**facts(distance, planned), "bars": [round(float(bar)) for bar in noisy]})
    made = {
        "people": PEOPLE,
        "width": WIDTH,
        "spent": str(SPENT),
        "within": ERROR,
        "budget": str(BUDGET),
        "truth": truth().tolist(),
        "stills": stills,
    }
    text = json.dumps(made, separators=(",", ":")) + "\n"
    if write:
        FILE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
