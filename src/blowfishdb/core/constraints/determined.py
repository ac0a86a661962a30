"""What follows from the known answers alone, without looking at the data: exact, free, and already public."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.constraints.known_cells import KnownCells, Span
from blowfishdb.core.errors import InvalidInput, SizeMismatch, TooLarge
from blowfishdb.core.workloads import Workload

_MOST_WORK = 10**6  # known answers × classes in exact fractions


@final
@dataclass(frozen=True, eq=False)
class Determined:
    """The known answers over cells, and ``total``, the number of records, where it is public."""

    known: KnownCells
    total: int | None = None

    def __post_init__(self) -> None:
        _ = self._span

    @cached_property
    def rows(self) -> tuple[tuple[IntArray, int], ...]:
        """Each known answer with the classes that it counts."""
        rows = []
        for labels, answers in zip(self.known.class_labels, self.known.answers, strict=True):
            order = np.argsort(labels, kind="stable")
            ends = np.searchsorted(labels[order], np.arange(len(answers) + 1))
            rows += [
                (order[ends[row] : ends[row + 1]], answer)
                for row, answer in enumerate(answers)
                if answer is not None
            ]
        if self.total is not None:
            rows.append((np.arange(self.known.class_count), self.total))
        return tuple(rows)

    @cached_property
    def _span(self) -> Span:
        classes = self.known.class_count
        if sum(len(counted) for counted, _ in self.rows) * 10 > _MOST_WORK:
            raise TooLarge("Too many known answers to tell exactly what follows from them.")
        span = Span(classes)
        for counted, answer in self.rows:
            if not span.add(dict.fromkeys(counted.tolist(), 1), answer):
                raise InvalidInput(
                    "The known counts contradict each other: no data can satisfy all of them.",
                    fixes=("check that the rows of known tables add up to the same totals",),
                )
        return span

    def answers(self, workload: Workload) -> tuple[Fraction | None, ...]:
        """For every question its value, where the known answers determine it, and None elsewhere.

        A question is determined iff it is a combination of the known counts: constant on classes, and in
        the span of the known rows over the rationals.
        """
        if workload.size != self.known.size:
            raise SizeMismatch(
                f"The questions are about {workload.size:,} cells, but what is known is about "
                f"{self.known.size:,}."
            )
        return tuple(self._answers(workload))

    def all_answers(self, workload: Workload) -> tuple[Fraction, ...] | None:
        """The values of all questions; None as soon as one of them is not determined."""
        answers = []
        for answer in self._answers(workload):
            if answer is None:
                return None
            answers.append(answer)
        return tuple(answers)

    def _answers(self, workload: Workload) -> Iterator[Fraction | None]:
        rows = workload.sparse()
        first = np.unique(self.known.classes, return_index=True)[1]
        for at in range(len(workload)):
            yield self._answer(rows[[at]].toarray().ravel(), first, workload.denominator)

    def _answer(self, row: IntArray, first: IntArray, denominator: int) -> Fraction | None:
        per_class = row[first]
        if (row != per_class[self.known.classes]).any():
            return None
        answer = self._span.answer(dict(enumerate(per_class.tolist())))
        return None if answer is None else answer / denominator


def counted(known: KnownCells, cells: IntArray) -> tuple[IntArray, ...]:
    """What counts of the cells say of everything that is known, item by item and row by row."""
    sums = []
    for labels, rows in zip(known.labels, known.rows, strict=True):
        inside = labels >= 0
        total = np.zeros(rows, dtype=np.int64)
        np.add.at(total, labels[inside], cells[inside])
        sums.append(total)
    return tuple(sums)
