"""What analysts pay who explore: five explorations and random ones, beside what version 80c69fd charged.

Prices depend on questions, policies and what was answered before, never on rows or the machine. The figures
of 80c69fd were taken with the same file, ``benchmarks.explorations``, and its code.
"""

from __future__ import annotations

import argparse

from benchmarks.explorations import at_random, five, paid, planned, policies
from benchmarks.tables import Row, show

BEFORE = {
    "everything": {
        "closer and closer": 0.414520,
        "quartiles": 1.463537,
        "finer and finer": 0.249061,
        "into the top": 0.151841,
        "young and old": 0.356318,
    },
    "within 1,000": {
        "closer and closer": 0.261871,
        "quartiles": 1.029483,
        "finer and finer": 0.249061,
        "into the top": 0.113194,
        "young and old": 0.314531,
    },
    "within 1,000, presence hidden": {
        "closer and closer": 0.309768,
        "quartiles": 1.365009,
        "finer and finer": 0.249230,
        "into the top": 0.174272,
        "young and old": 0.337572,
    },
}
"""The sums of 80c69fd."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--random", type=int, default=0, help="how many random explorations as well")
    count = options.parse_args().random
    rows: list[Row] = []
    for name, policy in policies().items():
        for title, steps in five().items():
            costs = paid(policy, steps)
            now = sum(cost or 0.0 for cost in costs)
            listed = " ".join("refused" if cost is None else f"{cost:.4f}" for cost in costs)
            before = BEFORE[name][title]
            rows.append(
                {
                    "policy": name,
                    "exploration": title,
                    "before": before,
                    "now": now,
                    "ratio": now / before,
                    "planned": planned(policy, steps),
                    "each": listed,
                }
            )
    show(rows)
    columns = ("before", "now", "planned")
    before, now, together = (sum(float(row[column]) for row in rows) for column in columns)
    print(f"\nall five under all three: {before:.3f} before, {now:.3f} now, ratio {now / before:.3f}")
    print(f"planned together: {together:.3f}, ratio {together / before:.3f}")
    for name, policy in policies().items() if count else ():
        explored = at_random(count).values()
        total = sum(cost or 0.0 for steps in explored for cost in paid(policy, steps))
        at_once = sum(planned(policy, steps) for steps in explored)
        print(f"{count} random explorations, {name}: {total:.3f}, planned together {at_once:.3f}")


if __name__ == "__main__":
    main()
