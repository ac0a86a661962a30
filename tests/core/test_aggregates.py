"""Aggregates: what one hidden move changes, by brute force over all edges; golden prices; what is read."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import Infeasible, InvalidWorkload, NoGuarantee, NotProven
from blowfishdb.core.laplace_sums import unit_quantile
from blowfishdb.core.questions.aggregate_problem import AggregateProblem
from blowfishdb.core.questions.aggregate_projection import project_aggregates
from blowfishdb.core.questions.aggregates import AggregateQuestion, Measure
from blowfishdb.core.questions.several_columns import ColumnsProblem
from blowfishdb.mechanisms.sums import SumsPlan

MEASURES = (
    (Measure("mean", "v"),),
    (Measure("sum", "v"),),
    (Measure("count", "v"),),
    (Measure("mean", "v"), Measure("count")),
    (Measure("variance", "v"), Measure("mean", "v")),
    (Measure("stddev", "v"), Measure("count")),
)


def asked(
    policy: bf.Policy,
    measures: tuple[Measure, ...],
    groups: tuple[str, ...] = (),
    where: Predicate | None = None,
    size: int | None = None,
) -> AggregateProblem:
    domain = policy.domain
    axes = tuple(Axis(name, domain[name], domain[name].bins()) for name in groups)
    question = AggregateQuestion.of(measures, axes, domain, Everything() if where is None else where, size)
    return project_aggregates(question, policy)


def written_out(problem: AggregateProblem, domain: bf.Domain) -> np.ndarray:
    """A column of all sums for every record: what a table of that one record is measured as."""
    columns = []
    for record in itertools.product(*(range(size) for size in domain.shape)):
        cells = dict(zip(domain.names, record, strict=True))
        axes = problem.query.cells.axes
        place = tuple(int(axis.bins.assign(cells[axis.column])) for axis in axes)
        table = np.zeros((problem.part.size, 3), dtype=np.int64)
        value = cells[problem.query.column] if problem.query.column else 0
        box = int(np.ravel_multi_index(place, problem.query.cells.shape))
        table[box] = 1, value, value**2
        columns.append(problem.measured(table[:, : 1 + problem.query.degree]).ravel())
    return np.array(columns).T


def by_brute_force(problem: AggregateProblem, policy: bf.Policy) -> int:
    """The largest change of all sums over all edges of the policy; exact ones must not change at all."""
    rows = written_out(problem, policy.domain)
    if policy.graph.absent:  # who is not there adds nothing
        rows = np.column_stack([rows, np.zeros(len(rows), dtype=np.int64)])
    here, there = policy.graph.edges().T
    changes = np.abs(rows[:, here] - rows[:, there])
    noisy = np.tile(problem.noisy, problem.groups)
    assert not changes[~noisy].any()
    return int(changes[noisy].sum(axis=0).max(initial=0))


def graphs(rng: np.random.Generator, size: int) -> bf.graphs.PolicyGraph:
    match int(rng.integers(4)):
        case 0:
            return bf.graphs.Full(size)
        case 1:
            return bf.graphs.Threshold(size, int(rng.integers(1, size)))
        case 2:
            return bf.graphs.Explicit(size, ())
    labels = np.sort(rng.integers(0, 2, size))
    return bf.graphs.Partitioned(labels - labels.min())


def worlds(seed: int, count: int) -> Iterator[tuple[bf.Policy, np.random.Generator]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        missing = rng.choice(["clamp", "value", "public"])
        low = int(rng.integers(-4, 4))
        domain = bf.Domain(
            g=bf.Integer(0, int(rng.integers(1, 3))),
            f=bf.Integer(0, 1),
            v=bf.Integer(low, low + int(rng.integers(1, 6)), missing=str(missing)),
        )
        columns = {name: graphs(rng, domain[name].value_count) for name in domain.names}
        joint, presence = rng.random() < 0.5, rng.random() < 0.3
        yield bf.Policy.by_column(domain, columns, joint=joint, hide_presence=presence), rng


@pytest.mark.parametrize("seed", range(4))
def test_the_change_is_that_of_all_edges(seed: int) -> None:
    seen = set()
    for policy, rng in worlds(seed, 60):
        where = (None, bf.col("f") == 1)[int(rng.integers(2))]
        groups = ((), ("g",), ("g", "f"))[int(rng.integers(3))]
        for measures in MEASURES:
            problem = asked(policy, measures, groups, where)
            seen.add(problem.rows.name)
            assert problem.change * bool(problem.noisy.any()) == by_brute_force(problem, policy)
    assert {"counts", "sums", "ends", "centred", "squares", "corners"} <= seen


@pytest.mark.parametrize("seed", range(3))
def test_a_condition_on_the_values_themselves_is_covered(seed: int) -> None:
    """Values outside of the condition count as moves in and out; a range of values is no wider than it is."""
    exact = 0
    for policy, rng in worlds(100 + seed, 40):
        low, high = policy.domain["v"].lower(0), policy.domain["v"].upper(policy.domain["v"].value_count - 1)
        ends = sorted(int(rng.integers(low, high + 1)) for _ in range(2))
        for measures in MEASURES:
            problem = asked(policy, measures, ("g",), bf.col("v").between(*ends))
            assert problem.width <= ends[1] - ends[0]
            change = by_brute_force(problem, policy)
            assert change <= problem.change
            exact += change == problem.change * bool(problem.noisy.any())
    assert exact > 150  # of 240; where both ends are open only whole rows cost as much


def test_groups_of_bins_of_the_values_are_covered() -> None:
    domain = bf.Domain(g=bf.Integer(0, 1), v=bf.Integer(0, 5))
    for reach, joint in itertools.product((1, 3, 5), (True, False)):
        policy = bf.Policy.by_column(domain, {"v": bf.graphs.Threshold(6, reach)}, joint=joint)
        for measures in MEASURES:
            axis = Axis("v", domain["v"], domain["v"].bins(width=3))
            question = AggregateQuestion.of(measures, (axis,), domain, Everything(), None)
            problem = project_aggregates(question, policy)
            assert by_brute_force(problem, policy) <= problem.change


def test_rows_that_are_dropped_come_and_go() -> None:
    domain = bf.Domain(g=bf.Integer(0, 1, outside="drop"), v=bf.Integer(0, 4))
    hidden = {"g": bf.graphs.Explicit(2, ()), "v": bf.graphs.Threshold(5, 1)}
    problem = asked(bf.Policy.by_column(domain, hidden), (Measure("mean", "v"),), ("g",))
    assert (problem.rows.name, problem.change) == ("ends", 4)


def test_a_mutant_that_forgets_rows_that_come_and_go_is_rejected() -> None:
    domain = bf.Domain(g=bf.Integer(0, 1), f=bf.Integer(0, 1), v=bf.Integer(0, 5))
    policy = bf.Policy.by_column(domain, {"g": bf.graphs.Explicit(2, ()), "v": bf.graphs.Threshold(6, 1)})
    problem = asked(policy, (Measure("mean", "v"),), ("g",), bf.col("f") == 1)
    assert by_brute_force(problem, policy) == problem.change == 5
    reach_alone = 2 * 1  # what the distance would suggest
    assert by_brute_force(problem, policy) > reach_alone


# --- several columns --------------------------------------------------------------------------------------

COLUMNS = (
    (Measure("mean", "v"), Measure("mean", "w")),
    (Measure("sum", "v"), Measure("count"), Measure("mean", "w")),
    (Measure("count", "v"), Measure("stddev", "w")),
    (Measure("variance", "w"), Measure("sum", "v"), Measure("count")),
)


def of_two_columns(seed: int, count: int) -> Iterator[tuple[bf.Policy, np.random.Generator]]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        missing = [str(rng.choice(["clamp", "value", "public"])) for _ in range(2)]
        low = int(rng.integers(-3, 3))
        domain = bf.Domain(
            g=bf.Integer(0, 1),
            f=bf.Integer(0, 1),
            v=bf.Integer(low, low + int(rng.integers(1, 4)), missing=missing[0]),
            w=bf.Integer(0, int(rng.integers(1, 5)), missing=missing[1]),
        )
        columns = {name: graphs(rng, domain[name].value_count) for name in domain.names}
        joint, presence = rng.random() < 0.5, rng.random() < 0.3
        yield bf.Policy.by_column(domain, columns, joint=joint, hide_presence=presence), rng


def sums_of_rows(problem: ColumnsProblem, domain: bf.Domain) -> np.ndarray:
    """A column of all sums for every record, from what a database would add up of that one record."""
    columns = []
    for record in itertools.product(*(range(size) for size in domain.shape)):
        cells = dict(zip(domain.names, record, strict=True))
        place = tuple(int(axis.bins.assign(cells[axis.column])) for axis in problem.query.cells.axes)
        table = np.zeros((problem.query.cells.count, problem.query.measures), dtype=np.int64)
        powers = [cells[name] ** power for name, most in problem.query.summed for power in range(1, most + 1)]
        table[int(np.ravel_multi_index(place, problem.query.cells.shape))] = [1, *powers]
        columns.append(problem.measured(table).ravel())
    return np.array(columns).T


@pytest.mark.parametrize("seed", range(3))
def test_several_columns_change_by_no_more_than_over_all_edges(seed: int) -> None:
    exact = total = cheaper = 0
    for policy, rng in of_two_columns(seed, 25):
        where = (None, None, bf.col("f") == 1, bf.col("v") >= policy.domain["v"].lower(1))[
            int(rng.integers(4))
        ]
        groups = ((), ("g",))[int(rng.integers(2))]
        for measures in COLUMNS:
            problem = asked(policy, measures, groups, where)
            assert isinstance(problem, ColumnsProblem)
            rows = sums_of_rows(problem, policy.domain)
            if policy.graph.absent:
                rows = np.column_stack([rows, np.zeros(len(rows), dtype=np.int64)])
            here, there = policy.graph.edges().T
            changes = np.abs(rows[:, here] - rows[:, there])
            noisy = np.tile(problem.noisy, problem.groups)
            assert not changes[~noisy].any()
            found = int(changes[noisy].sum(axis=0).max(initial=0))
            assert found <= problem.change
            exact += found == problem.change * bool(problem.noisy.any())
            cheaper += problem.change < sum(part.change * times for part, times in problem.parts)
            total += 1
    assert exact > 0.8 * total, (exact, total)
    assert cheaper > 5  # one column at a time, in public groups


def test_a_column_that_moves_alone_costs_nothing_more() -> None:
    """In public groups: together as cheap as the dearer one; where both move at once, both."""
    domain = bf.Domain(g=bf.Integer(0, 2), v=bf.Integer(0, 99), w=bf.Integer(0, 9))
    hidden = {"g": bf.graphs.Explicit(3, ()), "v": bf.graphs.Threshold(100, 10)}
    measures = (Measure("mean", "v"), Measure("mean", "w"))
    apart, both = (
        asked(bf.Policy.by_column(domain, hidden, joint=joint), measures, ("g",)) for joint in (False, True)
    )
    assert [times * part.change for part, times in apart.parts] == [80, 81]  # type: ignore[attr-defined]
    assert (apart.change, both.change) == (81, 161)


def test_a_mutant_that_counts_one_column_alone_is_rejected() -> None:
    domain = bf.Domain(g=bf.Integer(0, 1), f=bf.Integer(0, 1), v=bf.Integer(0, 3), w=bf.Integer(0, 3))
    problem = asked(
        bf.Policy.differential_privacy(domain), (Measure("mean", "v"), Measure("mean", "w")), ("g",)
    )
    assert isinstance(problem, ColumnsProblem)
    alone = max(part.change * times for part, times in problem.parts)
    rows = sums_of_rows(problem, domain)
    here, there = bf.graphs.Full(rows.shape[1]).edges().T
    assert np.abs(rows[:, here] - rows[:, there]).sum(axis=0).max() == problem.change > alone


# --- golden numbers (THEORY §12 A3) ------------------------------------------------------------------------

SALARY = bf.Integer(0, 199_999)
REGIONS = bf.Integer(0, 9)


@pytest.mark.parametrize(
    ("hidden", "groups", "alpha", "size", "epsilon"),
    [
        ("X", True, 1_000, 1_000, 2.110129),
        ("X", True, 500, 5_000, 0.844051),
        ("O", False, 1_000, 1_000, 0.599144),
        ("O", True, 1_000, 1_000, 1.055065),
        ("O", True, 500, 5_000, 0.422026),
        ("", False, 1_000, 1_000, 0.002996),
        ("", True, 1_000, 1_000, 0.005275),
        ("", True, 500, 5_000, 0.002110),
    ],
)
def test_golden_prices(hidden: str, groups: bool, alpha: float, size: int, epsilon: float) -> None:
    domain = bf.Domain(region=REGIONS, salary=SALARY)
    region = bf.graphs.Full(10) if hidden == "X" else bf.graphs.Explicit(10, ())
    columns = {"region": region, "salary": bf.graphs.Threshold(200_000, 1_000)}
    policy = bf.Policy.by_column(domain, columns, hide_presence=hidden == "O")
    problem = asked(policy, (Measure("mean", "salary"),), ("region",) * groups, size=size)
    price = SumsPlan(problem).epsilon_at(problem.scale_for(Accuracy(alpha, 0.05)))
    assert float(price) == pytest.approx(epsilon, abs=6e-7)


def test_golden_price_of_one_group_among_others() -> None:
    """Row 5 with one group: two ends at 2W, k = 1; and the centred rows where only rows come and go."""
    domain = bf.Domain(region=REGIONS, salary=SALARY)
    policy = bf.Policy.by_column(domain, {}, hide_presence=True)
    problem = asked(policy, (Measure("mean", "salary"),), size=1_000)
    assert (problem.rows.name, problem.change) == ("centred", 2 * 199_999)
    price = SumsPlan(problem).epsilon_at(problem.scale_for(Accuracy(1_000, 0.05)))
    assert float(price) == pytest.approx(0.822597, abs=1e-5)


@pytest.mark.parametrize(
    ("beta", "share", "quantile"),
    [
        (0.05, 0.0, 2.9957),
        (0.05, 0.1, 2.7073),
        (0.05, 0.25, 2.3350),
        (0.05, 0.5, 2.0565),
        (0.005116, 0.5, 3.3757),
    ],
)
def test_golden_quantiles(beta: float, share: float, quantile: float) -> None:
    assert unit_quantile(np.array([share, 1 - share]), beta) == pytest.approx(quantile, abs=1e-4)


# --- reading ------------------------------------------------------------------------------------------


def read(problem: AggregateProblem, rows: list[int], scale: float = 0.0, noise: object = 0) -> np.ndarray:
    table = np.zeros((problem.part.size, 1 + problem.query.degree), dtype=np.int64)
    for value in rows:
        table[0] += np.array([1, value, value**2])[: 1 + problem.query.degree]
    sums = problem.measured(table).astype(np.float64) + np.asarray(noise)
    told = problem.read(sums, scale, Accuracy(1.0, 0.05))
    return np.stack([told.values, told.low, told.high])  # type: ignore[list-item]


@pytest.mark.parametrize("presence", [True, False])
@pytest.mark.parametrize("reach", [1, 9])
def test_without_noise_every_sum_tells_the_truth(presence: bool, reach: int) -> None:
    domain = bf.Domain(v=bf.Integer(-3, 6))
    policy = bf.Policy.by_column(domain, {"v": bf.graphs.Threshold(10, reach)}, hide_presence=presence)
    rows = [0, 2, 2, 9, 5]
    values = np.array(rows) - 3
    truths = {
        "count": len(values),
        "sum": values.sum(),
        "mean": values.mean(),
        "variance": values.var(ddof=1),
        "stddev": values.std(ddof=1),
    }
    for chosen in itertools.chain.from_iterable(itertools.combinations(truths, n) for n in (1, 2, 5)):
        problem = asked(policy, tuple(Measure(of, "v") for of in chosen))
        told = read(problem, rows)
        assert told[0] == pytest.approx([truths[of] for of in chosen], rel=1e-9), problem.rows.name


@pytest.mark.parametrize("rows", [0, 1, 5, 50, 5_000])
@pytest.mark.parametrize("kind", ["ends", "centred", "sums", "squares", "corners"])
def test_intervals_cover_groups_of_any_size(rows: int, kind: str) -> None:
    width, epsilon, runs = 1_000, 0.5, 400
    domain = bf.Domain(v=bf.Integer(0, width))
    reach = width if kind == "centred" else 20
    presence = kind in ("ends", "centred", "corners")
    policy = bf.Policy.by_column(domain, {"v": bf.graphs.Threshold(width + 1, reach)}, hide_presence=presence)
    spread = (Measure("variance", "v"),) * (kind in ("squares", "corners"))
    problem = asked(policy, (Measure("mean", "v"), Measure("sum", "v"), *spread))
    assert problem.rows.name == kind
    rng = np.random.default_rng(rows)
    noise = bf.noise.seeded(rows)
    values = np.clip(rng.normal(300, 120, rows), 0, width).astype(np.int64)
    table = np.array([[rows, values.sum(), (values**2).sum()]])[:, : 1 + problem.query.degree]
    sums, scale = problem.measured(table), problem.change / epsilon
    drawn = noise.discrete_laplace(SumsPlan(problem).scale(bf.Epsilon("0.5")), (runs, *sums.shape))
    truth = [values.mean() if rows else math.nan, values.sum()]
    truth += [values.var(ddof=1) if rows > 1 else math.nan] * len(spread)
    covered, unsaid = 0, 0
    for each in drawn:
        told = problem.read(
            (sums + np.where(problem.noisy, each, 0)).astype(float), scale, Accuracy(1.0, 0.05)
        )
        inside = (told.low - 1e-6 <= truth) & (truth <= told.high + 1e-6) | np.isnan(truth)  # type: ignore[operator]
        covered += bool(inside.all())
        unsaid += bool(np.isnan(told.values[0]))
    assert covered >= runs * 0.925  # 95 % but for two and a half standard errors
    if presence and rows <= 5:
        assert unsaid >= 0.9 * runs
    if rows == 5_000:
        assert not unsaid


def test_the_promise_holds_at_the_size_that_was_promised() -> None:
    width, size, alpha, runs = 1_000, 400, 20.0, 2_000
    policy = bf.Policy.by_column(bf.Domain(v=bf.Integer(0, width)), {}, hide_presence=True)
    close = bf.Policy.by_column(
        bf.Domain(v=bf.Integer(0, width)), {"v": bf.graphs.Threshold(width + 1, 10)}, hide_presence=True
    )
    for each in (policy, close):
        problem = asked(each, (Measure("mean", "v"),), size=size)
        scale = problem.scale_for(Accuracy(alpha, 0.05))
        plan = SumsPlan(problem)
        drawn = bf.noise.seeded(5).discrete_laplace(plan.scale(plan.epsilon_at(scale)), (runs, 2))
        for value in (0, 100, 500, 1_000):
            sums = problem.measured(np.array([[size, size * value]])) + drawn
            failed = sum(
                abs(
                    float(problem.read(row[None].astype(float), scale, Accuracy(1.0, 0.05)).values[0]) - value
                )
                > alpha
                for row in sums
            )
            assert failed <= 0.05 * runs


# --- refusals -----------------------------------------------------------------------------------------


def test_what_cannot_be_promised_says_what_can() -> None:
    policy = bf.Policy.by_column(bf.Domain(g=bf.Integer(0, 1), v=bf.Integer(0, 9)), {})
    accuracy = Accuracy(1.0, 0.05)
    with pytest.raises(NoGuarantee, match="how many rows"):
        asked(policy, (Measure("mean", "v"),), ("g",)).scale_for(accuracy)
    with pytest.raises(NoGuarantee, match="variance"):
        asked(policy, (Measure("variance", "v"),), ("g",)).scale_for(accuracy)
    with pytest.raises(NoGuarantee, match="different units"):
        asked(policy, (Measure("mean", "v"), Measure("sum", "v")), ("g",)).scale_for(accuracy)
    problem = asked(policy, (Measure("mean", "v"),), ("g",), size=1)
    with pytest.raises(Infeasible, match="No noise"):
        SumsPlan(problem).epsilon_at(problem.scale_for(Accuracy(0.5, 0.05)))


def test_what_cannot_be_asked_is_refused() -> None:
    domain = bf.Domain(g=bf.Category(["a", "b"]), v=bf.Integer(0, 9, outside="drop"), w=bf.Integer(0, 3))
    policy = bf.Policy.by_column(domain, {})
    with pytest.raises(InvalidWorkload, match="numbers"):
        asked(policy, (Measure("mean", "g"),))
    with pytest.raises(InvalidWorkload, match="other columns are not told"):
        asked(policy, (Measure("mean", "v"), Measure("mean", "w")))
    with pytest.raises(InvalidWorkload, match="numbers"):
        asked(policy, (Measure("mean", "w"), Measure("sum", "g")))
    with pytest.raises(InvalidWorkload, match="left out"):
        asked(policy, (Measure("mean", "v"), Measure("count")))
    known = bf.Constraints(marginals=[("g",)])
    with pytest.raises(NotProven, match="already known"):
        asked(policy.knowing(known), (Measure("mean", "w"),))
