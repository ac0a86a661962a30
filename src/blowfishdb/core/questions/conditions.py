"""Any list of conditions as one question: how many rows each of them is true of, of all rows or in groups.

Conditions may overlap and be about several columns. Together they cut the columns into cells, and each is a
sum of some of them: one linear question over those cells, planned and paid as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from blowfishdb.core.domain.bins import Bins, common_bins, whole_bin
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.policy.codec import plain, plain_condition
from blowfishdb.core.questions.kinds import Kind, Reading, Release, counted_reading
from blowfishdb.core.workloads import Matrix, Workload

Conditions = tuple[tuple[str, Predicate], ...]
"""Conditions by their names."""

_MOST_ENTRIES: Final = 4_000_000


@final
@dataclass(frozen=True)
class Counts(Kind):
    """How many rows satisfy each condition, in each of the ``groups``."""

    conditions: Conditions
    groups: tuple[Axis, ...] = ()
    name: str = field(default="counts", init=False)
    binned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:
        groups = " and ".join(f"{axis.column} ({axis.bins.count:,} groups)" for axis in self.groups)
        return f"rows with {', '.join(self.told)}{f' by {groups}' if groups else ''}"

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.conditions)

    @property
    def _listed(self) -> bool:
        return len(self.conditions) > 1 or not self.groups

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return (*(axis.column for axis in self.groups), *(("condition",) if self._listed else ()))

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        """A row for each condition in each group, over the boxes that all of them cut."""
        shape = tuple(axis.bins.count for axis in axes)
        grouped = tuple(axis.bins.count for axis in self.groups)
        rows = math.prod(grouped) * len(self.conditions)
        if math.prod(shape) * rows > _MOST_ENTRIES:
            raise TooLarge(
                f"{rows:,} conditions on {math.prod(shape):,} cells are too many for one question.",
                fixes=("fewer conditions, or wider groups",),
            )
        domain = Domain.of({axis.column: axis.attribute for axis in axes})
        boxes = np.unravel_index(np.arange(math.prod(shape)), shape)
        members = {axis.column: axis.bins.first(box) for axis, box in zip(axes, boxes, strict=True)}
        true = np.stack([condition.on_cells(domain, members) for _, condition in self.conditions])
        group = np.zeros(math.prod(shape), dtype=np.int64)
        if self.groups:
            labels = tuple(axis.bins.assign(members[axis.column]) for axis in self.groups)
            group = np.asarray(np.ravel_multi_index(labels, grouped))
        inside = np.arange(math.prod(grouped))[:, None] == group
        return Matrix((inside[:, None, :] & true[None, :, :]).reshape(rows, -1).astype(np.int64))

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        labels = tuple(axis.labels() for axis in self.groups)
        return counted_reading(release, (*labels, *((self.told,) if self._listed else ())))

    def identity(self) -> list[object]:
        conditions = [[name, plain_condition(condition)] for name, condition in self.conditions]
        return [self.name, conditions, [[axis.column, plain(axis.bins)] for axis in self.groups]]


def condition_axes(conditions: Conditions, groups: tuple[Axis, ...], domain: Domain) -> tuple[Axis, ...]:
    """Every column that is spoken of, cut wherever a condition or a group tells values apart.

    Rows that the declaration of one of them leaves out are in no cell, and count nowhere; answers say so.
    """
    if not conditions or len({name for name, _ in conditions}) < len(conditions):
        raise InvalidWorkload("Conditions are listed, each with a name of its own.")
    cut: dict[str, Bins] = {axis.column: axis.bins for axis in groups}
    for _, condition in conditions:
        for name, bins in condition.cuts(domain).items():
            cut[name] = common_bins(cut.get(name), bins, domain[name].size)
    if not cut:
        keeping = (name for name, attribute in domain.columns if not attribute.may_drop)
        name = next(keeping, domain.names[0])
        cut[name] = whole_bin(domain[name].size)
    return tuple(Axis(name, domain[name], bins) for name, bins in cut.items())
