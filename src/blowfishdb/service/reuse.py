"""What has been paid for: stored releases, and the answers that follow from them by arithmetic.

A release is out already, so computing from it costs nothing under any policy. Whether a question follows,
and how accurately, is decided by what was measured and never by the noisy values.

Questions that are settled on before any of them is answered: they pay for what they lose together.

Losses add up pair by pair, so answers about groups that no edge joins, or about distant parts of a line, cost
as much as the dearest of them. What each one is charged is what it adds to the loss of those before it about
the same rows: someone may have one value in these and another in later ones.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.questions.projection import Projected
from blowfishdb.mechanisms.losses import Kernel, ReleasedRows
from blowfishdb.mechanisms.plan import DataDependentPlan, Observation, Plan
from blowfishdb.mechanisms.reuse import Label, Offer, StoredRelease, cheapest, rows_of
from blowfishdb.service.policies import past_loss
from blowfishdb.service.records import DatasetEntry

_MOST_BINS = 20_000  # beyond these, arithmetic on releases would take longer than a quote may
_MOST_BOXES = 1_000
_MOST_RELEASES = 8  # the newest ones; more add little accuracy and cost time
_MOST_REMEMBERED = 256


def stored_release(
    plan: Plan | DataDependentPlan, seen: Observation, epsilon: Epsilon, axes: tuple[Axis, ...]
) -> Any:
    """What was measured, as plain data; None where it is not a list of rows with noise of their own.

    Of exact numbers only those that the answers show; that others were used is noted, without their values.
    A data-dependent plan chose its rows by what it had seen, so nothing can be promised of combining them.
    """
    if isinstance(plan, DataDependentPlan) or not _manageable(axes):
        return None
    try:
        released = ReleasedRows(plan, epsilon)
        noisy, scales = released.noisy
        exact, totals = released.shown(seen)
        used = rows_of(released.used)
    except (NotProven, TooLarge):
        return None
    values = np.concatenate((released.noisy_values(seen), totals))
    rows = csr_array(vstack([noisy, exact]))
    if rows.shape[0] != values.size or not (values.size or used.count):
        return None
    each = [*scales, *[Fraction(0)] * len(totals)]
    distinct = {id(scale): scale for scale in each}  # thousands of rows share a few objects
    place = {key: index for index, key in enumerate(distinct)}
    which = np.fromiter((place[id(scale)] for scale in each), dtype=np.int64, count=len(each))
    kept = StoredRelease(axes, rows_of(rows), tuple(distinct.values()), which, values, 0, used)
    return kept.to_plain()


@final
@dataclass(frozen=True, eq=False)
class StoredReleases:
    """The releases of a workspace; read from the ledger once each."""

    ledger: Ledger
    _read: dict[int, tuple[int, StoredRelease | None]] = field(default_factory=dict)
    _remembered: dict[Hashable, Offer | None] = field(default_factory=dict)

    def offer(
        self,
        dataset: str,
        snapshot: int,
        problem: Projected,
        accuracy: Accuracy,
        basket: frozenset[int] = frozenset(),
    ) -> Offer | None:
        """An answer for nothing that is as accurate as was asked; None if there is none.

        From the releases of a ``basket``, settled on together with this question before any of them was out,
        it is known more closely than from those that the asker may have seen.
        """
        axes = problem.cells.axes
        everything = self._releases(dataset, snapshot)
        releases = _combinable(everything, axes)
        if not releases or not _manageable(axes):
            return None
        offers = [self._best(releases, problem, accuracy, known=len(everything))]
        together = [release for release in releases if release.number in basket]
        if together:
            offers.append(cheapest(together, problem.cells.axes, problem.workload, accuracy, Label.PLANNED))
        meeting = [offer for offer in offers if offer is not None and offer.meets(accuracy)]
        return min(meeting, key=lambda offer: offer.alpha, default=None)

    def _best(
        self, releases: list[StoredRelease], problem: Projected, accuracy: Accuracy, *, known: int
    ) -> Offer | None:
        """The most accurate free answer; it does not depend on the α that was asked for.

        ``known``: how many releases whoever asks may have looked at.
        """
        used = releases[-_MOST_RELEASES:]
        numbers = (known, *(release.number for release in used))
        boxes = tuple((axis.column, axis.attribute, axis.bins) for axis in problem.cells.axes)
        key = (numbers, boxes, problem.workload, accuracy.beta, accuracy.simultaneous)
        if key not in self._remembered:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = cheapest(
                used, problem.cells.axes, problem.workload, accuracy, known=known
            )
        return self._remembered[key]

    def _releases(self, dataset: str, snapshot: int) -> Sequence[StoredRelease]:
        found = []
        for stored in self.ledger.answers(dataset):
            if stored.charge.id not in self._read:
                self._read[stored.charge.id] = _parsed(stored.answer, stored.charge.id)
            its_snapshot, release = self._read[stored.charge.id]
            if release is not None and its_snapshot == snapshot:
                found.append(release)
        return found


def _parsed(text: str, number: int) -> tuple[int, StoredRelease | None]:
    body = json.loads(text)
    plain = body["release"]
    snapshot = body["answer"]["receipt"]["snapshot"]
    release = None if plain is None else StoredRelease.from_plain({**plain, "number": number})
    return snapshot, release if release is not None and release.rows.count else None


def _combinable(releases: Sequence[StoredRelease], axes: tuple[Axis, ...]) -> list[StoredRelease]:
    """Releases of the same rows that can be combined quickly: those on the question's own columns.

    Without any, those that share a column with it. The newest come first, and one that would cut the boxes
    too finely is left out: a release on one column and a question on another meet in the boxes of both.
    """
    asked = {axis.column for axis in axes}
    usable = [release for release in releases if _same_rows(release.axes, axes)]
    columns = [{axis.column for axis in release.axes} for release in usable]
    own = [release for release, its in zip(usable, columns, strict=True) if its <= asked]
    near = own or [release for release, its in zip(usable, columns, strict=True) if its & asked]
    cuts: dict[str, list[Bins]] = {axis.column: [axis.bins] for axis in axes}
    chosen: list[StoredRelease] = []
    for release in reversed(near):
        finer = {column: list(bins) for column, bins in cuts.items()}
        for axis in release.axes:
            finer.setdefault(axis.column, []).append(axis.bins)
        boxes = math.prod(_pieces(tuple(dict.fromkeys(bins))) for bins in finer.values())
        if boxes <= (2 * _MOST_BINS if len(finer) == 1 else _MOST_BOXES):
            cuts = finer
            chosen.append(release)
    return chosen[::-1]


@lru_cache(maxsize=1024)
def _pieces(bins: tuple[Bins, ...]) -> int:
    """Into how many pieces all these bins together cut a column; at most."""
    lines = [one.first(np.arange(one.count)) for one in bins if one.contiguous]
    cut = np.unique(np.concatenate(lines)).size if lines else 1
    return int(cut) * math.prod(one.count for one in bins if not one.contiguous)


def _manageable(axes: tuple[Axis, ...]) -> bool:
    """Intervals on one column are quick to combine, boxes of several columns are not."""
    most = _MOST_BINS if len(axes) == 1 else _MOST_BOXES
    return math.prod(axis.bins.count for axis in axes) <= most


def _same_rows(one: tuple[Axis, ...], other: tuple[Axis, ...]) -> bool:
    """Whether two sets of boxes count the same rows: a column that drops rows is in both or in neither."""
    dropping = [{axis.column for axis in axes if axis.attribute.may_drop} for axes in (one, other)]
    return dropping[0] == dropping[1]


@final
class Basket:
    """A basket that is being answered, question by question."""

    def __init__(self) -> None:
        self.charges: set[int] = set()
        """Of the questions that have been answered."""
        self._kernels: dict[str, list[Kernel]] = defaultdict(list)
        self._paid: dict[str, Epsilon] = defaultdict(lambda: Epsilon(0))
        self._versions: dict[str, int] = {}

    def due(self, dataset: DatasetEntry, kernel: Kernel, alone: Epsilon) -> Epsilon:
        """What one more answer is charged: at most its price ``alone``."""
        if self._versions.get(dataset.name) != dataset.version or not dataset.declared_kind.combined:
            self._kernels[dataset.name], self._paid[dataset.name] = [], Epsilon(0)
            self._versions[dataset.name] = dataset.version
        kernels, paid = self._kernels[dataset.name], self._paid[dataset.name]
        kernels.append(kernel)
        lost = past_loss(tuple(kernels), dataset.policy).epsilon
        more = alone if lost is None else min(alone, lost - paid if lost > paid else Epsilon(0))
        self._paid[dataset.name] = paid + more
        return more
