"""Plans whose errors separate over the axes of a grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import positive
from blowfishdb.mechanisms.boxes.questions import AxisForms, Questions
from blowfishdb.mechanisms.plan import AnyEpsilon, Plan


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

    @cached_property
    def _moments(self) -> FloatArray:
        return self.questions.moments(self.forms)

    def total_variance(self, of_noise: FloatArray) -> float:
        """The variance of all answers together, given the variance of every noise variable."""
        return float(np.sum(self._moments * self.core(of_noise)))

    def total_squared_error(self, *, epsilon: AnyEpsilon) -> float:
        """The total squared error of all answers, exact for the discrete noise."""
        return self.total_variance(self.scales.variances(positive(epsilon)))

    @cached_property
    def unit_error(self) -> float:
        """The total squared error at ε = 1 in the continuous limit: what plans are compared by."""
        return self.total_variance(2.0 * self.scales.floats() ** 2)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.maximum(0.0, self.questions.each(self.forms, self.core(of_noise)))

    def squared_error(self, *, epsilon: AnyEpsilon) -> float:
        """The mean squared error, from the total: questions need not be listed."""
        return self.total_squared_error(epsilon=epsilon) / self.workload.count

    @property
    def one_to_one(self) -> bool:
        return False
