"""What known answers give a question: its whole answer, or cells that fit what is known better."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.constraints.determined import Determined
from blowfishdb.core.constraints.improve import improved_cells
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.constraints.under_policy import Refined
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.workloads import Selected, Workload

_MOST_WORK = 10**6  # questions × classes


@lru_cache(maxsize=64)
def given_answers(refined: Refined, workload: Workload) -> FloatArray | None:
    """The answers to all questions, where the known answers determine every one of them."""
    known = refined.known
    if not _answered(known) or workload.count * known.class_count > _MOST_WORK:
        return None
    if not (refined.asked >= 0).any():
        return None
    try:
        found = Determined(known).all_answers(Selected(workload, refined.asked))
    except TooLarge:
        return None
    return None if found is None else np.array([float(answer) for answer in found])


def better_cells(refined: Refined, noisy: FloatArray, exact: BoolArray) -> FloatArray | None:
    """Cells with independent noise, moved onto what is known about them; None if that says nothing of them.

    Post-processing: the known answers are public, and the noise stays what it is.
    """
    known = _of_cells(refined, noisy.size)
    if known is None:
        return None
    try:
        return improved_cells(noisy, (~exact).astype(np.float64), Determined(known))
    except TooLarge:
        return None


def _answered(known: KnownCells) -> bool:
    return any(answer is not None for answers in known.answers for answer in answers)


def _of_cells(refined: Refined, size: int) -> KnownCells | None:
    """The known counts that count whole cells of the question, and nothing beside them."""
    known, asked = refined.known, refined.asked
    kept: list[tuple[IntArray, int, tuple[int | None, ...]]] = []
    inside = asked >= 0
    for labels, rows, answers in zip(known.labels, known.rows, known.answers, strict=True):
        per_cell = np.full(size, -1, dtype=np.int64)
        per_cell[asked[inside]] = labels[inside]
        whole_cells = (per_cell[asked[inside]] == labels[inside]).all()
        if whole_cells and (labels[~inside] < 0).all() and any(answer is not None for answer in answers):
            kept.append((per_cell, rows, answers))
    if not kept:
        return None
    return KnownCells(
        np.stack([labels for labels, _, _ in kept]),
        tuple(rows for _, rows, _ in kept),
        tuple(answers for _, _, answers in kept),
        known.reading,
    )
