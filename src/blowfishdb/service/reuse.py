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
import threading
from bisect import insort
from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, final

import numpy as np

from blowfishdb.adapters.store.chain import canonical, digest
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import StoredAnswer
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.questions.projection import Projected
from blowfishdb.mechanisms.losses import Kernel, ReleasedRows
from blowfishdb.mechanisms.plan import DataDependentPlan, Observation, Plan
from blowfishdb.mechanisms.reuse import Candidates, Label, Offer, StoredRelease, candidates, cheapest
from blowfishdb.mechanisms.reuse.stored import plain_axes
from blowfishdb.service.choosing import MOST, Grid, Ranked, SnapshotIndex, least_scale
from blowfishdb.service.policies import past_loss
from blowfishdb.service.records import DatasetEntry

_MOST_BINS = 20_000  # beyond these, arithmetic on releases would take longer than a quote may
_MOST_BOXES = 1_000
_MOST_REMEMBERED = 256
_MOST_ALIKE = 4
_MOST_CHOICES = 4_096
_MOST_ROWS = 10**6  # of releases that are kept at hand: about 32 MB


def stored_release(
    plan: Plan | DataDependentPlan, seen: Observation, epsilon: Epsilon, axes: tuple[Axis, ...]
) -> Any:
    """What was measured, as plain data; None where it is not a list of rows with noise of their own.

    A data-dependent plan chose its rows by what it had seen, so nothing can be promised of combining them.
    """
    if isinstance(plan, DataDependentPlan) or not _manageable(axes):
        return None
    kept = ReleasedRows(plan, epsilon).stored(axes, seen)
    return None if kept is None else kept.to_plain()


@final
@dataclass(eq=False)
class _DatasetIndex:
    """The index of one dataset, and up to which event it was read."""

    seq: int = 0
    grids: dict[str, Grid] = field(default_factory=dict)
    about: dict[tuple[str, bool], list[Ranked]] = field(default_factory=lambda: defaultdict(list))
    """By question the least noisy answers, however accurate it was asked to be: those that are rows with
    noise of their own, and those of which only the promise is known."""
    snapshots: dict[int, SnapshotIndex] = field(default_factory=lambda: defaultdict(SnapshotIndex))


@final
class _Parsed:
    """Releases that were read lately; those that nobody asked for are dropped first."""

    def __init__(self) -> None:
        self._releases: OrderedDict[int, StoredRelease] = OrderedDict()
        self._rows = 0

    def __contains__(self, number: int) -> bool:
        return number in self._releases

    def __getitem__(self, number: int) -> StoredRelease:
        self._releases.move_to_end(number)
        return self._releases[number]

    def add(self, release: StoredRelease) -> None:
        """One more, and the oldest out if that is too much."""
        self._releases[release.number] = release
        self._rows += release.rows.count
        while self._rows > _MOST_ROWS and len(self._releases) > MOST:
            self._rows -= self._releases.popitem(last=False)[1].rows.count


@final
@dataclass(frozen=True)
class _Choice:
    """What questions about some boxes are answered from, while ``known`` releases are out."""

    known: int
    numbers: tuple[int, ...]
    public: frozenset[int]

    @property
    def seen(self) -> int:
        """How many releases whoever asks may have looked at.

        Beyond a few it is rounded up, to the safe side, so that one release more does not make every
        interval be worked out anew.
        """
        return self.known if self.known <= MOST else 1 << (self.known - 1).bit_length()


