"""Weights of nested boxes: least total squared error for the sensitivity that they cost.

*Descent.* With g_I = Σ_{A≤I} w_A²·s_A, convexity of 1/g gives m/g_I ≤ Σ_A (v_A²·s_A/g_I(v))²·m/(w_A²·s_A) for
every v, with equality at w = v. So the error is at most Σ c_A/w_A² with c_A = v_A⁴·s_A·Σ_{I≥A} m_I/g_I(v)²,
whose minimum at a given sensitivity is w_A ∝ (c_A/π_A)^⅓, π_A the price of a unit of w_A. Repeating this
never increases the error, needs no step size, and runs on many starts at once.

*Search.* The error has many minima, each with its own set of levels: a weight near zero costs in proportion
to w and helps in proportion to w², so it stays there. Therefore many starts, and then levels added, dropped,
or put in the place of all coarser ones that they refine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray

_NEGLIGIBLE = 1e-3
_STARTS = 60
_RANDOM = 20
_KEPT = 3  # the starts that are improved level by level
_PASSES = 6
_SCREEN = 12
_ROUNDS = 60
_POLISH = 300
_ENTRIES = 3 * 10**5
_TINY = 1e-300
_SETTLED = 1e-7


@final
@dataclass(frozen=True, eq=False)
class Waves:
    """The part of the error that edge noise between blocks improves: Σ m/(g_block + w²·gain).

    ``crossings`` is how many blocks each kind of move crosses.
    """

    block: tuple[int, ...]
    moments: FloatArray
    gains: FloatArray
    crossings: tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of every level and of the edge noise (0 without), and the error they reach, for a batch."""

    boxes: FloatArray
    edges: FloatArray
    errors: FloatArray

    def __getitem__(self, index: Any) -> Weights:
        return Weights(self.boxes[index], self.edges[index], self.errors[index])

    def best(self, count: int) -> Weights:
        """The few with the least error."""
        return self[np.argsort(self.errors, kind="stable")[:count]]

    def joined(self, other: Weights) -> Weights:
        """Both batches."""
        pairs = ((self.boxes, other.boxes), (self.edges, other.edges), (self.errors, other.errors))
        return Weights(*(np.concatenate(pair) for pair in pairs))


