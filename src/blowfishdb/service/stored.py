"""What is out already and costs nothing more: the same answer, counts that it can be read off, arithmetic."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, final

import numpy as np

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import StoredAnswer
from blowfishdb.core.arrays import BoolArray
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.questions.projection import Projected
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
    body: Mapping[str, Any]
    """Its text, read; what it says in full is put together where it is looked at."""
    bound: ErrorBound

    @cached_property
    def answer(self) -> Answer:
        """What was answered."""
        return Answer.from_plain(self.body["answer"])

    @property
    def exact(self) -> BoolArray:
        """Which counts are known to carry no noise; of answers that show something else none is."""
        shown = len(self.answer.exact) == len(self.answer.raw)
        return self.answer.exact if shown else np.zeros(len(self.answer.raw), dtype=np.bool_)

    @classmethod
    def of(cls, stored: StoredAnswer) -> Closest | None:
        """None for an answer of which nothing is on record but what it says."""
        text = stored.answer
        body = _read_lately(text) if len(text) <= _LONGEST_KEPT else json.loads(text)
        bound = body.get("bound")
        return None if bound is None else cls(stored, body, ErrorBound(**bound))


@lru_cache(maxsize=8)
def _read_lately(text: str) -> Mapping[str, Any]:
    """The texts that every price of one question looks at are the same until the next answer is out."""
    body: Mapping[str, Any] = json.loads(text)
    return body


_LONGEST_KEPT: Final = 1_000_000


@final
@dataclass(frozen=True, eq=False)
class StoredAnswers:
    """The answers of a workspace, looked through once for what tells one question."""

    ledger: Ledger
    releases: StoredReleases
    standing: Callable[[DatasetEntry], Standing]
    """All that is promised about a dataset."""
    request: Request
    dataset: DatasetEntry
    problem: Problem

    @cached_property
    def same(self) -> StoredAnswer | None:
        """What the ledger has under a name of the question, or what answers it more accurately still."""
        request, dataset, problem = self.request, self.dataset, self.problem
        if isinstance(problem, SumsProblem):
            return next((one.stored for one, _ in self._telling(problem)), None)
        closest = self.closest
        if closest is not None and closest.answer.form == request.form.to_plain():
            return closest.stored
        found = map(self.ledger.answer, identities(request, dataset, problem))
        return next((stored for stored in found if stored is not None), None)

    def _telling(self, problem: SumsProblem) -> Iterator[tuple[Closest, SumsProblem]]:
        """Stored answers whose sums tell these aggregates, and how they are read."""
        policies = dict.fromkeys((self.dataset.policy, nearest(self.standing(self.dataset))[0]))
        for other in itertools.chain.from_iterable(telling(problem, policy) for policy in policies):
            stored = self.ledger.answer(identity(self.request, self.dataset, other))
            closest = None if stored is None else Closest.of(stored)
            if closest is not None and (not other.free or not closest.bound.margin):
                yield closest, other

    @cached_property
    def closest(self) -> Closest | None:
        """The closest stored answer that is read from the same counts, if it is as close as was asked."""
        return self._within(1)

    def _within(self, times: float) -> Closest | None:
        """The closest, if it is within so many ``times`` the error that was asked for.

        That all counts are within their margin is one event, so it holds whatever is read off them, and
        whatever made someone ask.
        """
        asked, problem = self.request.terms.accuracy, self.problem
        if asked is None or not self._near or not isinstance(problem, Projected):
            return None
        kind, axes = self.request.counts.kind, problem.axes
        needed = kind.requirement(asked, axes)
        within = replace(needed, alpha=times * needed.alpha)
        close = [one for one in self._near if one.bound.meets(within)]
        best = min(close, key=lambda one: (one.bound.margin, -one.stored.charge.id), default=None)
        if best is None:
            return None
        return replace(best, bound=replace(best.bound, alpha=kind.promised(best.bound.margin, axes)))

    @cached_property
    def _near(self) -> list[Closest]:
        """The least noisy stored answers that are read from the same counts."""
        terms, problem = self.request.terms, self.problem
        if terms.accuracy is None or terms.mechanism is not None or self.dataset.kind is SourceKind.LIVE:
            return []
        if not isinstance(problem, Projected) or not self.releases.any_about(self.dataset.name):
            return []
        name = counted(self.dataset, problem)
        owned = [] if name is None else self.releases.about(self.dataset.name, name)
        return [near for stored in owned if (near := Closest.of(stored)) is not None]

    @cached_property
    def answer(self) -> Answer | None:
        """The answer to the very same question, which costs nothing."""
        request, problem = self.request, self.problem
        if isinstance(problem, SumsProblem):
            return self._read_again(problem)
        stored = self.same
        if stored is None:
            return None
        closest = self.closest
        read = closest is not None and closest.stored is stored
        answer = closest.answer if closest is not None and read else read_answer(stored)
        if isinstance(problem, Projected) and answer.kind != request.counts.kind.name:
            answer = named_anew(answer, request, problem)
        return replace(answer, receipt=answer.receipt.again)

    def _read_again(self, problem: SumsProblem) -> Answer | None:
        """What the sums of a stored answer tell."""
        for closest, other in self._telling(problem):
            before = replace(closest.answer, receipt=closest.answer.receipt.again)
            return read_again(before, closest.bound, self.request, other)
        return None

    def offer(self, together: Basket | None = None) -> Offer | None:
        """An answer that follows from what is out already, as accurately as was asked."""
        request, dataset, problem = self.request, self.dataset, self.problem
        if not isinstance(problem, Projected) or request.terms.accuracy is None:
            return None
        if request.terms.mechanism is not None:
            return None
        if dataset.kind is SourceKind.LIVE:  # stored answers may speak of other rows
            return None
        needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
        basket = frozenset() if together is None else frozenset(together.charges)
        return self.releases.offer(dataset.name, dataset.snapshot, problem, needed, basket)

    @property
    def free_now(self) -> float | None:
        """How accurately what is out tells the same, where it tells anything of use."""
        asked, dataset, problem = self.request.terms.accuracy, self.dataset, self.problem
        if asked is None or not isinstance(problem, Projected) or dataset.kind is SourceKind.LIVE:
            return None
        kind = self.request.counts.kind
        needed = kind.requirement(asked, problem.axes)
        within = _USEFUL * needed.alpha
        best = self.releases.best(dataset.name, dataset.snapshot, problem, needed, within=within)
        closest = self._within(_USEFUL)
        margins = [] if best is None else [best.alpha]
        margins += [] if closest is None else [closest.bound.margin]
        return kind.promised(min(margins), problem.axes) if margins else None


def read_synthetic(stored: StoredAnswer) -> SyntheticTable | None:
    """A synthetic table from the ledger; None where that number is another kind of answer."""
    return stored_synthesis(json.loads(stored.answer))


def read_answer(stored: StoredAnswer) -> Answer:
    """An answer from the ledger."""
    return Answer.from_plain(json.loads(stored.answer)["answer"])
