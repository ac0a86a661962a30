"""From accuracy to ε: the golden numbers, and the exact discrete tail at whole and fractional α."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from blowfishdb.core.accuracy import (
    Accuracy,
    check_alpha,
    check_beta,
    failure,
    independent_alpha,
    independent_epsilon,
    order_statistic,
)
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible, InvalidAlpha, InvalidBeta
from blowfishdb.mechanisms.linear.law import discretisation, quantile_bound, tail_bound


def continuous_epsilon(sensitivity: float, answers: int, accuracy: Accuracy) -> float:
    """S·ln(1/(1−(1−β)^{1/L}))/α: the textbook formula, an upper bound for whole α only."""
    return sensitivity * -math.log(-math.expm1(math.log1p(-accuracy.beta) / answers)) / accuracy.alpha


@pytest.mark.parametrize(
    ("sensitivity", "answers", "alpha", "beta", "expected"),
    [(2, 10, 10, 0.05, 1.055069), (1, 63, 20, 0.05, 0.355687), (1, 1023, 100, 5e-4, 0.145311)],
)
def test_the_continuous_formula(
    sensitivity: int, answers: int, alpha: float, beta: float, expected: float
) -> None:
    accuracy = Accuracy(alpha, beta)
    assert continuous_epsilon(sensitivity, answers, accuracy) == pytest.approx(expected, abs=5e-7)
    exact = independent_epsilon(np.full(answers, float(sensitivity)), accuracy)
    assert float(exact) <= expected  # for whole α the continuous formula is an upper bound


def test_the_continuous_formula_is_unsound_for_fractional_alpha() -> None:
    accuracy = Accuracy(2.9, 0.05)
    textbook = Epsilon(continuous_epsilon(1, 10, accuracy))
    assert failure(np.ones(10), 2, textbook, simultaneous=True) == pytest.approx(0.071, abs=5e-4)
    ours = independent_epsilon(np.ones(10), accuracy)
    assert failure(np.ones(10), 2, ours, simultaneous=True) <= 0.05


@given(
    st.lists(st.floats(0.1, 50), min_size=1, max_size=30),
    st.floats(0.3, 500),
    st.floats(1e-6, 0.9),
    st.booleans(),
)
def test_the_least_epsilon_is_enough_and_nothing_less_is(
    scales: list[float], alpha: float, beta: float, simultaneous: bool
) -> None:
    unit = np.array(scales)
    epsilon = independent_epsilon(unit, Accuracy(alpha, beta, simultaneous))
    assert failure(unit, math.floor(alpha), epsilon, simultaneous=simultaneous) <= beta
    if epsilon.nano > 1:
        less = Epsilon.from_nano(epsilon.nano - 1)
        below = failure(unit, math.floor(alpha), less, simultaneous=simultaneous)
        assert below > beta * (1 - 1e-9)
    assert independent_alpha(unit, epsilon, beta, simultaneous=simultaneous) <= math.floor(alpha)


@given(st.floats(0.01, 5), st.floats(1e-4, 0.5))
def test_alpha_is_the_least_whole_number(epsilon: float, beta: float) -> None:
    unit = np.full(7, 3.0)
    alpha = independent_alpha(unit, Epsilon(epsilon), beta)
    assert failure(unit, alpha, Epsilon(epsilon), simultaneous=True) <= beta
    assert alpha == 0 or failure(unit, alpha - 1, Epsilon(epsilon), simultaneous=True) > beta * (1 - 1e-9)


@pytest.mark.parametrize(
    ("samples", "beta", "gamma", "rank"),
    [(10**4, 0.05, 1e-6, 9601), (10**5, 0.05, 1e-9, 95409), (59, 0.05, 0.05, 59), (58, 0.05, 0.05, None)],
)
def test_the_conservative_order_statistic(samples: int, beta: float, gamma: float, rank: int | None) -> None:
    assert order_statistic(samples, beta, gamma) == rank


def test_no_noise_costs_nothing() -> None:
    assert independent_epsilon(np.array([]), Accuracy(1, 0.05)) == Epsilon(0)
    assert independent_alpha(np.array([]), Epsilon(1), 0.05) == 0


def test_what_cannot_be_reached_is_said() -> None:
    with pytest.raises(Infeasible, match="larger error"):
        independent_epsilon(np.array([1e9]), Accuracy(0.5, 1e-12))


@pytest.mark.parametrize("alpha", [0, -1, math.nan, math.inf, True, "5", None])
def test_alpha_must_be_a_positive_number(alpha: object) -> None:
    with pytest.raises(InvalidAlpha, match="positive"):
        check_alpha(alpha)


@pytest.mark.parametrize("beta", [0, 1, -0.1, 1.5, math.nan, True, "0.05"])
def test_beta_must_be_a_probability(beta: object) -> None:
    with pytest.raises(InvalidBeta, match="between 0 and 1"):
        check_beta(beta)


def test_equal_scales_may_be_counted() -> None:
    scales = np.array([2.0, 2.0, 5.0])
    listed = failure(scales, 9, Epsilon(1), simultaneous=True)
    counted = failure(np.array([2.0, 5.0]), 9, Epsilon(1), simultaneous=True, times=np.array([2, 1]))
    assert counted == pytest.approx(listed, rel=1e-12)


# --- tails of sums --------------------------------------------------------------------------------


@pytest.mark.parametrize("terms", [1, 2, 5, 40])
@pytest.mark.parametrize("x", [1.5, 2.5, 4.0])
def test_the_tail_bound_holds_for_equal_terms_and_is_nearly_tight(terms: int, x: float) -> None:
    """A mean of exponentials is gamma: integrate the normal tail over it."""
    variance = stats.gamma(terms, scale=1 / terms)
    exact = integrate.quad(lambda v: 2 * stats.norm.sf(x / math.sqrt(v)) * variance.pdf(v), 0, 60, limit=400)[
        0
    ]
    assert exact * (1 - 1e-6) <= tail_bound(x, terms) <= exact * (1.25 if x < 2 else 1.06)


def test_the_tail_bound_holds_for_unequal_terms() -> None:
    weights = np.sqrt(np.array([0.3, 0.25, 0.2, 0.15, 0.1]))  # shares of the variance: at most 1/3
    draws = np.random.default_rng(1).laplace(scale=math.sqrt(0.5), size=(400_000, 5)) @ weights
    for x in (2.0, 3.0, 4.0):
        rate = float((np.abs(draws) > x).mean())
        assert rate <= tail_bound(x, 3) + 3 * math.sqrt(rate / len(draws))


@given(st.floats(1e-9, 0.4), st.integers(1, 60))
def test_the_quantile_inverts_the_tail(probability: float, terms: int) -> None:
    x = quantile_bound(probability, terms)
    assert tail_bound(x, terms) <= probability
    assert tail_bound(0.999 * x, terms) > probability


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_the_rest_of_an_exponential_is_sub_gaussian_of_variance_one_sixth(scale: float) -> None:
    """ln E exp(λD) ≤ λ²/12 for D = F − F′, F the fractional part of an exponential."""
    s = 1 / scale
    for lam in (0.1, 1.0, 3.0, 10.0):
        moments = [
            integrate.quad(lambda f, t=t: s * math.exp((t - s) * f) / -math.expm1(-s), 0, 1)[0]
            for t in (lam, -lam)
        ]
        assert math.log(moments[0] * moments[1]) <= lam**2 / 12 + 1e-12


def test_discrete_noise_fails_no_more_often_than_the_bound_says() -> None:
    """Three correlated answers, noise of scale 1 and 2, α not whole."""
    rng = np.random.default_rng(3)
    transfer = rng.normal(size=(3, 6))
    scales = np.array([1.0, 1, 1, 2, 2, 2])
    pairs = np.floor(rng.standard_exponential((2, 400_000, 6)) * scales)
    discrete = np.abs((pairs[0] - pairs[1]) @ transfer.T).max(axis=1)
    continuous = np.abs((rng.laplace(size=(400_000, 6)) * scales) @ transfer.T).max(axis=1)
    for alpha in (7.3, 12.9):
        for eta in (0.2, 0.01):
            t = discretisation(float((transfer**2).sum(axis=1).max()), eta)
            rate, limit = (discrete > alpha).mean(), (continuous > alpha - t).mean() / (1 - eta)
            assert rate <= limit + 4 * math.sqrt(limit / 400_000)
