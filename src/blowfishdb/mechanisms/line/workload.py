"""What the strategy is for: one of four families of ranges on a line."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray, integers
from blowfishdb.core.errors import InvalidWorkload


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
