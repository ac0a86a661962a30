"""Answering: steps 5 and 6, reading and releasing, for each kind of question.

The service sequences the last four steps in one way for all kinds; what differs between them is here.

Identity: which two requests must have the same answer, so that the second costs nothing.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import Prepared, PreparedClusters
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.codec import digest, plain
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import ClusterProblem, ClusterQuestion
from blowfishdb.core.questions.kinds import Release
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.readings import tidy_counts
from blowfishdb.core.workloads import Selected
from blowfishdb.mechanisms.kmeans import Clustering, HistogramClusters, RoundClusters
from blowfishdb.mechanisms.losses import ByDistance, Kernel, kernel_of
from blowfishdb.messages.answers import Answer, Places, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.planning import Planned, PlannedClusters, Promise, told_apart
from blowfishdb.service.records import DatasetRecord
from blowfishdb.service.reuse import stored_release


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


def identity(request: Request, dataset: DatasetRecord, problem: Projected | ClusterProblem) -> str:
    """The name of a question: equal for two requests that must have the same answer.

    A filter is known by the cells that it selects, not by its words. The policy is not part of it: giving
    out again what is out already costs nothing under any policy.
    """
    return next(identities(request, dataset, problem))


def identities(
    request: Request, dataset: DatasetRecord, problem: Projected | ClusterProblem
) -> Iterator[str]:
    """The name under which a question is stored, then the one that earlier versions gave it, if another."""
    accuracy = request.terms.accuracy
    named = {
        "dataset": dataset.name,
        "snapshot": dataset.snapshot,
        **_told_apart(request, problem),
        "accuracy": accuracy and _accuracy_text(accuracy, float(accuracy.alpha)),
        "epsilon": request.terms.epsilon and str(request.terms.epsilon),
        **({} if request.terms.mechanism is None else {"mechanism": request.terms.mechanism}),
    }
    yield digest(named)
    if accuracy is not None and float(accuracy.alpha).is_integer():  # once 50 was not 50.0
        yield digest({**named, "accuracy": _accuracy_text(accuracy, int(accuracy.alpha))})


def _told_apart(request: Request, problem: Projected | ClusterProblem) -> dict[str, Any]:
    if isinstance(problem, ClusterProblem):
        assert isinstance(request.question, ClusterQuestion)
        return told_apart(request.question, problem)
    selected = problem.workload.labels.tolist() if isinstance(problem.workload, Selected) else None
    return {
        "kind": [*request.counts.kind.identity(), *(["middles of cells"] if problem.of_the_kind else [])],
        "axes": [[a.column, plain(a.bins)] for a in problem.axes],
        "cells": [[a.column, plain(a.attribute), plain(a.bins)] for a in problem.cells.axes],
        "selected": selected,
    }


def _accuracy_text(accuracy: Accuracy, alpha: float) -> str:
    return f"{alpha!r} {accuracy.beta!r} {'all' if accuracy.simultaneous else 'each'}"
