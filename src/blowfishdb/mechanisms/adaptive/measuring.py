"""Measuring: the one way in which an adaptive mechanism learns about the data.

It asks for sums over runs of cells and gets them with noise. A run can be written down, and the notes played
back on other data: that the questions stay the same, and what they cost every cell, is what the privacy
proofs claim, so tests check it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.noise import Noise


class Measuring(ABC):
    """Noisy sums over runs of cells."""

    @abstractmethod
    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        """Σ x[starts[q]:stops[q]] + discrete Laplace noise of scale 10⁹/rates[q], for every q.

        Rates are positive whole numbers of nano-ε: what the answer costs each cell that it counts.
        """


@final
class Noisy(Measuring):
    """True counts, seen through fresh noise."""

    def __init__(self, counts: IntArray, noise: Noise) -> None:
        self._prefixes = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        self._noise = noise

    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        sums = self._prefixes[stops] - self._prefixes[starts]
        if not sums.size:
            return sums
        if rates.min() == rates.max():
            return sums + self._noise.discrete_laplace(Fraction(NANO, int(rates[0])), sums.size)
        distinct, which = np.unique(rates, return_inverse=True)
        scales = [Fraction(NANO, int(rate)) for rate in distinct]
        return sums + self._noise.discrete_laplace([scales[index] for index in which])


@final
@dataclass(frozen=True, eq=False)
class Exchange:
    """Questions that were asked together, and their answers."""

    starts: IntArray
    stops: IntArray
    rates: IntArray
    answers: IntArray

    def asks_the_same(self, starts: IntArray, stops: IntArray, rates: IntArray) -> bool:
        """Whether these are the same questions at the same rates."""
        return (
            np.array_equal(self.starts, starts)
            and np.array_equal(self.stops, stops)
            and np.array_equal(self.rates, rates)
        )


@final
@dataclass(frozen=True, eq=False)
class Recorded(Measuring):
    """Another way of measuring, with a transcript of everything that was asked."""

    inner: Measuring
    transcript: list[Exchange] = field(default_factory=list)

    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        answers = self.inner.ask(starts, stops, rates)
        self.transcript.append(Exchange(starts, stops, rates, answers))
        return answers


class OffTranscript(AssertionError):
    """A replayed run asked something that its transcript does not hold."""


@final
class Replayed(Measuring):
    """The answers of a transcript, given only to the questions of that transcript."""

    def __init__(self, transcript: list[Exchange]) -> None:
        self._left = list(reversed(transcript))

    def ask(self, starts: IntArray, stops: IntArray, rates: IntArray) -> IntArray:
        if not self._left or not self._left[-1].asks_the_same(starts, stops, rates):
            raise OffTranscript("The questions depend on more than the answers before them.")
        return self._left.pop().answers

    @property
    def finished(self) -> bool:
        """Whether everything was asked."""
        return not self._left


def spent(transcript: list[Exchange], size: int) -> IntArray:
    """What every cell paid, in nano-ε: the rates of the questions that counted it, added up."""
    change = np.zeros(size + 1, dtype=np.int64)
    for exchange in transcript:
        np.add.at(change, exchange.starts, exchange.rates)
        np.subtract.at(change, exchange.stops, exchange.rates)
    return np.cumsum(change)[:-1]
