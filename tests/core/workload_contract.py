"""What every workload has to do: a new kind of workload is right if it passes ``check_workload``."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.workloads import Workload


def check_workload(workload: Workload, matrix: np.ndarray, rng: np.random.Generator) -> None:
    """``matrix`` has a row for every question and a column for every cell: the definition, written out."""
    assert (len(workload), workload.size) == matrix.shape
    written = workload.matrix()
    assert all(Fraction(a) == b for a, b in zip(written.flat, matrix.flat, strict=True))
    scaled = matrix * workload.denominator
    assert (workload.sparse().toarray() == scaled).all()
    x = rng.integers(0, 50, size=(3, workload.size))
    y = rng.integers(-5, 6, size=(2, workload.count))
    for row in range(3):
        assert list(workload.answer(x)[row]) == pytest.approx(list((matrix @ x[row]).astype(float)))
    for row in range(2):
        assert list(workload.transpose(y)[row]) == pytest.approx(list((matrix.T @ y[row]).astype(float)))
    assert (workload.gram() == scaled.T @ scaled).all()
    cells = np.arange(workload.size)
    assert (workload.norms(cells) == abs(scaled).sum(axis=0)).all()
    assert workload.largest_norm == abs(scaled).sum(axis=0).max()
    u, v = (grid.ravel() for grid in np.meshgrid(cells, cells))
    moves = abs(scaled[:, u] - scaled[:, v]).sum(axis=0)
    assert (workload.moves(u, v) == moves).all()
    for reach in range(workload.size):
        most = workload.within_reach(reach)
        assert most is None or most == moves[abs(u - v) <= reach].max()
    assert not workload.binary or np.isin(matrix, (0, 1)).all()
    assert workload.describe()
    _check_structure(workload, matrix)
    _check_merged(workload, rng)


def _check_structure(workload: Workload, matrix: np.ndarray) -> None:
    """What a workload says of its structure is so; it may say nothing."""
    size = workload.size
    cells = np.arange(size)
    assert not workload.axes or np.prod(workload.axes) == size
    assert not workload.one_per_cell or (matrix == np.eye(size)).all()
    assert not workload.prefixes or (matrix == (cells <= cells[:, None])).all()
    first, last = np.triu_indices(size)
    if workload.every_range:
        assert (matrix == ((first[:, None] <= cells) & (cells <= last[:, None]))).all()
    ends = workload.intervals()
    if ends is not None:
        assert (matrix == ((ends[0][:, None] <= cells) & (cells < ends[1][:, None]))).all()
    if workload.factors:
        product = np.ones((1, 1), dtype=object)
        for factor in workload.factors:
            product = np.kron(product, factor.matrix())
        assert (product == matrix).all()


def _check_merged(workload: Workload, rng: np.random.Generator) -> None:
    """Cells that no question tells apart may be counted together."""
    bins, merged = workload.cells(), workload.merged()
    assert merged.size == bins.count or merged is workload
    x = rng.integers(0, 50, size=workload.size)
    if merged is not workload:
        onto = np.bincount(bins.assignment(), weights=x, minlength=bins.count).astype(np.int64)
        assert list(merged.answer(onto)) == pytest.approx(list(workload.answer(x)))
