"""What is out already and costs nothing more: the same answer, counts that it can be read off, arithmetic."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import StoredAnswer
from blowfishdb.core.arrays import BoolArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.source_kind import SourceKind
from blowfishdb.mechanisms.reuse.margins import Offer
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.questions import Request
from blowfishdb.messages.synthetic_table import SyntheticTable, stored_synthesis
from blowfishdb.service.aggregates import read_again, telling
from blowfishdb.service.identity import counted, identities, identity
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import Basket, StoredReleases
from blowfishdb.service.standing import Standing, nearest
from blowfishdb.service.tasks import ErrorBound, Problem, named_anew

_USEFUL: Final = 10
"""A free answer is mentioned up to so many times the error that was asked for."""


@final
@dataclass(frozen=True, eq=False)
class Closest:
    """A stored answer, and what is promised of the counts behind it."""

    stored: StoredAnswer
    answer: Answer
    bound: ErrorBound

    @property
    def exact(self) -> BoolArray:
        """Which counts are known to carry no noise; of answers that show something else none is."""
        shown = len(self.answer.exact) == len(self.answer.raw)
        return self.answer.exact if shown else np.zeros(len(self.answer.raw), dtype=np.bool_)

    @classmethod
    def of(cls, stored: StoredAnswer) -> Closest | None:
        """None for an answer of which nothing is on record but what it says."""
        body = json.loads(stored.answer)
        bound = body.get("bound")
        return None if bound is None else cls(stored, Answer.from_plain(body["answer"]), ErrorBound(**bound))


@final
@dataclass(frozen=True, eq=False)
class StoredAnswers:
    """The answers of a workspace, looked through for what tells a question."""

    ledger: Ledger
    releases: StoredReleases
    standing: Callable[[DatasetEntry], Standing]
    """All that is promised about a dataset."""

    def same(self, request: Request, dataset: DatasetEntry, problem: Problem) -> StoredAnswer | None:
        """What the ledger has under a name of the question, or what answers it more accurately still."""
        if isinstance(problem, SumsProblem):
            return next((one.stored for one, _ in self._telling(request, dataset, problem)), None)
        found = map(self.ledger.answer, identities(request, dataset, problem))
        same = next((stored for stored in found if stored is not None), None)
        asked = request.terms.accuracy
        if asked is None or request.terms.mechanism is not None or dataset.kind is SourceKind.LIVE:
            return same
        closest = self.closest(request, dataset, problem)
        very_same = closest is not None and closest.answer.form == request.form.to_plain()
        return closest.stored if closest is not None and very_same else same

    def _telling(
        self, request: Request, dataset: DatasetEntry, problem: SumsProblem
    ) -> Iterator[tuple[Closest, SumsProblem]]:
        """Stored answers whose sums tell these aggregates, and how they are read."""
        policies = dict.fromkeys((dataset.policy, nearest(self.standing(dataset))[0]))
        for other in itertools.chain.from_iterable(telling(problem, policy) for policy in policies):
            stored = self.ledger.answer(identity(request, dataset, other))
            closest = None if stored is None else Closest.of(stored)
            if closest is not None and (not other.free or not closest.bound.margin):
                yield closest, other

    def closest(
        self, request: Request, dataset: DatasetEntry, problem: Problem, *, times: float = 1
    ) -> Closest | None:
        """The closest stored answer that is read from the same counts, if it is as close as was asked.

        Or within so many ``times`` the error that was asked for.

        That all counts are within their margin is one event, so it holds whatever is read off them, and
        whatever made someone ask.
        """
        asked, name = request.terms.accuracy, counted(dataset, problem)
        if asked is None or name is None or not isinstance(problem, Projected):
            return None
        if request.terms.mechanism is not None or dataset.kind is SourceKind.LIVE:
            return None
        needed = request.counts.kind.requirement(asked, problem.axes)
        owned = [Closest.of(stored) for stored in self.releases.about(dataset.name, name)]
        within = replace(needed, alpha=times * needed.alpha)
        close = [one for one in owned if one is not None and one.bound.meets(within)]
        best = min(close, key=lambda one: (one.bound.margin, -one.stored.charge.id), default=None)
        if best is None:
            return None
        alpha = request.counts.kind.promised(best.bound.margin, problem.axes)
        return replace(best, bound=replace(best.bound, alpha=alpha))

    def answer(
        self,
        request: Request,
        dataset: DatasetEntry,
        problem: Problem,
        together: Basket | None = None,
    ) -> Answer | None:
        """The answer to the very same question, which costs nothing."""
        if isinstance(problem, SumsProblem):
            return self._read_again(request, dataset, problem)
        stored = self.same(request, dataset, problem)
        if stored is None:
            return None
        answer = read_answer(stored)
        if isinstance(problem, Projected) and answer.kind != request.counts.kind.name:
            answer = named_anew(answer, request, problem)
        return replace(answer, receipt=replace(answer.receipt, cost=Epsilon(0)))

    def _read_again(self, request: Request, dataset: DatasetEntry, problem: SumsProblem) -> Answer | None:
        """What the sums of a stored answer tell."""
        for closest, other in self._telling(request, dataset, problem):
            receipt = replace(closest.answer.receipt, cost=Epsilon(0))
            return read_again(replace(closest.answer, receipt=receipt), closest.bound, request, other)
        return None

    def offer(
        self, request: Request, dataset: DatasetEntry, problem: Problem, together: Basket | None = None
    ) -> Offer | None:
        """An answer that follows from what is out already, as accurately as was asked."""
        if not isinstance(problem, Projected) or request.terms.accuracy is None:
            return None
        if request.terms.mechanism is not None:
            return None
        if dataset.kind is SourceKind.LIVE:  # stored answers may speak of other rows
            return None
        needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
        basket = frozenset() if together is None else frozenset(together.charges)
        return self.releases.offer(dataset.name, dataset.snapshot, problem, needed, basket)

    def free_now(self, request: Request, dataset: DatasetEntry, problem: Problem) -> float | None:
        """How accurately what is out tells the same, where it tells anything of use."""
        asked = request.terms.accuracy
        if asked is None or not isinstance(problem, Projected) or dataset.kind is SourceKind.LIVE:
            return None
        needed = request.counts.kind.requirement(asked, problem.axes)
        within = _USEFUL * needed.alpha
        best = self.releases.best(dataset.name, dataset.snapshot, problem, needed, within=within)
        closest = self.closest(request, dataset, problem, times=_USEFUL)
        margins = [] if best is None else [best.alpha]
        margins += [] if closest is None else [closest.bound.margin]
        return request.counts.kind.promised(min(margins), problem.axes) if margins else None


def read_synthetic(stored: StoredAnswer) -> SyntheticTable | None:
    """A synthetic table from the ledger; None where that number is another kind of answer."""
    return stored_synthesis(json.loads(stored.answer))


def read_answer(stored: StoredAnswer) -> Answer:
    """An answer from the ledger."""
    return Answer.from_plain(json.loads(stored.answer)["answer"])