@final
@dataclass(frozen=True, eq=False)
class BoxProblem:
    """m_I per space, s_A per level, and which levels each kind of move changes, by two counts or ``each``."""

    moments: FloatArray
    volumes: FloatArray
    changed: tuple[BoolArray, ...]
    waves: Waves | None = None
    each: tuple[int, ...] = ()
    """By how many counts each kind of move changes such a level; a record that appears changes one."""

    @cached_property
    def allowed(self) -> BoolArray:
        """The levels that may be measured: those that some move changes; blocks are the largest."""
        allowed = np.any(self.changed, axis=0)
        if self.waves is not None:
            allowed[tuple(slice(at, None) for at in self.waves.block)] = False
            allowed[self.waves.block] = True
        return np.asarray(allowed)

    @cached_property
    def _each(self) -> FloatArray:
        return np.array(self.each or (2,) * len(self.changed), dtype=np.float64)

    @cached_property
    def _changed(self) -> FloatArray:
        """How many counts of every level each kind of move changes."""
        by = self._each.reshape(-1, *(1,) * self.moments.ndim)
        return np.asarray(by * np.stack(self.changed))

    @cached_property
    def _crossings(self) -> FloatArray:
        none = (0,) * len(self.changed)
        return np.array(none if self.waves is None else self.waves.crossings, dtype=np.float64)

    def solve(self) -> Weights:
        """The best weights found, as a batch of one; questions that need nothing get single cells."""
        if not self.moments.any() and (self.waves is None or not self.waves.moments.any()):
            cells = np.zeros((1, *self.moments.shape))
            cells[0].flat[0] = 1.0
            return Weights(cells, np.full(1, 0.1), np.zeros(1))
        starts = np.stack([np.where(self.allowed, start, 0.0) for start in self._starts()])
        screened = self._screened(starts, np.full(len(starts), 0.1))
        for _ in range(_PASSES):
            changes = [self._changes(screened[[at]]) for at in range(len(screened.errors))]
            boxes = np.concatenate([change[0] for change in changes])
            edges = np.concatenate([change[1] for change in changes])
            if not len(boxes):
                break
            better = screened.joined(self._screened(boxes, edges)).best(_KEPT)
            if better.errors[0] > 0.9995 * screened.errors[0]:
                break
            screened = better
        best = screened.best(1)
        for rounds in (_POLISH, 1):  # after the last cut only the scale has to be set again
            some = np.where(best.boxes > _NEGLIGIBLE * best.boxes.max(), best.boxes, 0.0)
            if self._reaches(some[0]):
                best = self.tune(some, best.edges, rounds)
        return best

    def _screened(self, boxes: FloatArray, edges: FloatArray) -> Weights:
        """A few rounds for all, more for those that look best."""
        first = self.tune(boxes, edges, _SCREEN).best(3 * _KEPT)
        return self.tune(first.boxes, first.edges, _ROUNDS).best(_KEPT)

    # --- descent --------------------------------------------------------------------------------

    def tune(self, boxes: FloatArray, edges: FloatArray, rounds: int) -> Weights:
        """The minima nearest to a batch of starts that keep the levels of each."""
        prices = np.ones((len(boxes), len(self.changed)))
        edges = edges if self.waves is not None else np.zeros(len(boxes))
        for _ in range(rounds):
            _, slopes, ripple = self._errors(boxes, edges)
            bounds = np.square(boxes**2) * self.volumes * slopes
            waves = edges**4 * ripple
            before = boxes
            boxes, edges, prices = self._cheapest(bounds, waves, prices)
            if np.abs(boxes - before).max() < _SETTLED:
                break
        errors = 2 * self._costs(boxes, edges).max(axis=1) ** 2 * self._errors(boxes, edges)[0]
        return Weights(boxes, edges, errors)

    def _errors(self, boxes: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ m/g, and per level and for the edges the sum of m/g² over the spaces that they inform."""
        axes = range(1, boxes.ndim)
        g = np.maximum(_running(boxes**2 * self.volumes, axes), _TINY)
        parts = np.divide(self.moments, g, out=np.zeros_like(g), where=self.moments > 0)
        totals = parts.reshape(len(boxes), -1).sum(axis=1)
        slopes, ripple = parts / g, np.zeros(len(boxes))
        if self.waves is not None:
            block: tuple[Any, ...] = (slice(None), *self.waves.block)
            base = g[block][:, None] + edges[:, None] ** 2 * self.waves.gains
            waves = self.waves.moments / base
            totals = totals + waves.sum(axis=1)
            waves /= base
            slopes[block] += waves.sum(axis=1)
            ripple = waves @ self.waves.gains
        back = tuple(axes)
        return totals, np.flip(_running(np.flip(slopes, back), axes), back), ripple

    def _cheapest(
        self, bounds: FloatArray, waves: FloatArray, prices: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """min Σ c/w² at sensitivity 1; where several kinds of moves compete, their prices adapt."""
        for _ in range(1 if len(self.changed) == 1 else 3):
            price = np.tensordot(prices, self._changed, axes=(1, 0))
            boxes = np.cbrt(np.divide(bounds, price, out=np.zeros_like(bounds), where=price > 0))
            edges = np.cbrt(waves / np.maximum(prices @ self._crossings, _TINY)) if self.waves else waves
            costs = self._costs(boxes, edges)
            largest = costs.max(axis=1, keepdims=True)
            prices = np.maximum(prices * (costs / largest), 1e-12)
        shape = (-1,) + (1,) * (bounds.ndim - 1)
        return boxes / largest.reshape(shape), edges / largest[:, 0], prices

    def _costs(self, boxes: FloatArray, edges: FloatArray) -> FloatArray:
        """The sensitivity to every kind of move."""
        pairs = zip(self._each, self.changed, strict=True)
        costs = np.stack([each * boxes[:, changed].sum(axis=1) for each, changed in pairs], axis=1)
        return np.asarray(costs + edges[:, None] * self._crossings)

    # --- search ---------------------------------------------------------------------------------

    def _reaches(self, boxes: FloatArray) -> bool:
        """Whether every space that the questions need is measured."""
        return bool(boxes.any()) and bool((_running(boxes, range(boxes.ndim))[self.moments > 0] > 0).all())

    def _changes(self, weights: Weights) -> tuple[FloatArray, FloatArray]:
        """All changes of one level."""
        some = np.where(weights.boxes[0] > _NEGLIGIBLE * weights.boxes.max(), weights.boxes[0], 0.0)
        usual = some[some > 0].mean() if some.any() else 0.1
        changes = [np.zeros((0, *some.shape))]
        for at in np.argwhere(self.allowed):
            level = tuple(at)
            refined = tuple(slice(place, None) for place in level)
            changed = some.copy()
            changed[level] = 0.0 if some[level] else usual / 2
            options = [changed]
            if not some[level] and some[refined].any():
                absorbed = some.copy()
                absorbed[refined] = 0.0
                absorbed[level] = usual
                options.append(absorbed)
            changes.extend(option[None] for option in options if self._reaches(option))
        stride = max(1, len(changes) * some.size // _ENTRIES)  # of very many levels only some
        boxes = np.concatenate([changes[0], *changes[1::stride]])
        return boxes, np.full(len(boxes), max(float(weights.edges[0]), 1e-3))

    def _starts(self) -> Iterator[FloatArray]:
        """All boxes over a few levels per axis, mostly small or mostly large ones, cells, random ones."""
        shape = self.moments.shape
        depth = max(shape)
        inner = range(1, depth - 1)
        subsets = list(itertools.chain.from_iterable(itertools.combinations(inner, n) for n in range(4)))
        few = 1 + len(inner)
        stride = max(1, len(subsets) // _STARTS)
        for subset in (*subsets[:few], *subsets[few::stride]):
            depths = (0, *subset, depth - 1)
            picks = [
                sorted({round(at * (levels - 1) / max(1, depth - 1)) for at in depths}) for levels in shape
            ]
            start = np.zeros(shape)
            start[np.ix_(*picks)] = 1.0
            yield start
        pairs = zip(np.indices(shape), shape, strict=True)
        fine = np.sum([place < levels - 1 for place, levels in pairs], axis=0)
        for order in range(1, len(shape) + 1):
            yield np.exp(-2.0 * np.abs(fine - order))
        yield (np.arange(self.moments.size) == 0).astype(np.float64).reshape(shape)
        stream = np.random.Generator(np.random.Philox(key=depth))  # the same plan every time
        for _ in range(_RANDOM):
            yield np.exp(2.0 * stream.standard_normal(shape))


def _running(tensor: FloatArray, axes: range) -> FloatArray:
    """Running sums along several axes."""
    for axis in axes:
        tensor = np.cumsum(tensor, axis=axis)
    return tensor
