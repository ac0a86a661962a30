"""The sampler is tested in three ways: exactly (bounds, digits, every branch driven by chosen words),
statistically (goodness of fit, with a mutant that must fail), and against OpenDP."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from blowfishdb.core import accuracy as law
from blowfishdb.core import noise as core
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch, TooLarge
from blowfishdb.core.noise import Coin, Noise, digit, exp_bounds, flip, floor_bounds
from blowfishdb.noise import seeded

SCALES: list[int | Fraction] = [
    Fraction(1, 3),
    Fraction(1, 2),
    1,
    Fraction(7, 3),
    2,
    10,
    1000,
    10**6,
    Fraction(10**9, 118_300_000),
]
SAMPLES = 200_000


class Script:
    """A source that plays back chosen 16-bit numbers and fails when it runs out."""

    def __init__(self, lanes: Iterable[int]) -> None:
        self.lanes = list(lanes)

    def words(self, count: int) -> NDArray[np.uint64]:
        assert len(self.lanes) >= 4 * count, "the script is too short"
        taken, self.lanes = self.lanes[: 4 * count], self.lanes[4 * count :]
        return np.array(taken, np.uint16).view(np.uint64)


def padded(lanes: Iterable[int]) -> list[int]:
    lanes = list(lanes)
    return lanes + [0xFFFF] * (-len(lanes) % 4)


def spelled(*exponentials: int, digits: int = 24) -> list[int]:
    """Lanes that make the first digits of the two E equal the given integers, and neither go beyond 16."""
    rows = [[0 if e >> place & 1 else 0xFFFF for e in exponentials] for place in reversed(range(digits))]
    groups = [padded(itertools.chain(*rows[i : i + 8])) for i in range(0, digits, 8)]
    return [*itertools.chain(*groups), *padded([0xFFFF] * len(exponentials))]


def fixed_point(*scales: int | Fraction) -> core._FixedPoint:
    return core._FixedPoint.of(list(scales))


# --- the coins, exactly -----------------------------------------------------------------------


def exp_minus(k: int) -> Decimal:
    return (-(Decimal(2) ** k)).exp()


@pytest.mark.parametrize("bits", [16, 64, 200])
@pytest.mark.parametrize("k", range(-70, 7))
def test_exp_bounds_enclose_the_exponential_tightly(k: int, bits: int) -> None:
    low, high = exp_bounds(k, bits)
    with localcontext(prec=120):
        assert low <= exp_minus(k) * 2**bits <= high
    assert 0 < high - low <= 2 * (bits + 2)


def test_exp_bounds_fall_as_the_exponent_grows_and_nest_as_precision_grows() -> None:
    for k in range(-20, 6):
        assert exp_bounds(k + 1, 128)[1] < exp_bounds(k, 128)[0]
        (low, high), (finer_low, finer_high) = exp_bounds(k, 64), exp_bounds(k, 256)
        assert Fraction(low, 2**64) <= Fraction(finer_low, 2**256) < Fraction(finer_high, 2**256)
        assert Fraction(finer_high, 2**256) <= Fraction(high, 2**64)


def test_exp_bounds_satisfy_the_product_identity() -> None:
    for k in range(-30, 6):
        low, high = (Fraction(bound, 2**160) for bound in exp_bounds(k, 160))
        double_low, double_high = (Fraction(bound, 2**160) for bound in exp_bounds(k + 1, 160))
        assert low * low <= double_high
        assert double_low <= high * high


@pytest.mark.parametrize("coin", [Coin(3), Coin(0), Coin(-1), Coin(-44), Coin(-90), Coin(4, bare=True)])
def test_digits_spell_the_probability(coin: Coin) -> None:
    value = sum(Fraction(int(digit(coin, level)), 2 ** (16 * (level + 1))) for level in range(12))
    with localcontext(prec=120):
        exact = exp_minus(coin.k) if coin.bare else 1 / (1 + 1 / exp_minus(coin.k))
        spelled_out = Decimal(value.numerator) / Decimal(value.denominator)
        assert 0 <= exact - spelled_out < Decimal(2) ** (-16 * 12)


def test_digits_that_need_more_precision_than_the_first_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def vague(k: int, bits: int) -> tuple[int, int]:
        asked.append(bits)
        low, high = exp_bounds(k, bits)
        return (0, 1 << bits) if bits < 100 else (low, high)

    expected = digit(Coin(-2), 0)
    monkeypatch.setattr(core, "exp_bounds", vague)
    assert digit.__wrapped__(Coin(-2), 0) == expected
    assert asked == [48, 96, 192]


@pytest.mark.parametrize("coin", [Coin(3), Coin(0), Coin(-7), Coin(4, bare=True)])
def test_a_coin_is_exact_over_all_words(coin: Coin) -> None:
    """Every first digit once: as many heads as the digit says, and one tie, which the next digit decides."""
    every = list(range(2**16))
    first, second = int(digit(coin, 0)), int(digit(coin, 1))
    for next_digit, decided in [(second - 1, 1), (second + 1, 0)]:
        heads = flip((coin,), Script(every + padded([next_digit])), 2**16)[0]
        assert heads.sum() == first + decided
    all_tie = Script([first] * 2**16 + every + padded([0xFFFF]))
    assert flip((coin,), all_tie, 2**16).sum() == second


def test_a_tie_is_followed_as_deep_as_it_goes() -> None:
    coin = Coin(-1)
    equal = [padded([int(digit(coin, level))]) for level in range(5)]
    above = padded([int(digit(coin, 5)) + 1])
    below = padded([int(digit(coin, 5)) - 1])
    assert not flip((coin,), Script(itertools.chain(*equal, above)), 1)[0, 0]
    assert flip((coin,), Script(itertools.chain(*equal, below)), 1)[0, 0]


def test_independent_digits_multiply_to_the_exponential_law() -> None:
    """P(⌊4E⌋ mod 64 = e) from the digits' coins, for every e, is (1−r)·r^e/(1−r^64) with r = e^{−1/4}."""
    with localcontext(prec=60):
        ratio = exp_minus(-2)
        for e in range(64):
            product = Decimal(1)
            for i, k in enumerate(range(3, -3, -1)):
                p = Decimal(Coin(k).bounds(180)[0]) / 2**180
                product *= p if e >> (5 - i) & 1 else 1 - p
            assert abs(product - (1 - ratio) * ratio**e / (1 - exp_minus(4))) < Decimal(10) ** -50


