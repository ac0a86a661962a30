"""Epsilon: exact, rounded against the analyst, and refusing everything that is not a privacy loss."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.budget import NANO, Epsilon, positive
from blowfishdb.core.errors import InvalidEpsilon

nanos = st.integers(0, 10**15)
amounts = st.one_of(
    st.integers(0, 10**6),
    st.fractions(0, 10**6),
    st.decimals(0, 10**6),
    st.floats(0, 1e6),
    st.floats(0, 1e6).map(repr),
)


def exact(value: object) -> Fraction:
    return Fraction(Decimal(repr(value))) if isinstance(value, float) else Fraction(value)  # type: ignore[arg-type]


# --- construction and rounding --------------------------------------------------------------------


@given(amounts)
def test_what_is_allowed_rounds_down(value: object) -> None:
    epsilon = Epsilon(value)  # type: ignore[arg-type]
    assert epsilon.nano == math.floor(exact(value) * NANO)
    assert epsilon.fraction <= exact(value) < epsilon.fraction + Fraction(1, NANO)


@given(amounts)
def test_what_is_needed_rounds_up(value: object) -> None:
    epsilon = Epsilon.at_least(value)  # type: ignore[arg-type]
    assert epsilon.fraction >= exact(value)
    margin = exact(value) / 2**40 if isinstance(value, float) else 0
    assert epsilon.fraction < exact(value) + margin + Fraction(1, NANO)


@given(nanos)
def test_whole_nanos_survive_every_way_in_and_out(nano: int) -> None:
    epsilon = Epsilon.from_nano(nano)
    assert epsilon.nano == nano
    assert Epsilon(str(epsilon)) == Epsilon(epsilon) == Epsilon(epsilon.fraction) == epsilon
    assert Epsilon(Decimal(str(epsilon))) == epsilon
    assert Epsilon.at_least(epsilon) == Epsilon.at_least(str(epsilon)) == epsilon
    assert pickle.loads(pickle.dumps(epsilon)) == copy.deepcopy(epsilon) == epsilon
    assert hash(Epsilon(str(epsilon))) == hash(epsilon)
    assert eval(repr(epsilon)) == epsilon
    assert "e" not in str(epsilon).lower()
    assert float(epsilon) == nano / NANO


def test_decimal_text_is_exact() -> None:
    assert Epsilon("0.1") + Epsilon("0.2") == Epsilon("0.3")
    assert Epsilon(0.1) + Epsilon(0.2) == Epsilon(0.3)
    assert Epsilon(0.1).nano == 100_000_000
    assert Epsilon(Fraction(1, 3)).nano == 333_333_333
    assert Epsilon.at_least(Fraction(1, 3)).nano == 333_333_334
    assert Epsilon.at_least(0.1) > Epsilon(0.1)  # a computed float gets a margin
    assert [str(Epsilon(value)) for value in ("0", "1", "10", "0.118", "1e-9", "0.50")] == [
        "0", "1", "10", "0.118", "0.000000001", "0.5",
    ]  # fmt: skip
    assert repr(Epsilon("0.118")) == "Epsilon('0.118')"
    assert f"{Epsilon('0.118')} {Epsilon('0.118'):.2f}" == "0.118 0.12"


@pytest.mark.parametrize(
    "wrong",
    [None, True, [1], 1j, b"1", object(), "", "x", "1,5", "nan", "inf", math.nan, math.inf, -math.inf,
     Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), -1, -0.5, "-1e-9", Fraction(-1, 10**12)],
)  # fmt: skip
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidEpsilon):
        Epsilon(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidEpsilon):
        positive(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [1.0, "1", None, True, -1, Fraction(1)])
def test_stored_amounts_are_whole(wrong: object) -> None:
    with pytest.raises(InvalidEpsilon):
        Epsilon.from_nano(wrong)  # type: ignore[arg-type]


@given(amounts)
def test_only_a_billionth_can_be_spent(value: object) -> None:
    if exact(value) * NANO >= 1:
        assert positive(value) == Epsilon(value)  # type: ignore[arg-type]
    else:
        with pytest.raises(InvalidEpsilon, match="too small"):
            positive(value)  # type: ignore[arg-type]


def test_epsilon_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Epsilon(1).nano = 2  # type: ignore[misc]


# --- arithmetic -----------------------------------------------------------------------------------


@given(nanos, nanos, st.integers(0, 1000))
def test_arithmetic_is_that_of_whole_numbers(one: int, two: int, times: int) -> None:
    a, b = Epsilon.from_nano(one), Epsilon.from_nano(two)
    assert (a + b).nano == one + two
    assert (a * times).nano == (times * a).nano == one * times
    assert [a < b, a <= b, a > b, a >= b, a == b, a != b] == [
        one < two, one <= two, one > two, one >= two, one == two, one != two,
    ]  # fmt: skip
    assert bool(a) == (one > 0)
    if one >= two:
        assert (a - b).nano == one - two
    else:
        with pytest.raises(InvalidEpsilon, match="negative"):
            a - b
    if two:
        assert a // b == one // two
    assert sorted([b, a]) == [Epsilon.from_nano(n) for n in sorted([one, two])]


def test_a_budget_is_met_exactly() -> None:
    budget, charge = Epsilon("0.3"), Epsilon("0.1")
    assert budget // charge == 3
    assert charge + charge + charge <= budget
    assert not charge * 3 + Epsilon.from_nano(1) <= budget


@pytest.mark.parametrize("times", [0.5, -1, "2", Fraction(1, 2)])
def test_only_whole_multiples(times: object) -> None:
    with pytest.raises((InvalidEpsilon, TypeError)):
        Epsilon.from_nano(3) * times  # type: ignore[operator]


def test_epsilon_is_no_other_number() -> None:
    assert Epsilon(1) != 1
    assert Epsilon(1) != NANO
    assert {Epsilon(1), Epsilon("1.0")} == {Epsilon(Fraction(1))}
