"""Explanation: how a question would be answered, step by step, without reading a row (EXPLAIN).

Trade-off: what a question costs, and how far off it is, under one policy after another. Reads no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, NoGuarantee, NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.messages.questions import Request, Terms
from blowfishdb.messages.quotes import Candidate, Explanation, Tradeoff, TradeoffPoint
from blowfishdb.service.aggregates import AggregateTask
from blowfishdb.service.clusters import ClusterTask
from blowfishdb.service.planning import Planner
from blowfishdb.service.standing import Standing
from blowfishdb.service.synthesis import SynthesisTask
from blowfishdb.service.tasks import CountTask, Task

_MOST_EDGES = 2_000_000  # what can be looked through while someone waits


def explain(task: Task) -> Explanation:
    """What the plan of a question looks like."""
    if isinstance(task, AggregateTask):
        return _sums(task)
    if isinstance(task, SynthesisTask):
        return _synthetic(task)
    return _counts(task) if isinstance(task, CountTask) else _clusters(task)


def _sums(task: AggregateTask) -> Explanation:
    """Boxes of groups and condition; in each, rows are counted and added up."""
    problem, boxes = task.problem, task.problem.query.cells
    answers = problem.groups * len(problem.question.measures)
    explained = _explained(task, boxes.axes, boxes.shape, answers, problem.graph)
    return replace(explained, sensitivity=str(problem.change))


def _synthetic(task: SynthesisTask) -> Explanation:
    """Tables of single columns and of pairs; every class of moves has a loss of its own."""
    layout, policy = task.plan.layout, task.policies[0]
    answers = sum(planned.rows.count for planned in task.plan.one_ways)
    return _explained(task, layout.axes, layout.bins, answers, policy.graph)


def _clusters(task: Task) -> Explanation:
    """The points are cells of a grid; every round has a sensitivity of its own, which the words tell."""
    assert isinstance(task, ClusterTask)
    problem = task.problem
    return _explained(task, problem.query.axes, problem.space.shape, task.plan.clusters, problem.graph)


def _counts(task: CountTask) -> Explanation:
    problem = task.problem
    try:
        most: str | None = str(_sensitivity(problem))
    except (TooLarge, NotProven):
        most = None
    cells = problem.cells
    return replace(
        _explained(task, cells.axes, cells.shape, len(problem.workload), problem.graph),
        sensitivity=most,
        witness=_witness(problem) if problem.refined is None else None,
        considered=f"{task.choice.explain()} {task.beside}".strip(),
        known=task.known,
    )


def _explained(
    task: Task, axes: Sequence[Axis], cells: tuple[int, ...], answers: int, graph: PolicyGraph
) -> Explanation:
    """What is told of every plan."""
    return Explanation(
        question=task.request.question.describe(),
        columns=tuple(axis.column for axis in axes),
        cells=cells,
        answers=answers,
        graph=graph.describe(),
        hidden_pairs=graph.edge_count,
        sensitivity=None,
        witness=None,
        mechanism=task.mechanism,
        considered=f"{task.mechanism}. {task.explanation}",
        epsilon=str(task.cost),
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


def tradeoff(
    planner: Planner,
    request: Request,
    candidates: Sequence[Candidate],
    *,
    rows_per_person: int = 1,
    at_epsilon: Epsilon | None = None,
    beside: Callable[[Policy], Standing] = Standing,
) -> Tradeoff:
    """Price ``request`` under every one of the policies alone, and with what stays promised ``beside`` it.

    The errors are those at ``at_epsilon``; by default at the price under the first policy, or at the ε of the
    request itself.
    """
    if not candidates:
        raise InvalidInput("A trade-off needs at least one policy.", fixes=("thresholds=[1000, 10000]",))
    fixed = at_epsilon or request.terms.epsilon
    points: list[TradeoffPoint] = []
    kept: set[int] = set()
    progress = request.progress or (lambda done, of: None)
    for done, each in enumerate(candidates):
        progress(done, len(candidates))
        priced = planner.plan(request, each.policy, rows_per_person)
        fixed = fixed or priced.cost or Epsilon(1)
        alpha = _error_at(planner, request, each.policy, rows_per_person, fixed)
        standing = beside(each.policy)
        kept |= {one.version for one in standing.kept}
        promised = most_lost(planner.under(request, standing), standing) if standing.several else None
        name = priced.choice.plan.name
        points.append(TradeoffPoint(each.name, priced.cost, alpha, name, each.theta, promised))
    progress(len(candidates), len(candidates))
    assert fixed is not None
    asked = request.terms.accuracy
    return Tradeoff(
        request.question.describe(), asked and asked.alpha, fixed, tuple(points), tuple(sorted(kept))
    )


def most_lost(task: CountTask, standing: Standing) -> Epsilon:
    """The most that an answer loses under a promise."""
    return max((*task.choice.losses, task.choice.loss)) * standing.rows_per_person


def _error_at(planner: Planner, request: Request, policy: Policy, rows: int, epsilon: Epsilon) -> float:
    """The α of the answer when ``epsilon`` is spent on it, at the confidence that was asked for."""
    spending = replace(request, terms=Terms(mechanism=request.terms.mechanism).spending(epsilon))
    planned = planner.plan(spending, policy, rows)
    asked = request.terms.accuracy
    if planned.promise is None or planned.promise.alpha is None:
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
