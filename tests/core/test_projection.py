"""Projection and policy: the small problem is the big one, cell by cell and from rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import InvalidWorkload, PolicyConflict, SizeMismatch, TooLarge, UnknownColumn
from blowfishdb.core.policy.guarantee import invariants
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.kinds import Cumulative, Histogram, Question, Ranges, Sum
from blowfishdb.core.questions.projection import project
from blowfishdb.core.sensitivity import sensitivity
from tests.seeds import seeds

DOMAIN = Domain(
    age=Integer(0, 5), salary=Integer(0, 7), region=Category(["n", "s"], outside="clamp", missing="clamp")
)


def axis(domain: Domain, name: str, **bins: object) -> Axis:
    return Axis(name, domain[name], domain[name].bins(**bins))  # type: ignore[arg-type]


def random_policy(rng: np.random.Generator) -> Policy:
    chosen: dict[str, graphs.PolicyGraph] = {}
    if rng.random() < 0.7:
        chosen["salary"] = graphs.Threshold(8, int(rng.integers(1, 9)))
    if rng.random() < 0.5:
        chosen["age"] = graphs.Partitioned([0, 0, 1, 1, 2, 2])
    return Policy.by_column(
        DOMAIN, chosen, joint=bool(rng.random() < 0.5), hide_presence=bool(rng.random() < 0.3)
    )


CONDITIONS = [
    Everything(),
    col("region") == "n",
    col("age").between(2, 3),
    (col("age") >= 3) & (col("region") == "s"),
    ~(col("salary") <= 4),
    (col("salary") < 2) | (col("salary") >= 6),
]


def random_question(rng: np.random.Generator) -> Question:
    where = CONDITIONS[rng.integers(0, len(CONDITIONS))]
    kind = rng.integers(0, 5)
    widths = {"age": int(rng.integers(1, 4)), "salary": int(rng.integers(1, 5))}
    if kind == 0:
        return Question(Sum(), (axis(DOMAIN, "salary"),), where)
    if kind == 1:
        return Question(Ranges(((0, 3), (2, 2), (4, 7))), (axis(DOMAIN, "salary"),), where)
    if kind == 2:
        axes = (axis(DOMAIN, "salary", width=widths["salary"]), axis(DOMAIN, "region"))
        return Question(Histogram(), axes, where)
    names = [["salary"], ["age"], ["age", "salary"]][rng.integers(0, 3)]
    shape = Histogram() if kind == 3 else Cumulative()
    return Question(shape, tuple(axis(DOMAIN, name, width=widths[name]) for name in names), where)


def contribution(question: Question, cell: int | None) -> np.ndarray:
    """What one record adds to the answers, from first principles."""
    if cell is None:
        return np.zeros(1, dtype=np.int64)
    place = dict(zip(DOMAIN.names, (int(i) for i in np.unravel_index(cell, DOMAIN.shape)), strict=True))
    record = {name: DOMAIN[name].lower(i) for name, i in place.items()}
    if not question.where.matches(record):
        return np.zeros(1, dtype=np.int64)
    if isinstance(question.kind, Sum):
        return np.array([record["salary"]])
    if isinstance(question.kind, Ranges):
        return np.array([lo <= record["salary"] <= hi for lo, hi in question.kind.bounds]).astype(np.int64)
    counts = np.zeros([a.bins.count for a in question.axes], dtype=np.int64)
    counts[tuple(int(a.bins.assign(place[a.column])) for a in question.axes)] = 1
    if isinstance(question.kind, Cumulative):
        for dimension in range(counts.ndim):
            counts = counts.cumsum(axis=dimension)
    return counts


@seeds(240)
def test_a_question_costs_what_its_rows_cost(seed: int) -> None:
    """From rows, not cells: move one record along every edge of the whole policy and see what changes."""
    rng = np.random.default_rng(seed)
    policy = random_policy(rng)
    question = random_question(rng)
    problem = project(question, policy)
    one = [contribution(question, cell) for cell in [*range(DOMAIN.size), None]]
    worst = max((int(np.abs(one[u] - one[v]).sum()) for u, v in policy.graph.edges()), default=0)
    assert sensitivity(problem.workload, problem.graph) == worst


@seeds(60)
def test_the_small_problem_has_the_answers_of_the_big_one(seed: int) -> None:
    rng = np.random.default_rng(900 + seed)
    question = random_question(rng)
    problem = project(question, Policy.differential_privacy(DOMAIN))
    records = rng.integers(0, DOMAIN.size, size=30)
    truth = sum(np.broadcast_to(contribution(question, int(r)), shape_of(question)) for r in records)
    places = dict(zip(DOMAIN.names, np.unravel_index(records, DOMAIN.shape), strict=True))
    boxes = np.ravel_multi_index(
        tuple(a.bins.assign(places[a.column]) for a in problem.cells.axes), problem.cells.shape
    )
    counts = np.bincount(boxes, minlength=problem.cells.count)
    assert problem.workload.answer(counts).tolist() == np.ravel(truth).tolist()


def shape_of(question: Question) -> tuple[int, ...]:
    if isinstance(question.kind, Sum):
        return (1,)
    if isinstance(question.kind, Ranges):
        return (len(question.kind.bounds),)
    return tuple(a.bins.count for a in question.axes)


def test_axes_follow_the_order_of_the_domain() -> None:
    question = Question(Histogram(), (axis(DOMAIN, "salary"), axis(DOMAIN, "age")))
    problem = project(question, Policy.differential_privacy(DOMAIN))
    assert [a.column for a in problem.cells.axes] == ["age", "salary"]
    assert problem.cells.shape == (6, 8) and problem.cells.count == problem.workload.size == 48


def test_dropping_makes_outside_adjacent_to_every_value() -> None:
    domain = Domain(salary=Integer(0, 99, outside="drop"))
    policy = Policy(domain, graphs.Threshold(100, 1))
    problem = project(Question(Cumulative(), (axis(domain, "salary"),)), policy)
    assert problem.graph.absent and sensitivity(problem.workload, problem.graph) == 100
    clamped = Domain(salary=Integer(0, 99))
    kept = project(
        Question(Cumulative(), (axis(clamped, "salary"),)), Policy(clamped, graphs.Threshold(100, 1))
    )
    assert sensitivity(kept.workload, kept.graph) == 1


def test_missing_values_have_a_bar_but_no_place_on_the_line() -> None:
    domain = Domain(salary=Integer(0, 9, missing="value"))
    policy = Policy.by_column(domain, {"salary": graphs.Threshold(10, 1)})
    bins = axis(domain, "salary", width=5)
    histogram = project(Question(Histogram(), (bins,)), policy)
    cumulative = project(Question(Cumulative(), (bins,)), policy)
    assert len(histogram.workload) == 3 and len(cumulative.workload) == 2
    assert sensitivity(cumulative.workload, cumulative.graph) == 2  # from missing to the lowest bin
    assert bins.labels() == ("0–4", "5–9", "missing") and bins.ends() == ("≤ 4", "≤ 9")


def test_a_huge_domain_projects_at_no_cost() -> None:
    attributes = {f"a{i}": Integer(0, 10**6 - 1) for i in range(8)}
    domain = Domain(**attributes)
    policy = Policy.by_column(domain, {"a3": graphs.Threshold(10**6, 100)})
    problem = project(Question(Cumulative(), (axis(domain, "a3", count=20),)), policy)
    assert problem.graph == graphs.Threshold(20, 1)
    assert isinstance(problem.workload, workloads.Cumulative)


class TestBadInput:
    def test_more_boxes_than_memory_holds(self) -> None:
        domain = Domain(**{f"a{i}": Integer(0, 19) for i in range(8)})
        many = Question(Histogram(), tuple(axis(domain, name) for name in domain.names))
        with pytest.raises(TooLarge, match="25,600,000,000 boxes"):
            project(many, Policy.by_column(domain, {}))

    def test_a_graph_of_another_size(self) -> None:
        with pytest.raises(SizeMismatch, match="by_column"):
            Policy(DOMAIN, graphs.Full(5))
        with pytest.raises(SizeMismatch, match="'salary'"):
            Policy.by_column(DOMAIN, {"salary": graphs.Full(5)})

    def test_an_unknown_column(self) -> None:
        with pytest.raises(UnknownColumn, match="salary"):
            Policy.by_column(DOMAIN, {"salery": graphs.Full(8)})

    def test_questions_about_nothing_twice_or_without_order(self) -> None:
        region = axis(DOMAIN, "region")
        for axes, shape in (
            ((), Histogram()),
            ((region, region), Histogram()),
            ((region,), Cumulative()),
        ):
            with pytest.raises(InvalidWorkload):
                Question(shape, axes)

    def test_bins_of_another_column(self) -> None:
        with pytest.raises(SizeMismatch, match="'age'"):
            Axis("age", DOMAIN["age"], Bins.width(8, 2))

    def test_a_column_declared_differently(self) -> None:
        other = Domain(age=Integer(0, 99))
        with pytest.raises(SizeMismatch, match="differently"):
            project(Question(Histogram(), (axis(other, "age"),)), Policy.differential_privacy(DOMAIN))


def test_hidden_presence_survives_projection() -> None:
    policy = Policy.by_column(DOMAIN, {"salary": graphs.Threshold(8, 1)}, hide_presence=True)
    problem = project(Question(Cumulative(), (axis(DOMAIN, "salary"),)), policy)
    assert policy.hides_presence and problem.graph.absent
    assert sensitivity(problem.workload, problem.graph) == 8


def test_two_ranges_on_a_billion_values_need_few_boxes() -> None:
    domain = Domain(salary=Integer(0, 10**9 - 1))
    question = Question(Ranges(((1_000, 1_999), (5_000, 10**8))), (axis(domain, "salary"),))
    problem = project(question, Policy(domain, graphs.Threshold(10**9, 10)))
    assert problem.cells.count == problem.workload.size == 5
    assert sensitivity(problem.workload, problem.graph) == 1


def test_invariants_are_named() -> None:
    assert invariants(Policy.differential_privacy(DOMAIN)) == ["how many rows there are"]
    parts = Policy.by_column(DOMAIN, {"age": graphs.Partitioned([0, 0, 1, 1, 2, 2])})
    assert invariants(parts)[1] == "how many rows are in each of the 3 groups of 'age'"
    hidden = Policy.by_column(DOMAIN, {}, hide_presence=True)
    assert invariants(hidden) == []


def test_every_pair_of_names_projects_consistently() -> None:
    policy = Policy.by_column(DOMAIN, {"salary": graphs.Threshold(8, 2)})
    for names in itertools.combinations(DOMAIN.names, 2):
        question = Question(Histogram(), tuple(axis(DOMAIN, name) for name in names))
        problem = project(question, policy)
        assert problem.graph.size == problem.cells.count


def test_an_edited_policy_keeps_what_was_not_said() -> None:
    domain = Domain(a=Integer(0, 4), b=Integer(0, 2, missing="public"))
    full = Policy.differential_privacy(domain)  # hides also who has no b, though that is public
    hidden = full.edited(hide_presence=True)
    assert hidden.hides_presence and hidden.joint
    assert hidden.graph == graphs.Product(graphs.Full(5), graphs.Full(4)).hide_presence()
    near = hidden.edited({"a": graphs.Threshold(5, 1)}, joint=False)
    apart = graphs.Product(graphs.Threshold(5, 1), graphs.Full(4), joint=False)
    assert near.graph == apart.hide_presence()
    assert near.with_column("a", graphs.Full(5)).graph == near.edited({"a": graphs.Full(5)}).graph
    assert near.hiding_records().graph == graphs.Full(20).hide_presence()


def test_an_area_is_edited_as_a_whole() -> None:
    domain = Domain(x=Integer(0, 4), y=Integer(0, 2))
    area = Policy(domain, graphs.Grid((5, 3), 2))
    for said in ({"x": graphs.Full(5)}, {}):
        with pytest.raises(PolicyConflict, match="changed as a whole"):
            area.edited(said, hide_presence=True)
    with pytest.raises(UnknownColumn):
        area.edited({"z": graphs.Full(5)})
    assert area.edited({"x": graphs.Full(5), "y": graphs.Full(3)}).separable
