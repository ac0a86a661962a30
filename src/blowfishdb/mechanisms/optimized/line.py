"""The plan of an optimized line strategy: exact errors and quotes without listing questions.

Data-independent strategies for ranges under a θ-line policy: hats, ramps and their least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Ranges
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized.line_design import LineQuestions, Piece
from blowfishdb.mechanisms.optimized.line_plan import LinePlan

_DENSE = 12_000  # cells up to which the covariance of all prefixes is gone through, some rows at a time


@final
@dataclass(frozen=True, eq=False)
class OptimizedLine(LinePlan):
    """Hats and ramps with noise of scale K/(w·ε), then weighted least squares with the public totals.

    *Guarantee*: ε-Blowfish, exactly ε on the worst edge of every component
    (docs/proofs/optimized.md, Theorem 1). *Error*: exact for the discrete noise at any ε. The decoder T is
    the best one in the continuous limit and the same for every ε, so the error of a release is T·η and its
    variance T·diag(Var η)·Tᵀ (Theorem 3).
    """

    workload: LineQuestions
    graph: PolicyGraph
    pieces: tuple[Piece, ...]
    name: str = "Optimized line strategy"

    # --- noise ----------------------------------------------------------------------------------

    @cached_property
    def scales(self) -> UnitScales:
        distinct: list[Fraction] = []
        which = [np.zeros(0, dtype=np.int64)]
        for piece in self.pieces:
            groups = np.repeat(np.arange(len(piece.unit_scales)), piece.strategy.shape.group_sizes)
            which.append(np.tile(len(distinct) + groups, len(piece.starts)))
            distinct += piece.unit_scales
        return UnitScales(tuple(distinct), np.concatenate(which).astype(np.int64))

    @cached_property
    def _begins(self) -> tuple[int, ...]:
        """Where the noise of each piece begins."""
        sizes = [piece.rows * len(piece.starts) for piece in self.pieces]
        return tuple(int(end) for end in np.cumsum([0, *sizes]))

    def measure(self, x: IntArray) -> Numbers:
        return np.concatenate([np.zeros(0, dtype=np.int64), *(piece.measure(x) for piece in self.pieces)])

    # --- from noisy rows to cuts, from cuts to answers ------------------------------------------

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        """Of ``x`` only the totals of components are used: the cuts between them."""
        self.check_listable()
        truth = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(x)))
        cuts = np.where(self._known, truth, 0).astype(np.float64)
        for piece, (begin, end) in zip(self.pieces, pairwise(self._begins), strict=True):
            left = truth[piece.starts]
            inner = piece.cuts(measured[begin:end], truth[piece.starts + piece.cells] - left)
            cuts[piece.inner] = inner + left[:, None]
        return self.answers(cuts)

    def cut_errors(self, noise: Numbers) -> FloatArray:
        """The errors of the cuts 0 … k, zero where the policy leaves them public."""
        errors = np.zeros((*noise.shape[:-1], self.workload.size + 1))
        for piece, (begin, end) in zip(self.pieces, pairwise(self._begins), strict=True):
            errors[..., piece.inner] = piece.cuts(noise[..., begin:end], 0)
        return errors

    # --- what is exact --------------------------------------------------------------------------

    @cached_property
    def _known(self) -> BoolArray:
        """The cuts that lie between components, 0 and k among them: no edge crosses them."""
        known = np.ones(self.workload.size + 1, dtype=np.bool_)
        for piece in self.pieces:
            known[piece.inner] = False
        return known

    @cached_property
    def exact(self) -> BoolArray:
        first, last = self.ends
        return np.asarray(self._known[first] & self._known[last + 1])

    @property
    def free(self) -> bool:
        return bool(self._known.all())

    @property
    def one_to_one(self) -> bool:
        """Under θ = 1 the prefixes themselves are measured."""
        ordered = all(not piece.strategy.shape.hats for piece in self.pieces)
        return ordered and self.workload.prefixes

    # --- errors ---------------------------------------------------------------------------------

    def variances(self, of_noise: FloatArray) -> FloatArray:
        """Of every answer; all stretches of a piece carry the noise of its first one."""
        first, last = self.ends
        if len(self.pieces) == 1 and len(self.pieces[0].starts) == 1 and self._known.sum() == 2:
            return self.pieces[0].solver.range_variances(first, last, of_noise=of_noise)
        of_cuts = np.zeros(self.workload.size + 1)
        owner = np.full(self.workload.size, -1)  # the stretch of every cell, as the cut where it begins
        for piece, noise in self._first_stretches(of_noise):
            of_cuts[piece.inner] = piece.solver.prefix_variances(noise)
            owner[piece.starts[:, None] + np.arange(piece.cells)] = piece.starts[:, None]
        # Stretches err independently, so the two ends of a range add up unless they share a stretch.
        out = of_cuts[first] + of_cuts[last + 1]
        together = (owner[first] == owner[last]) & (owner[first] >= 0)
        for piece, noise in self._first_stretches(of_noise):
            here = np.flatnonzero(together & np.isin(owner[first], piece.starts))
            left = owner[first[here]]
            out[here] = piece.solver.range_variances(first[here] - left, last[here] - left, of_noise=noise)
        return out

    def total_variance(self, of_noise: FloatArray) -> float:
        if isinstance(self.workload, Ranges):
            return float(self.variances(of_noise).sum())
        return float(
            sum(len(p.starts) * self._total(p, noise) for p, noise in self._first_stretches(of_noise))
        )

    def _total(self, piece: Piece, noise: FloatArray) -> float:
        """All ranges: a cut of this stretch meets k other cuts, and errs together with those of its own."""
        if self.workload.one_per_cell:
            return float(piece.solver.cell_variances(noise).sum())
        trace = float(piece.solver.prefix_variances(noise).sum())
        if self.workload.prefixes:
            return trace
        return (self.workload.size + 1) * trace - piece.solver.sum_variance(noise)

    def _first_stretches(self, of_noise: FloatArray) -> list[tuple[Piece, FloatArray]]:
        begins = zip(self.pieces, self._begins, strict=False)
        return [(piece, of_noise[begin : begin + piece.rows]) for piece, begin in begins]

    def largest_variance(self, of_noise: FloatArray) -> float:
        """Many ranges are not gone through: the two ends of the worst one err by at most twice a prefix."""
        if not self.many:
            return float(self.variances(of_noise).max())
        cuts = [
            piece.solver.prefix_variances(noise).max() for piece, noise in self._first_stretches(of_noise)
        ]
        return 4.0 * float(max(cuts, default=0.0))

    @cached_property
    def largest_deviation(self) -> float:
        unit = 2.0 * self.scales.floats() ** 2
        if not self.workload.every_range or self.workload.size > _DENSE:
            return float(np.sqrt(self.largest_variance(unit)))
        ends, within = [0.0, 0.0], 0.0
        for piece, noise in self._first_stretches(unit):
            ends += [float(piece.solver.prefix_variances(noise).max())] * min(2, len(piece.starts))
            within = max(within, piece.solver.largest_range_variance())
        apart = sum(sorted(ends)[-2:])  # ends in different stretches err independently
        return float(np.sqrt(max(within, apart)))

    # --- privacy and words ----------------------------------------------------------------------

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        blocks = [piece.sparse(self.workload.size) for piece in self.pieces]
        none = csr_array((0, self.workload.size), dtype=np.int64)
        return csr_array(vstack([none, *blocks])), self.scales.fractions(positive(epsilon))

    def explain(self) -> str:
        if self.free:
            return "No pair of values that the policy hides changes any answer: all are exact and free."
        largest = max(self.pieces, key=lambda piece: piece.cells * len(piece.starts))
        measured = "; ".join(largest.strategy.groups)
        known = int(self._known.sum()) - 1
        totals = "the public total" if known == 1 else f"the {known:,} totals that the policy leaves public"
        return f"Measures {measured} of the budget, and combines all by least squares with {totals}."
