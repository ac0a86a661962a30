"""Optimized: the best strategy we know how to build for ranges under a policy.

Choosing a plan for a grid: every closed form is evaluated, the least error wins.

Data-independent plans for grids of two and more axes: boxes, flows, and both together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, grid_shape
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Balances, Ranges, Workload
from blowfishdb.mechanisms.optimized.boxes_questions import Questions, SeparablePlan
from blowfishdb.mechanisms.optimized.boxes_tensor import TensorBoxes
from blowfishdb.mechanisms.optimized.boxes_tree import Chain, Level, fine_chain, flat_chain
from blowfishdb.mechanisms.optimized.flux import Flux
from blowfishdb.mechanisms.optimized.lattice import LatticeNoise
from blowfishdb.mechanisms.optimized.line import OptimizedLine
from blowfishdb.mechanisms.optimized.line_balances import BalancesPlan, both_sides
from blowfishdb.mechanisms.optimized.line_design import LineQuestions, pieces
from blowfishdb.mechanisms.optimized.line_plan import LinePlan
from blowfishdb.mechanisms.optimized.line_presence import design_with_total, line_with_total
from blowfishdb.mechanisms.optimized.over_edges import BoxesOverEdges
from blowfishdb.mechanisms.plan import Mechanism, Plan

_LEVELS = 100  # combinations of levels that a search can still go through quickly
_WIDEST = math.isqrt(LIMIT)
_MOST_AXES = 12


def design(workload: Workload, graph: PolicyGraph) -> SeparablePlan | None:
    """The cheapest data-independent plan known for ``workload`` on a grid; None where no form applies.

    *Applies* to sums of products of workloads, one per axis, on at least two axes, under joint and
    Cartesian products of full and threshold policies and under L1 grids; where records come and go, under
    any policy. *Guarantee*: that of the plan, always exact for the rounded weights. *Error*: the least of
    edge noise on the grid, tensor boxes (with cells and total among them), boxes over edges, and flux
    (THEORY §11); of tensor boxes alone where records come and go.
    """
    problem = GridProblem.of(workload, graph)
    if problem is None:
        return None
    return min(problem.plans(), key=lambda plan: plan.unit_error)


@final
@dataclass(frozen=True, eq=False)
class GridProblem:
    """A workload and a policy, both understood as being about a grid."""

    workload: Workload
    graph: PolicyGraph
    questions: Questions
    moves: GridMoves

    @staticmethod
    def of(workload: Workload, graph: PolicyGraph) -> GridProblem | None:
        """None if one of them is not about a grid of at least two axes, or is too large to plan for."""
        shape = grid_shape(workload, graph.counted)
        sides = [n for n in shape if n > 1]
        if not len(sides) >= 2 or len(shape) > _MOST_AXES or max(sides) > _WIDEST or math.prod(shape) > LIMIT:
            return None
        questions = Questions.of(workload, shape)
        moves = GridMoves.around(graph.counted, shape) if graph.absent else GridMoves.of(graph, shape)
        if questions is None or moves is None or not (moves.extremes or graph.absent):
            return None
        return GridProblem(workload, graph, questions, moves)

    def plans(self) -> Iterator[SeparablePlan]:
        """Every form that applies, tuned."""
        problem = (self.workload, self.graph, self.questions, self.moves)
        together = any(sum(map(bool, move)) > 1 for move in self.moves.extremes)
        chains = self._chains()
        if not self.graph.absent:  # flows keep the total, which is not public where records come and go
            yield LatticeNoise.grid(*problem)
            if together:
                yield LatticeNoise.kings(*problem)
        yield TensorBoxes.tuned(*problem, chains)
        if any(chain.padded > chain.cells for chain in chains):
            yield TensorBoxes.tuned(*problem, [flat_chain(n) for n in self.moves.shape])
        if len(chains) > 3 or self.graph.absent:
            return
        if self._local():
            # where axes move together, boxes over edges make better use of blocks
            for blocks in (None, *(() if together else self._blocks(chains))):
                flux = Flux.tuned(*problem, chains, blocks=blocks)
                if flux is not None:
                    yield flux
        for block in self._blocks(chains):
            # diagonals pay as soon as two axes move at once
            yield BoxesOverEdges.tuned(*problem, chains, block, king=together and len(chains) == 2)

    def _local(self) -> bool:
        """Whether moves are short: flows pay with the square of the reach."""
        reach = zip(*self.moves.extremes, strict=True)
        return all(4 * max(steps) <= n or n <= 16 for steps, n in zip(reach, self.moves.shape, strict=True))

    def _chains(self) -> list[Chain]:
        """Levels per axis; where cells are asked one by one or all together, none lie between."""
        axes = range(len(self.moves.shape))
        flat = [all(_flat(term.factors[axis]) for term in self.questions.terms) for axis in axes]
        fine = sum(not is_flat for is_flat in flat)
        levels = max(3, int((_LEVELS / 2 ** sum(flat)) ** (1 / max(1, fine)) + 1e-9))
        pairs = zip(self.moves.shape, flat, strict=True)
        return [flat_chain(n) if is_flat or n < 4 else fine_chain(n, levels=levels) for n, is_flat in pairs]

    def _blocks(self, chains: Sequence[Chain]) -> Iterator[Level]:
        """Blocks about as long as a move reaches, if they are neither single cells nor a whole axis."""
        reach = [max(move[axis] for move in self.moves.extremes) for axis in range(len(chains))]
        seen = set()
        for above in (False, True):
            pairs = zip(chains, reach, strict=True)
            block = tuple(_nearest(chain, most, above=above) for chain, most in pairs)
            fits = [
                2 * max(chain.widths[at], most) <= chain.cells or chain.cells == 1
                for chain, at, most in zip(chains, block, reach, strict=True)
            ]
            if any(block) and all(fits) and block not in seen:
                seen.add(block)
                yield block


def _flat(factor: Workload) -> bool:
    """Whether the questions are about single cells, or about all of them together."""
    if isinstance(factor, Ranges):
        return bool((factor.starts == 0).all() and (factor.ends == factor.size - 1).all())
    return factor.one_per_cell


def _nearest(chain: Chain, reach: int, *, above: bool) -> int:
    """The largest level not wider than ``reach``, or the smallest not narrower."""
    below = max(at for at, width in enumerate(chain.widths) if width <= max(1, reach))
    if above and chain.widths[below] < reach and below + 1 < chain.levels:
        return below + 1
    return below


@final
@dataclass(frozen=True)
class Optimized(Mechanism):
    """Weighted rows chosen for the workload and the policy, combined by least squares.

    On a line (full, threshold, unequal bins, contiguous parts): hats and ramps
    (docs/proofs/optimized.md); on a grid: boxes and edge noise.

    *Guarantee*: ε-Blowfish; the sensitivity is the exact maximum over the edges of the policy, computed
    after the weights are rounded. *Error*: exact before the data is read; on a line of 256 cells 1.0–7.7
    times the lower bound. Totals that the policy leaves public are used; where presence is hidden, hats and a
    noisy total are measured on a line, boxes and a noisy total on a grid.

    >>> plan = bf.mechanisms.Optimized().plan(bf.workloads.AllRanges(64), bf.graphs.Threshold(64, 4))
    >>> plan.name
    'Optimized line strategy'
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        check_sizes(workload, graph)
        if graph.absent:
            return _without_total(workload, graph)
        if isinstance(workload, Balances) and workload.size > 1:
            inner = self.plan(both_sides(workload.size), graph)
            if isinstance(inner, LinePlan):
                return BalancesPlan(workload, graph, inner)
        if isinstance(workload, LineQuestions):
            stretches = pieces(workload, graph)
            if stretches is not None:
                return OptimizedLine(workload, graph, stretches)
        boxes = design(workload, graph)
        if boxes is not None:
            return boxes
        raise NotProven(
            "Optimized strategies are for ranges of an ordered attribute, or boxes of several, under a "
            "policy of distances or of contiguous parts.",
            fixes=("use Best(), which knows what else is proven here",),
        )


def _without_total(workload: Workload, graph: PolicyGraph) -> Plan:
    """The plan where records come and go: no total is public."""
    ends = graph.counted.right_ends()
    if isinstance(workload, LineQuestions | Balances) and ends is not None and ends.size > 1:
        reach = ends - np.arange(ends.size)
        return line_with_total(workload, graph, design_with_total(workload, reach))
    boxes = design(workload, graph)
    if boxes is None:
        raise NotProven(
            "Where records come and go, optimized strategies are for ranges of an ordered attribute, or "
            "boxes of several.",
            fixes=("use Laplace(), which is for all questions",),
        )
    return boxes
