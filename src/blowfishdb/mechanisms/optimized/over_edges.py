"""Boxes over edges: small boxes inside blocks, edge noise between the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, eye_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, ceil_div
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, Move
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.boxes_questions import AxisForms, Questions
from blowfishdb.mechanisms.optimized.boxes_tensor import (
    LevelPlan,
    changed_by,
    level_variances,
    rounded,
    split_levels,
)
from blowfishdb.mechanisms.optimized.boxes_tree import Chain, Level, Tree, accumulate
from blowfishdb.mechanisms.optimized.boxes_tuning import BoxProblem, Waves
from blowfishdb.mechanisms.optimized.lattice import Lattice, not_rows
from blowfishdb.mechanisms.plan import Certificate

_BUCKETS = 96
_ROUNDING = 1e-25


@final
@dataclass(frozen=True)
class WaveForms(AxisForms):
    """The forms of a chain, then the squared DCT-II coefficients of the averages over its blocks."""

    chain: Chain
    block: int

    @property
    def _width(self) -> int:
        return self.chain.widths[self.block]

    def _blocks(self, cells: FloatArray) -> FloatArray:
        """Totals of the blocks along the last axis, those beyond the cells being zero."""
        totals = np.add.reduceat(cells, np.arange(0, self.chain.cells, self._width), axis=-1)
        missing = self.chain.padded // self._width - totals.shape[-1]
        return np.pad(totals, [(0, 0)] * (cells.ndim - 1) + [(0, missing)])

    def of_rows(self, rows: FloatArray) -> FloatArray:
        waves = scipy.fft.dct(self._blocks(rows), axis=1, norm="ortho") ** 2 / self._width
        waves[waves <= _ROUNDING * waves.sum(axis=1, keepdims=True)] = 0.0  # a constant question has no waves
        return np.concatenate((self.chain.of_rows(rows), waves), axis=1)

    def of_gram(self, gram: FloatArray) -> FloatArray:
        blocks = self._blocks(self._blocks(gram).T)
        waves = np.diagonal(scipy.fft.dctn(blocks, norm="ortho")) / self._width
        return np.concatenate((self.chain.of_gram(gram), waves))


@final
@dataclass(frozen=True, eq=False)
class BoxesOverEdges(LevelPlan):
    """Counts of boxes at scale K/(w_A·ε), and block counts with edge noise of scale K/(w₁·ε).

    Boxes are shorter than a block along at least one axis, or blocks themselves.
    *Guarantee*: ε-Blowfish. A move changes two boxes of a level at most, and crosses at most n blocks, so
    K = 2·Σ w_A + n·w₁ bounds its cost; n is Σ ⌈δ_i/s_i⌉ on a grid of blocks, max ⌈δ_i/s_i⌉ with diagonals.
    *Error*: as :class:`TensorBoxes` in spaces that are fine along some axis; the wave p of the blocks has
    precision g + w₁²·s/λ_p, g from the boxes that fit into a block.
    *Theorem*: docs/proofs/boxes.md, Theorem 4. The grand total is public and used exactly.
    """

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves
    tree: Tree
    block: Level
    lattice: Lattice
    weights: NDArray[Any]
    edge_weight: int
    name: str = "Boxes over edges"

    @staticmethod
    def tuned(
        workload: Workload,
        graph: PolicyGraph,
        questions: Questions,
        moves: GridMoves,
        chains: Sequence[Chain],
        block: Level,
        *,
        king: bool,
    ) -> BoxesOverEdges:
        """The best weights found on all levels of ``chains``, blocks being those of level ``block``."""
        tree = Tree(tuple(chains))
        lattice = Lattice(tree.boxes(block), king=king, reflected=king)
        moments = questions.moments([WaveForms(chain, at) for chain, at in zip(chains, block, strict=True)])
        gains = tree.volumes[block] / np.maximum(lattice.eigenvalues(), 1e-300)
        of_waves = moments[tuple(slice(chain.levels, None) for chain in chains)]
        spaces = moments[tuple(slice(chain.levels) for chain in chains)].copy()
        spaces = np.where(questions.needed(tree.chains), np.maximum(spaces, 1e-15 * spaces.max()), 0.0)
        spaces[tuple(slice(at, None) for at in block)] = 0.0
        kinds = _kinds(tree, moves, block, king=king)
        waves = Waves(block, *_bucketed(of_waves.ravel()[1:], gains.ravel()[1:]), tuple(n for _, n in kinds))
        solution = BoxProblem(spaces, tree.volumes, tuple(changed for changed, _ in kinds), waves).solve()
        boxes = np.append(solution.boxes[0].ravel(), solution.edges[0])
        whole = rounded(np.append(boxes[:-1], max(boxes[-1], boxes.max() / 1000)))
        weights, edge_weight = whole[:-1].reshape(spaces.shape), int(whole[-1])
        weights[block] = max(int(weights[block]), int(not weights.any()) * edge_weight)
        return BoxesOverEdges(workload, graph, questions, moves, tree, block, lattice, weights, edge_weight)

    # --- cost -------------------------------------------------------------------------------------

    @cached_property
    def cost(self) -> int:
        """K, in whole numbers."""
        kinds = _kinds(self.tree, self.moves, self.block, king=self.lattice.king)
        return max(2 * int(self.weights[changed].sum()) + n * self.edge_weight for changed, n in kinds)

    @cached_property
    def scales(self) -> UnitScales:
        weights = [int(self.weights[level]) for level in self.measured] + [self.edge_weight]
        counts = [*self._sizes, sum(self.lattice.sizes)]
        distinct = tuple(Fraction(self.cost, weight) for weight in weights)
        return UnitScales(distinct, np.repeat(np.arange(len(weights), dtype=np.int64), counts))

    # --- errors -----------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> Sequence[AxisForms]:
        return tuple(WaveForms(chain, at) for chain, at in zip(self.tree.chains, self.block, strict=True))

    @cached_property
    def _inside(self) -> BoolArray:
        """The levels that fit into a block: only these inform the waves."""
        inside = np.zeros(self.tree.levels, dtype=np.bool_)
        inside[tuple(slice(at + 1) for at in self.block)] = True
        return inside

    @cached_property
    def _precision(self) -> tuple[FloatArray, float]:
        """w² of the levels and of the edges, in units of the largest level."""
        largest = float(self.weights.max())
        return (self.weights / largest) ** 2, (self.edge_weight / largest) ** 2

    @cached_property
    def _inverse(self) -> FloatArray:
        """1/g_I; 0 for the blocks and what is coarser, which waves take care of."""
        g = accumulate(self._precision[0] * self.tree.volumes)
        inverse = np.divide(1.0, g, out=np.zeros_like(g), where=g > 0)
        inverse[tuple(slice(at, None) for at in self.block)] = 0.0
        return inverse

    @cached_property
    def _wave_gains(self) -> tuple[FloatArray, FloatArray]:
        """By what the waves of the box estimate and of the block counts are multiplied."""
        boxes, edges = self._precision
        eigenvalues = self.lattice.eigenvalues()
        total = (0,) * eigenvalues.ndim
        eigenvalues[total] = 1.0
        from_edges = edges * self.tree.volumes[self.block] / eigenvalues
        precision = float((boxes * self.tree.volumes)[self._inside].sum()) + from_edges
        of_boxes, of_blocks = 1.0 / precision, from_edges / precision
        of_boxes[total], of_blocks[total] = 0.0, 1.0
        return of_boxes, of_blocks

    def core(self, of_noise: FloatArray) -> FloatArray:
        boxes, _ = self._precision
        levels = level_variances(of_noise, self.measured, self._sizes, self.tree)
        noise = boxes**2 * levels * self.tree.volumes
        of_boxes, of_blocks = self._wave_gains
        along = of_noise[-1] * self.lattice.eigenvalues() / self.tree.volumes[self.block]
        sides = zip(self.tree.levels, self.lattice.shape, strict=True)
        tensor = np.zeros(tuple(levels + blocks for levels, blocks in sides))
        tensor[tuple(slice(levels) for levels in self.tree.levels)] = accumulate(noise) * self._inverse**2
        tensor[tuple(slice(levels, None) for levels in self.tree.levels)] = (
            noise[self._inside].sum() * of_boxes**2 + along * of_blocks**2
        )
        return tensor

    # --- measuring and decoding ---------------------------------------------------------------------

    def measure(self, x: IntArray) -> Numbers:
        padded = self.tree.pad(x)
        counts = [self.tree.sums(padded, level).ravel() for level in self.measured]
        return np.concatenate([*counts, self.lattice.flow(self.tree.sums(padded, self.block).ravel())])

    def certified(self, measured: Numbers, total: int) -> Numbers:
        counts, flow = np.split(measured, [sum(self._sizes)], axis=-1)
        blocks = self.lattice.spread(flow)
        blocks[..., 0] += total
        return np.concatenate((counts, blocks), axis=-1)

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self._answers(self.certified(measured, int(x.sum())))

    def spread(self, noise: Numbers) -> Numbers:
        return self._answers(self.certified(noise, 0))

    def _answers(self, published: Numbers) -> Numbers:
        counts, blocks = np.split(published, [sum(self._sizes)], axis=-1)
        parts = split_levels(counts, self.measured, self._sizes, self.tree)
        weighted = {level: part * self._precision[0][level] for level, part in parts.items()}
        inside = {level: part for level, part in weighted.items() if self._inside[level]}
        blocks = blocks.reshape(*blocks.shape[:-1], *self.lattice.shape)
        axes = tuple(range(-len(self.lattice.shape), 0))
        of_boxes, of_blocks = self._wave_gains
        estimate = self.tree.sums(self.tree.expand(inside), self.block)
        waves = of_boxes * scipy.fft.dctn(estimate, axes=axes, norm="ortho")
        waves += of_blocks * scipy.fft.dctn(blocks.astype(np.float64), axes=axes, norm="ortho")
        averages = scipy.fft.idctn(waves, axes=axes, norm="ortho") / self.tree.volumes[self.block]
        cells = self.tree.filtered(self.tree.expand(weighted), self._inverse)
        return self.workload.answer(self.tree.crop(cells + self.tree.expand({self.block: averages})))

    # --- proof ------------------------------------------------------------------------------------

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        raise not_rows()

    def certificate(self, *, epsilon: AnyEpsilon) -> Certificate:
        boxes = csr_array(vstack([self.tree.rows(level) for level in self.measured]))
        released = csr_array(vstack([boxes, self.tree.rows(self.block)]))
        mixing = csr_array(block_diag((eye_array(boxes.shape[0], dtype=np.int64), self.lattice.incidence())))
        columns = csr_array(boxes.T)

        def witness(u: int, v: int) -> IntArray:
            change = (columns[[u]] - columns[[v]]).toarray()[0]
            return np.concatenate((change, self.lattice.path(self._block(u), self._block(v))))

        return Certificate(released, mixing, self.scales.fractions(positive(epsilon)), witness)

    def _block(self, cell: int) -> Move:
        place = np.unravel_index(cell, self.tree.shape)
        widths = (chain.widths[at] for chain, at in zip(self.tree.chains, self.block, strict=True))
        return tuple(int(i) // width for i, width in zip(place, widths, strict=True))

    def explain(self) -> str:
        sides = zip(self.tree.chains, self.block, strict=True)
        block = "×".join(str(chain.widths[at]) for chain, at in sides)
        steps = "in eight directions" if self.lattice.king else "to the four neighbours"
        return (
            f"Counts of boxes that resolve blocks of {block} cells are combined by least squares with block "
            f"counts between which noise flows {steps}."
        )


def _kinds(tree: Tree, moves: GridMoves, block: Level, *, king: bool) -> list[tuple[BoolArray, int]]:
    """For every set of axes that moves: the levels that it changes and the most blocks that it crosses."""
    widths = [chain.widths[at] for chain, at in zip(tree.chains, block, strict=True)]
    crossings: dict[frozenset[int], int] = {}
    for move in moves.extremes:
        crossed = [
            min(ceil_div(step, width), ceil_div(chain.cells, width) - 1)
            for step, width, chain in zip(move, widths, tree.chains, strict=True)
        ]
        axes = frozenset(axis for axis, step in enumerate(move) if step)
        crossings[axes] = max(crossings.get(axes, 0), max(crossed) if king else sum(crossed))
    return [(changed_by(tree, axes), n) for axes, n in crossings.items()]


def _bucketed(moments: FloatArray, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Waves of about the same gain together: tuning does not need them one by one."""
    if gains.size <= _BUCKETS:
        return moments, gains
    logs = np.log(gains)
    edges = np.linspace(logs.min(), logs.max(), _BUCKETS)
    which = np.searchsorted(edges, logs)
    mass = np.asarray(np.bincount(which, moments, minlength=_BUCKETS + 1), dtype=np.float64)
    # a small gain errs the most, so the harmonic mean is the representative one
    inverse = np.asarray(np.bincount(which, moments / gains, minlength=_BUCKETS + 1), dtype=np.float64)
    present = (mass > 0) & (inverse > 0)
    return mass[present], mass[present] / inverse[present]
