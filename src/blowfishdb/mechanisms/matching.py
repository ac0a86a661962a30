"""MatchingTransformed: like values paired wherever they are, then the plan between the pairs ([A] §5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray, whole
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.dawa.costs import resolution, sensitivity
from blowfishdb.mechanisms.dawa.mechanism import check_cells, check_split, stages, steps
from blowfishdb.mechanisms.dawa_transformed import released_in_buckets

if TYPE_CHECKING:
    from collections.abc import Callable

_CELLS = 2_048  # the time of a matching grows with the third power
_PER_BUCKET = Fraction(3, 2)
_PER_CHOICE = Fraction(2)
_EXACT_ORDER = 60  # pairs up to which powers of two order all matchings
_TIE_BITS = 60
_SAFE = 2**50


@final
@dataclass(frozen=True)
class MatchingTransformed:
    """Buckets of two cells that need not be neighbours, or of 2^rounds after several rounds.

    *Guarantee*: ε-Blowfish for every graph: a perfect matching of least noisy cost with noise (Δ + Δ_b)/ε₁ on
    every pair and every single cell (2/ε₁ and 1/ε₁ in the first round), twice that where a move is one record
    less and one more; beyond eleven cells up to a tie of probability 2^−39; then as DawaTransformed. *Error*:
    depends on the data; by small buckets mostly. *Theorem*: docs/proofs/matching.md.
    """

    split: float = 0.25
    rounds: int = 1

    def __post_init__(self) -> None:
        check_split(self.split)
        if not 1 <= whole(self.rounds, "The number of rounds", InvalidInput) <= 5:
            raise InvalidInput(f"Matching takes one to five rounds, not {self.rounds}.")

    def plan(self, workload: Workload, graph: PolicyGraph) -> MatchingPlan:
        check_cells(workload, graph)
        if workload.size > _CELLS:
            raise TooLarge(
                f"Matching {workload.size:,} cells is above the limit of {_CELLS:,}.",
                fixes=(
                    "use DawaTransformed(), whose buckets are intervals",
                    "ask about fewer or larger bins",
                ),
            )
        _matching_library()
        return MatchingPlan(workload, graph, self.split, self.rounds)


@final
@dataclass(frozen=True, eq=False)
class MatchingPlan(DataDependentPlan):
    """Each round at an equal part of ε₁ = split·ε, the counts of the final buckets at ε − ε₁."""

    workload: Workload
    graph: PolicyGraph
    split: float
    rounds: int
    name: str = "Matching, transformed"

    def estimate(self, counts: IntArray, *, epsilon: Epsilon, noise: Noise) -> FloatArray:
        if not self.graph.edge_count:
            return counts.astype(np.float64)
        times = steps(self.graph)
        first, second = stages(epsilon, self.split, times)
        labels = np.arange(counts.size)
        for number in range(self.rounds):
            labels = matched(counts, labels, 2 << number, first / self.rounds, second, noise)
        rest = Epsilon(second * times)
        return released_in_buckets(self.workload, self.graph, counts, labels, epsilon=rest, noise=noise)

    def explain(self) -> str:
        if not self.graph.edge_count:
            return "The policy hides nothing: every answer is exact."
        doubled = " at twice the noise, since a hidden move is one record less and one more" * (
            steps(self.graph) - 1
        )
        return (
            f"{self.split:.0%} of the budget pairs cells of like counts, wherever they are, in {self.rounds} "
            f"{'round' if self.rounds == 1 else 'rounds'}{doubled}; the rest measures the buckets by the "
            "best plan for the policy between them."
        )


def matched(
    x: IntArray, labels: IntArray, longest: int, first: Fraction, second: Fraction, noise: Noise
) -> IntArray:
    """Buckets joined two by two where that is cheaper; ε₁-private under add/remove with ε₁ = ``first``.

    ``labels`` is public, and no bucket will hold more than ``longest`` cells.
    """
    buckets = int(labels.max()) + 1
    if buckets == 1:
        return labels
    units = resolution(range(1, longest + 1))
    sizes = np.bincount(labels)
    one, two = np.triu_indices(buckets, 1)
    members = _members(labels, sizes)
    alone = _Noisy(units, longest, first, second, noise)
    singles = alone.costs(_deviations(x, members, sizes, units), sizes)
    joined = np.concatenate(
        [
            _deviations(x, _unions(members, bucket), sizes[bucket] + sizes[bucket + 1 :], units)
            for bucket in range(buckets - 1)
        ]
    )
    pairs = alone.costs(joined, sizes[one] + sizes[two])
    partner = least_pairs(singles, pairs, noise)
    return np.unique(np.minimum(np.arange(buckets), partner), return_inverse=True)[1][labels]


@final
@dataclass(frozen=True, eq=False)
class _Noisy:
    """Deviation, noise and public penalty of candidate buckets, in whole units."""

    units: int
    longest: int
    first: Fraction
    second: Fraction
    noise: Noise

    def costs(self, deviations: IntArray, lengths: IntArray) -> IntArray:
        costs = deviations.copy()
        for length in np.unique(lengths).tolist():
            scale = (self._change(self.longest) + self._change(length)) / self.first
            here = np.flatnonzero(lengths == length)
            penalty = round(_PER_BUCKET / self.second * self.units + _PER_CHOICE * scale)
            costs[here] += self.noise.discrete_laplace(scale, here.size) + penalty
        return costs

    def _change(self, length: int) -> Fraction:
        return Fraction(sensitivity(length, self.units))


def _members(labels: IntArray, sizes: IntArray) -> IntArray:
    """The cells of every bucket, one row each; −1 where a bucket is smaller than the largest."""
    order = np.argsort(labels, kind="stable")
    table = np.full((sizes.size, int(sizes.max())), -1, dtype=np.int64)
    place = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table[labels[order], place] = order
    return table


def _unions(members: IntArray, bucket: int) -> IntArray:
    """The cells of ``bucket`` together with those of every later one."""
    later = members[bucket + 1 :]
    return np.hstack((np.broadcast_to(members[bucket], later.shape), later))


def _deviations(x: IntArray, members: IntArray, lengths: IntArray, units: int) -> IntArray:
    """⌊units·dev⌋ of sets of cells: Σ |L·x_j − S| / L in whole numbers."""
    held = np.where(members >= 0, x[members], 0)
    total = held.sum(axis=1)
    uneven = np.where(members >= 0, np.abs(held * lengths[:, None] - total[:, None]), 0).sum(axis=1)
    return np.asarray(uneven // lengths * units + uneven % lengths * units // lengths)


def least_pairs(singles: IntArray, pairs: IntArray, noise: Noise) -> IntArray:
    """The partner of every bucket, itself if alone, at least cost; ``pairs`` in the order of triu_indices.

    A perfect matching in which a bucket may be matched with nobody: equivalently, the matching of most weight
    c_i + c_j − c_ij among the pairs that save something. Of equally cheap ones a fixed order decides: powers
    of two in the last bits for few pairs, otherwise fresh random numbers that do not depend on the data.
    """
    count = singles.size
    one, two = np.triu_indices(count, 1)
    saved = singles[one] + singles[two] - pairs
    good = np.flatnonzero(saved > 0)
    if good.size and int(saved.max()) > _SAFE:
        raise TooLarge("The counts are too large for exact costs of pairs.")
    if saved.size <= _EXACT_ORDER:
        ties = [1 << int(pair) for pair in good]
    else:
        ties = (noise.bits.words(saved.size)[good] >> np.uint64(64 - _TIE_BITS)).tolist()
    shift = _TIE_BITS + count.bit_length()
    ends = zip(one[good].tolist(), two[good].tolist(), saved[good].tolist(), ties, strict=True)
    graph, matching = _matching_library()
    graph.add_nodes_from(range(count))
    graph.add_edges_from([(i, j, (weight << shift) - tie) for i, j, weight, tie in ends])
    partner = np.arange(count)
    for i, j in matching(graph, weight_fn=int):
        partner[i], partner[j] = j, i
    return partner


def _matching_library() -> tuple[Any, Callable[..., set[tuple[int, int]]]]:
    """An empty graph and the function that matches it."""
    try:
        import rustworkx
    except ImportError as reason:
        raise NotProven(
            "Matching needs the package rustworkx, which is not installed.",
            fixes=("pip install rustworkx", "use DawaTransformed()"),
        ) from reason
    return rustworkx.PyGraph(multigraph=False), rustworkx.max_weight_matching
