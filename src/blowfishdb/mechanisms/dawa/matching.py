"""MatchingTransformed: like values paired wherever they are, then the plan between the pairs ([A] §5.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray, whole
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, InvalidInput, NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.dawa import TwoStagePlan, TwoStages, released_in_buckets
from blowfishdb.mechanisms.dawa.partition import resolution, sensitivity

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many matchings are done, and of how many."""

_CELLS = 2_048  # the time of a matching grows with the third power, and the proof counts the pairs
_PER_BUCKET = Fraction(3, 2)
_PER_CHOICE = Fraction(2)
_TIE_BITS = 60
_REDRAWN = Fraction(1, 2**38)  # what drawing again may cost: −ln(1 − p), p ≤ (2,048·2,047/2)/2^60
_LARGEST = 2**40  # of the true costs and of the public part; all weights then fit 126 bits
_FAR = 256  # scales that no noise reaches: e^−256 is less than the chance to guess the source of bits


@final
@dataclass(frozen=True)
class MatchingTransformed(TwoStages):
    """Buckets of two cells that need not be neighbours, or of 2^rounds after several rounds.

    *Guarantee*: ε-Blowfish for every graph: a perfect matching of least noisy cost, which must be the only
    one, with noise (Δ + Δ_b)/ε₁ on every pair and every single cell (2/ε₁ and 1/ε₁ in the first round), twice
    that where a move is one record less and one more; then as DawaTransformed. *Error*: depends on the data;
    by small buckets mostly. *Theorem*: docs/proofs/matching.md.

    >>> questions, policy = bf.workloads.AllRanges(64), bf.graphs.Threshold(64, 1)
    >>> bf.mechanisms.MatchingTransformed().plan(questions, policy).name
    'Matching, transformed'
    """

    split: float = 0.25
    rounds: int = 1
    progress: Progress | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= whole(self.rounds, "The number of rounds", InvalidInput) <= 5:
            raise InvalidInput(f"Matching takes one to five rounds, not {self.rounds}.")

    def planned(self, workload: Workload, graph: PolicyGraph) -> MatchingPlan:
        if workload.size > _CELLS:
            raise TooLarge(
                f"Matching {workload.size:,} cells is above the limit of {_CELLS:,}.",
                fixes=(
                    "use DawaTransformed(), whose buckets are intervals",
                    "ask about fewer or larger bins",
                ),
            )
        _matching_library()
        return MatchingPlan(workload, graph, self.split, self.rounds, self.progress)


@final
@dataclass(frozen=True, eq=False)
class MatchingPlan(TwoStagePlan):
    """Each round at an equal part of ε₁ = split·ε, the counts of the final buckets at ε − ε₁."""

    rounds: int
    progress: Progress | None = None
    name: str = "Matching, transformed"

    def estimate_in_stages(
        self, counts: IntArray, *, first: Fraction, second: Fraction, noise: Noise
    ) -> FloatArray:
        labels = np.arange(counts.size)
        for done in range(0, 2 * self.rounds, 2):
            self._report(done)
            half_done = partial(self._report, done + 1)
            part = first / self.rounds
            labels = matched(counts, labels, 2 << done // 2, part, second, noise, half_done)
        self._report(2 * self.rounds)
        rest = Epsilon(second * self.steps)
        return released_in_buckets(self.workload, self.graph, counts, labels, epsilon=rest, noise=noise)

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, 2 * self.rounds)

    def explain_stages(self) -> str:
        doubled = " at twice the noise, since a hidden move is one record less and one more"
        return (
            f"{self.split:.0%} of the budget pairs cells of like counts, wherever they are, in {self.rounds} "
            f"{'round' if self.rounds == 1 else 'rounds'}{doubled if self.steps == 2 else ''}; the rest "
            "measures the buckets by the best plan for the policy between them."
        )


