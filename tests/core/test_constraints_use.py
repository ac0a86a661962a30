"""What known answers give away, how they improve noisy cells, and the averaging attack of [B14] §3.2."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core import graphs
from blowfishdb.core.constraints import Constraints, Marginal
from blowfishdb.core.constraints.determined import Determined, counted
from blowfishdb.core.constraints.known_cells import Span, free_direction, known_on_cells, rank_at_least
from blowfishdb.core.constraints.under_policy import improved_cells
from blowfishdb.core.errors import InvalidInput, NotFinite, SizeMismatch

# --- exact algebra ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_rank_and_free_direction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (int(rng.integers(1, 5)), int(rng.integers(1, 5))))
    rank = int(np.linalg.matrix_rank(rows))
    assert rank_at_least(rows) == rank
    found = free_direction(rows)
    assert (found is not None) == (rank == rows.shape[1] - 1)
    if found is not None:
        assert not (rows @ np.array(found)).any() and np.gcd.reduce(np.array(found)) == 1


def test_a_span_notices_contradictions() -> None:
    span = Span(2)
    assert span.add({0: 1, 1: 1}, 5) and span.add({0: 1, 1: -1}, 1) and span.add({0: 2}, 6)
    assert not span.add({1: 1}, 3)
    assert span.answer({1: 1}) == 2 and span.answer({0: Fraction(1, 2)}) == Fraction(3, 2)
    assert Span(2).answer({0: 1}) is None


# --- determined -------------------------------------------------------------------------------------


def test_what_follows_from_known_answers() -> None:
    known = known_on_cells(Constraints(counts=[({0, 1}, 7), ({1, 2, 3}, 9), {3}]), (4,))
    questions = bf.workloads.Matrix(
        [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, -1, -1], [0, 0, 0, 1], [2, 3, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    )
    assert Determined(known).answers(questions) == (7, None, -2, None, 23, None, 0)
    assert Determined(known, total=12).answers(questions) == (7, 5, -2, None, 23, 3, 0)
    halves = bf.workloads.Matrix([[Fraction(1, 2), Fraction(1, 2), 0, 0]])
    assert Determined(known).answers(halves) == (Fraction(7, 2),)
    with pytest.raises(SizeMismatch):
        Determined(known).answers(bf.workloads.Histogram(3))
    with pytest.raises(InvalidInput, match="contradict"):
        Determined(known_on_cells(Constraints(counts=[({0}, 1), ({0}, 2)]), (2,)))


@pytest.mark.parametrize("seed", range(30))
def test_determined_means_the_same_in_all_data_with_these_answers(seed: int) -> None:
    """Enumerate all histograms of four people; a determined question has one value, another has several."""
    rng = np.random.default_rng(seed)
    size, people = 4, 4
    sets = [sorted(set(rng.integers(0, size, 3).tolist())) for _ in range(rng.integers(1, 4))]
    truth = rng.integers(0, 3, size)
    truth[0] += max(0, people - truth.sum())
    people = int(truth.sum())
    counts = [(set(cells), int(truth[cells].sum())) for cells in sets]
    known = known_on_cells(Constraints(counts=counts), (size,))
    questions = bf.workloads.Matrix(rng.integers(-1, 2, (5, size)))
    found = Determined(known, total=people).answers(questions)
    possible = [
        x
        for x in itertools.product(range(people + 1), repeat=size)
        if sum(x) == people and all(sum(x[i] for i in cells) == answer for cells, answer in counts)
    ]
    for row, value in zip(questions.matrix(), found, strict=True):
        values = {int(row @ np.array(x)) for x in possible}
        assert value is None or values == {value}
        if len(values) > 1:
            assert value is None


def test_the_curator_learns_which_answers_are_wrong() -> None:
    known = known_on_cells(
        Constraints(counts=[({0, 1}, 3), {2}], marginals=[Marginal((0,), (), (1, 2, 4))]), (3,)
    )
    for cells, wrong in (([1, 2, 4], []), ([1, 3, 4], [(0, 1), (1, 0)])):
        found = counted(known, np.array(cells))
        rows = ((i, row) for i, answers in enumerate(known.answers) for row in range(len(answers)))
        assert [
            (i, row)
            for i, row in rows
            if known.answers[i][row] is not None and known.answers[i][row] != found[i][row]
        ] == wrong


# --- least squares ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_known_answers_never_make_cells_worse(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 6
    truth = rng.integers(0, 20, size)
    sets = [sorted(set(rng.integers(0, size, 3).tolist())) for _ in range(rng.integers(1, 4))]
    known = known_on_cells(Constraints(counts=[(set(c), int(truth[c].sum())) for c in sets]), (size,))
    determined = Determined(known, total=int(truth.sum()) if seed % 2 else None)
    variance = rng.uniform(0.5, 4, size) if seed % 3 else 2.0
    noisy = truth + rng.laplace(0, 3, size)
    better = improved_cells(noisy, variance, determined)
    weights = 1 / np.broadcast_to(variance, size)
    assert (weights * (better - truth) ** 2).sum() <= (weights * (noisy - truth) ** 2).sum() + 1e-9
    for cells in sets:
        assert better[cells].sum() == pytest.approx(truth[cells].sum())
    assert improved_cells(better, variance, determined) == pytest.approx(better)


def test_least_squares_shares_by_variance() -> None:
    known = known_on_cells(Constraints(counts=[({0, 1}, 10)]), (3,))
    assert improved_cells([4, 2, 9], [3, 1, 1], Determined(known)).tolist() == [7, 3, 9]
    assert improved_cells([4, 2, 9], [0, 0, 1], Determined(known)).tolist() == [4, 2, 9]
    silent = known_on_cells(Constraints(counts=[{0, 1}]), (3,))
    assert improved_cells([4, 2, 9], 1, Determined(silent)).tolist() == [4, 2, 9]
    with pytest.raises(NotFinite):
        improved_cells([4, 2, np.nan], 1, Determined(known))
    with pytest.raises(InvalidInput):
        improved_cells([4, 2, 9], -1, Determined(known))
    with pytest.raises(SizeMismatch):
        improved_cells([4, 2], 1, Determined(known))


def test_a_table_of_many_rows_is_used_row_by_row() -> None:
    rows = 4_000
    truth = np.arange(2 * rows) % 7
    answers = tuple(truth.reshape(rows, 2).sum(axis=1).tolist())
    table = Constraints(marginals=[Marginal((0,), (bf.Bins.width(2 * rows, 2),), answers)])
    noisy = truth + np.random.default_rng(1).laplace(0, 2, 2 * rows)
    better = improved_cells(noisy, 8.0, Determined(known_on_cells(table, (2 * rows,))))
    assert np.square(better - truth).sum() < 0.6 * np.square(noisy - truth).sum()
    assert better.reshape(rows, 2).sum(axis=1) == pytest.approx(answers)


# --- the averaging attack -----------------------------------------------------------------------------

K, EPSILON = 64, 1


def attack(noisy: np.ndarray, sums: np.ndarray) -> float:
    """k estimates of the first count, one from each noisy count and the known pair sums, averaged ([B14]
    §3.2).
    """
    estimates, offset, sign = [float(noisy[0])], 0, 1
    for noise, known in zip(noisy[1:], sums, strict=True):
        offset, sign = offset + sign * int(known), -sign
        estimates.append(float(offset + sign * int(noise)))
    return float(np.mean(estimates))


def errors_of_the_attack(scale: int, rounds: int) -> np.ndarray:
    truth = np.random.default_rng(7).integers(0, 100, K)
    sums = truth[:-1] + truth[1:]
    noise = bf.noise.seeded(3)
    noisy = truth + noise.discrete_laplace(scale, (rounds * K,)).reshape(rounds, K)
    return np.array([attack(row, sums) - truth[0] for row in noisy])


def test_the_averaging_attack_breaks_plain_differential_privacy_and_not_ours() -> None:
    pair_sums = Constraints(counts=[{i, i + 1} for i in range(K - 1)])
    histogram = bf.workloads.Histogram(K)
    plain = int(bf.sensitivity(histogram, graphs.Full(K))) // EPSILON
    aware = int(bf.sensitivity(histogram, graphs.Full(K), pair_sums)) // EPSILON
    assert (plain, aware) == (2, K)
    broken, kept = errors_of_the_attack(plain, 400), errors_of_the_attack(aware, 400)
    assert (
        np.mean(np.abs(broken) < 0.5) > 0.75
    )  # the exact count of everyone, three times out of four and more
    assert np.mean(np.abs(kept) < 0.5) < 0.1
    assert kept.std() > 8 and broken.std() < 1


def test_the_attack_is_bounded_by_epsilon_against_ours() -> None:
    """The two databases that the pair sums leave open: the exact likelihood ratio is e^ε, and e^{ε·k/2} for
    plain.
    """
    shift = np.array([(-1) ** i for i in range(K)])
    assert not (shift[:-1] + shift[1:]).any() and shift.sum() == 0
    loss = {scale: Fraction(int(np.abs(shift).sum()), scale) for scale in (2, K)}
    assert loss[K] == EPSILON and loss[2] == K // 2
