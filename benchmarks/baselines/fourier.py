"""EFPA: the first Fourier coefficients, as many as are worth their noise (Ács et al. 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from benchmarks.baselines.asking import Asking, Ballot, check_split, divided
from benchmarks.baselines.plan import Baseline, Problem
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.core.errors import InvalidWorkload

_ONE = 2**20  # what a cosine of one is written as
_UNITS = 16  # of score per record
_LARGEST = 2**30  # counts are cut off there for the scores, so that floats are off by far less than a unit


@final
@dataclass(frozen=True)
class Efpa(Baseline):
    """How many frequencies to keep is chosen, then their cosine and sine sums are measured.

    At most ``most`` frequencies. Private: cosines are whole numbers of 2⁻²⁰, so the sums have an exact
    sensitivity; the length of what is left out changes by at most one with a record (the transform is
    orthogonal), one unit more is for rounding and one for floating point. Both steps share the budget. The
    noise is on real and imaginary parts alike: a known implementation gives out true phases.
    """

    split: float = 0.5
    most: int = 512
    title: ClassVar[str] = "EFPA"
    axes: ClassVar[tuple[int, ...]] = (1,)

    def __post_init__(self) -> None:
        check_split(self.split)
        if self.most < 1:
            raise InvalidWorkload("At least one frequency must be kept.")

    def reconstruct(self, problem: Problem, asking: Asking, budget: int) -> FloatArray:
        size = problem.size
        first, second = divided(budget, [self.split, 1 - self.split])
        most = min(self.most, (size + 1) // 2)
        kept = 1 + asking.choose([_frequencies(size, most, second)], first)[0]
        rows = waves(size, kept)
        measured = asking.sums(rows, second).astype(np.float64)
        measured[1:] *= 2.0
        return np.asarray(measured @ rows / (float(_ONE) ** 2 * size))

    def describe(self) -> str:
        return "As many Fourier coefficients as are worth their noise, chosen with a share of the budget"


def _frequencies(size: int, most: int, rate: int) -> Ballot:
    """Option k: keep the frequencies 0 … k. The score is minus the error of that, left out plus noise."""
    kept = np.arange(1, most + 1)
    rows = 2 * kept - 1
    noise = np.sqrt(2.0 * rows) * (4 / math.pi * kept) * math.sqrt(2 / size) * NANO / rate

    def scores(x: IntArray) -> IntArray:
        power = np.abs(np.fft.rfft(np.minimum(x, _LARGEST))) ** 2 / size
        power[1:] *= 2.0
        if size % 2 == 0:
            power[-1] /= 2.0
        beyond = np.append(power[1:], 0.0)[::-1]  # added up from the far end: nothing cancels
        left_out = np.sqrt(np.cumsum(beyond)[::-1])[:most]
        return np.asarray(-np.rint(_UNITS * (left_out + noise)), dtype=np.int64)

    return Ballot(np.arange(size, dtype=np.int64), scores, sensitivity=_UNITS + 2)


def waves(size: int, kept: int) -> IntArray:
    """Rows: ones, then a cosine and a sine per frequency, in whole numbers of 2⁻²⁰."""
    turns = np.outer(np.arange(1, kept), np.arange(size)) % size
    circle = 2 * np.pi * np.arange(size) / size
    cosine, sine = (np.rint(_ONE * wave(circle)).astype(np.int64) for wave in (np.cos, np.sin))
    rows = np.stack((cosine[turns], sine[turns]), axis=1).reshape(2 * (kept - 1), size)
    return np.concatenate((np.full((1, size), _ONE, dtype=np.int64), rows))
