"""StoredRelease: what left the trust boundary, as it left it (REUSE §1).

Raw whole numbers before any least squares or tidying, with the rows that were measured and the exact scale of
the noise on each; exact numbers only where the answers show them. Everything that decides (variances,
weights, what is owned) is a function of ``measured``, which holds no value; the values are touched last, to
be returned.

Rows of counting questions, kept as intervals where they are intervals.

On a line almost everything that is ever measured or asked counts one interval of boxes: cells, prefixes,
ranges, trees. Two whole numbers then say what a row of a sparse matrix says with thousands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from blowfishdb.core.accuracy import variance
from blowfishdb.core.arrays import BoolArray, ByContent, FloatArray, IntArray, integers
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, InvalidScale, InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.policy import codec
from blowfishdb.core.workloads import AllRanges, Workload


@final
@dataclass(frozen=True, eq=False)
class Intervals(ByContent):
    """Row r counts the boxes ``starts[r] … stops[r]-1``; equal ends count nothing."""

    size: int
    starts: IntArray
    stops: IntArray

    def __post_init__(self) -> None:
        starts = integers(self.starts, "Interval starts", InvalidWorkload)
        stops = integers(self.stops, "Interval ends", InvalidWorkload)
        if starts.ndim != 1 or starts.shape != stops.shape:
            raise InvalidWorkload("Intervals need as many ends as starts.")
        if starts.size and not (starts.min() >= 0 and (starts <= stops).all() and stops.max() <= self.size):
            raise InvalidWorkload(f"Each interval must lie within 0 … {self.size:,}.")
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "stops", stops)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.starts.size)

    def sparse(self) -> csr_array:
        """The same rows written out."""
        lengths = self.stops - self.starts
        pointers = np.concatenate(([0], np.cumsum(lengths)))
        if pointers[-1] > LIMIT:
            raise TooLarge(f"Writing out intervals with {int(pointers[-1]):,} entries is above the limit.")
        columns = np.arange(pointers[-1]) + np.repeat(self.starts - pointers[:-1], lengths)
        ones = np.ones(columns.size, dtype=np.int64)
        return csr_array((ones, columns, pointers), shape=(self.count, self.size))


@final
@dataclass(frozen=True, eq=False)
class Sparse(ByContent):
    """Any rows of whole numbers, ``denominator`` times what they stand for."""

    size: int
    columns: IntArray
    entries: IntArray
    pointers: IntArray
    denominator: int = 1

    @classmethod
    def of(cls, matrix: csr_array, denominator: int = 1) -> Sparse:
        """The rows of a sparse matrix; entries that are not whole numbers are refused."""
        tidy = csr_array(matrix, copy=True)
        tidy.sum_duplicates()
        tidy.eliminate_zeros()
        columns, entries, pointers = (
            integers(part, "Rows", InvalidWorkload) for part in (tidy.indices, tidy.data, tidy.indptr)
        )
        return cls(int(tidy.shape[1]), columns, entries, pointers, denominator)

    def __post_init__(self) -> None:
        steps = np.diff(self.pointers)
        if self.pointers.size == 0 or self.pointers[0] != 0 or (steps < 0).any():
            raise InvalidWorkload("Row pointers begin at zero and never fall.")
        if self.pointers[-1] != self.columns.size or self.columns.shape != self.entries.shape:
            raise InvalidWorkload("Every entry of a row has one column.")
        if self.columns.size and not (self.columns.min() >= 0 and self.columns.max() < self.size):
            raise InvalidWorkload(f"Columns are numbered 0 … {self.size - 1:,}.")
        if self.denominator < 1:
            raise InvalidWorkload("A denominator is a positive whole number.")

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.pointers.size) - 1

    def sparse(self) -> csr_array:
        """The rows as a matrix, times ``denominator``."""
        return csr_array((self.entries, self.columns, self.pointers), shape=(self.count, self.size))


Rows = Intervals | Sparse


def rows_of(source: Workload | csr_array | Rows) -> Rows:
    """Rows in their shortest form."""
    if isinstance(source, Intervals | Sparse):
        return source
    if not isinstance(source, Workload):
        return _shortest(Sparse.of(source))
    found = _known(source)
    return _shortest(Sparse.of(source.sparse(), source.denominator)) if found is None else found


def stacked(first: Rows, second: Rows) -> Rows:
    """The rows of both, one after the other."""
    if isinstance(first, Intervals) and isinstance(second, Intervals):
        starts, stops = ((first.starts, second.starts), (first.stops, second.stops))
        return Intervals(first.size, np.concatenate(starts), np.concatenate(stops))
    return rows_of(csr_array(vstack([first.sparse(), second.sparse()])))


def chosen(rows: Rows, some: IntArray) -> Rows:
    """Some of the rows."""
    if isinstance(rows, Intervals):
        return Intervals(rows.size, rows.starts[some], rows.stops[some])
    return rows_of(csr_array(rows.sparse()[some]))


def _known(workload: Workload) -> Intervals | None:
    """The intervals of a workload whose shape is known without writing it out."""
    if len(workload.factors) == 1:
        return _known(workload.factors[0])
    ends = workload.intervals()
    return None if ends is None else Intervals(workload.size, *ends)


def all_intervals(size: int) -> Intervals:
    """Every interval of ``size`` boxes."""
    return Intervals(size, *AllRanges(size).intervals())


def _shortest(rows: Sparse) -> Rows:
    """Intervals, if every row is one."""
    steps = np.diff(rows.pointers)
    some = steps > 0
    first, last = np.zeros_like(steps), np.zeros_like(steps) - 1
    if rows.columns.size:
        at = rows.pointers[:-1][some]
        first[some] = np.minimum.reduceat(rows.columns, at)
        last[some] = np.maximum.reduceat(rows.columns, at)
    full = rows.denominator == 1 and (rows.entries == 1).all() and (last - first + 1 == steps).all()
    return Intervals(rows.size, first, last + 1) if full else rows


Plain = dict[str, Any]


@final
@dataclass(frozen=True, eq=False)
class StoredRelease:
    """Noisy answers to integer rows over the boxes of ``axes``; no axes at all means one box, everything.

    Row r has discrete Laplace noise of scale ``distinct[which[r]]``; a scale of 0 is an exact row, such as a
    total that the policy makes public and the answers showed. ``number`` is the order in which releases were
    settled.
    """

    axes: tuple[Axis, ...]
    rows: Rows
    distinct: tuple[Fraction, ...]
    which: IntArray
    values: IntArray
    number: int
    used: Rows | None = None
    """Exact rows that the answers depend on. What was lost by them counts; their values are kept nowhere."""

    @classmethod
    def of(
        cls,
        axes: Sequence[Axis],
        rows: Workload | csr_array | Rows,
        scales: Sequence[Fraction | int] | Fraction | int,
        values: ArrayLike,
        number: int,
    ) -> StoredRelease:
        """A release from rows in any form, with one scale for all of them or one for each."""
        kept = rows_of(rows)
        each = list(scales) if isinstance(scales, Sequence) else [scales] * kept.count
        distinct = {scale: index for index, scale in enumerate(dict.fromkeys(map(Fraction, each)))}
        which = np.array([distinct[Fraction(scale)] for scale in each], dtype=np.int64)
        return cls(tuple(axes), kept, tuple(distinct), which, values, number)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        for name in ("which", "values"):
            object.__setattr__(self, name, integers(getattr(self, name), "Stored numbers", SizeMismatch))
        boxes = math.prod(axis.bins.count for axis in self.axes)
        if self.rows.size != boxes:
            raise SizeMismatch(f"The rows speak of {self.rows.size:,} boxes, the axes of {boxes:,}.")
        if self.used is not None and self.used.size != boxes:
            raise SizeMismatch(f"The exact rows speak of {self.used.size:,} boxes, the axes of {boxes:,}.")
        if isinstance(self.rows, Sparse) and self.rows.denominator != 1:
            raise InvalidInput("Measured rows are whole numbers.")
        if len({axis.column for axis in self.axes}) < len(self.axes):
            raise InvalidInput("A release has at most one axis per column.")
        if self.which.shape != (self.rows.count,) or self.values.shape != (self.rows.count,):
            raise SizeMismatch(f"There are {self.rows.count:,} rows; each has one scale and one value.")
        if any(scale < 0 for scale in self.distinct):
            raise InvalidScale("A noise scale is never negative.")
        if self.which.size and not 0 <= self.which.min() <= self.which.max() < len(self.distinct):
            raise InvalidScale("A row names a scale that is not there.")

    # --- what is known without the values ------------------------------------------------------------

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the release speaks of."""
        return frozenset(axis.column for axis in self.axes)

    @cached_property
    def scales(self) -> FloatArray:
        """The scale of every row, as a float for planning."""
        return np.array([float(scale) for scale in self.distinct])[self.which]

    @cached_property
    def variances(self) -> FloatArray:
        """The exact variance of every row's noise; 0 for exact rows."""
        return np.array([variance(scale) if scale else 0.0 for scale in self.distinct])[self.which]

    @property
    def exact(self) -> BoolArray:
        """Which rows carry no noise."""
        return np.asarray(self.scales == 0)

    @cached_property
    def fingerprint(self) -> str:
        """A name for everything but the values: it keys simulations, so quotes cannot depend on noise."""
        return codec.digest(self._measured())

    def exact_part(self) -> StoredRelease | None:
        """Only the exact rows: what is public whichever noisy release is used."""
        kept = np.flatnonzero(self.exact)
        if not kept.size:
            return None
        none, rows = np.zeros(kept.size, dtype=np.int64), chosen(self.rows, kept)
        return StoredRelease(self.axes, rows, (Fraction(0),), none, self.values[kept], self.number)

    def _noisy_part(self) -> StoredRelease:
        """Without the values of exact rows, of which nobody noted whether the answers show them."""
        kept, exact = np.flatnonzero(~self.exact), np.flatnonzero(self.exact)
        rows, used = chosen(self.rows, kept), chosen(self.rows, exact)
        which, values = self.which[kept], self.values[kept]
        return StoredRelease(self.axes, rows, self.distinct, which, values, self.number, used)

    # --- plain data and back ---------------------------------------------------------------------------

    def to_plain(self) -> Plain:
        """The release as JSON-ready data."""
        used = None if self.used is None else plain_rows(self.used)
        return {**self._measured(), "values": self.values.tolist(), "number": self.number, "used": used}

    def _measured(self) -> Plain:
        uniform = len(self.distinct) == 1
        return {
            "axes": plain_axes(self.axes),
            "rows": plain_rows(self.rows),
            "scales": [str(scale) for scale in self.distinct],
            "which": None if uniform else self.which.tolist(),
        }

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> StoredRelease:
        """A release from its plain form, validated like anything new.

        Once every public total was stored, whether or not it was shown. Such a release says nothing of what
        was ``used``: its totals count as lost, and are not known.
        """
        axes = tuple(
            Axis(a["column"], codec.attribute(a["attribute"]), codec.partition(a["bins"]))
            for a in stored["axes"]
        )
        boxes = math.prod(axis.bins.count for axis in axes)
        rows = _stored_rows(stored["rows"], boxes)
        which = np.zeros(rows.count, dtype=np.int64) if stored["which"] is None else stored["which"]
        scales = tuple(Fraction(scale) for scale in stored["scales"])
        release = cls(axes, rows, scales, which, stored["values"], int(stored["number"]))
        if "used" not in stored:
            return release._noisy_part()
        used = None if stored["used"] is None else _stored_rows(stored["used"], boxes)
        return replace(release, used=used)


