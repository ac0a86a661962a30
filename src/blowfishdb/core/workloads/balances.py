"""Balances along a line: how many more rows lie up to each cell than a share of all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.workloads.base import Numbers, Workload, check_cells, vector


@final
@dataclass(frozen=True, eq=False)
class Balances(Workload):
    """For every share q and every cell, the rows up to it less q of all rows: zero at the quantile.

    A row that comes or goes changes it by q or by 1 − q, where it changes a curve and its end by one.

    >>> from fractions import Fraction
    >>> bf.workloads.Balances(3, (Fraction(1, 2),)).answer([4, 0, 2])
    array([1., 1., 3.])
    """

    size: int
    shares: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        check_cells(self.size)
        if not self.shares or not all(isinstance(q, Fraction) and 0 < q < 1 for q in self.shares):
            raise InvalidWorkload("Balances are about shares between 0 and 1, as fractions.")

    @property
    def count(self) -> int:
        return self.size * len(self.shares)

    @property
    def denominator(self) -> int:
        return math.lcm(*(share.denominator for share in self.shares))

    @property
    def binary(self) -> bool:
        return False

    @cached_property
    def _taken(self) -> IntArray:
        """q·denominator of every share."""
        return np.array([int(share * self.denominator) for share in self.shares], dtype=np.int64)

    def of_curve(self, curve: Numbers) -> FloatArray:
        """The answers from the counts up to each cell, along the last axis."""
        shares = self._taken / self.denominator
        each = curve[..., None, :] - shares[:, None] * curve[..., None, -1:]
        return np.asarray(each.reshape(*curve.shape[:-1], self.count), dtype=np.float64)

    def answer(self, x: ArrayLike) -> Numbers:
        curve = np.cumsum(vector(x, self.size), axis=-1)
        each = self.denominator * curve[..., None, :] - self._taken[:, None] * curve[..., None, -1:]
        return np.asarray(each.reshape(*curve.shape[:-1], self.count) / self.denominator)

    def transpose(self, y: ArrayLike) -> Numbers:
        each = vector(y, self.count).reshape(*np.shape(y)[:-1], len(self.shares), self.size)
        later = np.flip(np.cumsum(np.flip(each, axis=-1), axis=-1), axis=-1)
        taken = self._taken[:, None] / self.denominator * each.sum(axis=-1, keepdims=True)
        return np.asarray((later - taken).sum(axis=-2))

    def sparse(self) -> scipy.sparse.csr_array:
        up_to = np.tril(np.ones((self.size, self.size), dtype=np.int64)) * self.denominator
        return scipy.sparse.csr_array(np.concatenate([up_to - taken for taken in self._taken]))

    def describe(self) -> str:
        listed = ", ".join(map(str, self.shares))
        return f"rows up to each of {self.size:,} cells beyond {listed} of all"

    def norms(self, cells: ArrayLike) -> Numbers:
        before = np.asarray(cells, dtype=np.int64)[..., None]
        after = self.size - before
        return np.asarray((before * self._taken + after * (self.denominator - self._taken)).sum(axis=-1))

    def moves(self, u: ArrayLike, v: ArrayLike) -> Numbers:
        return np.abs(np.subtract(u, v)) * self.denominator * len(self.shares)

    @property
    def largest_norm(self) -> int:
        return int(self.norms(np.array([0, self.size - 1])).max())

    def within_reach(self, reach: int) -> int:
        return reach * self.denominator * len(self.shares)

    @property
    def grows_with_distance(self) -> bool:
        return True
