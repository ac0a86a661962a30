"""Identity: which two requests must have the same answer, so that the second costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blowfishdb.clustering import told_apart
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.cluster_projection import ClusterProblem
from blowfishdb.core.cluster_question import ClusterQuestion
from blowfishdb.core.codec import digest, plain
from blowfishdb.core.projection import Projected
from blowfishdb.core.workloads import Selected
from blowfishdb.messages import Request
from blowfishdb.records import DatasetRecord


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
