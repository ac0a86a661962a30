"""Plans whose errors separate over the axes of a grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.boxes.questions import AxisForms, Questions
from blowfishdb.mechanisms.plan import Plan


class SeparablePlan(Plan):
    """A plan whose noise has covariance Σ C[r]·⊗ Q^i_{r_i}: exact errors without listing questions."""

    questions: Questions

    @property
    @abstractmethod
    def forms(self) -> Sequence[AxisForms]:
        """The quadratic forms of every axis."""

    @abstractmethod
    def core(self, of_noise: FloatArray) -> FloatArray:
        """The tensor C, given the variance of every noise variable."""

    @abstractmethod
    def certified(self, measured: Numbers, total: int) -> Numbers:
        """A·x + N·η, in whole numbers: all that is private of the noisy measurements."""

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        """Flows with noise stay inside: only what they add up to may be seen."""
        assert totals is not None  # grids have one component and a public total
        return self.certified(measured, int(totals.sum()))

    @cached_property
    def _moments(self) -> FloatArray:
        return self.questions.moments(self.forms)

    def total_variance(self, of_noise: FloatArray) -> float:
        """The variance of all answers together, given the variance of every noise variable."""
        return float(np.sum(self._moments * self.core(of_noise)))

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.maximum(0.0, self.questions.each(self.forms, self.core(of_noise)))

    @property
    def one_to_one(self) -> bool:
        return False
