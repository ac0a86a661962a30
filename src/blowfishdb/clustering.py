"""Clustering: steps 1 to 3 of a question for clusters. Points on a grid, a way to cluster them, its price.

Like planning, it sees the question and the policy and no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.cluster_projection import ClusterProblem, project_clusters
from blowfishdb.core.cluster_question import ClusterQuestion
from blowfishdb.core.codec import plain
from blowfishdb.core.errors import InvalidInput, NoGuarantee
from blowfishdb.core.policy import Policy
from blowfishdb.mechanisms import CLUSTERING, KMeans
from blowfishdb.mechanisms.kmeans import ClusterPlan
from blowfishdb.messages import Request


@final
@dataclass(frozen=True, eq=False)
class PlannedClusters:
    """A question for clusters that is ready to be asked. How far off they are depends on the data."""

    problem: ClusterProblem
    plan: ClusterPlan
    epsilon: Epsilon
    """What is spent for each row; nothing where the policy hides nothing of what is measured."""
    cost: Epsilon
    """What one person loses."""

    promise: None = None
    known: str = ""

    @property
    def mechanism(self) -> str:
        """How it is answered, by name."""
        return self.plan.name

    @property
    def explanation(self) -> str:
        """How it is answered, and why that is private."""
        return self.plan.explain()


def plan_clusters(
    question: ClusterQuestion, request: Request, policy: Policy, people: int
) -> PlannedClusters:
    """The whole way from a question to its price; ``people``: the rows that one person can be in."""
    problem = project_clusters(question.columns, policy, question.where)
    if request.terms.epsilon is None:
        raise NoGuarantee(
            "How far off clusters are depends on the data, so no accuracy is promised.",
            fixes=("state an ε instead of an error",),
        )
    name = request.terms.mechanism
    if name is not None and name not in CLUSTERING:
        raise InvalidInput(f"There is no way to find clusters called '{name}'.", fixes=tuple(CLUSTERING))
    way = KMeans(question.count, question.iterations, None if name is None else CLUSTERING[name])
    per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // people))
    plan = way.plan(problem.space, problem.graph, epsilon=per_row)  # how many rows there are is not declared
    spent = Epsilon(0) if plan.free else per_row
    return PlannedClusters(problem, plan, spent, spent * people)


def told_apart(question: ClusterQuestion, problem: ClusterProblem) -> dict[str, Any]:
    """What tells two questions for clusters apart; a filter is known by the boxes that it selects."""
    filtered = problem.query.boxes.axes
    return {
        "kind": ["clusters", question.count, question.iterations, list(problem.space.weights)],
        "axes": [[axis.column, plain(axis.attribute)] for axis in problem.query.axes],
        "cells": [[axis.column, plain(axis.attribute), plain(axis.bins)] for axis in filtered],
        "selected": problem.query.inside.astype(int).tolist(),
    }
