"""Replay audits: what a run asked, asked again on neighbouring data, and what it cost every pair of cells."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import final

import numpy as np

from blowfishdb import noise
from blowfishdb.core.arrays import IntArray
from blowfishdb.mechanisms.adaptive.forest import Measuring, Noisy


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


def recorded(module, monkeypatch, plan, x, epsilon, seed):
    """(estimate, transcript) of one run on ``x``."""
    runs = []

    def record(counts, source):
        runs.append(Recorded(Noisy(counts, source)))
        return runs[-1]

    with monkeypatch.context() as patch:
        patch.setattr(module, "Noisy", record)
        cells = plan.estimate(x, epsilon=epsilon, noise=noise.seeded(seed))
    return cells, runs[0].transcript


def replayed(module, monkeypatch, plan, x, epsilon, transcript):
    """The estimate on ``x`` when every answer is that of the transcript; it fails if others are asked."""
    run = Replayed(transcript)
    with monkeypatch.context() as patch:
        patch.setattr(module, "Noisy", lambda counts, source: run)
        cells = plan.estimate(x, epsilon=epsilon, noise=noise.seeded(0))
    assert run.finished
    return cells


def pair_costs(transcript, size):
    """For all pairs of cells, the rates of the questions that count exactly one of them, added up."""
    starts, stops, rates = (
        np.concatenate([getattr(exchange, part) for exchange in transcript])
        for part in ("starts", "stops", "rates")
    )
    cells = np.arange(size)
    counted = ((cells >= starts[:, None]) & (cells < stops[:, None])).astype(np.float64)
    assert rates.sum() < 2**53  # so that floats add whole numbers exactly
    common = (counted.T @ (counted * rates[:, None])).astype(np.int64)
    own = np.diagonal(common)
    return own[:, None] + own[None, :] - 2 * common


def heavy_tailed(stream, size, unit):
    """Counts with empty stretches, small values and spikes of many units of noise."""
    spikes = stream.pareto(0.7, size) * unit * stream.choice([0.05, 1, 20])
    present = stream.random(size) < stream.choice([0.02, 0.3, 1])
    return np.where(present, np.minimum(spikes, 10**9), stream.integers(0, 2, size)).astype(np.int64)


def worst_log_ratio(here, there, least=60):
    """The largest log-ratio of frequencies of an outcome, less three standard errors; both directions."""
    worst, first, second = 0.0, Counter(here), Counter(there)
    for outcome in first | second:
        a, b = first[outcome], second[outcome]
        if max(a, b) >= least:
            a, b = max(a, 1), max(b, 1)
            worst = max(worst, abs(math.log(a / b)) - 3 * math.sqrt(1 / a + 1 / b))
    return worst
