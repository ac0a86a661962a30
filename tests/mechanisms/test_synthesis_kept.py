"""Kept rows: the same for all neighbours, drawn given, with a kernel of their own; and planted faults."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidWorkload, NotProven, TooLarge
from blowfishdb.mechanisms.synthesis import GivenRows, KeptRows, Synthesis, SynthesisPlan, kernels
from blowfishdb.mechanisms.synthesis import plan as planning
from blowfishdb.mechanisms.synthesis.tables import Kept, tells
from blowfishdb.mechanisms.total_loss import total_loss
from tests.mechanisms.synthesis_runs import Rows, axes_of, likelihood, made, neighbours

DOMAIN = bf.Domain(
    ill=bf.Boolean(),
    pay=bf.Integer(0, 3),
    sex=bf.Category(["f", "m", "x"], missing="clamp", outside="clamp"),
    age=bf.Integer(0, 5),
)
SHOWN = {"sex": bf.graphs.Explicit(3, ()), "age": bf.graphs.Explicit(6, ())}
POLICY = bf.Policy.by_column(DOMAIN, {"pay": bf.graphs.Threshold(4, 1), **SHOWN})
AXES = axes_of(DOMAIN, age=DOMAIN["age"].bins(width=2))
KEPT = ("sex", "age")


def people(count: int = 60, seed: int = 3) -> Any:
    """Rows of values."""
    stream = np.random.default_rng(seed)
    ill = stream.integers(0, 2, count)
    pay = np.clip(ill + stream.integers(0, 3, count), 0, 3)
    return np.column_stack((ill, pay, stream.integers(0, 3, count), np.clip(pay + ill, 0, 5)))


def planned(policy: bf.Policy = POLICY, epsilon: Any = 4, keep: Any = KEPT, rows: int = 60) -> SynthesisPlan:
    return SynthesisPlan.under([policy], AXES, rows=rows, epsilon=epsilon, keep=keep)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are measured in rounds too."""
    monkeypatch.setattr(planning, "ENOUGH_GIVEN", 0)


# --- neighbours ------------------------------------------------------------------------------------------


def moved(row: Any) -> list[Any]:
    """All records that a move of the policy makes of one: both hidden columns at once, nothing else."""
    ill = [0, 1]
    pay = [value for value in range(4) if abs(value - row[1]) <= 1]
    found = [np.array([a, b, row[2], row[3]]) for a, b in itertools.product(ill, pay)]
    return [other for other in found if (other != row).any()]


def worst(plan: SynthesisPlan, patch: pytest.MonkeyPatch, moves: Any = moved, runs: int = 3) -> float:
    """The largest loss over transcripts, kept rows included: no other kept rows can have come out."""
    rows, most = people(), 0.0
    for seed in range(runs):
        found = made(plan, rows, seed)
        here = sum(likelihood(plan, found, rows, patch).parts)
        for other in neighbours(rows, moves):
            if plain(made(plan, other, seed)) != plain(found):
                return math.inf
            most = max(most, abs(here - sum(likelihood(plan, found, other, patch).parts)))
    return most


def plain(found: Synthesis) -> str:
    assert found.kept is not None
    return json.dumps(found.kept.to_plain())


def test_neighbours_keep_the_same_rows_and_lose_what_was_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    assert plan.way == "in rounds" and {0, 1} == plan.hidden
    assert 0.8 < worst(plan, monkeypatch) <= 4 + 1e-9


def test_whatever_is_hidden_the_kept_rows_are_the_same() -> None:
    """Not only neighbours: any other values of hidden columns, in any order of the rows."""
    rows, plan = people(), planned()
    stream = np.random.default_rng(9)
    expected = plain(made(plan, rows))
    for _ in range(5):
        other = rows.copy()
        other[:, 0], other[:, 1] = stream.integers(0, 2, 60), stream.integers(0, 4, 60)
        assert plain(made(plan, stream.permutation(other))) == expected


