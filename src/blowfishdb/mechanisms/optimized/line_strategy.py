"""A finished strategy: shape, integer weights, exact sensitivity.

What the strategy is for: one of four families of ranges on a line.

What a line strategy measures: hats at nested strides, and ramps.

A line of k cells has k−1 unknown *cuts* p_1 … p_{k−1}, p_i the number of records in cells 0 … i−1; p_0 = 0
and p_k = n are public. Group the cuts in blocks of s: block j holds js+1 … js+s, with p_i = n for i ≥ k.

- A **hat** of stride s is the difference of the sums of two adjacent blocks. In cells it is a triangle of
  height s and base 2s; the triangles of one stride add up to the constant s. Stride 1 is the cells.
- A **ramp** of stride r and window m is the sum of the first m cuts of a block of r. In cells it is flat,
  then falls to zero over m cells; m = 1 is the sharp S node of the ordered hierarchical mechanism.

All rows are integer. A row a in cells reads a·x = Σ_i c_i p_i + a_{k−1}·n with c_i = a_{i−1} − a_i.

The exact sensitivity of hats and ramps under a θ-line.

A record that moves from cell u to cell v > u changes the rows of one stride s by, with u = sB + r, v = sB' +
r',

    2|r − r'|                       if B' = B,
    (s − r) + |s − r − r'| + r'     if B' = B + 1,
    2s                              otherwise,

because only the triangles B, B+1 meet u, with heights s − r and r; and it changes the ramps by the number of
ramp cuts in u+1 … v, because a ramp is monotone. The maximum over u is taken for one distance at a time,
from min(θ, k−1) down. A distance D cannot cost more than Σ_s w_s·min(2s, 2D) + w_ramp·(most ramp cuts among
D), which does not decrease in D, so the search stops as soon as this bound is reached: nearly always after
one distance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div, integers
from blowfishdb.core.errors import InvalidScale, InvalidThreshold, InvalidWorkload, SizeMismatch, TooLarge


class Family(Enum):
    """The ranges whose total squared error is to be small."""

    IDENTITY = "every cell"
    PREFIX = "every prefix"
    ALL_RANGES = "every range"
    LISTED = "listed ranges"


@dataclass(frozen=True, eq=False)
class LineWorkload:
    """A family of ranges; listed ranges run from ``starts`` to ``ends`` inclusive and may be weighted."""

    family: Family
    starts: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    ends: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    weights: FloatArray = field(default_factory=lambda: np.zeros(0))

    @staticmethod
    def identity() -> LineWorkload:
        """Every cell on its own."""
        return LineWorkload(Family.IDENTITY)

    @staticmethod
    def prefix() -> LineWorkload:
        """The cumulative histogram."""
        return LineWorkload(Family.PREFIX)

    @staticmethod
    def all_ranges() -> LineWorkload:
        """Every range of consecutive cells, once."""
        return LineWorkload(Family.ALL_RANGES)

    @staticmethod
    def listed(starts: ArrayLike, ends: ArrayLike, weights: ArrayLike | None = None) -> LineWorkload:
        """The given ranges; ``weights`` multiply their squared errors."""
        first = integers(np.asarray(starts), "Range starts", InvalidWorkload)
        last = integers(np.asarray(ends), "Range ends", InvalidWorkload)
        share = np.ones(len(first)) if weights is None else np.array(weights, dtype=np.float64)
        return LineWorkload(Family.LISTED, first, last, share)

    def __post_init__(self) -> None:
        if self.family is not Family.LISTED:
            return
        if not len(self.starts) == len(self.ends) == len(self.weights):
            raise InvalidWorkload("Starts, ends and weights must be equally long.")
        if len(self.starts) == 0:
            raise InvalidWorkload("The list of ranges is empty.")
        if np.any(self.starts < 0) or np.any(self.ends < self.starts):
            raise InvalidWorkload("Every range must start at cell 0 or later and not end before it starts.")
        if not (np.all(np.isfinite(self.weights)) and np.all(self.weights >= 0)):
            raise InvalidWorkload("Weights must be finite and not negative.")

    def size(self, cells: int) -> float:
        """How many ranges there are on a line of this many cells, counted with their weights."""
        match self.family:
            case Family.IDENTITY:
                return float(cells)
            case Family.PREFIX:
                return float(cells - 1)
            case Family.ALL_RANGES:
                return cells * (cells + 1) / 2
            case Family.LISTED:
                return float(self.weights.sum())

    def fits(self, cells: int) -> bool:
        """Whether every listed range lies on a line of this many cells."""
        return self.family is not Family.LISTED or int(self.ends.max()) < cells


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


_SAFE = 2**62


def sensitivity(shape: Shape, theta: int, weights: tuple[int, ...], reach: IntArray | None = None) -> int:
    """K = max over moves of at most θ cells of Σ_r w_r·|a_r·(e_u − e_v)|, exactly.

    ``reach``: how far cell u really moves to the right, if less than θ, as under a banded policy.
    """
    farthest = min(theta, shape.cuts)
    best = 0
    # int64 holds every sum whenever it holds the bound; Python integers take over beyond that.
    kind = np.int64 if _bound(shape, max(farthest, 1), weights) < _SAFE else object
    for distance in range(farthest, 0, -1):
        if _bound(shape, distance, weights) <= best:
            break
        u = np.arange(shape.cells - distance)
        if reach is not None:
            u = u[reach[: len(u)] >= distance]
        best = max(best, int(np.max(_costs(shape, u, distance, weights, kind), initial=0)))
    return best


def peaks(shape: Shape, theta: int) -> tuple[int, ...]:
    """The most that the unweighted rows of each group alone can change along an edge."""
    groups = range(shape.groups)
    return tuple(sensitivity(shape, theta, tuple(int(g == h) for h in groups)) for g in groups)


def _bound(shape: Shape, distance: int, weights: tuple[int, ...]) -> int:
    total = sum(w * min(2 * s, 2 * distance) for s, w in zip(shape.hats, weights, strict=False))
    if shape.ramp is not None:
        total += weights[-1] * _most_ramp_cuts(shape.ramp, distance)
    return total


def _most_ramp_cuts(ramp: Ramp, distance: int) -> int:
    whole, rest = divmod(distance, ramp.stride)
    return whole * ramp.window + min(rest, ramp.window)


def _costs(shape: Shape, u: IntArray, distance: int, weights: tuple[int, ...], kind: type) -> NDArray[Any]:
    """The cost of the moves u → u + distance."""
    v = u + distance
    total: NDArray[Any] = np.zeros(len(u), dtype=kind)
    for stride, weight in zip(shape.hats, weights, strict=False):
        total += _hat_changes(stride, u, v).astype(kind) * weight
    if shape.ramp is not None:
        total += (_ramp_cuts(shape.ramp, v) - _ramp_cuts(shape.ramp, u)).astype(kind) * weights[-1]
    return total


def _hat_changes(stride: int, u: IntArray, v: IntArray) -> IntArray:
    (block_u, r), (block_v, t) = np.divmod(u, stride), np.divmod(v, stride)
    next_block = (stride - r) + np.abs(stride - r - t) + t
    same, adjacent = block_v == block_u, block_v == block_u + 1
    return np.where(same, 2 * np.abs(r - t), np.where(adjacent, next_block, 2 * stride))


def _ramp_cuts(ramp: Ramp, cell: IntArray) -> IntArray:
    """How many ramp cuts lie among the cuts 1 … cell."""
    block, rest = np.divmod(cell, ramp.stride)
    return block * ramp.window + np.minimum(rest, ramp.window)


_UNIT = 2**20


@dataclass(frozen=True)
class LineStrategy:
    """Integer rows and integer weights for the θ-line on k cells, n public. Final.

    *Guarantee.* Adding discrete Laplace noise of scale b_r = K/(w_r·ε) to row r is ε-private: a move along an
    edge costs Σ_r |a_r·(e_u − e_v)|/b_r ≤ ε, with equality on some edge, because K is the exact maximum over
    all edges with the final integer weights (docs/proofs/optimized.md, Theorem 1).
    *Error.* Row r has variance 2(K/w_r)²/ε² in the continuous limit; decode with
    :class:`~blowfishdb.mechanisms.optimized.line_solver.LineSolver`.
    """

    shape: Shape
    theta: int
    group_weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.theta < 1:
            raise InvalidThreshold("A record must be able to move by at least one cell.")
        if len(self.group_weights) != self.shape.groups:
            raise SizeMismatch("There must be one weight per group of rows.")
        if min(self.group_weights) < 1:
            raise InvalidScale("Every weight must be a positive whole number.")

    @staticmethod
    def rounded(shape: Shape, theta: int, importance: FloatArray) -> LineStrategy:
        """Weights ⌊c·2²⁰⌋ with the smallest c equal to one: rounding moves no weight by more than 10⁻⁶."""
        scaled = np.floor(importance / importance.min() * _UNIT)
        return LineStrategy(shape, theta, tuple(max(1, int(c)) for c in scaled))

    @property
    def k(self) -> int:
        """The number of cells."""
        return self.shape.cells

    @cached_property
    def sensitivity(self) -> int:
        """K, the exact maximum over all edges of Σ_r w_r·|a_r·(e_u − e_v)|; 0 if there is no edge."""
        return sensitivity(self.shape, self.theta, self.group_weights)

    @property
    def weights(self) -> IntArray:
        """w_r for every row."""
        return np.repeat(np.array(self.group_weights, dtype=np.int64), self.shape.group_sizes)

    @property
    def groups(self) -> tuple[str, ...]:
        """What is measured, one phrase per group, with its share of the sensitivity."""
        spent = (w * p for w, p in zip(self.group_weights, peaks(self.shape, self.theta), strict=True))
        shares = (part / max(1, self.sensitivity) for part in spent)
        phrases = zip(self.shape.describe(), shares, strict=True)
        return tuple(f"{words}: {share:.1%}" for words, share in phrases)

    def rows(self, *, limit: int = 20_000_000) -> csr_array:
        """The rows over the cells; long prefix rows beyond ``limit`` entries raise ``TooLarge``."""
        return self.shape.rows(limit)

    def prefix_rows(self) -> csr_array:
        """The same rows over the cuts p_1 … p_{k−1}, always sparse; answers add ``offsets()``·n."""
        return self.shape.prefix_rows()

    def offsets(self) -> IntArray:
        """How often the public n enters each row when it is written over the cuts."""
        return self.shape.offsets()

    def answers(self, x: IntArray) -> IntArray:
        """The exact answers of all rows to a histogram (or a batch of them), without forming the matrix."""
        if x.shape[-1] != self.k:
            raise SizeMismatch(f"The strategy is for {self.k} cells, the histogram has {x.shape[-1]}.")
        return self.shape.answers(x)

    def variances(self, epsilon: float = 1.0) -> FloatArray:
        """2(K/(w_r·ε))² for every row: the noise in the continuous limit."""
        per_group = [2.0 * (self.sensitivity / (w * epsilon)) ** 2 for w in self.group_weights]
        return np.repeat(np.array(per_group), self.shape.group_sizes)
