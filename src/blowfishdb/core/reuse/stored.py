"""StoredRelease: what left the trust boundary, as it left it (REUSE §1).

Raw whole numbers before any least squares or tidying, with the rows that were measured and the exact scale of
the noise on each; exact numbers only where the answers show them. Everything that decides (variances,
weights, what is owned) is a function of ``measured``, which holds no value; the values are touched last, to
be returned.
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
from scipy.sparse import csr_array

from blowfishdb.core import codec
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray, integers
from blowfishdb.core.axis import Axis
from blowfishdb.core.discrete_laplace import variance
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch
from blowfishdb.core.reuse.rows import Intervals, Rows, Sparse, chosen, rows_of
from blowfishdb.core.workloads import Workload

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
        used = None if self.used is None else _plain_rows(self.used)
        return {**self._measured(), "values": self.values.tolist(), "number": self.number, "used": used}

    def _measured(self) -> Plain:
        uniform = len(self.distinct) == 1
        return {
            "axes": [
                {"column": a.column, "attribute": codec.plain(a.attribute), "bins": codec.plain(a.bins)}
                for a in self.axes
            ],
            "rows": _plain_rows(self.rows),
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


def _plain_rows(rows: Rows) -> Plain:
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
