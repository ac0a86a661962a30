"""Explanation: how a question would be answered, step by step, without reading a row (EXPLAIN).

Trade-off: what a question costs, and how far off it is, under one policy after another. Reads no data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NoGuarantee, NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.messages.questions import Progress, Request, Terms, plain_epsilon
from blowfishdb.service.planning import Planned, PlannedClusters, Planner

_MOST_EDGES = 2_000_000  # what can be looked through while someone waits


@final
@dataclass(frozen=True)
class Explanation:
    """The projected domain, the policy graph over it, the sensitivity and where it is reached, the plan."""

    question: str
    columns: tuple[str, ...]
    cells: tuple[int, ...]
    answers: int
    graph: str
    hidden_pairs: int
    sensitivity: str | None
    witness: tuple[str, str] | None
    """Two boxes between which one record's move changes the answers the most."""
    mechanism: str
    considered: str
    epsilon: str
    known: str = ""
    """What counts that everyone knows do to noise and price; empty where none are known."""

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Explanation:
        """An explanation from its plain form."""
        witness = said["witness"]
        return cls(
            question=said["question"],
            columns=tuple(said["columns"]),
            cells=tuple(said["cells"]),
            answers=said["answers"],
            graph=said["graph"],
            hidden_pairs=said["hidden_pairs"],
            sensitivity=said["sensitivity"],
            witness=None if witness is None else (witness[0], witness[1]),
            mechanism=said["mechanism"],
            considered=said["considered"],
            epsilon=said["epsilon"],
            known=said.get("known", ""),
        )

    def __str__(self) -> str:
        boxes = " × ".join(f"{n:,} of '{c}'" for c, n in zip(self.columns, self.cells, strict=True))
        lines = [
            f"Question     {self.question}: {self.answers:,} answers",
            f"Counted      {boxes} (boxes that the question needs)",
            f"Hidden       {self.graph}: {self.hidden_pairs:,} pairs of boxes",
        ]
        if self.sensitivity is not None:
            where = f", when one record moves from {' to '.join(self.witness)}" if self.witness else ""
            lines.append(f"Sensitivity  {self.sensitivity}{where}")
        if self.known:
            lines.append(f"Known        {self.known}")
        return "\n".join([*lines, f"Mechanism    {self.considered}", f"Cost         ε {self.epsilon}"])


def explain(request: Request, planned: Planned | PlannedClusters) -> Explanation:
    """What the plan of a question looks like."""
    return _counts(request, planned) if isinstance(planned, Planned) else _clusters(request, planned)


def _clusters(request: Request, planned: PlannedClusters) -> Explanation:
    """The points are cells of a grid; every round has a sensitivity of its own, which the words tell."""
    problem = planned.problem
    return Explanation(
        question=request.question.describe(),
        columns=tuple(axis.column for axis in problem.query.axes),
        cells=problem.space.shape,
        answers=planned.plan.clusters,
        graph=problem.graph.describe(),
        hidden_pairs=problem.graph.edge_count,
        sensitivity=None,
        witness=None,
        mechanism=planned.mechanism,
        considered=f"{planned.mechanism}. {planned.explanation}",
        epsilon=str(planned.cost),
    )


def _counts(request: Request, planned: Planned) -> Explanation:
    problem = planned.problem
    try:
        most: str | None = str(_sensitivity(problem))
    except (TooLarge, NotProven):
        most = None
    return Explanation(
        question=request.question.describe(),
        columns=tuple(axis.column for axis in problem.cells.axes),
        cells=problem.cells.shape,
        answers=len(problem.workload),
        graph=problem.graph.describe(),
        hidden_pairs=problem.graph.edge_count,
        sensitivity=most,
        witness=_witness(problem) if problem.refined is None else None,
        mechanism=planned.choice.plan.name,
        considered=planned.choice.explain(),
        epsilon=str(planned.cost),
        known=planned.known,
    )


def _sensitivity(problem: Projected) -> int | Fraction:
    """Between neighbours, who differ in several records where something is known."""
    if problem.refined is not None:
        return problem.refined.sensitivity(problem.workload)
    return sensitivity(problem.workload, problem.graph)


def _witness(problem: Projected) -> tuple[str, str] | None:
    """An edge along which the answers change the most; None where there are too many to look at."""
    graph, workload = problem.graph, problem.workload
    if not 0 < graph.edge_count <= _MOST_EDGES:
        return None
    edges = graph.edges(_MOST_EDGES)
    counted = (edges < workload.size).all(axis=1)
    changes = np.zeros(len(edges), dtype=np.int64)
    changes[counted] = workload.moves(edges[counted, 0], edges[counted, 1])
    if not counted.all():  # a move to the vertex that no question counts
        changes[~counted] = workload.norms(edges[~counted].min(axis=1))
    u, v = (int(vertex) for vertex in edges[int(changes.argmax())])
    return _box(problem, graph, u), _box(problem, graph, v)


