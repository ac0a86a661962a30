"""Answering: steps 5 and 6, reading and releasing, for each kind of question.

The service sequences the last four steps in one way for all kinds; what differs between them is here.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from blowfishdb.adapters.backends import Backend, Cancellation
from blowfishdb.adapters.backends.prepared import Prepared
from blowfishdb.adapters.backends.prepared_clusters import PreparedClusters
from blowfishdb.answers import Answer, Places, Receipt
from blowfishdb.clustering import PlannedClusters
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cluster_projection import ClusterProblem
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import Projected
from blowfishdb.core.questions import Release
from blowfishdb.core.tidy import tidy_counts
from blowfishdb.mechanisms.kmeans import Clustering, HistogramClusters, RoundClusters
from blowfishdb.mechanisms.losses import ByDistance, Kernel, kernel_of
from blowfishdb.messages import Progress, Request
from blowfishdb.owned import stored_release
from blowfishdb.planning import Planned, Promise


class Reader(ABC):
    """A question whose statement is checked and written; no row is read until its answer is taken."""

    sql: str
    """What is sent, for the record: declarations and public centroids, never data."""

    @abstractmethod
    def read(self, noise: Noise, cancel: Cancellation | None, progress: Progress | None) -> Found:
        """Count, and add noise."""


@final
@dataclass(frozen=True, eq=False)
class Found:
    """What left the mechanism: the answer once it has its receipt, and what others can be computed from."""

    answer: Callable[[Receipt], Answer]
    kept: Any
    """Plain data; None where it is no list of rows with noise of their own."""


class Ready(ABC):
    """A question with its plan and its price, as steps 4 to 7 see it."""

    request: Request
    planned: Planned | PlannedClusters

    @abstractmethod
    def kernel(self, policy: Policy, people: int) -> Kernel:
        """What the answer is going to lose between any two values, made under ``policy``."""

    @abstractmethod
    def prepare(self, backend: Backend) -> Reader:
        """Everything that can fail without looking at a row fails here."""


def ready_of(request: Request, planned: Planned | PlannedClusters) -> Ready:
    """A planned question of either kind."""
    if isinstance(planned, PlannedClusters):
        return ReadyClusters(request, planned)
    return ReadyCounts(request, planned)


# --- counts ---------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class ReadyCounts(Ready):
    """A linear question."""

    request: Request
    planned: Planned

    def kernel(self, policy: Policy, people: int) -> Kernel:
        choice, axes = self.planned.choice, self.planned.problem.cells.axes
        return kernel_of(choice.plan, choice.epsilon, axes, self.planned.along(policy), people)

    def prepare(self, backend: Backend) -> Reader:
        rehearse(self.request, self.planned.problem, self.planned.promise)
        prepared = backend.prepare(self.planned.problem.cells)
        return _CountsReader(self.request, self.planned, prepared, prepared.sql)


@final
@dataclass(frozen=True, eq=False)
class _CountsReader(Reader):
    request: Request
    planned: Planned
    prepared: Prepared
    sql: str

    def read(self, noise: Noise, cancel: Cancellation | None, progress: Progress | None) -> Found:
        planned, choice = self.planned, self.planned.choice
        counts = self.prepared.count(cancel)
        seen = choice.plan.observe(counts, epsilon=choice.epsilon or Epsilon(1), noise=noise)
        if progress is not None:
            progress(1, 1)
        release, better = planned.released(seen), planned.better(seen)
        answer = partial(answer_of, self.request, planned.problem, planned.promise, release, better=better)
        return Found(answer, stored_release(choice.plan, seen, choice.epsilon, planned.problem.cells.axes))


def rehearse(request: Request, problem: Projected, promise: Promise | None) -> None:
    """Whatever would fail once the counts are read, fails now: labels, readings, the plain form.

    Zeros take the way that the noisy counts are going to take.
    """
    zeros = np.zeros(len(problem.workload))
    margin = None if promise is None else promise.margin
    release = Release(zeros, zeros > 0, margin, promise is not None and promise.simultaneous)
    request.counts.kind.read(release, problem.axes)
    json.dumps(request.form.to_plain())


def answer_of(
    request: Request,
    problem: Projected,
    promise: Promise | None,
    release: Release,
    receipt: Receipt,
    *,
    interval: str = "fresh",
    better: FloatArray | None = None,
) -> Answer:
    """The release in the shape that people read, with its noise interval if one is promised.

    ``better`` values, closer to what is known, replace the tidy ones as far as the interval allows. Which
    bins are picked is told by the noisy values alone: the promise is about those.
    """
    kind = request.counts.kind
    reading = kind.read(release, problem.axes)
    closer = None if better is None else kind.read(replace(release, values=better), problem.axes)
    if closer is not None and closer.labels == reading.labels:
        values = closer.values
        if reading.low is not None and reading.high is not None:
            values = np.clip(values, reading.low, reading.high)
        reading = replace(reading, values=values)
    return Answer(
        labels=reading.labels,
        axes=request.counts.kind.of(problem.axes),
        kind=request.counts.kind.name,
        values=reading.values,
        raw=release.values,
        low=reading.low,
        high=reading.high,
        exact=reading.exact,
        alpha=promise and promise.alpha,
        beta=promise and promise.beta,
        simultaneous=promise is not None and promise.simultaneous,
        interval=interval,
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
    )


def named_anew(answer: Answer, request: Request, problem: Projected) -> Answer:
    """A stored answer under the names of the question now asked, which is the same in other words.

    A histogram with one bin and the number of rows are one question.
    """
    kind = request.counts.kind
    labels = kind.read(Release(answer.raw, answer.exact, None, simultaneous=False), problem.axes).labels
    axes, form = kind.of(problem.axes), request.form.to_plain()
    return replace(answer, kind=kind.name, axes=axes, labels=labels, form=form)


# --- clusters -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class ReadyClusters(Ready):
    """A question for clusters."""

    request: Request
    planned: PlannedClusters

    def kernel(self, policy: Policy, people: int) -> Kernel:
        return ByDistance(policy, self.planned.epsilon * people)

    def prepare(self, backend: Backend) -> Reader:
        prepared = backend.prepare_clusters(self.planned.problem.query)
        return _ClustersReader(self.request, self.planned, prepared, _first_statement(prepared, self.planned))


@final
@dataclass(frozen=True, eq=False)
class _ClustersReader(Reader):
    request: Request
    planned: PlannedClusters
    prepared: PreparedClusters
    sql: str

    def read(self, noise: Noise, cancel: Cancellation | None, progress: Progress | None) -> Found:
        problem, plan = self.planned.problem, self.planned.plan
        found = plan.release(
            self.prepared.until(cancel),
            epsilon=self.planned.epsilon or Epsilon(1),
            noise=noise,
            progress=progress,
        )
        return Found(partial(clusters_of, self.request, problem, found), None)


def clusters_of(request: Request, problem: ClusterProblem, found: Clustering, receipt: Receipt) -> Answer:
    """Clusters in the units of the columns, with how many rows are nearest to each."""
    count = len(found.sizes)
    return Answer(
        labels=(tuple(f"cluster {number}" for number in range(1, count + 1)),),
        axes=tuple(axis.column for axis in problem.query.axes),
        kind="clusters",
        values=tidy_counts(found.sizes, None),
        raw=found.sizes,
        low=None,
        high=None,
        exact=np.full(count, found.exact),
        alpha=None,
        beta=None,
        simultaneous=False,
        places=Places(problem.in_units(found.centroids), problem.limits),
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
    )


def _first_statement(prepared: PreparedClusters, planned: PlannedClusters) -> str:
    """The one statement of a histogram, or that of the first round; those of later rounds differ by their
    centroids alone."""
    plan = planned.plan
    if isinstance(plan, HistogramClusters):
        return prepared.statements.counts(plan.bins).text
    assert isinstance(plan, RoundClusters)
    return prepared.sql(plan.start)
