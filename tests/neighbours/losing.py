"""The exact loss between two databases: by what the two differ in what was measured, over its noise.

Nothing here asks a policy, a kernel or a sensitivity: the counts of both databases, the rows that a plan
measures and the scales of their noise are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.mechanisms.plan import Certificate, DataDependentPlan, Plan
from tests.neighbours.columns import Column
from tests.neighbours.exchanging import joined_pairs, worst_exchange
from tests.neighbours.known import every_record
from tests.neighbours.promises import Promise
from tests.neighbours.synthesizing import MadeChoice
from tests.neighbours.watching import Released

Loss = Fraction | float


def lost(mine: Sequence[Released], theirs: Sequence[Released]) -> Loss:
    """What the releases of one step tell apart; without end where one side released something else."""
    if len(mine) != len(theirs):
        return math.inf
    return added(_between(one, other) for one, other in zip(mine, theirs, strict=True))


def most(promise: Promise, columns: tuple[Column, ...], releases: Sequence[Released], people: int) -> Loss:
    """What all releases lost together between the records that they tell apart best, of those that
    ``promise`` hides; for whoever is in ``people`` rows, with other values in every snapshot."""
    snapshots = {release.snapshot for release in releases}
    within = ([release for release in releases if release.snapshot == each] for each in snapshots)
    return added(_most_at_once(promise, columns, those, people) for those in within)


def _most_at_once(
    promise: Promise, columns: tuple[Column, ...], releases: Sequence[Released], people: int
) -> Loss:
    """The same of releases about the same rows: between two records."""
    places = tuple(release.places_of(columns) for release in releases)
    moves = {
        tuple(tuple(sorted(ends)) for ends in zip(here, there, strict=True))
        for here, there in _edges(promise, columns, places)
    }
    worst: Loss = Fraction(0)
    if promise.known is not None:
        found = worst_exchange(promise, promise.known, columns, releases, places)
        worst = Fraction(0) if found is None else added(map(_exchanged, releases, *zip(*found, strict=True)))
    for move in moves:
        worst = max(worst, added(map(_moved, releases, move)))
    return worst if math.isinf(worst) else people * worst


def _edges(
    promise: Promise, columns: tuple[Column, ...], places: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The boxes, in every release, of both ends of every hidden move."""
    for one, other in free_pairs(promise, columns):
        yield tuple(of[one] for of in places), tuple(of[other] for of in places)


def _moved(release: Released, ends: tuple[int, ...]) -> Loss:
    """What a release loses about one row that moves between two boxes: the same after every step."""
    if ends not in release.moved:
        here, there = ends
        release.moved[ends] = _exchanged(release, (here,), (there,))
    return release.moved[ends]


def _exchanged(release: Released, left: Sequence[int], entered: Sequence[int]) -> Loss:
    """What a release loses about rows that leave some boxes and enter others."""
    sides = []
    for boxes in (left, entered):
        counts = release.counts.copy()
        np.add.at(counts, [box for box in boxes if box >= 0], 1)
        sides.append(replace(release, counts=counts))
    return _between(*sides)


@lru_cache(maxsize=64)
def free_pairs(promise: Promise, columns: tuple[Column, ...]) -> list[tuple[int, int]]:
    """Those between which a row can move while nobody else does: no known count changes."""
    known, records = promise.known, [*every_record(columns), None]
    pairs = joined_pairs(promise, columns)
    if known is None:
        return pairs
    return [(one, other) for one, other in pairs if not known.shift(columns, records[one], records[other])]


def added(losses: Iterable[Loss]) -> Loss:
    """Losses add up."""
    total: Loss = Fraction(0)
    for loss in losses:
        total = math.inf if math.isinf(loss) or math.isinf(total) else total + loss
    return total


def _between(one: Released, other: Released) -> Loss:
    if type(one.plan) is not type(other.plan) or one.epsilon != other.epsilon:
        return math.inf
    if one.counts.shape != other.counts.shape:
        return math.inf
    if isinstance(one.plan, MadeChoice):
        assert isinstance(other.plan, MadeChoice)
        return one.plan.lost(other.plan, bool((one.counts != other.counts).any()))
    if (one.counts == other.counts).all():
        return Fraction(0)
    plan = one.plan
    if isinstance(plan, DataDependentPlan):
        return _data_dependent(plan, one, other)
    if plan.free:  # no noise is drawn, and the watch sees that nothing but the answers comes out
        exact = [np.asarray(plan.decode(plan.measure(side.counts), side.counts)) for side in (one, other)]
        return math.inf if (exact[0] != exact[1]).any() else Fraction(0)
    noise = np.asarray(plan.measure(one.counts))  # as good as any: both sides see the same noisy numbers
    if (np.asarray(plan.decode(noise, one.counts)) != np.asarray(plan.decode(noise, other.counts))).any():
        return math.inf
    if type(plan).published is not Plan.published:
        return _mixed(plan, one, other)
    change = np.asarray(plan.measure(one.counts)) - np.asarray(plan.measure(other.counts))
    scales = plan.scales.fractions(one.epsilon)
    if sorted(one.scales) != sorted(scale for scale in scales if scale):
        return math.inf  # other noise was drawn than the plan says
    total = Fraction(0)
    for row in np.flatnonzero(change):
        if not scales[row]:
            return math.inf
        total += Fraction(abs(int(change[row]))) / scales[row]
    return total


def _mixed(plan: Plan, one: Released, other: Released) -> Loss:
    """Where noise is mixed into several numbers: the least noise that undoes the change."""
    certificate = plan.certificate(epsilon=one.epsilon)
    change = certificate.released @ (one.counts - other.counts)
    mixing = certificate.mixing.toarray().astype(np.float64)
    if not mixing.size:
        return math.inf if change.any() else Fraction(0)
    prices = np.array([1 / float(scale) for scale in certificate.scales])
    found = linprog(
        np.concatenate((prices, prices)), A_eq=np.hstack((mixing, -mixing)), b_eq=change, bounds=(0, None)
    )
    return _shown(certificate, change, found.eqlin.marginals) if found.success else math.inf


def _shown(certificate: Certificate, change: IntArray, weights: FloatArray) -> Fraction:
    """What a solution of the dual program proves in exact numbers: never above the loss, if rounded."""
    exact = [Fraction(float(weight)) for weight in weights]
    mixing = certificate.mixing.tocsc()
    most = Fraction(0)
    for column, scale in enumerate(certificate.scales):
        within = slice(mixing.indptr[column], mixing.indptr[column + 1])
        terms = zip(mixing.indices[within], mixing.data[within], strict=True)
        most = max(most, abs(sum((exact[row] * int(times) for row, times in terms), Fraction(0))) * scale)
    told = sum((weight * int(by) for weight, by in zip(exact, change, strict=True)), Fraction(0))
    return told / most if most else Fraction(0)


def _data_dependent(plan: DataDependentPlan, one: Released, other: Released) -> Loss:
    """At most ε for every row that moved, and for each step: these mechanisms are audited by themselves."""
    true = [np.asarray(plan.workload.answer(side.counts))[plan.exact] for side in (one, other)]
    if (true[0] != true[1]).any():
        return math.inf
    if plan.free:  # every answer is exact, and they are the same
        return Fraction(0)
    moved = max(int(np.abs(one.counts - other.counts).sum()) // 2, 1)
    ends = np.flatnonzero(one.counts != other.counts)
    far = plan.graph.distance(*map(int, ends)) if moved == 1 and ends.size == 2 else moved
    return math.inf if math.isinf(far) else one.epsilon.fraction * int(far)