def _box(problem: Projected, graph: PolicyGraph, vertex: int) -> str:
    if vertex >= problem.cells.count:
        return "in the data" if graph.absent and vertex == graph.size - 1 else "outside"
    place = np.unravel_index(vertex, problem.cells.shape)
    labels = (axis.labels()[int(i)] for axis, i in zip(problem.cells.axes, place, strict=True))
    return " · ".join(labels)


_SAME = 1e-3  # prices within this share of each other read as the same number


@final
@dataclass(frozen=True)
class TradeoffPoint:
    """One policy: the price of the accuracy that was asked for, and the error at a fixed price."""

    policy: str
    epsilon: Epsilon
    alpha: float
    mechanism: str
    theta: float | None = None

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "policy": self.policy,
            "theta": self.theta,
            **plain_epsilon("epsilon", self.epsilon),
            "alpha": self.alpha,
            "mechanism": self.mechanism,
        }


@final
@dataclass(frozen=True)
class Tradeoff:
    """A question under several policies, in the order in which they were given."""

    question: str
    asked_alpha: float | None
    fixed_epsilon: Epsilon
    """The price at which the errors are compared."""
    points: tuple[TradeoffPoint, ...]

    @property
    def free_gain(self) -> tuple[int, int] | None:
        """The last of the policies that cost no more than the first: protection for nothing.

        Given from the weakest policy to the strongest, these are the positions of the first policy and of the
        strongest one at the same price; None if the first step already costs more.
        """
        first, last = float(self.points[0].epsilon), 0
        for place, point in enumerate(self.points):
            if float(point.epsilon) > first * (1 + _SAME):
                break
            last = place
        return (0, last) if last else None

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "question": self.question,
            "asked_alpha": self.asked_alpha,
            **plain_epsilon("fixed_epsilon", self.fixed_epsilon),
            "points": [point.to_plain() for point in self.points],
            "free_gain": self.free_gain,
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """What stands out, in words."""
        if self.free_gain is None:
            return "Every step towards more protection costs something here."
        weakest, strongest = (self.points[place].policy for place in self.free_gain)
        return f"{weakest} → {strongest} costs nothing more for this question."

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Tradeoff:
        """A trade-off from its plain form."""
        points = tuple(
            TradeoffPoint(p["policy"], Epsilon(p["epsilon"]), p["alpha"], p["mechanism"], p["theta"])
            for p in said["points"]
        )
        return cls(said["question"], said["asked_alpha"], Epsilon(said["fixed_epsilon"]), points)


def tradeoff(
    planner: Planner,
    request: Request,
    policies: Mapping[str, Policy],
    *,
    rows_per_person: int = 1,
    at_epsilon: Epsilon | None = None,
    thetas: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Tradeoff:
    """Price ``request`` under every one of ``policies``, by name.

    The errors are those at ``at_epsilon``; by default at the price under the first policy, or at the ε of the
    request itself.
    """
    if not policies:
        raise InvalidInput("A trade-off needs at least one policy.", fixes=("thresholds=[1000, 10000]",))
    fixed = at_epsilon or request.terms.epsilon
    points: list[TradeoffPoint] = []
    for done, (name, policy) in enumerate(policies.items()):
        if progress is not None:
            progress(done, len(policies))
        priced = planner.plan(request, policy, rows_per_person)
        fixed = fixed or priced.cost or Epsilon(1)
        alpha = _error_at(planner, request, policy, rows_per_person, fixed)
        theta = None if thetas is None else thetas.get(name)
        points.append(TradeoffPoint(name, priced.cost, alpha, priced.choice.plan.name, theta))
    if progress is not None:
        progress(len(policies), len(policies))
    assert fixed is not None
    asked = request.terms.accuracy
    return Tradeoff(request.question.describe(), asked and asked.alpha, fixed, tuple(points))


def _error_at(planner: Planner, request: Request, policy: Policy, rows: int, epsilon: Epsilon) -> float:
    """The α of the answer when ``epsilon`` is spent on it, at the confidence that was asked for."""
    spending = replace(request, terms=Terms(mechanism=request.terms.mechanism).spending(epsilon))
    planned = planner.plan(spending, policy, rows)
    asked = request.terms.accuracy
    if planned.promise is None:
        raise NoGuarantee(
            "A trade-off compares errors that are promised, and this mechanism promises none.",
            fixes=("leave out the mechanism", "preview() shows one draw of it"),
        )
    if asked is None or not planned.choice.epsilon:
        return planned.promise.alpha
    kind, axes = request.counts.kind, planned.problem.axes
    needed = kind.requirement(asked, axes)
    margin = planned.choice.plan.alpha_for(
        epsilon=planned.choice.epsilon, beta=needed.beta, simultaneous=needed.simultaneous
    )
    return kind.promised(margin, axes)