# --- the floor, exactly -----------------------------------------------------------------------

short_scales = st.builds(Fraction, st.integers(1, 2**40 - 1), st.integers(1, 2**40 - 1))
any_scales = st.one_of(
    short_scales,
    st.builds(Fraction, st.integers(1, 2**200), st.integers(1, 2**200)).filter(lambda b: b <= 2**56),
    st.integers(1, 2**56).map(Fraction),
)


@settings(max_examples=400, deadline=None)
@given(any_scales, st.integers(24, 48), st.integers(0, 2**48 - 1))
def test_floor_bounds_hold_for_every_exponential_with_these_digits(
    scale: Fraction, digits: int, e: int
) -> None:
    e >>= 48 - digits
    low, high = floor_bounds(np.array([e], np.uint64), digits, fixed_point(scale))
    assert low.dtype == high.dtype == np.uint64
    unit = 2 ** (digits - 4)
    assert int(low[0]) <= scale * e // unit
    assert -(-scale * (e + 1) // unit) - 1 <= int(high[0])


@pytest.mark.parametrize("digits", [24, 37, 48])
def test_floor_bounds_hold_where_every_rounding_counts(digits: int) -> None:
    """A mantissa that is cut by almost one unit, under a scale so large that a floor is eight units wide."""
    scale = (2**38 + 12_345_678_901 - Fraction(1, 2**60)) * 2**17
    e = [int(x) for x in np.random.default_rng(digits).integers(0, 2**digits, 3000)]
    low, high = floor_bounds(np.array(e, np.uint64), digits, fixed_point(scale))
    unit = 2 ** (digits - 4)
    assert all(int(bound) <= scale * x // unit for bound, x in zip(low, e, strict=True))
    assert all(int(bound) >= -(-scale * (x + 1) // unit) - 1 for bound, x in zip(high, e, strict=True))


@settings(max_examples=200, deadline=None)
@given(st.lists(short_scales, min_size=2, max_size=5))
def test_long_division_in_words_agrees_with_integers(scales: list[Fraction]) -> None:
    fixed = fixed_point(*scales)
    assert [*zip(fixed.mantissa.tolist(), fixed.shift.tolist(), strict=True)] == [
        core._divide(scale) for scale in scales
    ]
    assert fixed.mantissa.max() < 2**39


@settings(max_examples=200, deadline=None)
@given(any_scales)
def test_the_mantissa_encloses_the_scale(scale: Fraction) -> None:
    mantissa, shift = core._divide(scale)
    assert 2**37 <= mantissa < 2**39
    if shift < 63:
        assert mantissa <= scale * Fraction(2) ** (shift - 20) < mantissa + 1


def test_the_fast_path_equals_the_exact_path(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[int | Fraction] = [*SCALES, 10**9, Fraction(10**9 * 12345, 118_299_999)]
    alike = [seeded(5).discrete_laplace(scale, 2000) for scale in scales]
    mixed = seeded(5).discrete_laplace(scales * 200)

    def undecided(exponential: core.Words, _: int, __: object) -> tuple[core.Words, core.Words]:
        return np.zeros_like(exponential), np.ones_like(exponential)

    monkeypatch.setattr(core, "floor_bounds", undecided)
    for scale, fast in zip(scales, alike, strict=True):
        np.testing.assert_array_equal(fast, seeded(5).discrete_laplace(scale, 2000))
    np.testing.assert_array_equal(mixed, seeded(5).discrete_laplace(scales * 200))


# --- every branch, by chosen words ------------------------------------------------------------

ONE = 2**20  # the integer that spells E = 1 with 24 digits


def test_a_plain_sample_uses_every_word_once() -> None:
    script = Script(spelled(3 * ONE + ONE // 2, ONE + 5))
    assert Noise(script).discrete_laplace(1) == 2
    assert script.lanes == []


def test_both_signs_and_zero() -> None:
    for first, second in itertools.product(range(4), repeat=2):
        script = Script(spelled(first * ONE + 9, second * ONE + 9))
        assert Noise(script).discrete_laplace(1) == first - second


def test_a_tie_inside_a_sample() -> None:
    lanes = spelled(ONE + 9, 9)
    assert lanes[6] == 0  # the digit of weight one of the first E: fourth coin, first of two
    lanes[6] = int(digit(Coin(0), 0))
    below = padded([int(digit(Coin(0), 1)) - 1])
    above = padded([int(digit(Coin(0), 1)) + 1])
    assert Noise(Script(lanes[:16] + below + lanes[16:])).discrete_laplace(1) == 1
    assert Noise(Script(lanes[:16] + above + lanes[16:])).discrete_laplace(1) == 0


def test_an_undecided_floor_draws_digits_until_it_is_decided() -> None:
    # 3·E with E = 0.010101… in binary stays at the edge of 1 for as long as the digits alternate.
    third = (2**20 - 1) // 3
    edge, over, under = [0xFFFF, 0] * 4, [0] * 8, [0xFFFF] * 8
    start = spelled(third, 9)
    assert Noise(Script(start + edge + edge + over)).discrete_laplace(3) == 1
    assert Noise(Script(start + edge + edge + under)).discrete_laplace(3) == 0


FIRST_BEYOND = [0, 0xFFFF, 0xFFFF, 0xFFFF, *padded([0])]  # the first E passes 16 and the second does not
AGAIN, ENOUGH = padded([0]) * 2, padded([0xFFFF])  # e^{−16} begins with the digits 0 and 483


def test_further_digits_use_their_own_coins() -> None:
    # The next digit has weight 2^−21; only the second digit of its coin tells it from its neighbours'.
    coin, nearer, farther = ([int(digit(Coin(k), level)) for level in (0, 1)] for k in (-21, -20, -22))
    assert nearer[0] == coin[0] == farther[0]
    assert nearer[1] < coin[1] < farther[1]
    start = spelled((2**20 - 1) // 3, 9)
    for second, floor in [(coin[1] - 1, 1), (coin[1] + 1, 0)]:
        script = Script(start + [coin[0]] + [0xFFFF] * 7 + padded([second]))
        assert Noise(script).discrete_laplace(3) == floor


def test_an_exponential_beyond_sixteen() -> None:
    assert [int(digit(Coin(4, bare=True), level)) for level in range(2)] == [0, 483]
    start = spelled(ONE + 9, 9)[:-4] + FIRST_BEYOND
    for laps in (1, 2, 5):
        script = Script(start + AGAIN * (laps - 1) + ENOUGH)
        assert Noise(script).discrete_laplace(1) == 16 * laps + 1
        assert script.lanes == []


def test_noise_that_leaves_int64_is_an_error_not_a_wrap() -> None:
    start = spelled(9, 9, digits=48)[:-4] + FIRST_BEYOND
    undecided = [0xFFFF] * 64
    with pytest.raises(TooLarge, match="does not fit 64 bits"):
        Noise(Script(start + AGAIN * 7 + ENOUGH + undecided)).discrete_laplace(core.LARGEST_SCALE)
    largest = Noise(Script(start + AGAIN * 6 + ENOUGH + undecided)).discrete_laplace(core.LARGEST_SCALE)
    assert largest > 2**62


@pytest.mark.parametrize("scale", [10**15, Fraction(10**15 * 7 + 1, 7), core.LARGEST_SCALE])
def test_huge_scales_take_the_exact_path(scale: int | Fraction) -> None:
    z = seeded(1).discrete_laplace(scale, 1500).astype(np.float64) / float(scale)
    assert stats.kstest(z, "laplace").pvalue > 1e-4


def test_tiny_scales_give_zero() -> None:
    assert not seeded(1).discrete_laplace(Fraction(1, 10**30), 1000).any()


def test_chunks_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parts = seeded(3), seeded(3)
    monkeypatch.setattr(core, "_CHUNK", 256)
    expected = [parts.discrete_laplace(7, n) for n in (256, 256, 9)]
    np.testing.assert_array_equal(whole.discrete_laplace(7, 521), np.concatenate(expected))
    scales = np.arange(1, 522)
    whole, parts = seeded(3), seeded(3)
    expected = [parts.discrete_laplace(part) for part in np.split(scales, [256, 512])]
    np.testing.assert_array_equal(whole.discrete_laplace(scales), np.concatenate(expected))


# --- goodness of fit --------------------------------------------------------------------------


def cdf(z: NDArray[np.int64], scale: Fraction | int) -> NDArray[np.float64]:
    """P(Z ≤ z), from the tail: P(Z > z) = tail(z)/2 for z ≥ 0, and symmetry."""
    upper = np.asarray(law.tail(np.where(z >= 0, z, -z - 1), float(scale))) / 2
    return np.where(z >= 0, 1 - upper, upper)


def goodness_of_fit(samples: NDArray[np.int64], scale: Fraction | int) -> float:
    """The p-value of a chi-square test on at most sixty cells of about equal probability."""
    wanted = np.linspace(0, 1, 61)[1:-1]
    reach = int(60 * float(scale)) + 60
    grid = np.unique(np.linspace(-reach, reach, 200_001).astype(np.int64))
    edges = np.unique(grid[np.clip(np.searchsorted(cdf(grid, scale), wanted), 0, grid.size - 1)])
    expected = np.diff(np.concatenate([[0], cdf(edges, scale), [1]])) * samples.size
    observed = np.bincount(np.searchsorted(edges, samples), minlength=edges.size + 1)
    assert expected.min() > 5
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), expected.size - 1))


@pytest.mark.parametrize("scale", SCALES)
def test_samples_follow_the_law(scale: int | Fraction) -> None:
    assert goodness_of_fit(seeded(2026).discrete_laplace(scale, SAMPLES), scale) > 1e-4


@pytest.mark.parametrize("scale", SCALES)
def test_the_test_notices_a_scale_off_by_five_percent(scale: int | Fraction) -> None:
    mutant = seeded(2026).discrete_laplace(Fraction(scale) * Fraction(21, 20), SAMPLES)
    assert goodness_of_fit(mutant, scale) < 1e-6


def test_the_test_notices_a_fair_sign_on_a_geometric_variable() -> None:
    """The classical slip: a sign and a magnitude without rejecting one of the two zeros."""
    magnitude = np.random.default_rng(1).geometric(1 - np.exp(-1 / 10), SAMPLES) - 1
    sign = np.random.default_rng(2).choice([-1, 1], SAMPLES)
    assert goodness_of_fit(magnitude * sign, 10) < 1e-6


def test_consecutive_samples_are_uncorrelated() -> None:
    z = seeded(11).discrete_laplace(10, SAMPLES).astype(np.float64)
    for lag in (1, 2, 3, 4, 8):
        assert abs(np.corrcoef(z[:-lag], z[lag:])[0, 1]) < 5 / np.sqrt(SAMPLES)


def test_each_element_has_its_own_scale() -> None:
    scales = np.array([Fraction(1, 2), 3, Fraction(1000, 7), 10**5], dtype=object)
    samples = seeded(8).discrete_laplace(np.tile(scales, (50_000, 1)))
    assert samples.shape == (50_000, 4)
    for column, scale in zip(samples.T, scales, strict=True):
        assert goodness_of_fit(column, scale) > 1e-4


@pytest.mark.parametrize("scale", [1, 12, 10**6, Fraction(7, 3)])
def test_equal_scales_in_an_array_are_one_scale(scale: int | Fraction) -> None:
    expected = seeded(4).discrete_laplace(scale, 300)
    forms: list[object] = [[scale] * 300, (scale,) * 300, np.array([scale] * 300, dtype=object)]
    if isinstance(scale, int):
        forms += [np.full(300, scale), np.full(300, scale, np.uint32), [np.int64(scale)] * 300]
    for form in forms:
        np.testing.assert_array_equal(seeded(4).discrete_laplace(form), expected)  # type: ignore[call-overload]


def test_long_and_short_scales_may_be_mixed() -> None:
    mixed: list[int | Fraction] = [10**15, 1, Fraction(10**30 + 1, 10**30), Fraction(1, 10**30)]
    samples = seeded(6).discrete_laplace(mixed * 200).reshape(200, 4)
    assert np.abs(samples[:, 0]).mean() > 10**14
    assert 0.5 < np.abs(samples[:, 2]).mean() < 1.5
    assert not samples[:, 3].any()


@pytest.mark.parametrize("scale", [1, Fraction(7, 3), 40])
def test_moments_agree_with_opendp(scale: int | Fraction) -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    count = 8000
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=float(scale))([0] * count), np.float64)
    ours = seeded(17).discrete_laplace(scale, 40 * count).astype(np.float64)
    spread = float(np.sqrt(law.variance(scale)))
    assert abs(theirs.mean() - ours.mean()) < 6 * spread / np.sqrt(count)
    assert abs((theirs**2).mean() - (ours**2).mean()) < 6 * np.std(ours**2) / np.sqrt(count)
    assert abs(np.abs(theirs).mean() - np.abs(ours).mean()) < 6 * spread / np.sqrt(count)


# --- the interface ----------------------------------------------------------------------------


def test_shapes() -> None:
    noise = seeded(0)
    assert isinstance(noise.discrete_laplace(3), np.int64)
    assert noise.discrete_laplace(3, 5).shape == (5,)
    assert noise.discrete_laplace(3, (2, 0, 3)).shape == (2, 0, 3)
    assert noise.discrete_laplace(Fraction(3, 2), (2, 3)).dtype == np.int64
    assert noise.discrete_laplace([]).shape == (0,)
    assert noise.discrete_laplace([1, 2], 2).shape == (2,)
    assert noise.discrete_laplace([[1, 2, 3]], (1, 3)).shape == (1, 3)  # type: ignore[list-item]


def test_a_seed_is_reproducible_and_pinned() -> None:
    assert seeded(7).discrete_laplace(100, 6).tolist() == [403, -85, -86, -23, 13, -42]
    assert seeded(7).discrete_laplace(100, 99).tolist() != seeded(8).discrete_laplace(100, 99).tolist()


@pytest.mark.parametrize("size", [3, (2, 1), ()])
def test_a_size_that_contradicts_the_scales(size: int | tuple[int, ...]) -> None:
    with pytest.raises(SizeMismatch, match="leave the size out"):
        seeded(0).discrete_laplace([1, 2], size)


@pytest.mark.parametrize("size", [-1, (2, -1), 1.5, True, "3"])
def test_a_size_that_is_none(size: object) -> None:
    with pytest.raises(InvalidInput, match="whole number of samples"):
        seeded(0).discrete_laplace(1, size)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "scale",
    [0.5, float("nan"), float("inf"), np.float32(2), np.array(1.5), np.ones(3), [1, 2.5], [[1], [2.5]]],
)
def test_floats_are_refused_with_the_remedy(scale: object) -> None:
    with pytest.raises(InvalidScale, match="pass a Fraction"):
        seeded(0).discrete_laplace(scale)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "scale",
    [True, np.True_, np.ones(2, bool), [1, True], "1", b"1", None, Decimal(1), 1 + 0j, [[1], [2, 3]], {1: 2}],
)
def test_other_types_are_refused(scale: object) -> None:
    with pytest.raises(InvalidScale):
        seeded(0).discrete_laplace(scale)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "scale", [0, -1, Fraction(-1, 2), np.array([1, 0]), np.array([1, -3], np.int8), [1, Fraction(0)], [0]]
)
def test_scales_must_be_positive(scale: object) -> None:
    with pytest.raises(InvalidScale, match="positive"):
        seeded(0).discrete_laplace(scale)  # type: ignore[call-overload]


