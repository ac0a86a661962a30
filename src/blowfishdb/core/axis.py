"""Axis: one queried column, its bins, and how they read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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

    @property
    def note(self) -> str | None:
        """What the declaration makes of values that it does not list, where that shows in the bins."""
        alone = self.bins.count == 1 and not self.attribute.may_drop
        return None if alone else self.attribute.folded(self.column)

    def labels(self) -> tuple[str, ...]:
        """Each bin in words."""
        return _labels(self.attribute, self.bins)

    def ends(self) -> tuple[str, ...]:
        """The upper end of each bin of values, in words."""
        return _ends(self.attribute, self.bins)

    def show(self, value: Value) -> str:
        """A value in words. Long numbers are grouped, on the whole axis or not at all: years stay years."""
        return text(value, grouped=_grouped(self.attribute))


# The same axis is asked about again and again, and ten thousand labels take a while to write.


@lru_cache(maxsize=64)
def _labels(attribute: Attribute, bins: Bins) -> tuple[str, ...]:
    index = np.arange(bins.count)
    firsts, lasts = bins.first(index).tolist(), bins.last(index).tolist()
    grouped = _grouped(attribute)

    def label(number: int, first: int, last: int) -> str:
        if first == last:
            return attribute.label(first)
        if not bins.contiguous:
            return ", ".join(attribute.label(int(cell)) for cell in bins.members(number))
        if attribute.has_missing_cell and last == attribute.value_count:  # "0–99, missing"
            return f"{label(number, first, last - 1)}, {attribute.label(last)}"
        ends = (attribute.lower(first), attribute.upper(last))
        return "–".join(text(end, grouped=grouped) for end in ends)

    return tuple(map(label, index.tolist(), firsts, lasts))


@lru_cache(maxsize=64)
def _ends(attribute: Attribute, bins: Bins) -> tuple[str, ...]:
    lasts = bins.last(np.arange(bins.count - attribute.has_missing_cell)).tolist()
    grouped = _grouped(attribute)
    return tuple(f"≤ {text(attribute.upper(last), grouped=grouped)}" for last in lasts)


@lru_cache(maxsize=64)
def _grouped(attribute: Attribute) -> bool:
    most = attribute.upper(attribute.value_count - 1)
    return isinstance(most, int) and most >= 10_000