def test_a_kept_column_that_has_edges_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused; without the refusal, neighbours keep other rows, and its kernel says that it is lost."""
    with pytest.raises(NotProven):
        planned(keep=("sex", "pay", "age"))
    monkeypatch.setattr(planning, "tells", lambda policy, axis: False)
    plan = planned(keep=("sex", "pay", "age"))
    assert worst(plan, monkeypatch, runs=1) == math.inf
    found = made(plan, people())
    lost = kernels(plan.layout, found.tables, found.choices, 1, plan.kept)
    assert total_loss(lost, POLICY).loss == math.inf


def test_an_edge_inside_a_bin_is_an_edge() -> None:
    """Kept values are told finer than bins: a move that crosses no border of a bin is seen all the same."""
    near = bf.Policy.by_column(
        DOMAIN, {"age": bf.graphs.Partitioned(bf.Bins.width(6, 2)), "sex": SHOWN["sex"]}
    )
    assert not any(each.cells((3,)) for each in planned(near, keep=("sex",)).every)
    with pytest.raises(NotProven):
        planned(near, keep=KEPT)


def test_rows_in_the_order_of_a_hidden_column_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database brings them in any order. Kept as they came, that order would tell hidden values."""

    def as_they_came(columns: Any, lines: Any) -> KeptRows:
        return KeptRows(columns, lines[:, :-1], lines[:, -1])

    monkeypatch.setattr(KeptRows, "of", staticmethod(as_they_came))
    assert worst(planned(), monkeypatch, runs=1) == math.inf


def test_an_earlier_promise_that_hides_a_column_counts() -> None:
    earlier = bf.Policy.differential_privacy(DOMAIN)
    with pytest.raises(NotProven):
        SynthesisPlan.under([POLICY, earlier], AXES, rows=60, epsilon=4, keep=KEPT)


def test_columns_that_leave_out_rows_are_not_kept() -> None:
    domain = bf.Domain(a=bf.Boolean(), b=bf.Integer(0, 3, outside="drop"))
    policy = bf.Policy.by_column(domain, {"b": bf.graphs.Explicit(4, ())})
    assert tells(policy, axes_of(domain)[1])
    with pytest.raises(NotProven):
        SynthesisPlan.under([policy], axes_of(domain), rows=10, epsilon=1, keep=("b",))


# --- accounting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("per_person", [1, 3])
def test_kernels_add_up_to_the_charge(joint: bool, per_person: int) -> None:
    policy = bf.Policy.by_column(DOMAIN, {"pay": bf.graphs.Threshold(4, 1), **SHOWN}, joint=joint)
    epsilon = Epsilon("0.777777777")
    plan = planned(policy, epsilon)
    found = made(plan, people())
    lost = total_loss(kernels(plan.layout, found.tables, found.choices, per_person, plan.kept), policy).loss
    assert math.ceil(lost * NANO) == per_person * epsilon.nano
    assert plan.way == ("in rounds" if joint else "all pairs")
    assert not {table.columns for table in found.tables} & {(2,), (3,), (2, 3)}


def test_the_kernel_of_kept_rows() -> None:
    kernel = Kept(AXES[2:])
    assert kernel.worst(POLICY) == 0
    assert kernel.worst(bf.Policy.differential_privacy(DOMAIN)) == math.inf
    inside = bf.Policy.by_column(DOMAIN, {**SHOWN, "age": bf.graphs.Partitioned(bf.Bins.width(6, 2))})
    assert kernel.worst(inside) == math.inf
    assert kernel.worst(bf.Policy(DOMAIN, POLICY.graph.hide_presence())) == math.inf
    assert kernel.worst(POLICY.knowing(bf.Constraints(counts=((bf.col("age") < 3, 4),)))) == math.inf
    assert kernel.worst(bf.Policy.differential_privacy(bf.Domain(ill=bf.Boolean()))) == math.inf


