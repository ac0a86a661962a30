"""Explanation: how a question would be answered, step by step, without reading a row (EXPLAIN)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from blowfishdb.clustering import PlannedClusters
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.projection import Projected
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.messages import Request
from blowfishdb.planning import Planned

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
