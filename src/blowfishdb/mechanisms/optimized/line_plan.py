"""Plans that answer ranges of a line by estimating its cuts: each answer is a difference of two."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.optimized.line_design import LineQuestions
from blowfishdb.mechanisms.plan import Plan

_FEW = 100_000


class LinePlan(Plan):
    """Cuts 0 … k are estimated (cut i counts the cells before i); many questions are never listed."""

    workload: LineQuestions

    @abstractmethod
    def cut_errors(self, noise: Numbers) -> FloatArray:
        """The errors of the cuts 0 … k along the last axis, for a batch of noise vectors."""

    def answers(self, cuts: FloatArray) -> FloatArray:
        """The answers to the workload from the cuts 0 … k along the last axis."""
        if self.workload.one_per_cell:
            return np.asarray(np.diff(cuts))
        if self.workload.prefixes:
            return np.asarray(cuts[..., 1:])
        first, last = self.ends
        return np.asarray(cuts[..., last + 1] - cuts[..., first])

    def spread(self, noise: Numbers) -> Numbers:
        self.check_listable()
        return self.answers(self.cut_errors(noise))

    def largest_errors(self, noise: Numbers) -> FloatArray:
        """For all ranges, max − min of the errors of the cuts: never k² answers."""
        errors = self.cut_errors(noise)
        if self.workload.every_range:
            return np.asarray(np.ptp(errors, axis=-1))
        return np.asarray(np.abs(self.answers(errors)).max(axis=-1))

    @property
    def width(self) -> int:
        asked = self.workload.size if self.workload.every_range else self.workload.count
        return max(len(self.scales), asked)

    @property
    def many(self) -> bool:
        """Whether there are more questions than anyone would go through one by one."""
        return self.workload.every_range and self.workload.count > _FEW

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The first and the last cell of every question."""
        self.check_listable()
        starts, stops = self.workload.intervals()
        return starts, stops - 1

    def check_listable(self) -> None:
        """Refuse to list more answers than fit anywhere."""
        if self.workload.count > LIMIT:
            raise TooLarge(
                f"{self.workload.count:,} answers are too many to list.",
                fixes=(
                    "ask for the cumulative histogram: every range is a difference of two of its answers",
                ),
            )
