"""Workloads as operators: every shortcut equals the matrix that it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core import workloads
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    EmptyDomain,
    InvalidInput,
    InvalidWorkload,
    NotFinite,
    SizeMismatch,
    TooLarge,
)
from blowfishdb.core.graphs import Full, Product, Threshold
from blowfishdb.core.sensitivity import sensitivity
from tests.core import oracle
from tests.core.workload_contract import check_workload
from tests.seeds import seeds


def random_workload(seed: int) -> tuple[workloads.Workload, np.random.Generator]:
    rng = np.random.default_rng(seed)
    if rng.random() < 0.5:
        return oracle.line_workload(rng, int(rng.integers(1, 9))), rng
    return oracle.boxes_workload(rng, oracle.random_shape(rng)), rng


@seeds(350)
def test_every_shortcut_equals_the_matrix(seed: int) -> None:
    workload, rng = random_workload(seed)
    check_workload(workload, oracle.dense(workload), rng)


def test_answers_on_whole_numbers_stay_whole() -> None:
    x = np.array([2**53, 1, 1])
    assert workloads.Cumulative(3).answer(x).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert workloads.AllRanges(2).answer([2, 3]).tolist() == [2, 5, 3]


class TestPredicates:
    domain = Domain(age=Integer(0, 10**9), sex=Category(["f", "m"]), salary=Integer(0, 10**9))

    def test_conditions_on_a_huge_domain_need_few_cells(self) -> None:
        conditions = [col("age") >= 30, (col("age") < 40) & (col("sex") == "f"), col("age").between(35, 50)]
        workload = workloads.Predicates(self.domain, conditions)
        assert workload.size > 10**18
        assert workload.merged().size == 2 * 5
        for theta, expected in ((5, 2), (6, 3)):  # only a move from 29 to 35 crosses both limits
            policy = Product(Threshold(10**9 + 1, theta), Full(2), Full(10**9 + 1))
            assert sensitivity(workload, policy) == expected

    def test_small_domains_equal_the_matrix(self) -> None:
        domain = Domain(age=Integer(0, 9), sex=Category(["f", "m"]))
        conditions = [col("age") >= 3, (col("age") <= 6) & (col("sex") == "m"), ~(col("sex") == "f")]
        workload = workloads.Predicates(domain, conditions)
        ages, sexes = np.divmod(np.arange(20), 2)
        expected = np.stack([ages >= 3, (ages <= 6) & (sexes == 1), sexes == 1]).astype(int)
        assert (workload.matrix() == expected).all()
        x = np.arange(20)
        assert workload.answer(x).tolist() == (expected @ x).tolist()
        assert workload.transpose([1, 2, 3]).tolist() == (np.array([1, 2, 3]) @ expected).tolist()

    def test_no_condition_is_no_workload(self) -> None:
        with pytest.raises(InvalidWorkload):
            workloads.Predicates(self.domain, [])


class TestBadInput:
    @pytest.mark.parametrize("kind", [workloads.Histogram, workloads.Cumulative, workloads.AllRanges])
    def test_sizes(self, kind: type) -> None:
        with pytest.raises(EmptyDomain):
            kind(0)
        with pytest.raises(InvalidWorkload):
            kind(3.0)

    @pytest.mark.parametrize(
        ("starts", "ends"), [([2], [1]), ([0], [5]), ([-1], [2]), ([], []), ([0, 1], [2]), ([0.5], [1])]
    )
    def test_ranges(self, starts: list[int], ends: list[int]) -> None:
        with pytest.raises(InvalidWorkload):
            workloads.Ranges(5, starts, ends)

    def test_rectangles_marginals_and_products(self) -> None:
        with pytest.raises(InvalidWorkload):
            workloads.Rectangles((3, 3), [[0, 0]], [[1, 3]])
        with pytest.raises(InvalidWorkload):
            workloads.Rectangles((3, 3), [[0]], [[1]])
        with pytest.raises(InvalidWorkload):
            workloads.Marginals((3, 3), [])
        with pytest.raises(InvalidWorkload):
            workloads.Marginals((3, 3), [(2,)])
        with pytest.raises(InvalidWorkload):
            workloads.Product()

    def test_matrices_must_be_finite(self) -> None:
        with pytest.raises(NotFinite):
            workloads.Matrix([[1.0, np.nan]])
        with pytest.raises(InvalidWorkload):
            workloads.Matrix(np.zeros((0, 3)))

    def test_counts_of_another_size(self) -> None:
        with pytest.raises(SizeMismatch, match="Expected 3"):
            workloads.Cumulative(3).answer([1, 2])

    def test_writing_out_too_much_is_refused(self) -> None:
        with pytest.raises(TooLarge):
            workloads.Cumulative(10**6).matrix()
        with pytest.raises(TooLarge):
            workloads.Histogram(10**6).gram()

    @given(
        st.lists(st.lists(st.integers(-3, 5), max_size=3), max_size=3),
        st.lists(st.integers(-1, 4), max_size=3),
    )
    def test_any_marginals_are_built_or_explained(self, subsets: list[list[int]], shape: list[int]) -> None:
        try:
            workload = workloads.Marginals(shape, subsets)
        except InvalidInput as error:
            assert str(error)
        else:
            assert len(workload) >= 1
