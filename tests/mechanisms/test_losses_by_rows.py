"""What releases lost together, against every two neighbouring rows: dropped values, presence, people."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.bins import Bins, single_cells
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.graphs import Explicit, Full, Partitioned, PolicyGraph, Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.workloads import Cumulative, Histogram, Workload
from blowfishdb.mechanisms import Laplace
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Tightest, kernel_of
from blowfishdb.mechanisms.reuse.stored import rows_of
from blowfishdb.mechanisms.total_loss import known_rows, pairwise_losses, total_loss
from tests.neighbouring_rows import most_lost


def asked(policy: Policy, column: str, workload: Workload, epsilon: str, rows_per_person: int = 1) -> Kernel:
    """A question about one column, priced as the service prices it."""
    from blowfishdb.core.graphs import Apex, Cone

    axis = Axis(column, policy.domain[column], single_cells(policy.domain[column].size))
    graph = policy.project({column: axis.bins})
    if axis.attribute.may_drop and not graph.absent:
        graph = Cone(graph, Apex.OUTSIDE)
    plan = Laplace(on="workload").plan(workload, graph)
    return kernel_of(plan, Epsilon(epsilon), (axis,), policy, rows_per_person)


def rows_in(kernels: list[Kernel]) -> list[ByRows]:
    return [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]


def test_a_row_outside_one_column_still_counts_in_another() -> None:
    domain = Domain(a=Integer(0, 4, outside="drop"), b=Category(["x", "y", "z"]))
    policy = Policy.by_column(domain, {"a": Threshold(5, 1)})
    kernels = [asked(policy, "a", Cumulative(5), "0.5"), asked(policy, "b", Histogram(3), "0.5")]
    assert total_loss(kernels, policy).loss == most_lost(rows_in(kernels), policy) == 1


def test_a_public_and_a_hidden_category_that_both_drop_rows() -> None:
    domain = Domain(a=Category(["x", "y"], outside="drop"), b=Category(["u", "v"], outside="drop"))
    policy = Policy.by_column(domain, {"a": Explicit(2, ())})
    kernels = [asked(policy, name, Histogram(2), "1") for name in "ab"]
    assert total_loss(kernels, policy).loss == most_lost(rows_in(kernels), policy) == 2


@pytest.mark.parametrize("joint", [True, False])
def test_without_edges_a_dropped_row_still_comes_and_goes(joint: bool) -> None:
    domain = Domain(a=Integer(0, 2, outside="drop"), b=Integer(0, 2))
    policy = Policy.by_column(domain, {"a": Explicit(3, ()), "b": Explicit(3, ())}, joint=joint)
    kernel = asked(policy, "a", Histogram(3), "50")
    assert total_loss([kernel], policy).loss == most_lost(rows_in([kernel]), policy) == 50
    assert ByDistance(policy, Epsilon(50)).worst(policy) == 50
    assert total_loss([kernel, kernel], policy).loss == 100


# --- against the definition -------------------------------------------------------------------------------


def graph_of(size: int) -> st.SearchStrategy[PolicyGraph]:
    return st.one_of(
        st.just(Full(size)),
        st.integers(1, size - 1).map(lambda theta: Threshold(size, theta)),
        st.just(Partitioned(Bins.width(size, 2))),
        st.just(Explicit(size, ())),
    )


def bins_of(size: int) -> st.SearchStrategy[Bins]:
    return st.integers(1, size).map(lambda width: Bins.width(size, width))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Policy, list[ByRows]]:
    """Two or three columns, some of which drop rows; a policy of any kind; releases on some columns."""
    sizes = draw(st.lists(st.integers(2, 3), min_size=2, max_size=3))
    names = "abc"[: len(sizes)]
    attributes: dict[str, Attribute] = {
        name: Integer(0, size - 1, outside=draw(st.sampled_from(("clamp", "drop"))))
        for name, size in zip(names, sizes, strict=True)
    }
    domain = Domain(**attributes)
    graphs = {name: draw(graph_of(domain[name].size)) for name in names}
    policy = Policy.by_column(domain, graphs, joint=draw(st.booleans()), hide_presence=draw(st.booleans()))
    releases = [draw(release(domain)) for _ in range(draw(st.integers(1, 3)))]
    return policy, releases


@st.composite
def release(draw: st.DrawFn, domain: Domain) -> ByRows:
    columns = draw(st.lists(st.sampled_from(domain.names), max_size=2, unique=True))
    kept = [name for name in domain.names if name in columns]
    axes = tuple(Axis(name, domain[name], draw(bins_of(domain[name].size))) for name in kept)
    boxes = math.prod(axis.bins.count for axis in axes)
    count = draw(st.integers(1, 3))
    matrix = [draw(st.lists(st.integers(-1, 2), min_size=boxes, max_size=boxes)) for _ in range(count)]
    scales = draw(st.lists(st.sampled_from((0, 1, 2, Fraction(7, 2), 5)), min_size=count, max_size=count))
    rows = rows_of(csr_array(np.array(matrix, dtype=np.int64)))
    rows_per_person = draw(st.integers(1, 3))
    return ByRows(axes, rows, tuple(map(Fraction, scales)), np.arange(count), rows_per_person)


@settings(max_examples=4 * settings().max_examples, deadline=None)
@given(worlds())
def test_the_loss_of_several_releases_is_that_of_their_worst_neighbours(
    world: tuple[Policy, list[ByRows]],
) -> None:
    policy, releases = world
    assert total_loss(releases, policy).loss == most_lost(releases, policy)
    for one in releases:
        assert one.worst(policy) == most_lost([one], policy)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(worlds(), st.data())
def test_losses_of_pairs_tell_what_releases_lose_at_any_noise(
    world: tuple[Policy, list[ByRows]], data: st.DataObject
) -> None:
    """What is searched by before anything is charged is what is charged, however close each release is."""
    policy, releases = world
    lines = pairwise_losses(releases, policy)
    if lines is None:
        assert any(0 in one.scales for one in releases)
        return
    nanos = [data.draw(st.integers(1, 10**9)) for _ in releases]
    made = [one.at(Epsilon.from_nano(nano)) for one, nano in zip(releases, nanos, strict=True)]
    lost = float(most_lost(made, policy))
    assert (lines @ (np.array(nanos) / 10**9)).max(initial=0.0) == pytest.approx(lost, rel=1e-6, abs=1e-9)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(worlds(), st.data())
def test_an_upper_bound_by_distance_holds_between_all_neighbours(
    world: tuple[Policy, list[ByRows]], data: st.DataObject
) -> None:
    """Any release that loses at most ε under the policy of its day, priced under another one."""
    old, releases = world
    graphs = {name: data.draw(graph_of(old.domain[name].size)) for name in old.domain.names}
    presence = data.draw(st.booleans())
    new = Policy.by_column(old.domain, graphs, joint=data.draw(st.booleans()), hide_presence=presence)
    for one in releases:
        before = most_lost([one], old)
        if math.isinf(before):
            continue
        bound = ByDistance(old, Epsilon.from_nano(math.ceil(before * 10**9)))
        assert bound.worst(new) >= most_lost([one], new)
        assert Tightest((one, bound)).worst(new) == most_lost([one], new)
