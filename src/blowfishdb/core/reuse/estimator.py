"""What both ways of combining releases can do: T with T·A = W and the least variance (Gauss–Markov)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray


@final
@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of all measured rows, releases one after another."""

    variances: FloatArray
    scales: FloatArray
    release: IntArray
    """Which release a row belongs to."""
    releases: int

    @property
    def noisy(self) -> BoolArray:
        """Rows that carry noise; the others are exact, and are eliminated rather than weighted."""
        return self.variances > 0


class Estimator(ABC):
    """The best linear unbiased answers T·y to fixed questions from measured rows."""

    noise: Noise

    @property
    @abstractmethod
    def count(self) -> int:
        """How many questions there are."""

    @property
    @abstractmethod
    def determined(self) -> BoolArray:
        """Which questions follow from the measured rows."""

    @property
    @abstractmethod
    def residuals(self) -> FloatArray:
        """max |W − T·A| of each question: what rounding has left."""

    @property
    @abstractmethod
    def variances(self) -> FloatArray:
        """The variance of each answer; infinite where it is not determined."""

    @property
    @abstractmethod
    def parts(self) -> FloatArray:
        """The variance that each release contributes (first axis) to each answer."""

    @abstractmethod
    def apply(self, measured: FloatArray) -> FloatArray:
        """T·y for a batch (last axis runs over rows); meaningless where a question is not determined."""

    @abstractmethod
    def weights(self, questions: IntArray) -> FloatArray:
        """The rows of T over noisy measurements, zero at exact ones."""


def per_release(weights: FloatArray, noise: Noise) -> FloatArray:
    """Σ t_r²·σ_r² over the rows of each release, for every row of weights."""
    rows = np.arange(noise.release.size)
    member = csr_array((noise.variances, (noise.release, rows)), shape=(noise.releases, rows.size))
    return np.asarray(member @ (weights**2).T)