@pytest.mark.parametrize("scale", [2**56 + 1, Fraction(2**57 + 1, 2), Fraction(10**30, 7), [1, 10**40]])
def test_scales_whose_noise_might_leave_int64_are_refused(scale: object) -> None:
    with pytest.raises(InvalidScale, match=r"at most 2\^56"):
        seeded(0).discrete_laplace(scale)  # type: ignore[call-overload]
    with pytest.raises(InvalidScale):
        seeded(0).discrete_laplace(2**57, 0)


def test_the_sampling_file_has_no_floating_point() -> None:
    tree = ast.parse(Path(core.__file__).read_text(encoding="utf-8"))
    banned = {"float", "floating", "float16", "float32", "float64", "double", "longdouble", "complex", "inf"}
    banned |= {
        "nan",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "sqrt",
        "divide",
        "true_divide",
        "mean",
        "random",
    }
    allowed = {"__future__", "collections.abc", "dataclasses", "fractions", "functools", "math", "typing"}
    allowed |= {"numpy", "numpy.typing", "blowfishdb.core.errors"}
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Div), "true division"
        if isinstance(node, ast.Constant):
            assert not isinstance(node.value, float | complex), node.value
        if isinstance(node, ast.Name):
            assert node.id not in banned, node.id
        if isinstance(node, ast.Attribute):
            assert node.attr not in banned, node.attr
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            assert node.module in allowed, node.module
            assert not {alias.name for alias in node.names} & banned


