"""Identity: which two requests must have the same answer, so that the second costs nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.domain.bins import Bins, EdgeBins
from blowfishdb.core.policy.codec import digest, plain
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.questions.clusters import ClusterProblem, ClusterQuestion
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.synthesis import SyntheticProblem
from blowfishdb.core.workloads import Selected
from blowfishdb.mechanisms.reuse.stored import Rows, Sparse, plain_axes, plain_rows, rows_of
from blowfishdb.messages.questions import Request
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.tasks import Problem

_MOST_NAMED: Final = 20_000
"""Questions; beyond these a name would take longer than what it saves. More numbers in rows are hashed."""


def identity(request: Request, dataset: DatasetEntry, problem: Problem) -> str:
    """The name of a question: equal for two requests that must have the same answer.

    A filter is known by the cells that it selects, not by its words. The policy is not part of it: giving
    out again what is out already costs nothing under any policy.
    """
    return next(identities(request, dataset, problem))


def identities(request: Request, dataset: DatasetEntry, problem: Problem) -> Iterator[str]:
    """The name under which a question is stored, then the one that earlier versions gave it, if another."""
    accuracy = request.terms.accuracy
    named = {
        "dataset": dataset.name,
        "snapshot": dataset.snapshot,
        **_parts(request, problem),
        "accuracy": accuracy and _accuracy_text(accuracy, float(accuracy.alpha)),
        "epsilon": request.terms.epsilon and str(request.terms.epsilon),
        **({} if request.terms.mechanism is None else {"mechanism": request.terms.mechanism}),
    }
    yield digest(named)
    if accuracy is not None and float(accuracy.alpha).is_integer():  # once 50 was not 50.0
        yield digest({**named, "accuracy": _accuracy_text(accuracy, int(accuracy.alpha))})


def counted(dataset: DatasetEntry, problem: Problem) -> str | None:
    """The name of the counts that a question is read from, whatever is read and however closely.

    A histogram and its fullest bins, a curve and its quartiles are read from the same counts.
    """
    if not isinstance(problem, Projected) or problem.workload.count > _MOST_NAMED:
        return None
    named = {
        "dataset": dataset.name,
        "snapshot": dataset.snapshot,
        "axes": plain_axes([replace(axis, bins=_alike(axis.bins)) for axis in problem.cells.axes]),
        "rows": _named(rows_of(problem.workload)),
        "denominator": problem.workload.denominator,
    }
    return digest(named)


def _alike(bins: Bins) -> Bins:
    """Bins of one width as such, also where they were named by their edges."""
    if not isinstance(bins, EdgeBins):
        return bins
    starts = bins.first(np.arange(bins.count))
    equal = Bins.width(bins.size, int(starts[1]) if bins.count > 1 else bins.size)
    same = equal.count == bins.count and np.array_equal(equal.first(np.arange(equal.count)), starts)
    return equal if same else bins


def _named(rows: Rows) -> Any:
    """Rows as they are, or, where they are long, their hash: a sum over a million values is one row."""
    if not isinstance(rows, Sparse) or rows.entries.size <= _MOST_NAMED:
        return plain_rows(rows)
    parts = (rows.pointers, rows.columns, rows.entries)
    whole = b"".join(hashlib.sha256(part.astype("<i8").tobytes()).digest() for part in parts)
    return {"kind": "hashed", "sha256": hashlib.sha256(whole).hexdigest()}


def _parts(request: Request, problem: Problem) -> dict[str, Any]:
    """What tells a question apart from others about the same rows."""
    if isinstance(problem, ClusterProblem):
        assert isinstance(request.question, ClusterQuestion)
        return _cluster_parts(request.question, problem)
    if isinstance(problem, SumsProblem):
        return _sum_parts(request, problem)
    if isinstance(problem, SyntheticProblem):
        return _synthetic_parts(problem)
    selected = problem.workload.labels.tolist() if isinstance(problem.workload, Selected) else None
    return {
        "kind": [*request.counts.kind.identity(), *(["middles of cells"] if problem.of_the_kind else [])],
        "axes": [[a.column, plain(a.bins)] for a in problem.axes],
        "cells": [[a.column, plain(a.attribute), plain(a.bins)] for a in problem.cells.axes],
        "selected": selected,
    }


def _cluster_parts(question: ClusterQuestion, problem: ClusterProblem) -> dict[str, Any]:
    """What tells two questions for clusters apart; a filter is known by the boxes that it selects."""
    filtered = problem.query.boxes.axes
    return {
        "kind": ["clusters", question.count, question.iterations, list(problem.space.weights)],
        "axes": [[axis.column, plain(axis.attribute)] for axis in problem.query.axes],
        "cells": [[axis.column, plain(axis.attribute), plain(axis.bins)] for axis in filtered],
        "selected": problem.query.inside.astype(int).tolist(),
    }


def _synthetic_parts(problem: SyntheticProblem) -> dict[str, Any]:
    """What tells two synthetic tables apart; of one that is made from answers, which these are."""
    kept = ["kept", *problem.keep] if problem.keep else []
    return {
        "kind": ["synthetic", problem.target, list(problem.answers), *kept],
        "cells": [[axis.column, plain(axis.attribute), plain(axis.bins)] for axis in problem.axes],
    }


def _sum_parts(request: Request, problem: SumsProblem) -> dict[str, Any]:
    """What tells two releases of sums apart, whichever aggregates are read off them."""
    question = problem.question
    promised = question.promised if request.terms.accuracy is not None else None
    return {
        **problem.identity(),
        "promised": promised and [promised.to_plain(), question.group_size],
        "axes": [[axis.column, plain(axis.bins)] for axis in question.groups],
        "cells": [[a.column, plain(a.attribute), plain(a.bins)] for a in problem.query.cells.axes],
    }


def _accuracy_text(accuracy: Accuracy, alpha: float) -> str:
    return f"{alpha!r} {accuracy.beta!r} {'all' if accuracy.simultaneous else 'each'}"
