"""How long does it take to read an answer from stored ones, beside planning the question afresh?

    python -m benchmarks.reuse_time

Two releases with different cuts are combined by least squares and asked for every bin of the first.
The last column is what an owned answer costs in time, as a share of what a new plan costs.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.tables import Row, show
from benchmarks.timing import seconds
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.workloads import Cumulative, Histogram, Ranges, Workload
from blowfishdb.mechanisms import Hierarchical, Optimized
from blowfishdb.mechanisms.reuse import StoredRelease, combine

SIZE = 10**6
BINS = 10_000


def axis(width: int) -> Axis:
    return Axis("value", Integer(0, SIZE - 1), Bins.width(SIZE, width))


def stored(width: int, rows: Workload, number: int) -> StoredRelease:
    return StoredRelease.of([axis(width)], rows, 30, np.zeros(rows.count, dtype=np.int64), number)


def tree(size: int) -> Ranges:
    """Every node of a tree in which each has four children."""
    widths = 4 ** np.arange(1 + int(np.log(size) / np.log(4)))
    starts = np.concatenate([np.arange(0, size, width) for width in widths])
    ends = np.concatenate([np.minimum(np.arange(0, size, w) + w, size) - 1 for w in widths])
    return Ranges(size, starts, ends)


def measure(name: str, rows: Workload, asked: Workload) -> Row:
    other = stored(98, Histogram(-(-SIZE // 98)), 2)

    def combined() -> None:
        found = combine([stored(100, rows, 1), other], [axis(100)], asked)
        assert found is not None and np.isfinite(found.variances).all()

    def planned() -> None:
        assert Optimized().plan(asked, Threshold(BINS, 100)).unit_error > 0

    combined(), planned()  # compiles
    reading, planning = (min(seconds(act) for _ in range(3)) for act in (combined, planned))
    return {
        "stored": name,
        "asked": type(asked).__name__,
        "combine ms": 1e3 * reading,
        "plan ms": 1e3 * planning,
        "combine / plan": reading / planning,
    }


def main() -> None:
    argparse.ArgumentParser(description="Reading answers from stored ones.").parse_args()
    kinds = {"cells": Histogram(BINS), "prefixes": Cumulative(BINS), "a tree": tree(BINS)}
    show(
        [
            measure(name, rows, asked(BINS))
            for name, rows in kinds.items()
            for asked in (Histogram, Cumulative)
        ]
    )
    took = seconds(lambda: Hierarchical().plan(Cumulative(BINS), Threshold(BINS, BINS - 1)))
    print(f"\nA plan of Hierarchical over {BINS:,} cells: {took:.2f} s")


if __name__ == "__main__":
    main()
