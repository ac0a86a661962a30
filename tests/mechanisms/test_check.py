"""The contract suite itself: it passes what is right and names the clause that is broken."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import Explicit
from blowfishdb.mechanisms.check import Checked, ContractViolation, cases, check_mechanism
from blowfishdb.mechanisms.hierarchical import Hierarchical
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.mechanisms.plan import Mechanism, Plan


@dataclass(frozen=True, eq=False)
class Spoilt(Plan):
    """A correct plan with one thing broken."""

    good: Plan
    factor: Fraction = Fraction(1)
    honest: bool = False
    bias: float = 0.0
    variance: float = 1.0
    leak: bool = False
    fickle: bool = False
    mute: bool = False
    claims_one_to_one: bool = False
    state: list = field(default_factory=list)

    @property
    def workload(self):
        return self.good.workload

    @property
    def graph(self):
        return self.good.graph

    @property
    def name(self):
        return self.good.name

    @property
    def scales(self):
        good = self.good.scales
        return UnitScales(tuple(c * self.factor for c in good.distinct), good.which)

    @property
    def one_to_one(self):
        return self.claims_one_to_one or self.good.one_to_one

    def measure(self, x):
        return self.good.measure(x)

    def decode(self, measured, x):
        answers = self.good.decode(measured, x) + self.bias * ~self.good.exact
        if self.leak and self.workload.count > 1:
            answers = np.where(np.arange(self.workload.count) == 0, self.workload.answer(x), answers)
        if self.fickle:
            self.state.append(0)
            answers = answers + len(self.state) * ~self.good.exact
        return answers

    def spread(self, noise):
        return self.good.spread(noise)

    def variances(self, of_noise):
        return self.variance * self.good.variances(of_noise)

    @property
    def exact(self):
        return self.good.exact

    def rows(self, *, epsilon):
        rows, scales = self.good.rows(epsilon=epsilon)
        return rows, scales if self.honest else [scale * self.factor for scale in scales]

    def explain(self):
        return "" if self.mute else self.good.explain()


@dataclass(frozen=True)
class Broken(Mechanism):
    """Wraps every plan of a correct mechanism."""

    changes: tuple

    def plan(self, workload, graph):
        return Spoilt(Hierarchical(2).plan(workload, graph), **dict(self.changes))


@dataclass(frozen=True)
class Forgetful(Mechanism):
    """Computes its cost without the last edge of the policy."""

    def plan(self, workload, graph):
        if graph.absent or graph.edge_count < 2:
            raise NotProven("Not here.")
        return Hierarchical(2).plan(workload, Explicit(graph.size, graph.edges()[:-1]))


@pytest.mark.parametrize(
    ("changes", "clause"),
    [
        ({"factor": Fraction(9, 10)}, "private"),
        ({"factor": Fraction(9, 10), "honest": True}, "private"),
        ({"leak": True}, "private"),
        ({"bias": 0.5}, "unbiased"),
        ({"variance": 0.9}, "error as promised"),
        ({"variance": 1.1}, "error as promised"),
        ({"fickle": True}, "deterministic given noise"),
        ({"mute": True}, "explains itself"),
        ({"claims_one_to_one": True}, "declared grid"),
    ],
)
def test_broken_mechanisms_break_the_right_clause(changes, clause):
    with pytest.raises(ContractViolation) as violation:
        check_mechanism(Broken(tuple(changes.items())))
    assert violation.value.clause == clause
    assert clause in str(violation.value)


def test_a_forgotten_edge_is_found():
    with pytest.raises(ContractViolation) as violation:
        check_mechanism(Forgetful())
    assert violation.value.clause == "private"


@dataclass(frozen=True)
class Crashes(Mechanism):
    def plan(self, workload, graph):
        raise KeyError("oops")


@dataclass(frozen=True)
class GivesNothing(Mechanism):
    def plan(self, workload, graph):
        return None


@pytest.mark.parametrize("mechanism", [Crashes(), GivesNothing()])
def test_planning_plans_or_refuses(mechanism):
    with pytest.raises(ContractViolation) as violation:
        check_mechanism(mechanism)
    assert violation.value.clause == "plans or refuses"


@dataclass(frozen=True)
class Optimist(Mechanism):
    """Promises accuracies that it does not reach."""

    def plan(self, workload, graph):
        plan = Hierarchical(2).plan(workload, graph)

        @dataclass(frozen=True, eq=False)
        class Bold(Spoilt):
            def epsilon_for(self, *, alpha, beta, simultaneous=True):
                cheap = plan.epsilon_for(alpha=alpha, beta=beta, simultaneous=simultaneous)
                return type(cheap)(cheap.fraction * Fraction(3, 4))

            def alpha_for(self, *, epsilon, beta, simultaneous=True):
                return 0.7 * plan.alpha_for(epsilon=epsilon, beta=beta, simultaneous=simultaneous)

        return Bold(plan)


def test_promises_of_accuracy_are_tested():
    with pytest.raises(ContractViolation) as violation:
        check_mechanism(Optimist())
    assert violation.value.clause == "accuracy"


def test_the_report_lists_what_was_refused():
    checked = check_mechanism(Ordered())
    assert isinstance(checked, Checked)
    assert set(checked.planned) | set(checked.refused) == {case.name for case in cases()}
    assert not checked.without_certificate


def test_every_kind_of_policy_is_among_the_cases():
    names = " ".join(case.name for case in cases())
    kinds = (
        "full",
        "threshold",
        "line",
        "banded",
        "partition",
        "L1 grid",
        "product",
        "hidden",
        "nothing hidden",
    )
    assert all(kind in names for kind in kinds)