@final
@dataclass(frozen=True, eq=False)
class StoredReleases:
    """The releases of a workspace: indexed as they come in, and read where a question touches them."""

    ledger: Ledger
    _indexes: dict[str, _DatasetIndex] = field(default_factory=dict)
    _parsed: _Parsed = field(default_factory=_Parsed)
    _choices: dict[Hashable, _Choice] = field(default_factory=dict)
    _remembered: dict[Hashable, Candidates] = field(default_factory=dict)
    _turn: threading.RLock = field(default_factory=threading.RLock)

    def offer(
        self,
        dataset: str,
        snapshot: int,
        problem: Projected,
        accuracy: Accuracy,
        basket: frozenset[int] = frozenset(),
    ) -> Offer | None:
        """An answer for nothing that is as accurate as was asked; None if there is none."""
        best = self.best(dataset, snapshot, problem, accuracy, basket, within=accuracy.alpha)
        return best if best is not None and best.meets(accuracy) else None

    def best(
        self,
        dataset: str,
        snapshot: int,
        problem: Projected,
        accuracy: Accuracy,
        basket: frozenset[int] = frozenset(),
        *,
        within: float = math.inf,
    ) -> Offer | None:
        """The most accurate answer that follows from what is out, if it may be ``within`` that error.

        From the releases of a ``basket``, settled on together with this question before any of them was out,
        it is known more closely than from those that the asker may have seen.
        """
        axes = problem.cells.axes
        if not _manageable(axes):
            return None
        boxes = tuple((axis.column, axis.attribute, axis.bins) for axis in axes)
        with self._turn:
            index = self._index(dataset).snapshots.get(snapshot)
            if index is None or not index.count:
                return None
            choice = self._choice(index, (dataset, snapshot, boxes), axes)
            planned = index.among(basket, Grid(axes)) if basket else []
        offers = []
        if choice.numbers:
            follows = self._candidates(choice, boxes, problem, accuracy)
            offers.append(follows.best if follows.floor <= within else None)
        together = _combinable(self._releases(planned), axes)
        if together:
            offers.append(cheapest(together, axes, problem.workload, accuracy, Label.PLANNED))
        return min(
            (offer for offer in offers if offer is not None), key=lambda offer: offer.alpha, default=None
        )

    def refinable(self, dataset: str, snapshot: int, axes: tuple[Axis, ...]) -> list[StoredRelease]:
        """Releases over exactly these boxes that nobody has made more accurate yet, nor is about to."""
        with self._turn:
            index = self._index(dataset).snapshots.get(snapshot)
            over = [] if index is None else index.over(digest(canonical(plain_axes(axes))))
        gone = self.ledger.refined(over) if over else set()
        return self._releases([number for number in over if number not in gone])

    def every(self, dataset: str, snapshot: int, most: int) -> list[StoredRelease]:
        """The newest releases about the same rows that none has replaced."""
        with self._turn:
            index = self._index(dataset).snapshots.get(snapshot)
            numbers = [] if index is None else index.in_use[-most:]
        return self._releases(numbers)

    def any_about(self, dataset: str) -> bool:
        """Whether there is any stored answer to a question that is known by its name."""
        with self._turn:
            return bool(self._index(dataset).about)

    def about(self, dataset: str, question: str) -> list[StoredAnswer]:
        """The least noisy of the stored answers to a question."""
        with self._turn:
            about = self._index(dataset).about
            numbers = [number for rows in (True, False) for _, number in about.get((question, rows), [])]
        return self.ledger.at_hand(numbers) if numbers else []

    def _choice(self, index: SnapshotIndex, key: Hashable, axes: tuple[Axis, ...]) -> _Choice:
        """The releases for questions about these boxes, chosen anew when there is one more."""
        choice = self._choices.get(key)
        if choice is None or choice.known != index.count:
            chosen = index.choose(Grid(axes))
            releases = _combinable(self._releases(chosen.charges), axes)
            choice = _Choice(index.count, tuple(release.number for release in releases), chosen.public)
            if len(self._choices) >= _MOST_CHOICES:
                self._choices.clear()
            self._choices[key] = choice
        return choice

    def _candidates(
        self, choice: _Choice, boxes: Hashable, problem: Projected, accuracy: Accuracy
    ) -> Candidates:
        """What the question follows from; it does not depend on the α that was asked for."""
        chosen = (choice.seen, choice.numbers, choice.public)
        key = (chosen, boxes, problem.workload, accuracy.beta, accuracy.simultaneous)
        follows = self._remembered.get(key)
        if follows is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            axes, workload, public = problem.cells.axes, problem.workload, choice.public
            releases = self._releases(choice.numbers)
            follows = candidates(releases, axes, workload, accuracy, known=choice.seen, public=public)
            self._remembered[key] = follows
        return follows

    def _index(self, dataset: str) -> _DatasetIndex:
        """What is stored of a dataset by now: read on from where it was read last."""
        index = self._indexes.setdefault(dataset, _DatasetIndex())
        new = self.ledger.releases(dataset, after=index.seq)
        if not new:
            return index
        unknown = {release.grid for release in new if release.measured} - index.grids.keys()
        index.grids |= {name: Grid.from_plain(text) for name, text in self.ledger.grids(unknown).items()}
        for release in new:
            if release.measured:
                index.snapshots[release.snapshot].enter(release, index.grids[release.grid])
            index.seq = release.seq
            if release.about is not None:
                alike = index.about[release.about, release.measured]
                insort(alike, (least_scale(release.scales), release.charge))
                del alike[_MOST_ALIKE:]
        return index

    def _releases(self, numbers: Sequence[int]) -> list[StoredRelease]:
        """Releases by their numbers; those that were read lately are at hand."""
        with self._turn:
            at_hand = {number: self._parsed[number] for number in numbers if number in self._parsed}
            missing = [number for number in numbers if number not in at_hand]
            for number, stored in self.ledger.stored(missing).items() if missing else ():
                at_hand[number] = _release(stored.answer, number)
                self._parsed.add(at_hand[number])
            return [at_hand[number] for number in numbers]


def _release(text: str, number: int) -> StoredRelease:
    return StoredRelease.from_plain({**json.loads(text)["release"], "number": number})


def _combinable(releases: Sequence[StoredRelease], axes: tuple[Axis, ...]) -> list[StoredRelease]:
    """Releases that can be combined quickly.

    The newest come first, and one that would cut the boxes too finely is left out: a release on one column
    and a question on another meet in the boxes of both.
    """
    cuts: dict[str, list[Bins]] = {axis.column: [axis.bins] for axis in axes}
    chosen: list[StoredRelease] = []
    for release in reversed([release for release in releases if release.rows.count]):
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


@final
class Basket:
    """A basket that is being answered, question by question."""

    def __init__(self, charges: Iterable[int] = ()) -> None:
        self.charges = set(charges)
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
