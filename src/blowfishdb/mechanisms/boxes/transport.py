"""One axis along which records move: small intervals inside blocks, steps between the blocks.

B counts the intervals of the levels below the block and the flow between blocks that a change needs; N puts
them together again: N·B·z = z for every z with sum zero, in whole numbers over D = 2⁸·s_block. Blocks of one
cell are the ordered mechanism: only steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.boxes.lattice import Lattice, StepForms
from blowfishdb.mechanisms.boxes.questions import AxisForms
from blowfishdb.mechanisms.boxes.recovery import SHARES, blend, shares_of
from blowfishdb.mechanisms.boxes.tree import Chain, interval_sums
from blowfishdb.mechanisms.boxes.tuning import BoxProblem

_UNIT = 2**16


@final
@dataclass(frozen=True)
class Transport:
    """Whole-number weights of the levels below the block, which is the last level, then of the steps.

    A move by δ > 0 cells costs 2·Σ w_a + ⌈δ/s⌉·w_steps, exactly.
    """

    chain: Chain
    weights: tuple[int, ...]

    @staticmethod
    def ordered(cells: int) -> Transport:
        """Steps between cells."""
        return Transport(Chain(cells, (1,)), (1,))

    @staticmethod
    def tuned(chain: Chain, moments: FloatArray, reach: int) -> Transport:
        """The best weights for moves up to ``reach``, given the moments of the forms; at least two blocks.

        Inside and between blocks the error is A/S² for the part S of the budget: parts go as A^⅓.
        """
        crossings = min(ceil_div(reach, chain.widths[-1]), chain.padded // chain.widths[-1] - 1)
        between = 2 * float(moments[0]) * crossings**2
        every = np.ones(chain.levels - 1, dtype=np.bool_)
        volumes = np.array(chain.widths[:-1], dtype=np.float64)
        found = BoxProblem(np.maximum(moments[1:], 1e-15 * moments.max()), volumes, (every,)).solve()
        inside, boxes = float(found.errors[0]), found.boxes[0] / (2 * found.boxes[0].sum())
        weights = np.append(boxes * np.cbrt(inside), np.cbrt(between) / crossings)
        whole = np.maximum(np.round(weights / max(weights.max(), 1e-300) * _UNIT), 1).astype(np.int64)
        return Transport(chain, tuple(int(w) for w in whole))

    @property
    def groups(self) -> int:
        """The levels below the block, and the steps."""
        return self.chain.levels

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return self.chain.padded // self.chain.widths[-1]

    def size(self, group: int) -> int:
        """The noise variables of one group."""
        return self.blocks - 1 if group == self.groups - 1 else self.chain.padded // self.chain.widths[group]

    @property
    def denominator(self) -> int:
        """D, with D·N whole."""
        return SHARES * self.chain.widths[-1] if self.groups > 1 else 1

    def length(self, steps: int) -> int:
        """What a move costs."""
        crossed = min(ceil_div(steps, self.chain.widths[-1]), self.blocks - 1)
        return 2 * sum(self.weights[:-1]) + crossed * self.weights[-1] if steps else 0

    @cached_property
    def _shares(self) -> IntArray:
        """Levels inform the spaces below the block; the blocks themselves are left to the steps."""
        below = shares_of(self.chain, self.weights[:-1])
        return np.vstack((below, np.zeros((1, below.shape[1]), dtype=np.int64)))

    def gains(self, group: int) -> FloatArray:
        """The variance per unit of noise of one group, over :class:`TransportForms`."""
        if group == self.groups - 1:
            return np.asarray(np.eye(1, self.groups)[0])
        return np.append(0.0, (self._shares[:-1, group] / SHARES) ** 2 / self.chain.widths[group])

    def forward(self, cells: Numbers, group: int, axis: int) -> Numbers:
        """B, for cells that sum to zero along a (negative) axis."""
        more = [(0, 0)] * cells.ndim
        more[axis] = (0, self.chain.padded - self.chain.cells)
        padded = np.pad(cells, more)
        if group < self.groups - 1:
            return interval_sums(padded, axis, self.chain.widths[group])
        blocks = interval_sums(padded, axis, self.chain.widths[-1])
        behind = np.flip(np.cumsum(np.flip(blocks, axis), axis=axis), axis)
        return np.delete(behind, 0, axis)

    def mix(self, parts: Sequence[Numbers], axis: int) -> Numbers:
        """D·N, exact on whole numbers."""
        ends = [(0, 0)] * parts[-1].ndim
        ends[axis] = (1, 1)
        blocks = -np.diff(np.pad(parts[-1], ends), axis=axis)
        if self.groups == 1:
            return blocks
        spread = SHARES * np.repeat(blocks, self.chain.widths[-1], axis=axis)
        cells = np.take(spread, np.arange(self.chain.cells), axis=axis)
        return np.asarray(cells + blend(self.chain, self._shares, parts[:-1], axis))

    def matrix(self, group: int) -> csr_array:
        """The columns of D·N that belong to one group."""
        if self.groups == 1:
            return Lattice((self.chain.cells,)).incidence()
        count = self.size(group)
        blank = [np.zeros((count, self.size(other)), dtype=np.int64) for other in range(self.groups)]
        blank[group] = np.eye(count, dtype=np.int64)
        return csr_array(self.mix(blank, -1).T)

    def change(self, u: int, v: int, group: int) -> IntArray:
        """B(e_u − e_v)."""
        cells = np.zeros(self.chain.cells, dtype=np.int64)
        cells[u] += 1
        cells[v] -= 1
        return np.asarray(self.forward(cells, group, -1), dtype=np.int64)


@final
@dataclass(frozen=True)
class TransportForms(AxisForms):
    """The steps between block averages, the spaces below the block, then the spaces of a recovery."""

    transport: Chain
    recovery: Chain

    @property
    def _starts(self) -> IntArray:
        return np.arange(0, self.transport.cells, self.transport.widths[-1])

    def of_rows(self, rows: FloatArray) -> FloatArray:
        blocks = np.add.reduceat(rows, self._starts, axis=1) / self.transport.widths[-1]
        below = self.transport.of_rows(rows)[:, :-1]
        return np.column_stack((StepForms().of_rows(blocks)[:, 1], below, self.recovery.of_rows(rows)))

    def of_gram(self, gram: FloatArray) -> FloatArray:
        blocks = np.add.reduceat(np.add.reduceat(gram, self._starts, axis=0), self._starts, axis=1)
        between = StepForms().of_gram(blocks / self.transport.widths[-1] ** 2)[1:2]
        return np.concatenate((between, self.transport.of_gram(gram)[:-1], self.recovery.of_gram(gram)))
