"""[D14] Table 1: how many buckets the optimal partition has, and what that number depends on.

    python -m benchmarks.dawa_table [--data ../shared/data] [--write]

The cost of a partition is Σ deviation + (number of buckets)·penalty. The paper prints the number of buckets
"when ε = 0.1" and does not say which penalty it means: 1/ε (10), that of a DAWA which keeps three quarters of
ε for counting (13⅓), or another one. So the optimum is worked out exactly for several, over all intervals and
over those whose length is a power of two. It comes from true counts and is NOT PRIVATE: nobody may see it.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.dawa_not_private import not_private_optimum
from benchmarks.dawa_parts import all_deviations
from benchmarks.dawa_setting import CELLS, LINE, line_data
from benchmarks.tables import Row, show, write
from blowfishdb.mechanisms.dawa.partition import Candidates

PENALTIES = (Fraction(10), Fraction(40, 3), Fraction(20), Fraction(30), Fraction(40))
PRINTED = dict(zip(LINE, (22, 29, 20, 500, 1537, 1870, 2168), strict=True))
"""[D14] Table 1; its last set is HepPh, ours is HepTh."""


def buckets(x: np.ndarray, candidates: Candidates) -> list[int]:
    """Buckets of the optimum, for every penalty."""
    exact = all_deviations(x, candidates)
    return [not_private_optimum(exact, candidates, 1 / penalty).size for penalty in PENALTIES]


def table(data: dict[str, np.ndarray]) -> list[Row]:
    """A line for every data set and set of candidates."""
    rows: list[Row] = []
    for name, x in data.items():
        for label, candidates in (
            ("all intervals", Candidates.all(CELLS)),
            ("powers of two", Candidates.powers_of_two(CELLS)),
        ):
            found = buckets(x, candidates)
            named = {f"penalty {float(p):.3g}": n for p, n in zip(PENALTIES, found, strict=True)}
            rows.append({"data": name, "candidates": label, **named, "printed": PRINTED[name]})
    return rows


def chart(rows: list[Row]) -> object:
    import altair as alt

    points = [
        {"data": row["data"], "penalty": float(p), "buckets": row[f"penalty {float(p):.3g}"]}
        for row in rows
        if row["candidates"] == "all intervals"
        for p in PENALTIES
    ]
    printed = [{"data": row["data"], "buckets": row["printed"]} for row in rows]
    y = alt.Y("buckets:Q", scale=alt.Scale(type="log"))
    lines = (
        alt.Chart(alt.InlineData(values=points))
        .mark_line(point=True)
        .encode(
            x=alt.X("penalty:Q", title="penalty per bucket"), y=y, color=alt.Color("data:N", sort=list(LINE))
        )
    )
    rules = (
        alt.Chart(alt.InlineData(values=printed))
        .mark_rule(strokeDash=[4, 4])
        .encode(y=y, color=alt.Color("data:N", sort=list(LINE)))
    )
    return (lines + rules).properties(
        width=360, height=260, title="Buckets of the optimal partition (dashed: D14, Table 1)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Buckets of the optimal partition, [D14] Table 1.")
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--write", action="store_true", help="write docs/figures/dawa_buckets.*")
    chosen = parser.parse_args()
    if not (chosen.data / "dpbench").is_dir():
        print(f"{chosen.data / 'dpbench'} is not there: this table needs the data sets of the paper.")
        return
    rows = table(line_data(chosen.data))
    show(rows)
    if chosen.write:
        write("dawa_buckets", rows, chart(rows))


if __name__ == "__main__":
    main()
