"""Laplace on questions and on cells: exact privacy over all edges, exact error, honest accuracy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NotProven, SizeMismatch
from blowfishdb.core.secret import Secret
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.mechanisms import Best, Certificate, Laplace
from blowfishdb.noise import seeded
from tests.core import oracle

CASES = {
    "full": graphs.Full(8),
    "line": graphs.Threshold(8, 1),
    "threshold": graphs.Threshold(8, 3),
    "partition": graphs.Partitioned([0, 0, 0, 1, 1, 2, 2, 2]),
    "grid": graphs.Grid((4, 2), 2),
    "joint": graphs.Product(graphs.Threshold(4, 1), graphs.Full(2)),
    "cartesian": graphs.Product(graphs.Threshold(4, 1), graphs.Full(2), joint=False),
    "presence": graphs.Threshold(8, 2).hide_presence(),
    "add/remove": graphs.AddRemove(8),
    "edgeless": graphs.Explicit(8, []),
    "islands": graphs.Explicit(8, [(0, 1), (1, 2), (5, 7)]),
}
WORKLOADS = {
    "histogram": workloads.Histogram(8),
    "cumulative": workloads.Cumulative(8),
    "ranges": workloads.AllRanges(8),
    "some ranges": workloads.Ranges(8, [0, 2, 3], [7, 5, 3]),
    "rational": workloads.Matrix(
        np.array([[Fraction(1, 3)] * 8, [Fraction(i, 7) for i in range(8)]], dtype=object)
    ),
}
EPSILONS = ["1", "0.1", "0.123456789", "3.000000007"]


def plans() -> list[object]:
    return [
        pytest.param(Laplace(on=on), graph, workload, id=f"{on}-{name}-{what}")
        for on in ("workload", "cells")
        for name, graph in CASES.items()
        for what, workload in WORKLOADS.items()
    ]


@pytest.mark.parametrize(("mechanism", "graph", "workload"), plans())
class TestEveryPlan:
    def test_the_worst_edge_loses_exactly_epsilon(self, mechanism, graph, workload) -> None:
        plan = mechanism.plan(workload, graph)
        for epsilon in EPSILONS:
            certificate = plan.certificate(epsilon=epsilon)
            loss = certificate.worst_loss(graph)
            rows = graph.edge_count and not plan.exact.all()
            assert loss == (Epsilon(epsilon).fraction if rows else 0)
            if rows:  # the check can fail: less noise is found out
                weaker = Certificate.of_rows(
                    certificate.released, [s * Fraction(9, 10) for s in certificate.scales]
                )
                assert weaker.worst_loss(graph) > Epsilon(epsilon).fraction

    def test_without_noise_the_answers_are_the_truth(self, mechanism, graph, workload) -> None:
        plan = mechanism.plan(workload, graph)
        x = np.arange(1, 9) ** 2
        answers = plan.decode(plan.measure(x), x)
        assert np.asarray(answers, dtype=float) == pytest.approx(np.asarray(workload.answer(x), dtype=float))

    def test_exact_answers_are_exactly_those_that_no_edge_changes(self, mechanism, graph, workload) -> None:
        plan = mechanism.plan(workload, graph)
        matrix = oracle.dense(workload)
        padded = np.concatenate((matrix, np.zeros((len(matrix), graph.size - 8), dtype=int)), axis=1)
        changes = [any(row[u] != row[v] for u, v in graph.edges()) for row in padded]
        assert plan.exact.tolist() == [not change for change in changes]
        x = np.arange(3, 11)
        noisy = np.asarray(plan.release(x, epsilon="0.01", noise=seeded(1)), dtype=float)
        truth = np.asarray(workload.answer(x), dtype=float)
        assert noisy[plan.exact] == pytest.approx(truth[plan.exact])

    def test_the_error_is_what_the_plan_says(self, mechanism, graph, workload) -> None:
        plan = mechanism.plan(workload, graph)
        noise = seeded(7)
        draws = np.stack([plan.scales.draw(noise, Epsilon("0.5")) for _ in range(400)])
        errors = np.asarray(plan.spread(draws), dtype=float)
        squared = (errors**2).mean(axis=1)  # averaged over the answers of one release
        expected = plan.squared_error(epsilon="0.5")
        assert abs(squared.mean() - expected) <= 4 * squared.std() / np.sqrt(len(draws)) + 1e-12


def test_releases_are_reproducible_and_open_secrets() -> None:
    plan = Laplace().plan(workloads.Cumulative(8), graphs.Threshold(8, 1))
    x = np.arange(8)
    first = plan.release(x, epsilon=1, noise=seeded(3))
    assert (first == plan.release(Secret(x), epsilon="1", noise=seeded(3))).all()
    assert np.issubdtype(first.dtype, np.integer)


@pytest.mark.parametrize(
    "graph", [graphs.Threshold(16, 1), graphs.Full(16), graphs.Threshold(16, 2).hide_presence()]
)
@pytest.mark.parametrize("on", ["workload", "cells"])
@pytest.mark.parametrize(("alpha", "beta"), [(30, 0.05), (12.7, 0.1), (40.5, 0.001)])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_the_promised_accuracy_is_kept(graph, on, alpha, beta, simultaneous) -> None:
    """10,000 releases at the quoted ε: failures stay within β, up to four standard errors."""
    plan = Laplace(on=on).plan(workloads.Cumulative(16), graph)
    epsilon = plan.epsilon_for(alpha=alpha, beta=beta, simultaneous=simultaneous)
    runs = 10_000
    draws = seeded(11).discrete_laplace(float_free(plan, epsilon), (runs, len(plan.scales)))
    draws = np.where(plan.scales.floats() > 0, draws, 0)
    misses = np.abs(plan.spread(draws)) > alpha
    rate = misses.any(axis=1).mean() if simultaneous else misses.mean(axis=0).max()
    slack = 4 * np.sqrt(beta * (1 - beta) / runs)
    assert rate <= beta + slack
    weaker = Epsilon.from_nano(int(epsilon.nano * 0.8))
    assert plan.alpha_for(epsilon=weaker, beta=beta, simultaneous=simultaneous) > np.floor(alpha)


def float_free(plan, epsilon: Epsilon) -> Fraction:
    return plan.scales.distinct[0] / epsilon.fraction


def test_policy_matters() -> None:
    """The same question costs 2.8 times less when only close salaries are hidden."""
    best = Best()
    line = best.plan(workloads.Cumulative(20), graphs.Threshold(20, 1))
    full = best.plan(workloads.Cumulative(20), graphs.Full(20))
    ratio = float(full.epsilon_for(alpha=50, beta=0.05)) / float(line.epsilon_for(alpha=50, beta=0.05))
    assert 2.5 < ratio < 3.0


def test_best_explains_and_refuses() -> None:
    plan = Best().plan(workloads.Cumulative(20), graphs.Threshold(20, 1))
    assert "at most 1" in plan.explain() and "exact" in plan.explain()
    with pytest.raises(NotProven):
        Best(()).plan(workloads.Histogram(2), graphs.Full(2))


def test_a_quote_is_reproducible() -> None:
    quotes = {
        Laplace(on="cells").plan(workloads.Cumulative(12), graphs.Full(12)).epsilon_for(alpha=20, beta=0.05)
        for _ in range(3)
    }
    assert len(quotes) == 1


def test_bad_input() -> None:
    plan = Laplace().plan(workloads.Histogram(4), graphs.Full(4))
    with pytest.raises(SizeMismatch):
        plan.release([1, 2, 3], epsilon=1, noise=seeded(1))
    with pytest.raises(SizeMismatch):
        plan.release([1.5, 2, 3, 4], epsilon=1, noise=seeded(1))
    for epsilon in (0, -1, "banana", float("nan"), float("inf"), 1e-10):
        with pytest.raises(InvalidEpsilon):
            plan.release([1, 2, 3, 4], epsilon=epsilon, noise=seeded(1))


def test_an_audit_on_neighbours_finds_the_loss_and_not_more() -> None:
    """Empirical log-ratios on a worst edge stay within ε; with 10 % less noise they do not."""
    graph, workload, epsilon = graphs.Threshold(3, 2), workloads.Histogram(3), Epsilon(1)
    plan = Laplace().plan(workload, graph)
    assert sensitivity(workload, graph) == 2
    runs = 400_000

    def tail_ratio(scale: Fraction) -> float:
        noise = seeded(5).discrete_laplace(scale, (2, runs, 2))
        here = np.array([1, 0]) + noise[0]  # the person is in cell 0 …
        there = np.array([0, 1]) + noise[1]  # … or in cell 2
        event = [(side[:, 0] >= 1) & (side[:, 1] <= 0) for side in (here, there)]
        return float(np.log(event[0].mean() / event[1].mean()))

    assert tail_ratio(plan.scales.distinct[0] / epsilon.fraction) == pytest.approx(1.0, abs=0.02)
    assert tail_ratio(plan.scales.distinct[0] / epsilon.fraction * Fraction(9, 10)) > 1.05


def test_questions_with_negative_weights_are_not_taken_for_unchanging() -> None:
    """Where records come and go, a question that counts −1 changes as much as one that counts 1."""
    workload, graph = workloads.Matrix([[-1, 0], [0, -1]]), graphs.AddRemove(2)
    for mechanism in (Laplace(on="workload"), Laplace(on="cells"), Best()):
        plan = mechanism.plan(workload, graph)
        assert not plan.exact.any()
        assert plan.certificate(epsilon=1).worst_loss(graph) == 1
