"""Questions planned together: which releases are made, with how much noise, so that each is met (REUSE §2).

Every question brings a release that would answer it alone. Least squares over those that are made answers all
of them, so one release may take the place of another, or share its work. A way to answer is an ε for every
release, zero where it is not made. Noise of half the scale halves every error and doubles the loss, so what a
way costs is

    (largest error ÷ allowed error) · loss,        at whatever scale it is measured,

and the search goes over directions only: from all of them and from each one alone, changing one ε at a time
while that helps. Errors are sketched with a few thousand draws that are the same for every way. What is found
is certified like any planned answer (``margins``), and brought to the least ε that is.

Nothing here sees a value: a way to answer is a function of rows, policy and accuracies.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.losses import ReleasedRows
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.mechanisms.reuse import (
    Label,
    Offer,
    Partition,
    StoredRelease,
    cheapest,
    rows_of,
)

_MOST_BLOCKS = 8
MOST_BOXES = 600
_MOST_BINS = 20_000
_MOST_ROWS = 1_000
"""Of releases and questions: what one look at a way may take."""
_EXACT = 1e-5
_RANK = 1e-9
_OPEN = 1e-4
_DRAWS = (600, 2_000)
_TAIL = 40  # draws beyond the quantile, between these
_FACTORS = (0.0, 0.5, 0.8, 1.25, 2.0)
_FINER = (0.9, 1.1)
_SWEEPS = 5
_GAIN = 0.995
_TRIES = 5
_MORE = 1.0001

Losses = Callable[[Sequence[Epsilon]], float]
"""What is lost if each release is made at its ε, or not at all where that is zero."""


@final
@dataclass(frozen=True, eq=False)
class Wanted:
    """A question, how close its counts have to be, and the release that would answer it alone."""

    axes: tuple[Axis, ...]
    workload: Workload
    needed: Accuracy
    plan: Plan
    epsilon: Epsilon

    def released(self, epsilon: Epsilon) -> StoredRelease | None:
        """What is known of the release at ``epsilon`` before it is made."""
        return ReleasedRows(self.plan, epsilon).stored(self.axes)


@final
@dataclass(frozen=True, eq=False)
class Together:
    """A way to answer questions: the ε of the release that each brings; zero where it is not made."""

    epsilons: tuple[Epsilon, ...]
    loss: float

    def releases(self, wanted: Sequence[Wanted]) -> list[StoredRelease]:
        """What is known of those that are made, before they are."""
        made = zip(wanted, self.epsilons, strict=True)
        return [unit for one, epsilon in made if epsilon and (unit := one.released(epsilon)) is not None]

    def offers(self, wanted: Sequence[Wanted], releases: Sequence[StoredRelease]) -> list[Offer] | None:
        """What each question is told by releases, with the interval of a planned one; None if one is not."""
        offers = [cheapest(releases, one.axes, one.workload, one.needed, Label.PLANNED) for one in wanted]
        told = [offer for offer in offers if offer is not None]
        return told if len(told) == len(wanted) else None


def plan_together(
    wanted: Sequence[Wanted], losses: Losses, lines: FloatArray | None = None, within: float = math.inf
) -> Together | None:
    """A cheaper way than one release for each question; None where none is found.

    ``lines``: what every release loses at ε = 1, pair by pair, where that is known: looking at a way then
    takes a product. What is found is charged by ``losses`` in any case.

    ``within``: what another way costs. One that seems to cost more is not looked at any closer, and to make
    every release as it is counts as a way, too, if it costs less: these may be others than each is answered
    by alone.
    """
    own = tuple(one.epsilon for one in wanted)
    as_it_is = Together(own, losses(own))
    searched = _searched(wanted, losses, min(_GAIN * as_it_is.loss, within), lines)
    ways = [as_it_is, _without_followers(wanted, losses), searched]
    most = as_it_is.loss if math.isinf(within) else within
    cheaper = [way for way in ways if way is not None and way.loss < most]
    return min(cheaper, key=lambda way: way.loss, default=None)


def _searched(
    wanted: Sequence[Wanted], losses: Losses, most: float, lines: FloatArray | None
) -> Together | None:
    """The cheapest way that is found, if it promises to cost less than ``most``."""
    sketch = _Sketch.of(wanted) if len(wanted) <= _MOST_BLOCKS else None
    if sketch is None:
        return None
    cost = _Cost(sketch, losses, lines)
    direction = _search(cost, np.array([float(one.epsilon) for one in wanted]))
    if cost(direction) >= most:
        return None
    return _certified(wanted, direction * sketch.excess(direction), losses)


def _without_followers(wanted: Sequence[Wanted], losses: Losses) -> Together | None:
    """Every release as it is alone, but for those whose questions follow from dearer ones as they are."""
    partition = Partition.common([one.axes for one in wanted])
    if partition is None or partition.count > (_MOST_BINS if partition.line else MOST_BOXES):
        return None
    epsilons = [one.epsilon for one in wanted]
    releases: list[StoredRelease] = []
    for at in sorted(range(len(wanted)), key=lambda at: -wanted[at].epsilon.nano):
        one = wanted[at]
        offer = cheapest(releases, one.axes, one.workload, one.needed, Label.PLANNED) if releases else None
        if offer is not None and offer.meets(one.needed):
            epsilons[at] = Epsilon(0)
        elif (release := one.released(one.epsilon)) is not None:
            releases.append(release)
    way = Together(tuple(epsilons), losses(epsilons))
    offers = way.offers(wanted, way.releases(wanted)) if not all(epsilons) else None
    follows = offers is not None and all(
        epsilon or offer.meets(one.needed)
        for one, epsilon, offer in zip(wanted, epsilons, offers, strict=True)
    )
    return way if follows else None


@final
@dataclass(frozen=True, eq=False)
class _Cost:
    """What a direction costs once it is scaled so that every question is met."""

    sketch: _Sketch
    losses: Losses
    lines: FloatArray | None

    def __call__(self, epsilons: FloatArray) -> float:
        excess = self.sketch.excess(epsilons)
        return math.inf if math.isinf(excess) else excess * self._loss(epsilons)

    def _loss(self, epsilons: FloatArray) -> float:
        if self.lines is None:
            return self.losses(_rounded(epsilons))
        return float((self.lines @ epsilons).max(initial=0.0))


def _rounded(epsilons: FloatArray) -> list[Epsilon]:
    return [Epsilon.from_nano(math.ceil(epsilon * 1e9)) for epsilon in epsilons]


def _search(cost: _Cost, alone: FloatArray) -> FloatArray:
    """The cheapest direction that is found from all releases and from each one by itself."""
    starts = [alone, *(np.where(np.arange(alone.size) == only, alone, 0.0) for only in range(alone.size))]
    best = min(starts, key=cost)
    least = cost(best)
    for factors in (_FACTORS, _FINER):
        for _ in range(_SWEEPS):
            before = least
            for at in range(alone.size):
                for factor in factors:
                    step = best.copy()
                    step[at] = factor * (best[at] or alone[at])
                    if not step.any():
                        continue
                    price = cost(step)
                    if price < least:
                        best, least = step, price
            if least > _GAIN * before:
                break
    return best


@final
@dataclass(frozen=True, eq=False)
class _Sketch:
    """Errors of all questions over their common boxes, in the continuous limit, by the same few draws."""

    rows: tuple[FloatArray, ...]
    """Of each release."""
    scales: tuple[FloatArray, ...]
    """Of the noise on them at ε = 1; exact rows have next to none."""
    questions: tuple[FloatArray, ...]
    needed: tuple[Accuracy, ...]

    @classmethod
    def of(cls, wanted: Sequence[Wanted]) -> _Sketch | None:
        """None where a release cannot be combined, or looking would take too long."""
        units = [unit for one in wanted if (unit := one.released(Epsilon(1))) is not None]
        partition = Partition.common([one.axes for one in wanted])
        if len(units) < len(wanted) or partition is None or partition.count > MOST_BOXES:
            return None
        measured = [partition.matrix(unit.rows, unit.axes) for unit in units]
        asked = [partition.matrix(rows_of(one.workload), one.axes) for one in wanted]
        matrices = [
            np.asarray(matrix.toarray(), dtype=np.float64)
            for matrix in (*measured, *asked)
            if matrix is not None
        ]
        if len(matrices) < 2 * len(wanted) or sum(map(len, matrices)) > _MOST_ROWS:
            return None
        rows, questions = matrices[: len(wanted)], matrices[len(wanted) :]
        each = (question / one.workload.denominator for question, one in zip(questions, wanted, strict=True))
        least = min(float(unit.scales[unit.scales > 0].min(initial=math.inf)) for unit in units)
        scales = tuple(np.maximum(unit.scales, _EXACT * least) for unit in units)
        return cls(tuple(rows), scales, tuple(each), tuple(one.needed for one in wanted))

    @cached_property
    def _draws(self) -> tuple[FloatArray, ...]:
        stream = np.random.Generator(np.random.Philox(key=[0, len(self.rows)]))
        draws = math.ceil(min(max(_TAIL / min(one.beta for one in self.needed), _DRAWS[0]), _DRAWS[1]))
        return tuple(stream.laplace(size=(draws, len(rows))) for rows in self.rows)

    def excess(self, epsilons: FloatArray) -> float:
        """How many times larger than allowed the largest error is; infinite if some question is open."""
        made = np.flatnonzero(epsilons)
        scales = np.concatenate([self.scales[at] / epsilons[at] for at in made])
        rows = np.concatenate([self.rows[at] for at in made])
        inverse = np.linalg.pinv(rows / scales[:, None], rcond=_RANK) / scales
        noise = np.concatenate([self._draws[at] for at in made], axis=1) * scales
        cells = noise @ inverse.T
        worst = 0.0
        for question, needed in zip(self.questions, self.needed, strict=True):
            if np.abs(question - question @ inverse @ rows).max(initial=0.0) > _OPEN:
                return math.inf
            errors = np.abs(cells @ question.T)
            largest = errors.max(axis=1, keepdims=True) if needed.simultaneous else errors
            worst = max(worst, float(np.quantile(largest, 1 - needed.beta, axis=0).max()) / needed.alpha)
        return worst


def _certified(wanted: Sequence[Wanted], sketched: FloatArray, losses: Losses) -> Together | None:
    """The least multiple of what was sketched that is known to meet every question."""
    best, factor = None, 1.0
    for _ in range(_TRIES):
        epsilons = _rounded(sketched * factor)
        way = Together(tuple(epsilons), losses(epsilons))
        offers = way.offers(wanted, way.releases(wanted))
        if offers is None:
            return best
        off = max(offer.alpha / one.needed.alpha for one, offer in zip(wanted, offers, strict=True))
        if off <= 1 and (best is None or way.loss < best.loss):
            best = way
        elif best is not None:
            return best
        if _GAIN < off <= 1:
            return best
        factor *= off * _MORE
    return best
