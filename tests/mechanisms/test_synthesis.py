"""Synthetic tables: costs of tables, exact selection and accounting, and neighbours on tiny domains."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidEpsilon, InvalidWorkload, NotProven, TooLarge
from blowfishdb.mechanisms.losses import ByRows
from blowfishdb.mechanisms.synthesis import (
    Chosen,
    SynthesisPlan,
    kernels,
    noisy_max,
    selection_law,
    selection_scale,
)
from blowfishdb.mechanisms.synthesis import moves as moving
from blowfishdb.mechanisms.synthesis import rounds as measuring
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.moves import classes
from blowfishdb.mechanisms.synthesis.tables import cell_rows, prefix_rows, within
from blowfishdb.mechanisms.total_loss import total_loss
from tests.mechanisms.synthesis_runs import Rows, axes_of, likelihood, made, neighbours

GOLDEN = bf.Domain(a=bf.Integer(0, 11), b=bf.Integer(0, 8), c=bf.Boolean())


def golden_policy(*, joint: bool) -> bf.Policy:
    graphs = {"a": bf.graphs.Threshold(12, 2), "b": bf.graphs.Threshold(9, 2)}
    return bf.Policy.by_column(GOLDEN, graphs, joint=joint)


GOLDEN_AXES = axes_of(GOLDEN, a=GOLDEN["a"].bins(width=3), b=GOLDEN["b"].bins(edges=[0, 3, 4]))


@pytest.mark.parametrize(("joint", "one_ways", "pairs"), [(True, 4, 6), (False, 2, 4)])
def test_golden_costs(joint: bool, one_ways: int, pairs: int) -> None:
    every = classes([golden_policy(joint=joint)], GOLDEN_AXES)
    assert [max(each.prefixes(column) for each in every) for column in range(3)] == [1, 2, 1]
    alone = max(each.prefixes(0) + each.cells((1,)) + each.prefixes(2) for each in every)
    together = max(sum(each.cells(pair) for pair in ((0, 1), (0, 2), (1, 2))) for each in every)
    assert (alone, together) == (one_ways, pairs)


GRAPHS = [
    bf.graphs.Full,
    lambda size: bf.graphs.Threshold(size, 1),
    lambda size: bf.graphs.Partitioned(bf.Bins.width(size, 2)),
    lambda size: bf.graphs.Explicit(size, ()),
]


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("outside", ["clamp", "drop"])
@pytest.mark.parametrize("missing", ["none", "value", "public"])
def test_costs_are_those_of_the_loss_kernels(joint: bool, outside: Any, missing: Any) -> None:
    """Over all edges; columns that drop rows and missing cells too."""
    domain = bf.Domain(a=bf.Integer(0, 5, missing=missing), b=bf.Integer(0, 3, outside=outside))
    axes = axes_of(domain, a=domain["a"].bins(width=2))
    for first, second in itertools.product(GRAPHS, repeat=2):
        policy = bf.Policy.by_column(domain, {"a": first(6), "b": second(4)}, joint=joint)
        every = classes([policy], axes)
        for columns in ((0,), (1,), (0, 1)):
            own = tuple(axes[column] for column in columns)
            rows = cell_rows(math.prod(axis.bins.count for axis in own))
            kernel = ByRows(own, rows, (Fraction(1),), np.zeros(rows.count, dtype=np.int64))
            assert max(each.cells(columns) for each in every) == kernel.worst(policy), policy.describe()
        for column, axis in enumerate(axes):
            rows = prefix_rows(axis.bins.count)
            kernel = ByRows((axis,), rows, (Fraction(1),), np.zeros(rows.count, dtype=np.int64))
            assert max(each.prefixes(column) for each in every) == kernel.worst(policy)


# --- selection -------------------------------------------------------------------------------------------


def test_the_law_of_selection_and_its_draws() -> None:
    scale = selection_scale(NANO)
    law = selection_law([0, 1, 2], scale)
    np.testing.assert_allclose(law, [0.1863, 0.3072, 0.5065], atol=5e-5)
    noise = bf.noise.seeded(5)
    drawn = np.bincount([noisy_max(np.array([0, 1, 2]), scale, noise) for _ in range(2_000)], minlength=3)
    chi = ((drawn - 2_000 * law) ** 2 / (2_000 * law)).sum()
    assert chi < 13.8  # one time in a thousand


def largest_ratio(scale: Fraction) -> float:
    """Over all scores of three candidates up to 6, and all that a move can make of them."""
    worst = 0.0
    for scores in itertools.product(range(0, 7, 3), repeat=3):
        law = np.log(selection_law(scores, scale))
        for change in itertools.product((-1, 0, 1), repeat=3):
            other = np.log(selection_law([s + c for s, c in zip(scores, change, strict=True)], scale))
            worst = max(worst, float(np.abs(law - other).max()))
    return worst


@pytest.mark.parametrize("nano", [NANO // 2, NANO])
def test_choosing_loses_exactly_what_it_says(nano: int) -> None:
    assert largest_ratio(selection_scale(nano)) == pytest.approx(nano / NANO, abs=1e-9)


def test_half_the_noise_loses_twice_as_much() -> None:
    """What is planted here is found: the winner falls while a rival rises."""
    assert largest_ratio(Fraction(1)) == pytest.approx(2, abs=1e-9)


def test_the_kernel_of_a_choice_holds_for_any_policy() -> None:
    kernel = Chosen(GOLDEN_AXES[:1], Fraction(1, 10))
    assert kernel.worst(golden_policy(joint=True)) == Fraction(1, 10)
    still = bf.Policy.by_column(GOLDEN, {"a": bf.graphs.Partitioned(bf.Bins.width(12, 3))})
    assert kernel.worst(still) == 0  # no hidden move leaves a bin
    assert (
        kernel.worst(golden_policy(joint=True).knowing(bf.Constraints(counts=((bf.col("a") < 3, 4),))))
        == math.inf
    )
    assert kernel.worst(bf.Policy.differential_privacy(bf.Domain(b=bf.Integer(0, 8)))) == math.inf


# --- accounting --------------------------------------------------------------------------------------------


def some_rows(count: int, seed: int = 0) -> Any:
    stream = np.random.default_rng(seed)
    a = stream.integers(0, 4, count)
    return np.column_stack(
        (a, np.minimum(2, a // 2 + stream.integers(0, 2, count)), (a + stream.integers(0, 2, count)) % 2)
    )


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("count", [400, 12_000])
@pytest.mark.parametrize("per_person", [1, 3])
def test_kernels_add_up_to_the_charge(joint: bool, count: int, per_person: int) -> None:
    policy, epsilon = golden_policy(joint=joint), Epsilon("0.777777777")
    plan = SynthesisPlan.under([policy], GOLDEN_AXES, rows=count, epsilon=epsilon, target="c")
    found = made(plan, some_rows(count))
    lost = total_loss(kernels(plan.layout, found.tables, found.choices, per_person), policy).loss
    assert math.ceil(lost * NANO) == per_person * epsilon.nano
    expected = "all pairs" if not joint else "in rounds" if count > 10_000 else "one by one"
    assert plan.way == expected
    assert bool(found.choices) == (expected == "in rounds")


def test_columns_that_drop_rows_cost_no_more_than_is_charged() -> None:
    domain = bf.Domain(a=bf.Integer(0, 3), b=bf.Category(["x", "y", "z"]), c=bf.Boolean())
    rows = some_rows(9_000)
    rows[:500, 1] = -1
    for joint in (True, False):
        policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(4, 1)}, joint=joint)
        plan = SynthesisPlan.under([policy], axes_of(domain), rows=9_000, epsilon=1)
        found = made(plan, rows)
        lost = total_loss(kernels(plan.layout, found.tables, found.choices, 1), policy).loss
        assert math.ceil(lost * NANO) == NANO
        empty = found.model.drawn(9_000, np.random.default_rng(0))[:, 1] == 3
        assert empty.sum() == pytest.approx(500, abs=200)


def test_several_promises_are_kept_at_once() -> None:
    policies = [golden_policy(joint=False), bf.Policy.differential_privacy(GOLDEN)]
    plan = SynthesisPlan.under(policies, GOLDEN_AXES, rows=12_000, epsilon="0.9")
    found = made(plan, some_rows(12_000))
    losses = [total_loss(kernels(plan.layout, found.tables, found.choices, 1), one).loss for one in policies]
    assert plan.way == "in rounds" and max(losses) <= Fraction(9, 10) and losses[1] == Fraction(9, 10)


def test_columns_that_nothing_hides_are_exact_and_free() -> None:
    shown = {name: bf.graphs.Explicit(GOLDEN[name].size, ()) for name in ("a", "b")}
    policy = bf.Policy.by_column(GOLDEN, shown)
    plan = SynthesisPlan.under([policy], GOLDEN_AXES, rows=2_000, epsilon=1)
    rows = some_rows(2_000)
    found = made(plan, rows)
    exact = [table for table in found.tables if table.exact]
    assert {table.columns for table in exact} == {(0,), (1,), (0, 1)}
    port = Rows(rows, plan.layout.bins)
    for table in exact:
        assert (table.values == port.true(table.columns)).all()
    nothing = bf.Policy.by_column(GOLDEN, {n: bf.graphs.Explicit(GOLDEN[n].size, ()) for n in GOLDEN.names})
    free = SynthesisPlan.under([nothing], GOLDEN_AXES, rows=2_000, epsilon=1)
    assert free.free and not free.spent and all(table.exact for table in made(free, rows).tables)


def test_what_is_not_proven_is_refused() -> None:
    policy = golden_policy(joint=True)
    known = policy.knowing(bf.Constraints(counts=((bf.col("a") < 3, 4),)))
    for refused in (known, bf.Policy(GOLDEN, policy.graph.hide_presence())):
        with pytest.raises(NotProven):
            SynthesisPlan.under([refused], GOLDEN_AXES, rows=100, epsilon=1)


def test_what_cannot_be_planned_is_refused() -> None:
    policy = golden_policy(joint=True)
    with pytest.raises(InvalidWorkload):
        SynthesisPlan.under([policy], (), rows=100, epsilon=1)
    with pytest.raises(InvalidWorkload):
        SynthesisPlan.under([policy], GOLDEN_AXES, rows=100, epsilon=1, target="d")
    wide = bf.Domain.of({f"c{i}": bf.Boolean() for i in range(25)})
    with pytest.raises(TooLarge):
        SynthesisPlan.under([bf.Policy.differential_privacy(wide)], axes_of(wide), rows=9, epsilon=1)
    large = bf.Domain(a=bf.Integer(0, 999), b=bf.Integer(0, 999))
    with pytest.raises(TooLarge):
        SynthesisPlan.under([bf.Policy.differential_privacy(large)], axes_of(large), rows=9, epsilon=1)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("nano", range(1, 40))
def test_no_share_of_a_tiny_epsilon_is_nothing(joint: bool, nano: int) -> None:
    """A table that gets none of it would have no noise: it is refused, and never measured exactly."""
    policy, epsilon = golden_policy(joint=joint), Epsilon.from_nano(nano)
    try:
        plan = SynthesisPlan.under([policy], GOLDEN_AXES, rows=100, epsilon=epsilon)
    except InvalidEpsilon:
        assert nano < 20
        return
    found = made(plan, some_rows(100))
    assert not any(table.exact for table in found.tables)
    assert total_loss(kernels(plan.layout, found.tables, found.choices, 1), policy).loss <= epsilon.fraction


def test_a_table_without_noise_that_should_have_some_is_never_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SynthesisPlan, "_check_divisible", lambda self: None)
    plan = SynthesisPlan.under(
        [golden_policy(joint=True)], GOLDEN_AXES, rows=100, epsilon=Epsilon.from_nano(1)
    )
    with pytest.raises(NotProven):
        made(plan, some_rows(100))


def test_intervals_cover_as_often_as_they_say() -> None:
    noise = bf.noise.seeded(2)
    for scale in (Fraction(1, 3), Fraction(7, 2), Fraction(90)):
        drawn = np.abs(noise.discrete_laplace(scale, 20_000))
        assert (drawn <= within(scale)).mean() >= 0.945
        assert (drawn <= within(scale) - 1).mean() < 0.955


# --- two neighbouring tables -------------------------------------------------------------------

TINY = bf.Domain(a=bf.Boolean(), b=bf.Boolean(), c=bf.Boolean())
TINY_AXES = axes_of(TINY)


def tiny(count: int = 40) -> Any:
    stream = np.random.default_rng(11)
    a = stream.integers(0, 2, count)
    return np.column_stack((a, (a + (stream.random(count) < 0.2)) % 2, stream.integers(0, 2, count)))


def audited(patch: pytest.MonkeyPatch, *, runs: int = 5, joint: bool = True) -> tuple[float, float]:
    """The largest loss of a whole synthesis, and of one choice beyond what it was to lose; exact, on
    transcripts.

    The ε is large, so that few rows are measured in rounds.
    """
    policy = bf.Policy.by_column(TINY, {}, joint=joint)
    patch.setattr("blowfishdb.mechanisms.synthesis.plan.ENOUGH", 0)
    plan = SynthesisPlan.under([policy], TINY_AXES, rows=40, epsilon=4)
    rows = tiny()
    if joint:
        others = neighbours(rows, lambda row: [1 - row, np.array([1 - row[0], row[1], row[2]])])
    else:
        others = neighbours(rows, lambda row: [np.where(np.arange(3) == at, 1 - row, row) for at in range(3)])
    whole, choosing = 0.0, -math.inf
    for seed in range(runs):
        found = made(plan, rows, seed)
        here = likelihood(plan, found, rows, patch)
        for other in others:
            there = likelihood(plan, found, other, patch)
            whole = max(whole, abs(sum(here.parts) - sum(there.parts)))
            for mine, theirs, choice in zip(here.laws, there.laws, found.choices, strict=True):
                choosing = max(choosing, float(np.abs(mine - theirs).max()) - choice.nano / NANO)
    return whole, choosing


@pytest.mark.parametrize("joint", [True, False])
def test_neighbours_are_told_apart_no_better_than_was_paid(
    monkeypatch: pytest.MonkeyPatch, joint: bool
) -> None:
    whole, choosing = audited(monkeypatch, joint=joint)
    assert 0.8 < whole <= 4 + 1e-9
    assert choosing <= 1e-9


def test_too_little_noise_on_scores_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "selection_scale", lambda nano, weight=1: Fraction(weight * NANO, nano))
    _, choosing = audited(monkeypatch)
    assert choosing > 0.05


def test_an_end_that_reads_true_scores_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that end when the best score is small: the same transcript ends elsewhere for a neighbour."""
    seen: list[int] = []
    chosen, left = measuring._Measuring._chosen, measuring._Measuring._left

    def watched(self: Any, pairs: Any, rows: Any, true: Any, *more: Any) -> Group:
        seen[:] = [max(int(np.abs(t - self.layout.tabulated(rows, p)).sum()) // 2 for p, t in true.items())]
        return chosen(self, pairs, rows, true, *more)

    def ended(self: Any) -> list[Fraction]:
        return [Fraction(0)] if seen and seen[0] <= 9 else left(self)

    monkeypatch.setattr(measuring._Measuring, "_chosen", watched)
    monkeypatch.setattr(measuring._Measuring, "_left", ended)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        audited(monkeypatch)


def test_a_number_of_rows_that_is_hidden_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where presence is hidden it is refused; without the refusal it would tell how many rows there are."""
    hidden = bf.Policy(TINY, bf.Policy.by_column(TINY, {}).graph.hide_presence())
    with pytest.raises(NotProven):
        SynthesisPlan.under([hidden], TINY_AXES, rows=40, epsilon=4)
    monkeypatch.setattr(moving, "check_proven", lambda policy: None)
    plan = SynthesisPlan.under([hidden], TINY_AXES, rows=40, epsilon=4)
    found = made(plan, tiny())
    assert total_loss(kernels(plan.layout, found.tables, found.choices, 1), hidden).loss == math.inf


def test_scores_that_read_a_hidden_number_of_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the refusal, model tables of as many rows as there are differ when one is gone: the same
    transcript is impossible then, or a choice in it loses more than it pays."""
    hidden = bf.Policy(TINY, bf.Policy.by_column(TINY, {}).graph.hide_presence())
    monkeypatch.setattr(moving, "check_proven", lambda policy: None)
    monkeypatch.setattr("blowfishdb.mechanisms.synthesis.plan.ENOUGH", 0)
    whole, less = (SynthesisPlan.under([hidden], TINY_AXES, rows=n, epsilon=4) for n in (40, 39))
    found = made(whole, tiny(), seed=2)
    here, there = (
        likelihood(whole, found, tiny(), monkeypatch),
        likelihood(less, found, tiny()[1:], monkeypatch),
    )
    lost = [np.abs(one - other).max() for one, other in zip(here.laws, there.laws, strict=True)]
    assert any(more > choice.nano / NANO + 0.1 for more, choice in zip(lost, found.choices, strict=True))
    with pytest.raises(AssertionError):
        likelihood(less, made(whole, tiny(), seed=0), tiny()[1:], monkeypatch)
