"""Bins: every kind of partition against its written-out labels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.arrays import ceil_div, integers, whole
from blowfishdb.core.domain.bins import (
    LIMIT,
    Bins,
    EdgeBins,
    EqualBins,
    LabelBins,
    as_bins,
    single_cells,
    whole_bin,
)
from blowfishdb.core.errors import EmptyDomain, InvalidBins, SizeMismatch, TooLarge

equal = st.builds(Bins.width, st.integers(1, 30), st.integers(1, 40))


@st.composite
def with_edges(draw):
    size = draw(st.integers(1, 30))
    return Bins.edges(size, sorted({0, *draw(st.sets(st.integers(0, size - 1), max_size=6))}))


@st.composite
def label_lists(draw):
    """Labels 0 … max, each of which occurs, in any order."""
    raw = draw(st.lists(st.integers(0, 5), min_size=1, max_size=30))
    return np.unique(raw, return_inverse=True)[1].tolist()


simple = st.one_of(equal, with_edges(), label_lists().map(Bins.labels))
products = st.lists(
    st.one_of(equal, with_edges()).filter(lambda bins: bins.size <= 8), min_size=1, max_size=3
)
every_kind = st.one_of(simple, products.map(lambda factors: Bins.product(*factors)))


# --- what holds for every partition ---------------------------------------------------------------


@given(every_kind)
def test_bins_are_a_partition(bins: Bins) -> None:
    labels = bins.assignment()
    assert labels.dtype == np.int64
    assert labels.shape == (bins.size,)
    assert sorted(set(labels.tolist())) == list(range(bins.count))
    assert len(bins) == bins.count
    members = list(bins)
    assert sorted(np.concatenate(members).tolist()) == list(range(bins.size))
    for index, cells in enumerate(members):
        assert cells.dtype == np.int64
        assert (labels[cells] == index).all()
        assert int(bins.first(index)) == cells.min()
        assert int(bins.last(index)) == cells.max()


@given(every_kind)
def test_summaries_agree_with_the_labels(bins: Bins) -> None:
    labels = bins.assignment()
    sizes = np.bincount(labels)
    assert bins.sum_of_squares == int((sizes**2).sum())
    steps = np.diff(labels)
    assert bins.contiguous == bool(labels[0] == 0 and ((steps == 0) | (steps == 1)).all())
    everything = np.arange(bins.count)
    assert bins.first(everything).tolist() == [int(bins.first(i)) for i in everything]
    assert bins.last(everything).tolist() == [int(bins.last(i)) for i in everything]


@given(simple)
def test_the_last_cell_can_be_taken_off_when_it_is_alone(bins: Bins) -> None:
    labels = bins.assignment()
    rest = bins.without_last_cell()
    alone = bins.size > 1 and labels[-1] == labels.max() and (labels == labels[-1]).sum() == 1
    assert (rest is not None) == alone
    if rest is not None:
        assert rest.assignment().tolist() == labels[:-1].tolist()


@given(every_kind, st.integers())
def test_bins_that_do_not_exist_have_no_members(bins: Bins, index: int) -> None:
    if not 0 <= index < bins.count:
        with pytest.raises(InvalidBins, match="There is no bin"):
            bins.members(index)


# --- the constructors -----------------------------------------------------------------------------


@given(st.integers(-3, 50), st.integers(-3, 60))
def test_equal_widths(size: int, width: int) -> None:
    if size < 1:
        with pytest.raises(EmptyDomain):
            Bins.width(size, width)
    elif width < 1:
        with pytest.raises(InvalidBins):
            Bins.width(size, width)
    else:
        assert Bins.width(size, width).assignment().tolist() == [cell // width for cell in range(size)]


@given(st.integers(-1, 12), st.lists(st.integers(-2, 12), max_size=5))
def test_edges_begin_at_zero_and_increase(size: int, starts: list[int]) -> None:
    increasing = all(one < two for one, two in itertools.pairwise(starts))
    if size >= 1 and starts[:1] == [0] and increasing and starts[-1] < size:
        labels = Bins.edges(size, starts).assignment()
        assert np.flatnonzero(np.diff(labels, prepend=-1)).tolist() == starts
        return
    with pytest.raises((InvalidBins, EmptyDomain)):
        Bins.edges(size, starts)


@given(st.lists(st.integers(-1, 4), max_size=8))
def test_labels_have_no_gaps(labels: list[int]) -> None:
    if not labels:
        with pytest.raises(EmptyDomain):
            Bins.labels(labels)
    elif set(labels) == set(range(max(labels) + 1)):
        assert Bins.labels(labels).assignment().tolist() == labels
    else:
        with pytest.raises(InvalidBins):
            Bins.labels(labels)


@given(label_lists())
def test_contiguous_labels_become_edges(labels: list[int]) -> None:
    bins = Bins.labels(labels)
    assert isinstance(bins, EdgeBins) == bins.contiguous
    if isinstance(bins, LabelBins):
        runs, values = bins.runs()
        assert runs.contiguous
        assert values[runs.assignment()].tolist() == labels
        assert (np.diff(values) != 0).all()


@given(products)
def test_products_number_boxes_with_the_last_factor_fastest(factors: list[Bins]) -> None:
    bins = Bins.product(*factors)
    assert bins.size == math.prod(factor.size for factor in factors)
    assert bins.count == math.prod(factor.count for factor in factors)
    expected = np.zeros(1, dtype=np.int64)
    for factor in factors:
        expected = (expected[:, None] * factor.count + factor.assignment()).ravel()
    assert bins.assignment().tolist() == expected.tolist()


def test_bins_that_are_not_numbers_are_refused() -> None:
    for size, width in (("3", 1), (3.0, 1), (True, 1), (3, "1"), (3, 1.5), (None, 1)):
        with pytest.raises(InvalidBins, match="whole number"):
            Bins.width(size, width)  # type: ignore[arg-type]
    for values in ([0.5], ["a"], [None], [True], [2**63]):
        with pytest.raises(InvalidBins):
            Bins.labels(values)
        with pytest.raises(InvalidBins):
            Bins.edges(5, values)
    with pytest.raises(EmptyDomain):
        Bins.product()


# --- sizes ----------------------------------------------------------------------------------------


def test_many_cells_cost_nothing() -> None:
    bins = Bins.width(10**18, 10**6)
    assert bins.count == 10**12
    assert bins.assign([0, 10**18 - 1]).tolist() == [0, 10**12 - 1]
    assert bins.last([10**12 - 1]).tolist() == [10**18 - 1]
    assert bins.sum_of_squares == 10**24
    assert Bins.width(10**30, 1).count == 10**30
    assert Bins.product(*[Bins.width(10**12, 10**6)] * 5).count == 10**30
    cut = Bins.edges(10**18, [0, 5, 10**17])
    assert cut.last([0, 1, 2]).tolist() == [4, 10**17 - 1, 10**18 - 1]
    for large in (bins, cut):
        with pytest.raises(TooLarge, match="above the limit"):
            large.assignment()
    with pytest.raises(TooLarge):
        Bins.width(11, 2).assignment(limit=10)
    assert LIMIT == 10**7


def test_named_partitions() -> None:
    assert whole_bin(5) == EqualBins(5, 5)
    assert whole_bin(5).count == 1
    assert single_cells(5).assignment().tolist() == [0, 1, 2, 3, 4]
    assert single_cells(10**12).count == 10**12
    for make in (whole_bin, single_cells):
        with pytest.raises((EmptyDomain, InvalidBins)):
            make(0)


@given(simple, st.integers(1, 40))
def test_bins_or_labels_of_the_right_size(bins: Bins, size: int) -> None:
    assert as_bins(bins, bins.size) is bins
    assert as_bins(bins.assignment(), bins.size).assignment().tolist() == bins.assignment().tolist()
    if size != bins.size:
        with pytest.raises(SizeMismatch):
            as_bins(bins, size)


# --- arrays of whole numbers ----------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_copied_and_read_only(values: list[int]) -> None:
    array = integers(values, "Values", InvalidBins)
    assert array.tolist() == values
    assert array.dtype == np.int64
    assert not array.flags.writeable
    source = np.array([1, 2, 3])
    assert not np.shares_memory(integers(source, "Values", InvalidBins), source)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "u8"])
def test_integers_of_every_width(dtype: str) -> None:
    assert integers(np.array([0, 100], dtype=dtype), "Values", InvalidBins).tolist() == [0, 100]


def test_other_arrays_are_refused() -> None:
    for values in ([0.0], ["1"], [True], [None], np.array([2**63], dtype=np.uint64), [10**30]):
        with pytest.raises(InvalidBins, match="Values"):
            integers(values, "Values", InvalidBins)
    for value in (1.0, "1", None, True, np.bool_(True), np.float64(1)):
        with pytest.raises(InvalidBins, match="A thing must be a whole number"):
            whole(value, "A thing", InvalidBins)
    assert type(whole(np.int8(3), "A thing", InvalidBins)) is int


@given(st.integers(), st.integers(1))
def test_ceil_div(numerator: int, denominator: int) -> None:
    result = ceil_div(numerator, denominator)
    assert (result - 1) * denominator < numerator <= result * denominator