def test_what_cannot_be_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidWorkload):
        planned(keep=("height",))
    nothing = bf.Policy.by_column(DOMAIN, {n: bf.graphs.Explicit(DOMAIN[n].size, ()) for n in DOMAIN.names})
    with pytest.raises(InvalidWorkload):
        planned(nothing, keep=DOMAIN.names)
    with pytest.raises(InvalidWorkload):
        planned(rows=0)
    with pytest.raises(TooLarge):
        planned(rows=planning.MOST_KEPT + 1)


# --- the model ---------------------------------------------------------------------------------------------


def test_drawn_rows_have_the_kept_rows_and_hidden_values_given_them() -> None:
    rows = people(4_000)
    plan = planned(epsilon=40, rows=4_000)
    found = made(plan, rows)
    assert isinstance(found.model, GivenRows) and found.kept is not None
    bins, cells = found.model.drawn_rows(4_000, np.random.default_rng(1))
    np.testing.assert_array_equal(np.sort(cells, axis=0), np.sort(rows[:, 2:], axis=0))
    whole = [np.unique(each, axis=0, return_counts=True) for each in (cells, rows[:, 2:])]
    for mine, theirs in zip(*whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(bins[:, 2], cells[:, 0])
    np.testing.assert_array_equal(bins[:, 3], cells[:, 1] // 2)
    port = Rows.of(plan, rows)
    for pair in ((0, 3), (1, 3), (0, 1)):
        drawn = plan.layout.tabulated(bins, pair)
        assert np.abs(drawn - port.true(pair)).sum() / 2 < 0.05 * 4_000
    marginal = 4_000 * found.model.marginal((1, 3)).ravel()
    assert np.abs(marginal - port.true((1, 3))).sum() / 2 < 0.05 * 4_000


def test_the_model_given_rows_is_that_of_all_of_them() -> None:
    """With one kept column, what is drawn given it is what the model of everything has, once it is exact."""
    domain = bf.Domain(a=bf.Integer(0, 2), c=bf.Integer(0, 3))
    shown = bf.Policy.by_column(domain, {"c": bf.graphs.Explicit(4, ())})
    stream = np.random.default_rng(2)
    c = stream.integers(0, 4, 900)
    rows = np.column_stack((np.minimum(2, c // 2 + (stream.random(900) < 0.4)), c))
    marginals = []
    for keep in ((), ("c",)):
        plan = SynthesisPlan.under([shown], axes_of(domain), rows=900, epsilon=300, keep=keep)
        marginals.append(900 * made(plan, rows).model.marginal((0, 1)))
    np.testing.assert_allclose(marginals[0], marginals[1], atol=2)
    np.testing.assert_allclose(marginals[1].sum(axis=0), np.bincount(c))  # exact: these rows are kept


def test_other_numbers_of_rows_are_shares_of_the_kept_ones() -> None:
    kept = KeptRows.of((0,), np.array([[3, 10], [1, 30], [3, 20], [2, 0]]))
    assert kept.cells.tolist() == [[1], [3]] and kept.counts.tolist() == [30, 30]
    stream = np.random.default_rng(0)
    for rows in (0, 6, 61, 10_000):
        held = np.bincount(kept.picked(rows, stream), minlength=2)
        assert held.sum() == rows and abs(held[0] - rows / 2) <= 1
    assert KeptRows.from_plain(json.loads(json.dumps(kept.to_plain()))).counts.tolist() == [30, 30]


def test_pairs_that_were_not_measured_are_independent_given_the_kept_rows() -> None:
    found = made(planned(epsilon=40, keep=KEPT), people())
    assert isinstance(found.model, GivenRows)
    assert found.model.between(0, 1) == (2, 3) and found.model.between(0, 2) == ()


@pytest.mark.parametrize("largest", [0, 2**31 - 1, 2**31, 2**32 + 7, 10**12])
def test_kept_values_of_large_columns_are_read_as_they_were(largest: int) -> None:
    kept = KeptRows((0, 2), np.array([[0, 1], [3, largest]]), np.array([2, 5]))
    again = KeptRows.from_plain(json.loads(json.dumps(kept.to_plain())))
    assert again.columns == kept.columns
    assert (again.cells == kept.cells).all() and (again.counts == kept.counts).all()
