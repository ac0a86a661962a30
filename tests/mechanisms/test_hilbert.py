"""The Hilbert curve visits every cell once, one step at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfishdb.mechanisms.adaptive.tree import hilbert_order

POWERS = [1, 2, 4, 8, 32]


@pytest.mark.parametrize(("rows", "columns"), list(itertools.product(POWERS, POWERS)))
def test_powers_of_two_are_walked_in_unit_steps(rows, columns):
    order = hilbert_order(rows, columns)
    assert np.array_equal(np.sort(order), np.arange(rows * columns))
    row, column = np.divmod(order, columns)
    assert (np.abs(np.diff(row)) + np.abs(np.diff(column)) == 1).all()
    assert order[0] == 0


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (1, 7), (5, 12), (100, 3), (17, 31)])
def test_any_grid_is_visited_once(rows, columns):
    assert np.array_equal(np.sort(hilbert_order(rows, columns)), np.arange(rows * columns))


def test_a_run_of_the_curve_is_compact():
    row, column = np.divmod(hilbert_order(64, 64), 64)
    quarters = np.stack((row // 32, column // 32)).reshape(2, 4, -1)
    assert (quarters == quarters[..., :1]).all()


def test_nobody_can_change_what_others_will_use():
    with pytest.raises(ValueError, match="read-only"):
        hilbert_order(4, 4)[0] = 3
