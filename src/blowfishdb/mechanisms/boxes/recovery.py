"""One axis measured in nested intervals and recovered exactly: R·A = I in whole numbers.

A counts the cells of all intervals of the levels of a chain. R estimates the part of x in every space
Π_i − Π_{i+1} as an average of what the levels a ≤ i say about it, with shares that are multiples of 2⁻⁸ and
sum to one. So D·R has whole entries for D = 2⁸·s_top, and R·A = I holds exactly (docs/proofs/boxes.md,
Lemma 3).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.boxes.tree import Chain, interval_sums
from blowfishdb.mechanisms.boxes.tuning import BoxProblem

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
        found = BoxProblem(needed, volumes, (every,)).solve().boxes[0]
        used = found > 1e-3 * found.max()
        used[0] = True
        weights = np.floor(np.maximum(found[used] / found.max(), 1e-3) * _UNIT).astype(np.int64)
        kept = chain.keep(tuple(int(at) for at in np.flatnonzero(used)))
        return Recovery(kept, tuple(int(weight) for weight in weights))

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
