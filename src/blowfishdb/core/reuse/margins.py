"""Margins: how far the truth may be from an answer that follows from stored releases, and who owns it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import Accuracy, check_beta
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.reuse.combination import Combination, combine
from blowfishdb.core.reuse.planned import planned_half_widths
from blowfishdb.core.reuse.rows import Rows, rows_of
from blowfishdb.core.reuse.selected import selected_half_widths
from blowfishdb.core.reuse.stored import StoredRelease
from blowfishdb.core.workloads import Workload

MOST_ROWS = 10**9
"""No dataset is assumed to be larger: what rounding leaves of W − T·A is counted that often."""


class Label(Enum):
    """Why an interval may be trusted. Set by the system, never by the analyst."""

    PLANNED = "planned"
    """The question was registered before any release that it uses was settled."""
    ANY = "any"
    """It may have been chosen after looking at stored answers."""


def margin(
    combination: Combination,
    beta: float,
    label: Label = Label.ANY,
    *,
    simultaneous: bool = True,
    among: int | None = None,
) -> FloatArray:
    """The half-width of every answer's interval; infinite where an answer is not determined.

    ``among``: how many noisy releases the question may have been chosen by; at least those it uses.
    """
    check_beta(beta)
    if label is Label.PLANNED:
        widths = planned_half_widths(combination, beta, simultaneous=simultaneous)
    else:
        seen = max(len(combination.noisy_releases), among or 1, 1)
        widths = selected_half_widths(combination, beta, seen)
    return widths + combination.estimator.residuals * MOST_ROWS


def alpha_needed(
    combination: Combination,
    beta: float,
    label: Label = Label.ANY,
    *,
    simultaneous: bool = True,
    among: int | None = None,
) -> float:
    """The least α at which every answer is known to follow; infinite if one is not determined."""
    if not combination.determined.all():
        return float("inf")
    return float(margin(combination, beta, label, simultaneous=simultaneous, among=among).max(initial=0.0))


def owned(
    accuracy: Accuracy, combination: Combination, label: Label = Label.ANY, *, among: int | None = None
) -> bool:
    """Whether the question has been paid for: all of it follows, as accurately as was asked."""
    simultaneous = accuracy.simultaneous
    return (
        alpha_needed(combination, accuracy.beta, label, simultaneous=simultaneous, among=among)
        <= accuracy.alpha
    )


@final
@dataclass(frozen=True, eq=False)
class Offer:
    """An answer for nothing: from which releases, and how accurate it is."""

    combination: Combination
    label: Label
    alpha: float
    margins: FloatArray

    def meets(self, accuracy: Accuracy) -> bool:
        """Whether this is as accurate as was asked; the β is the one it was made for."""
        return self.alpha <= accuracy.alpha


def cheapest(
    releases: Sequence[StoredRelease],
    axes: Sequence[Axis],
    workload: Workload | csr_array | Rows,
    accuracy: Accuracy,
    label: Label = Label.ANY,
    *,
    known: int = 0,
) -> Offer | None:
    """The most accurate answer that follows from ``releases``; None if none does. No value is looked at.

    ``known``: how many noisy releases are out in all, if ``releases`` are only some of them; whoever chose
    the question has seen every one.

    A question that was planned uses every release. One that was chosen later pays for each release that it
    uses, so all of them together compete with the best one alone (and what is exact anywhere).
    """
    questions, noisy = rows_of(workload), [release for release in releases if not release.exact.all()]
    candidates = [combine(releases, axes, questions)]
    among = max(1, len(noisy), known)
    if label is Label.ANY and noisy:
        alone = [_with_exact(release, releases) for release in noisy]
        among += len(noisy) == 1 and len(alone[0]) < len(releases)  # then both sources have one noisy release
        candidates.append(_best(combine(sources, axes, questions) for sources in alone))
    offers = [
        _offer(found, accuracy, label, among) for found in candidates if found and found.determined.all()
    ]
    return min(offers, key=lambda offer: offer.alpha, default=None)


def _with_exact(release: StoredRelease, releases: Sequence[StoredRelease]) -> list[StoredRelease]:
    """A release and what is exact on its columns: a set that no question has a say in."""
    others = (other.exact_part() for other in releases if other is not release)
    return [release, *(part for part in others if part is not None and part.columns <= release.columns)]


def _best(candidates: Iterable[Combination | None]) -> Combination | None:
    """The one with the least largest variance: chosen by scales."""
    usable = [found for found in candidates if found is not None and found.determined.all()]
    return min(usable, key=lambda found: float(found.variances.max()), default=None)


def _offer(combination: Combination, accuracy: Accuracy, label: Label, among: int) -> Offer:
    widths = margin(combination, accuracy.beta, label, simultaneous=accuracy.simultaneous, among=among)
    return Offer(combination, label, float(np.max(widths, initial=0.0)), widths)
