"""What a line strategy measures: hats at nested strides, and ramps.

A line of k cells has k−1 unknown *cuts* p_1 … p_{k−1}, p_i the number of records in cells 0 … i−1; p_0 = 0
and p_k = n are public. Group the cuts in blocks of s: block j holds js+1 … js+s, with p_i = n for i ≥ k.

- A **hat** of stride s is the difference of the sums of two adjacent blocks. In cells it is a triangle of
  height s and base 2s; the triangles of one stride add up to the constant s. Stride 1 is the cells.
- A **ramp** of stride r and window m is the sum of the first m cuts of a block of r. In cells it is flat,
  then falls to zero over m cells; m = 1 is the sharp S node of the ordered hierarchical mechanism.

All rows are integer. A row a in cells reads a·x = Σ_i c_i p_i + a_{k−1}·n with c_i = a_{i−1} − a_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import coo_array, csr_array

from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.core.errors import InvalidWorkload, TooLarge


@dataclass(frozen=True)
class Ramp:
    """Sums of the first ``window`` cuts of every block of ``stride`` cuts."""

    stride: int
    window: int

    def __post_init__(self) -> None:
        if not 1 <= self.window <= self.stride:
            raise InvalidWorkload("A ramp's window must lie between one cut and its stride.")


@dataclass(frozen=True)
class Shape:
    """The groups of rows of a strategy, coarser groups nested in blocks of the finer ones."""

    cells: int
    hats: tuple[int, ...]
    ramp: Ramp | None = None

    def __post_init__(self) -> None:
        if self.cells < 1:
            raise InvalidWorkload("A line needs at least one cell.")
        if self.hats and self.hats[0] != 1:
            raise InvalidWorkload("The finest hats must be the cells (stride 1).")
        if any(coarse <= fine or coarse % fine for fine, coarse in pairwise(self.hats)):
            raise InvalidWorkload("Every stride must be a proper multiple of the one before.")
        if self.ramp is None:
            if not self.hats:
                raise InvalidWorkload("A strategy must measure something.")
        elif not self.hats:
            if self.ramp != Ramp(1, 1):
                raise InvalidWorkload("Ramps alone determine the data only when every cut is measured.")
        elif self.ramp.window % self.hats[-1] or self.ramp.stride % self.hats[-1]:
            raise InvalidWorkload("A ramp must consist of whole blocks of the coarsest hats.")

    @property
    def cuts(self) -> int:
        """How many unknown prefixes there are."""
        return self.cells - 1

    def blocks(self, stride: int) -> int:
        """How many blocks of ``stride`` cuts hold an unknown."""
        return ceil_div(self.cuts, stride)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Rows per group: every stride of hats, then the ramps."""
        if self.cuts == 0:
            return (0,) * self.groups
        hats = tuple(self.blocks(stride) + 1 for stride in self.hats)
        return hats if self.ramp is None else (*hats, self.blocks(self.ramp.stride))

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self.hats) + (self.ramp is not None)

    def describe(self) -> tuple[str, ...]:
        """One phrase per group."""
        words = ["cells" if s == 1 else f"hats of stride {s} (base {2 * s} cells)" for s in self.hats]
        if self.ramp is not None:
            one = "prefixes" if self.ramp.window == 1 else f"ramps over {self.ramp.window} prefixes"
            words.append(f"{one}, one every {self.ramp.stride} cells")
        return tuple(words)

    # --- the rows, three ways ------------------------------------------------------------------

    def offsets(self) -> IntArray:
        """a_{k−1} of every row: how often the public total n enters the row."""
        parts = []
        for stride, rows in zip(self.hats, self.group_sizes, strict=False):
            part = np.zeros(rows, dtype=np.int64)
            if rows:
                last = self.cuts - stride * (rows - 2)
                part[-1], part[-2] = last, stride - last
            parts.append(part)
        if self.ramp is not None:
            parts.append(np.zeros(self.group_sizes[-1], dtype=np.int64))
        return np.concatenate(parts)

    def prefix_rows(self) -> csr_array:
        """The rows over the cuts 1 … k−1 (column i−1 is cut i): at most two entries per cut and group."""
        cut = np.arange(self.cuts)
        one = np.ones(self.cuts, dtype=np.int64)
        twice, signs = np.r_[cut, cut], np.r_[one, -one]
        parts = [_Entries(signs, np.r_[cut // s, cut // s + 1], twice) for s in self.hats]
        if self.ramp is not None:
            inside = cut[cut % self.ramp.stride < self.ramp.window]
            parts.append(_Entries(one[inside], inside // self.ramp.stride, inside))
        return self._stacked(parts, self.cuts)

    def rows(self, limit: int) -> csr_array:
        """The rows over the cells; ramps are long, so more than ``limit`` entries are refused."""
        cell = np.arange(self.cells)
        parts = []
        if self.cuts > 0:
            for stride in self.hats:
                block, rest = np.divmod(cell, stride)
                both = _Entries(np.r_[stride - rest, rest], np.r_[block, block + 1], np.r_[cell, cell])
                parts.append(both.nonzero())
            if self.ramp is not None:
                parts.append(self._long_ramps(self.ramp, limit))
        return self._stacked(parts, self.cells)

    def _long_ramps(self, ramp: Ramp, limit: int) -> _Entries:
        first = np.arange(self.group_sizes[-1]) * ramp.stride
        lengths = np.minimum(first + ramp.window, self.cuts)
        if int(lengths.sum()) > limit:
            raise TooLarge(
                f"The {len(first)} prefix rows have {int(lengths.sum())} entries over the cells.",
                fixes=("prefix_rows(), which is sparse", "a larger limit"),
            )
        owner = np.repeat(np.arange(len(first)), lengths)
        column = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return _Entries(lengths[owner] - np.maximum(column, first[owner]), owner, column)

    def _stacked(self, parts: list[_Entries], width: int) -> csr_array:
        begins = np.cumsum([0, *self.group_sizes])
        values = np.concatenate([np.zeros(0, dtype=np.int64), *(part.values for part in parts)])
        placed = (begin + part.rows for begin, part in zip(begins, parts, strict=False))
        rows = np.concatenate([begins[:0], *placed])
        columns = np.concatenate([begins[:0], *(part.columns for part in parts)])
        return csr_array(coo_array((values, (rows, columns)), shape=(int(begins[-1]), width)))

    def answers(self, x: IntArray) -> IntArray:
        """a_r·x for every row, exactly, one pass per group; the last axis runs over cells."""
        if self.cuts == 0:
            return np.zeros((*x.shape[:-1], 0), dtype=np.int64)
        prefixes = np.cumsum(x, axis=-1, dtype=np.int64)
        total, cuts = prefixes[..., -1:], prefixes[..., :-1]
        parts = []
        for stride in self.hats:
            sums = self._block_sums(cuts, stride, total)
            parts.append(np.diff(sums, prepend=0 * total, append=total * stride))
        if self.ramp is not None:
            inside = np.arange(self.cuts) % self.ramp.stride < self.ramp.window
            parts.append(self._block_sums(np.where(inside, cuts, 0), self.ramp.stride, 0 * total))
        return np.concatenate(parts, axis=-1)

    def _block_sums(self, cuts: IntArray, stride: int, beyond: IntArray) -> IntArray:
        sums = np.add.reduceat(cuts, np.arange(0, self.cuts, stride), axis=-1)
        sums[..., -1:] += beyond * (stride * sums.shape[-1] - self.cuts)
        return sums


@dataclass(frozen=True, eq=False)
class _Entries:
    """The non-zeros of one group of rows."""

    values: IntArray
    rows: IntArray
    columns: IntArray

    def nonzero(self) -> _Entries:
        keep = self.values != 0
        return _Entries(self.values[keep], self.rows[keep], self.columns[keep])
