"""Axis: one queried column, its bins, and how they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

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
        return tuple(self._label(index) for index in range(self.bins.count))

    def ends(self) -> tuple[str, ...]:
        """The upper end of each bin of values, in words."""
        return tuple(f"≤ {self._end(index)}" for index in range(self.value_bins))

    def _label(self, index: int) -> str:
        first, last = int(self.bins.first(index)), int(self.bins.last(index))
        if first == last:
            return self.attribute.label(first)
        if not self.bins.contiguous:
            return ", ".join(self.attribute.label(int(cell)) for cell in self.bins.members(index))
        return f"{self.show(self.attribute.lower(first))}–{self._end(index)}"

    def _end(self, index: int) -> str:
        return self.show(self.attribute.upper(int(self.bins.last(index))))

    def show(self, value: Value) -> str:
        """A value in words. Long numbers are grouped, on the whole axis or not at all: years stay years."""
        most = self.attribute.upper(self.attribute.value_count - 1)
        return text(value, grouped=isinstance(most, int) and most >= 10_000)
