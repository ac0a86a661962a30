"""Nested boxes: axes cut into equal intervals that divide each other, and least squares on them.

Let Π_i average over the intervals of level i of an axis. The averages of one axis are nested projections, so
Π_i − Π_{i+1} are orthogonal, and every weighted set of boxes has a Gram matrix that is diagonal over the
products of these spaces (docs/proofs/boxes.md, Lemma 1). Least squares is then a sum of box averages.

One axis measured in nested intervals and recovered exactly: R·A = I in whole numbers.

A counts the cells of all intervals of the levels of a chain. R estimates the part of x in every space
Π_i − Π_{i+1} as an average of what the levels a ≤ i say about it, with shares that are multiples of 2⁻⁸ and
sum to one. So D·R has whole entries for D = 2⁸·s_top, and R·A = I holds exactly (docs/proofs/boxes.md,
Lemma 3).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, kron

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.optimized.boxes_questions import AxisForms
from blowfishdb.mechanisms.optimized.boxes_tuning import BoxProblem

Level = tuple[int, ...]


@final
@dataclass(frozen=True)
class Chain(AxisForms):
    """The interval lengths of one axis, finest first, each dividing the next.

    The forms are ‖(Π_i − Π_{i+1})q‖², the last one ‖Π_top q‖². Cells beyond the axis that complete the last
    interval are known to be empty.
    """

    cells: int
    widths: tuple[int, ...]

    @property
    def padded(self) -> int:
        """The cells, with those that complete the last interval of the top level."""
        return ceil_div(self.cells, self.widths[-1]) * self.widths[-1]

    @property
    def levels(self) -> int:
        """How many interval lengths there are."""
        return len(self.widths)

    def keep(self, levels: tuple[int, ...]) -> Chain:
        """Only some of the levels."""
        return Chain(self.cells, tuple(self.widths[level] for level in levels))

    def _differences(self, averages: FloatArray) -> FloatArray:
        return np.concatenate((averages[..., :-1] - averages[..., 1:], averages[..., -1:]), axis=-1)

    def of_rows(self, rows: FloatArray) -> FloatArray:
        sums = (np.add.reduceat(rows, np.arange(0, self.cells, width), axis=1) for width in self.widths)
        squares = [(s**2).sum(axis=1) / width for s, width in zip(sums, self.widths, strict=True)]
        return self._differences(np.stack(squares, axis=-1))

    def of_gram(self, gram: FloatArray) -> FloatArray:
        traces = [np.trace(gram) / self.widths[0]]
        blocks = gram
        for fine, coarse in itertools.pairwise(self.widths):
            starts = np.arange(0, blocks.shape[0], coarse // fine)
            blocks = np.add.reduceat(np.add.reduceat(blocks, starts, axis=0), starts, axis=1)
            traces.append(np.trace(blocks) / coarse)
        return self._differences(np.array(traces))

    def rows(self, level: int) -> csr_array:
        """0/1 rows that count the cells of every interval of a level."""
        cells = np.arange(self.cells)
        ones = np.ones(self.cells, dtype=np.int64)
        shape = (self.padded // self.widths[level], self.cells)
        return csr_array((ones, (cells // self.widths[level], cells)), shape=shape)


@final
@dataclass(frozen=True)
class Tree:
    """The boxes of all combinations of levels."""

    chains: tuple[Chain, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The cells of every axis."""
        return tuple(chain.cells for chain in self.chains)

    @property
    def padded(self) -> tuple[int, ...]:
        """The cells of every axis, completed."""
        return tuple(chain.padded for chain in self.chains)

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of every axis."""
        return tuple(chain.levels for chain in self.chains)

    @property
    def top(self) -> Level:
        """The coarsest level."""
        return tuple(chain.levels - 1 for chain in self.chains)

    @cached_property
    def volumes(self) -> FloatArray:
        """The cells of a box of every level."""
        return np.asarray(
            reduce(np.multiply.outer, [np.array(c.widths, dtype=np.float64) for c in self.chains])
        )

    def boxes(self, level: Level) -> tuple[int, ...]:
        """How many boxes there are along every axis."""
        return tuple(c.padded // c.widths[at] for c, at in zip(self.chains, level, strict=True))

    def rows(self, level: Level) -> csr_array:
        """0/1 rows that count the cells of every box of a level."""
        return kron_all([c.rows(at) for c, at in zip(self.chains, level, strict=True)])

    def pad(self, x: Numbers) -> Numbers:
        """Cells as a box with empty cells added; the last axis of ``x`` runs over cells."""
        batch = x.shape[:-1]
        more = [(0, p - n) for n, p in zip(self.shape, self.padded, strict=True)]
        return np.pad(x.reshape(*batch, *self.shape), [(0, 0)] * len(batch) + more)

    def crop(self, cells: Numbers) -> Numbers:
        """The way back."""
        batch = cells.shape[: cells.ndim - len(self.chains)]
        real: tuple[Any, ...] = (..., *(slice(n) for n in self.shape))
        return np.asarray(cells[real].reshape(*batch, -1))

    def sums(self, padded: Numbers, level: Level) -> Numbers:
        """The total of every box of a level."""
        for axis, (chain, at) in enumerate(zip(self.chains, level, strict=True), start=-len(self.chains)):
            padded = interval_sums(padded, axis, chain.widths[at])
        return padded

    def expand(self, parts: Mapping[Level, Numbers]) -> Numbers:
        """Σ over levels of a constant per box, written on all cells: fine levels reuse the coarse ones."""
        return self._expand(parts, ())

    def _expand(self, parts: Mapping[Level, Numbers], fixed: Level) -> Numbers:
        axis = len(fixed)
        if axis == len(self.chains):
            return parts[fixed]
        chain = self.chains[axis]
        total: Numbers | None = None
        for at in reversed(range(chain.levels)):
            if total is not None:
                total = np.repeat(
                    total, chain.widths[at + 1] // chain.widths[at], axis=axis - len(self.chains)
                )
            if any(level[: axis + 1] == (*fixed, at) for level in parts):
                more = self._expand(parts, (*fixed, at))
                total = more if total is None else total + more
        assert total is not None
        return total

    def filtered(self, padded: Numbers, gains: FloatArray) -> Numbers:
        """Σ_i gains_i·⊗(Π_i − Π_{i+1}) applied to all cells."""
        coefficients = gains
        for axis in range(gains.ndim):
            coefficients = np.diff(coefficients, axis=axis, prepend=0)
        return self._filtered(padded, coefficients / self.volumes, 0)

    def _filtered(self, sums: Numbers, coefficients: FloatArray, axis: int) -> Numbers:
        if axis == len(self.chains):
            return sums * float(coefficients)
        chain, place = self.chains[axis], axis - len(self.chains)
        steps = [b // a for a, b in itertools.pairwise(chain.widths)]
        pyramid = list(
            itertools.accumulate(steps, lambda s, step: interval_sums(s, place, step), initial=sums)
        )
        total = self._filtered(pyramid[-1], coefficients[-1], axis + 1)
        for at in reversed(range(chain.levels - 1)):
            total = np.repeat(total, steps[at], axis=place)
            total += self._filtered(pyramid[at], coefficients[at], axis + 1)
        return total


def interval_sums(cells: Numbers, axis: int, width: int) -> Numbers:
    """Totals of ``width`` neighbours along a (negative) axis."""
    if width == 1:
        return cells
    before, after = cells.shape[:axis], cells.shape[cells.ndim + axis + 1 :]
    return np.asarray(cells.reshape(*before, -1, width, *after).sum(axis=axis))


def kron_all(factors: Iterable[csr_array]) -> csr_array:
    """The Kronecker product of several matrices, the last one varying fastest."""
    first, *rest = factors
    for factor in rest:
        first = csr_array(kron(first, factor))
    return first


def accumulate(tensor: FloatArray) -> FloatArray:
    """Σ over all levels at most as coarse, along every axis."""
    for axis in range(tensor.ndim):
        tensor = np.cumsum(tensor, axis=axis)
    return tensor


def fine_chain(cells: int, *, levels: int = 64) -> Chain:
    """As many levels as the factors of the axis allow, at most ``levels``.

    An axis with a large prime factor is completed to the next number without one.
    """
    whole = next(n for n in itertools.count(cells) if _largest_prime(n) <= 7)
    widths = [1]
    for prime in _primes(whole):
        widths.append(widths[-1] * prime)
    while len(widths) > max(2, levels):
        inner = range(1, len(widths) - 1)
        widths.pop(min(inner, key=lambda at: widths[at + 1] / widths[at - 1]))
    return Chain(cells, tuple(widths))


def flat_chain(cells: int) -> Chain:
    """Single cells and the whole axis."""
    return Chain(cells, (1, cells) if cells > 1 else (1,))


def _primes(number: int) -> list[int]:
    primes = []
    for prime in range(2, math.isqrt(number) + 1):
        while number % prime == 0:
            primes.append(prime)
            number //= prime
    return [*primes, number] if number > 1 else primes


def _largest_prime(number: int) -> int:
    return max(_primes(number), default=1)


SHARES = 2**8
_UNIT = 2**20


@final
@dataclass(frozen=True)
class Recovery:
    """Intervals of ``chain`` with whole-number weights: one record changes Σ w of them, weighted."""

    chain: Chain
    weights: tuple[int, ...]

    @staticmethod
    def tuned(chain: Chain, moments: FloatArray) -> Recovery:
        """The best weights found for questions with these moments; levels without weight are left out."""
        volumes = np.array(chain.widths, dtype=np.float64)
        every = np.ones(chain.levels, dtype=np.bool_)
        needed = np.where(moments > 1e-12 * moments.max(), moments, 0.0)  # R·A = I whatever is needed
        boxes = BoxProblem(needed, volumes, (every,)).solve().boxes[0]
        used = boxes > 1e-3 * boxes.max()
        used[0] = True
        weights = np.floor(np.maximum(boxes[used] / boxes.max(), 1e-3) * _UNIT).astype(np.int64)
        shorter = chain.keep(tuple(int(at) for at in np.flatnonzero(used)))
        return Recovery(shorter, tuple(int(weight) for weight in weights))

    @property
    def cost(self) -> int:
        """Σ w: by how much one record changes the weighted counts."""
        return sum(self.weights)

    @property
    def denominator(self) -> int:
        """D, with D·R whole."""
        return SHARES * self.chain.widths[-1]

    @cached_property
    def shares(self) -> IntArray:
        """2⁸·ω_ia: how much level a ≤ i contributes to space i; every line sums to 2⁸."""
        return shares_of(self.chain, self.weights)

    def gains(self) -> FloatArray:
        """The variance of a question with forms μ_i is Σ_a v_a·Σ_i gains[a, i]·μ_i."""
        return np.asarray((self.shares / SHARES).T ** 2 / np.array(self.chain.widths)[:, None])

    def counts(self, cells: Numbers, level: int, axis: int) -> Numbers:
        """The intervals of one level along a (negative) axis."""
        more = [(0, 0)] * cells.ndim
        more[axis] = (0, self.chain.padded - self.chain.cells)
        return interval_sums(np.pad(cells, more), axis, self.chain.widths[level])

    def recover(self, counts: Sequence[Numbers], axis: int) -> Numbers:
        """D·R applied to the counts of every level along a (negative) axis; exact on whole numbers."""
        return blend(self.chain, self.shares, counts, axis)

    def matrix(self, level: int) -> csr_array:
        """The columns of D·R that belong to one level."""
        count = self.chain.padded // self.chain.widths[level]
        blank = [np.zeros((count, self.chain.padded // width), dtype=np.int64) for width in self.chain.widths]
        blank[level] = np.eye(count, dtype=np.int64)
        return csr_array(self.recover(blank, -1).T)


def shares_of(chain: Chain, weights: Sequence[int]) -> IntArray:
    """How much level a ≤ i contributes to space i, in units of 2⁻⁸: by precision; lines sum to one."""
    precision = np.array(weights, dtype=np.float64) ** 2 * np.array(chain.widths[: len(weights)])
    table = np.zeros((len(weights), len(weights)), dtype=np.int64)
    for space in range(len(weights)):
        ideal = precision[: space + 1] / precision[: space + 1].sum()
        table[space, : space + 1] = np.round(ideal * SHARES)
        table[space, int(np.argmax(ideal))] += SHARES - table[space].sum()
    return table


def blend(chain: Chain, shares: IntArray, counts: Sequence[Numbers], axis: int) -> Numbers:
    """2⁸·s_top·Σ_i Q_i·Σ_a ω_ia·E_a·y_a/s_a along a (negative) axis, in whole numbers.

    Q_i E_a/s_a is (expand from i)·(sum over i)/s_i less the same for i + 1, and s_i divides s_top.
    """
    steps = [b // a for a, b in itertools.pairwise(chain.widths)]
    factors = np.diff(shares, axis=0, prepend=0) * (chain.widths[-1] // np.array(chain.widths))[:, None]
    pyramids = [
        list(itertools.accumulate(steps[level:], lambda s, step: interval_sums(s, axis, step), initial=count))
        for level, count in enumerate(counts)
    ]
    total: Numbers | None = None
    for at in reversed(range(chain.levels)):
        if total is not None:
            total = np.repeat(total, steps[at], axis=axis)
        for level in range(min(at + 1, len(counts))):
            if factor := int(factors[at, level]):
                part = factor * pyramids[level][at - level]
                total = part if total is None else total + part
    assert total is not None
    return np.take(total, np.arange(chain.cells), axis=axis)
