"""Choosing a strategy for a line: a few shapes by rule, tuned, the best of them rounded.

*Shapes.* With L strides of hats between one cell and a span H, each level errs by about its branching
H^{1/L} and gets 1/L of the budget, so the error grows like L³·H^{1/L}: best near H^{1/L} ≈ e³ ≈ 20. The span
is θ if ramps tie the blocks together, or the whole line without ramps (the only choice under the full
policy). Ramps cover about three quarters of their block. Both rules were checked against exhaustive searches
(docs/proofs/optimized.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from blowfishdb.core.errors import EmptyDomain, InvalidThreshold, InvalidWorkload
from blowfishdb.mechanisms.line.probe import EXACT_UP_TO, probe
from blowfishdb.mechanisms.line.shape import Ramp, Shape
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.tuning import Tuned, Tuner
from blowfishdb.mechanisms.line.workload import Family, LineWorkload

_BLOCKS = 8
_RAMP_FRACTION = 0.78
_LOG_BRANCHING = 3.0
_TRIES = 24
_SLOW = 100_000


def design(k: int, theta: int, workload: LineWorkload) -> LineStrategy:
    """A data-independent strategy for ``workload`` under the θ-line on k cells with n public.

    *Guarantee*: as :class:`LineStrategy`, exact sensitivity of the rounded strategy. *Error*: 1.0–7.7 times
    the tightened lower bound at k = 256; never above Laplace on the cells with the total corrected, nor
    above the ordered mechanism at θ = 1, because both are among the shapes that are compared.
    """
    if k < 1:
        raise EmptyDomain("A line needs at least one cell.")
    if theta < 1:
        raise InvalidThreshold("A record must be able to move by at least one cell.")
    if not workload.fits(k):
        raise InvalidWorkload(f"A listed range ends beyond the last of {k} cells.")
    reach = min(theta, max(1, k - 1))
    if k <= 2 or reach == 1:
        return LineStrategy.rounded(Shape(k, (), Ramp(1, 1)), theta, np.ones(1))
    search = _Search(k, reach, workload)
    shape, tuned = search.run()
    return Tuner.rounded(Shape(k, shape.hats, shape.ramp), theta, tuned.shares)


class _Search:
    """Compares shapes by their tuned error per unit of workload on a line short enough to be quick."""

    def __init__(self, cells: int, theta: int, workload: LineWorkload) -> None:
        self._cells, self._theta, self._workload = cells, theta, workload
        self._whole = cells <= max(EXACT_UP_TO, 2 * _BLOCKS * theta)
        self._seen: dict[Shape, Tuned] = {}

    def run(self) -> tuple[Shape, Tuned]:
        """The best of the shapes by rule, then of their neighbours as long as these improve."""
        for shape in self._by_rule():
            self._error(shape)
        best = min(self._seen, key=self._error)
        if self._whole and self._cells > EXACT_UP_TO:
            return best, self._seen[best]
        improved = self._workload.family is not Family.IDENTITY
        while improved and len(self._seen) < _TRIES:
            improved = False
            for shape in _neighbours(best, self._theta):
                if self._error(shape) < self._error(best):
                    best, improved = shape, True
        return best, self._seen[best]

    def _error(self, shape: Shape) -> float:
        if shape not in self._seen:
            period = shape.ramp.stride if shape.ramp is not None else self._theta
            short = self._cells if self._whole else max(_BLOCKS, 256 // period) * period + 1
            stand_in = probe(self._workload, self._cells, short, period)
            tuned = Tuner(Shape(short, shape.hats, shape.ramp), self._theta, stand_in).tune()
            self._seen[shape] = Tuned(tuned.shares, tuned.error / stand_in.size(short))
        return self._seen[shape].error

    def _by_rule(self) -> Iterator[Shape]:
        if self._cells <= EXACT_UP_TO or self._workload.family in (Family.IDENTITY, Family.LISTED):
            yield Shape(self._cells, (1,))  # prefixes and all ranges of a longer line need hats or ramps
        if self._workload.family is Family.IDENTITY:
            return  # nothing beats the cells themselves once θ ≥ 2: 2.0 to 2.3 times the bound
        if self._whole:
            for levels in self._depths(self._cells):
                yield Shape(self._cells, _strides(self._cells, levels)[:-1])
        if self._theta < self._cells - 1:
            if self._theta <= 3:
                yield Shape(self._cells, (), Ramp(1, 1))
            for levels in self._depths(self._theta):
                *hats, stride = _strides(self._theta, levels)
                window = hats[-1] * max(1, round(_RAMP_FRACTION * stride / hats[-1]))
                yield Shape(self._cells, tuple(hats), Ramp(stride, window))

    def _depths(self, span: int) -> list[int]:
        """The two numbers of levels nearest the ideal one; where trying takes seconds, the better by rule."""
        ideal = math.log(span) / _LOG_BRANCHING
        both = sorted(
            {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}, key=lambda n: n**3 * span ** (1 / n)
        )
        return both[:1] if self._whole and self._cells > _SLOW else both


def _strides(span: int, levels: int) -> tuple[int, ...]:
    """Nested strides 1 … ≈ span in ``levels`` about equal steps."""
    strides = [1]
    for level in range(levels, 0, -1):
        step = (span / strides[-1]) ** (1 / level)
        strides.append(strides[-1] * max(2, round(step)))
    return tuple(strides)


def _neighbours(shape: Shape, theta: int) -> Iterator[Shape]:
    """The same kind of shape with one branching, or the ramp's window, a step up or down."""
    steps = [coarse // fine for fine, coarse in pairwise(shape.hats)]
    for level, step in enumerate(steps):
        for other in {step - max(1, step // 8), step + max(1, step // 8)}:
            if other >= 2:
                hats = [1]
                for branching in (*steps[:level], other, *steps[level + 1 :]):
                    hats.append(hats[-1] * branching)
                yield _with_ramp(shape, tuple(hats), theta)
    if shape.ramp is not None and shape.hats:
        fine = shape.hats[-1]
        for stride in (shape.ramp.stride - fine, shape.ramp.stride, shape.ramp.stride + fine):
            for window in (shape.ramp.window - fine, shape.ramp.window, shape.ramp.window + fine):
                if fine <= window <= stride:
                    yield Shape(shape.cells, shape.hats, Ramp(stride, window))


def _with_ramp(shape: Shape, hats: tuple[int, ...], theta: int) -> Shape:
    if shape.ramp is None:
        return Shape(shape.cells, hats)
    stride = hats[-1] * max(1, round(theta / hats[-1]))
    window = hats[-1] * max(1, round(shape.ramp.window / shape.ramp.stride * stride / hats[-1]))
    return Shape(shape.cells, hats, Ramp(stride, min(window, stride)))
