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
