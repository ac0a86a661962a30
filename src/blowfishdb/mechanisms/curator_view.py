"""The curator's view: true answers, for the one person who may see the data anyway.

Besides the place where noise is added, this is the only one that opens a ``Secret``. It is imported by
``blowfishdb.service.curator`` and by nothing else; a
test checks that.
"""

from __future__ import annotations

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.constraints.determined import counted
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.secret import Secret
from blowfishdb.core.workloads import Workload


def true_answers(workload: Workload, counts: Secret[IntArray]) -> FloatArray:
    """W·x without noise."""
    return np.asarray(workload.answer(counts.reveal()), dtype=np.float64)


def true_counts(known: KnownCells, counts: Secret[IntArray]) -> IntArray:
    """How many rows the first known thing really counts, row by row of it."""
    return counted(known, counts.reveal())[0]


def some_rows(cell: int, counts: Secret[IntArray]) -> bool:
    """Whether any row is in a cell."""
    return bool(counts.reveal()[cell])


def counts_beside(counts: Secret[IntArray], synthetic: IntArray) -> tuple[IntArray, float]:
    """True counts, and half of their distance from synthetic ones, per row."""
    true = counts.reveal()
    return true, float(np.abs(true - synthetic).sum()) / 2 / max(1, int(true.sum()))


def given_away(
    counts: Secret[IntArray], shape: tuple[int, int], *, sure: float, fewest: int
) -> tuple[float, float, float]:
    """How well the first of two columns tells the second.

    The share of rows whose value of the first comes with one value of the second in a share ``sure`` of at
    least ``fewest`` rows; how often a guess from the first is right; and how often one without it.
    """
    table = counts.reveal().reshape(shape)
    rows, most, total = table.sum(axis=1), table.max(axis=1), max(1, int(table.sum()))
    certain = (rows >= fewest) & (most >= sure * rows)
    before = table.sum(axis=0).max()
    return float(rows[certain].sum() / total), float(most.sum() / total), float(before / total)


def rows_alone(kinds: Secret[IntArray]) -> tuple[int, int]:
    """How many rows have values that no other row has, and how many rows there are."""
    counts = kinds.reveal()[:, -1]
    return int((counts == 1).sum()), int(counts.sum())