@pytest.mark.parametrize("kind", "bhilBHIL")
def test_integer_arrays_of_every_width_stay_integers(kind: str) -> None:
    fixed = core._FixedPoint.of(np.array([1, 100], kind))
    assert fixed.mantissa.dtype == fixed.shift.dtype == np.uint64
    assert seeded(0).discrete_laplace(np.array([1, 100], kind)).dtype == np.int64


# --- the law in closed form -------------------------------------------------------------------


def test_variance_of_the_theory_note() -> None:
    assert law.variance(1) == pytest.approx(1.84135, abs=5e-6)
    assert law.variance(1 / log(2)) == pytest.approx(4)
    assert law.variance(1 / log(3)) == pytest.approx(1.5)
    assert law.variance(Fraction(1, 2)) == pytest.approx(law.variance(0.5))


@pytest.mark.parametrize("scale", ["0.001", "0.1", "1", "3.7", "1e3", "1e6", "1e12"])
def test_closed_forms_are_stable(scale: str) -> None:
    with localcontext(prec=80):
        q = (-1 / Decimal(scale)).exp()
        spread = 2 * q / (1 - q) ** 2
        point = (1 - q) / (1 + q) * q**3
        tail = 2 * q**4 / (1 + q)
        log_tail = tail.ln()
    assert law.variance(float(scale)) == pytest.approx(float(spread), rel=1e-12)
    assert law.pmf(-3, float(scale)) == pytest.approx(float(point), rel=1e-12)
    assert law.tail(3, float(scale)) == pytest.approx(float(tail), rel=1e-11)
    assert law.log_tail(3, float(scale)) == pytest.approx(float(log_tail), rel=1e-11, abs=1e-15)


