"""Axis: one queried column, its bins, and how they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.bins import Bins
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.values import Value, text


@final
@dataclass(frozen=True, eq=False)
class Axis:
    """One queried column and the bins of its cells."""

    column: str
    attribute: Attribute
    bins: Bins

    def __post_init__(self) -> None:
        if self.bins.size != self.attribute.size:
            raise SizeMismatch(
                f"The bins divide {self.bins.size:,} cells, but '{self.column}' has {self.attribute.size:,}."
            )

    @property
    def value_bins(self) -> int:
        """The bins that hold values; a bin for missing ones comes after them."""
        return self.bins.count - self.attribute.has_missing_cell

    def labels(self) -> tuple[str, ...]:
        """Each bin in words."""
        index = np.arange(self.bins.count)
        firsts, lasts = self.bins.first(index).tolist(), self.bins.last(index).tolist()
        return tuple(self._label(*bin_) for bin_ in zip(index.tolist(), firsts, lasts, strict=True))

    def ends(self) -> tuple[str, ...]:
        """The upper end of each bin of values, in words."""
        lasts = self.bins.last(np.arange(self.value_bins)).tolist()
        return tuple(f"≤ {self.show(self.attribute.upper(last))}" for last in lasts)

    def _label(self, index: int, first: int, last: int) -> str:
        if first == last:
            return self.attribute.label(first)
        if not self.bins.contiguous:
            return ", ".join(self.attribute.label(int(cell)) for cell in self.bins.members(index))
        return f"{self.show(self.attribute.lower(first))}–{self.show(self.attribute.upper(last))}"

    def show(self, value: Value) -> str:
        """A value in words. Long numbers are grouped, on the whole axis or not at all: years stay years."""
        return text(value, grouped=self._grouped)

    @cached_property
    def _grouped(self) -> bool:
        most = self.attribute.upper(self.attribute.value_count - 1)
        return isinstance(most, int) and most >= 10_000
