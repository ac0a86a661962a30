"""Asking: the only way in which a baseline learns about the data.

Three kinds of questions: noisy counts of disjoint groups of cells, noisy weighted sums, and which of several
options has the best score. Each names the cells that it looks at and what it costs each of them, in nano-ε.
What a run costs a record is then the sum over the questions that looked at its cell, whatever the algorithm
(parallel and sequential composition), so tests check it for all baselines alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.errors import InvalidEpsilon
from blowfishdb.core.noise import Noise


@final
@dataclass(frozen=True, eq=False)
class Ballot:
    """Options of which one is to be chosen.

    ``scores`` turns the counts of ``cells``, and nothing else of the data, into one whole number per option.
    One record more or less in these cells changes no score by more than ``sensitivity``.
    """

    cells: IntArray
    scores: Callable[[IntArray], IntArray]
    sensitivity: int


class Asking(ABC):
    """Noisy counts and noisy choices."""

    @abstractmethod
    def counts(self, labels: IntArray, rates: IntArray) -> IntArray:
        """How many records are in the cells of every label, plus discrete Laplace noise of scale 10⁹/rate.

        A label below zero, or one whose rate is zero, is not looked at: its answer is zero.
        """

    @abstractmethod
    def sums(self, rows: IntArray, rate: int) -> IntArray:
        """Σ row·x of every row of whole numbers, plus noise of scale K·10⁹/rate.

        K is the largest sum of |entries| of a cell, so that no cell pays more than ``rate``.
        """

    @abstractmethod
    def choose(self, ballots: Sequence[Ballot], rate: int) -> list[int]:
        """An option of high score for every ballot; their cells are disjoint.

        The exponential mechanism in its report-noisy-max form: noise of scale 2·sensitivity/ε on every score,
        the first of the largest wins. Given the noise of the others, an option wins iff its own noise is at
        least some whole number, which a record moves by at most twice the sensitivity.
        """


@final
class Noisy(Asking):
    """True counts, seen through fresh noise."""

    def __init__(self, counts: IntArray, noise: Noise) -> None:
        self._counts = counts
        self._noise = noise

    def counts(self, labels: IntArray, rates: IntArray) -> IntArray:
        answers = np.zeros(rates.size, dtype=np.int64)
        seen = np.flatnonzero(labels >= 0)
        np.add.at(answers, labels[seen], self._counts[seen])
        asked = np.flatnonzero(rates > 0)
        answers[rates <= 0] = 0
        if not asked.size:
            return answers
        distinct, which = np.unique(rates[asked], return_inverse=True)
        scales = [Fraction(NANO, int(rate)) for rate in distinct]
        if len(scales) == 1:
            answers[asked] += self._noise.discrete_laplace(scales[0], asked.size)
        else:
            answers[asked] += self._noise.discrete_laplace([scales[index] for index in which.tolist()])
        return answers

    def sums(self, rows: IntArray, rate: int) -> IntArray:
        scale = Fraction(largest_norm(rows) * NANO, rate)
        return np.asarray(rows @ self._counts + self._noise.discrete_laplace(scale, len(rows)))

    def choose(self, ballots: Sequence[Ballot], rate: int) -> list[int]:
        scores = [ballot.scores(self._counts[ballot.cells]) for ballot in ballots]
        if not scores:
            return []
        scales = [Fraction(2 * ballot.sensitivity * NANO, rate) for ballot in ballots]
        ends = np.cumsum([found.size for found in scores])
        if len(set(scales)) == 1:
            drawn = self._noise.discrete_laplace(scales[0], int(ends[-1]))
        else:
            each = [s for s, found in zip(scales, scores, strict=True) for _ in range(found.size)]
            drawn = self._noise.discrete_laplace(each)
        parts = np.split(drawn, ends[:-1])
        return [int(np.argmax(found + part)) for found, part in zip(scores, parts, strict=True)]


def largest_norm(rows: IntArray) -> int:
    """By how much one record changes the rows, at most."""
    return int(np.abs(rows).sum(axis=0).max())


def divided(budget: int, weights: Sequence[float]) -> list[int]:
    """``budget`` in whole nano-ε, in proportion to ``weights``; the parts add up to all of it."""
    shares = np.cumsum(weights, dtype=np.float64)
    ends = [round(budget * float(share / shares[-1])) for share in shares[:-1]]
    parts = np.diff(np.array([0, *ends, budget], dtype=np.int64)).tolist()
    if min(parts) < 1:
        raise InvalidEpsilon(
            f"This ε is too small to be divided into {len(parts):,} parts.", fixes=("spend more",)
        )
    return [int(part) for part in parts]


def check_split(split: float) -> None:
    """A share of the budget that leaves something for the rest."""
    if not 0 < split < 1:
        raise InvalidEpsilon(f"A share of ε lies between 0 and 1, and {split} does not.")