def test_closed_forms_agree_with_each_other_and_broadcast() -> None:
    z = np.arange(-400, 401)
    p = np.asarray(law.pmf(z, 7.0))
    assert p.sum() == pytest.approx(1)
    assert (p * z**2).sum() == pytest.approx(law.variance(7.0))
    assert p[np.abs(z) > 12].sum() == pytest.approx(law.tail(12, 7.0))
    assert np.shape(law.tail(np.arange(3)[:, None], np.array([1.0, 2.0]))) == (3, 2)
    assert law.variance([Fraction(1, 2), 3]).shape == (2,)
    assert isinstance(law.variance(3), float)
    assert isinstance(law.tail(0, Fraction(1, 3)), float)


def test_a_log_tail_reaches_where_the_tail_underflows() -> None:
    assert law.tail(10**6, 1) == 0
    assert law.log_tail(10**6, 1) == pytest.approx(-(10**6) - 1 + log(2) - np.log1p(np.exp(-1)))
    assert law.variance(1e-6) == 0


def test_closed_forms_check_their_arguments() -> None:
    for scale in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InvalidScale):
            law.variance(scale)
    with pytest.raises(InvalidInput, match="round the bound down"):
        law.tail(2.9, 1)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="zero or more"):
        law.log_tail(-1, 1)