def plain_axes(axes: Sequence[Axis]) -> list[Plain]:
    """Boxes as JSON-ready data: what names them in the index of releases."""
    return [
        {"column": axis.column, "attribute": codec.plain(axis.attribute), "bins": codec.plain(axis.bins)}
        for axis in axes
    ]


def plain_rows(rows: Rows) -> Plain:
    """Rows as JSON-ready data, in their shortest form."""
    if isinstance(rows, Sparse):
        return {
            "kind": "sparse",
            "columns": rows.columns.tolist(),
            "entries": rows.entries.tolist(),
            "pointers": rows.pointers.tolist(),
        }
    boxes = np.arange(rows.size)
    if np.array_equal(rows.stops, boxes + 1):
        if np.array_equal(rows.starts, boxes):
            return {"kind": "identity"}
        if not rows.starts.any():
            return {"kind": "prefixes"}
    return {"kind": "intervals", "starts": rows.starts.tolist(), "stops": rows.stops.tolist()}


def _stored_rows(stored: Mapping[str, Any], size: int) -> Rows:
    kind, boxes = stored.get("kind"), np.arange(size, dtype=np.int64)
    if kind == "identity":
        return Intervals(size, boxes, boxes + 1)
    if kind == "prefixes":
        return Intervals(size, np.zeros_like(boxes), boxes + 1)
    if kind == "intervals":
        return Intervals(size, stored["starts"], stored["stops"])
    if kind == "sparse":
        parts = (stored["columns"], stored["entries"], stored["pointers"])
        columns, entries, pointers = (integers(part, "Rows", InvalidInput) for part in parts)
        return Sparse(size, columns, entries, pointers)
    raise InvalidInput(f"There are no stored rows of kind {kind!r}.")