def matched(
    x: IntArray,
    labels: IntArray,
    longest: int,
    first: Fraction,
    second: Fraction,
    noise: Noise,
    half_done: Callable[[], None] = lambda: None,
) -> IntArray:
    """Buckets joined two by two where that is cheaper; ε₁-private under add/remove with ε₁ = ``first``.

    ``labels`` is public, and no bucket will hold more than ``longest`` cells. Where two matchings are equally
    cheap in every respect, all noise is drawn again: the outcome is that of a draw in which one is best.
    """
    buckets = int(labels.max()) + 1
    if buckets == 1:
        return labels
    noisy = _Noisy(resolution(range(1, longest + 1)), longest, first - _REDRAWN, second, noise)
    noisy.check(x)
    sizes = np.bincount(labels)
    members = _members(labels, sizes)
    alone = _deviations(x, members, sizes, noisy.units)
    joined = np.concatenate(
        [
            _deviations(x, _unions(members, bucket), sizes[bucket] + sizes[bucket + 1 :], noisy.units)
            for bucket in range(buckets - 1)
        ]
    )
    one, two = np.triu_indices(buckets, 1)
    while True:
        singles, pairs = noisy.costs(alone, sizes), noisy.costs(joined, sizes[one] + sizes[two])
        pairing = Pairing.of(singles, pairs, _tie_breakers(noise, pairs.size))
        matching = pairing.best()
        half_done()
        if pairing.only(matching):
            break
    partner = np.arange(buckets)
    for i, j in matching:
        partner[j] = i
    return np.unique(partner, return_inverse=True)[1][labels]


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
            here = np.flatnonzero(lengths == length)
            costs[here] += self.noise.discrete_laplace(self._scale(length), here.size) + self._penalty(length)
        return costs

    def check(self, x: IntArray) -> None:
        """Counts, and what is public, must leave room for exact sums."""
        if 2 * self.units * int(np.abs(x).sum()) > _LARGEST:
            raise TooLarge("The counts are too large for exact costs of pairs.")
        if 2 * self._penalty(self.longest) + 3 * _FAR * self._scale(self.longest) > _LARGEST:
            raise InvalidEpsilon(
                "This ε is too small for matching: costs would be all noise.",
                fixes=("use a larger ε", "use fewer rounds"),
            )

    def _scale(self, length: int) -> Fraction:
        return (sensitivity(self.longest, self.units) + sensitivity(length, self.units)) / self.first

    def _penalty(self, length: int) -> int:
        return round(_PER_BUCKET / self.second * self.units + _PER_CHOICE * self._scale(length))


def _members(labels: IntArray, sizes: IntArray) -> IntArray:
    """The cells of every bucket, one row each; −1 where a bucket is smaller than the largest."""
    order = np.argsort(labels, kind="stable")
    table = np.full((sizes.size, int(sizes.max())), -1, dtype=np.int64)
    rank = np.arange(labels.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    table[labels[order], rank] = order
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


def _tie_breakers(noise: Noise, pairs: int) -> IntArray:
    """Uniform whole numbers from 1 to 2^60 that have nothing to do with the data."""
    return (noise.bits.words(pairs) >> np.uint64(64 - _TIE_BITS)).astype(np.int64) + 1


@final
@dataclass(frozen=True, eq=False)
class Pairing:
    """Which of ``count`` buckets may be joined, and the weight of that: a positive whole number each.

    Perfect matchings, in which a bucket may be matched with nobody, are compared by cost and then by the sum
    of the tie-breakers of their pairs. Equivalently: matchings of most weight (c_i + c_j − c_ij)·2^s − t
    among the pairs that save something.
    """

    count: int
    ends: list[tuple[int, int]]
    weights: list[int]

    @classmethod
    def of(cls, singles: IntArray, pairs: IntArray, ties: IntArray) -> Pairing:
        """From noisy costs; ``pairs`` and ``ties`` are in the order of triu_indices."""
        one, two = np.triu_indices(singles.size, 1)
        saved = singles[one] + singles[two] - pairs
        good = np.flatnonzero(saved > 0)
        ends = list(zip(one[good].tolist(), two[good].tolist(), strict=True))
        shift = _TIE_BITS + singles.size.bit_length()
        both = zip(saved[good].tolist(), ties[good].tolist(), strict=True)
        return cls(singles.size, ends, [(most << shift) - tie for most, tie in both])

    def best(self) -> set[tuple[int, int]]:
        """The pairs of a matching of most weight, smaller ends first."""
        graph, matching = _matching_library()
        graph.add_nodes_from(range(self.count))
        graph.add_edges_from([(i, j, weight) for (i, j), weight in zip(self.ends, self.weights, strict=True)])
        return {(min(pair), max(pair)) for pair in matching(graph, weight_fn=int, verify_optimum=True)}

    def only(self, pairs: set[tuple[int, int]]) -> bool:
        """Whether no other matching is as good as ``pairs``, a best one.

        All weights times more than the number of pairs, less one for each pair of ``pairs``: another matching
        of the same weight now wins, and none of less weight can.
        """
        apart = self.count // 2 + 1
        against = [
            apart * weight - (pair in pairs) for pair, weight in zip(self.ends, self.weights, strict=True)
        ]
        return Pairing(self.count, self.ends, against).best() == pairs


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
