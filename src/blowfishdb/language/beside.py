"""Aggregates of different rows in one statement: ``AVG(pay) FILTER (WHERE a) - AVG(pay) FILTER (WHERE b)``.

Conditions cut their columns into groups, and each of them is true of some of these. So one release of the
aggregates of every group tells all that is asked: a sum or a count of some rows is a sum over their groups,
and a mean that of its one group, or a sum divided by a count. The groups stand beside each other in one row.
Rows that a column of theirs leaves out are in none of them, as in counts of some rows; answers say so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins, common_bins
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.questions.aggregates import SPREADS, Measure
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.core.questions.numbers import Computed, Number, Told
from blowfishdb.language.grouping import labelled_parts

_MOST_GROUPS: Final = 64
_MOST_CUT: Final = 100_000
_MOST_VALUES: Final = 500
_FEW: Final = 3


@final
@dataclass(frozen=True)
class OfSome:
    """An aggregate, of the rows for which something holds."""

    measure: Measure
    holds: Predicate


@final
@dataclass(frozen=True)
class Beside:
    """Groups beside each other, what is released of each, and every number that is asked for by it."""

    columns: tuple[ColumnForm, ...]
    measures: tuple[Measure, ...]
    numbers: tuple[Number, ...]


def beside(asked: Sequence[OfSome], domain: Domain) -> Beside | None:
    """Aggregates of different rows from one release; None where they are not told by groups."""
    apart = groups_apart([each.holds for each in asked], domain)
    return None if apart is None else _told(asked, apart[1], apart[0], domain)


def groups_apart(
    asked: Sequence[Predicate], domain: Domain
) -> tuple[tuple[ColumnForm, ...], dict[Predicate, IntArray]] | None:
    """Groups that conditions tell apart, and of which of them each is true; None where there are too many."""
    conditions = list(dict.fromkeys(asked))
    cut: dict[str, Bins] = {}
    for condition in conditions:
        for name, bins in condition.cuts(domain).items():
            cut[name] = common_bins(cut.get(name), bins, domain[name].size)
    if not cut or math.prod(bins.count for bins in cut.values()) > _MOST_CUT:
        return None
    truths = _truths(conditions, list(cut.items()), domain)
    columns = tuple(
        _column(name, bins, _alike(truths, at), domain[name]) for at, (name, bins) in enumerate(cut.items())
    )
    named = [column for column in columns if column is not None]
    if len(named) < len(columns):
        return None
    axes = [(column.name, column.axis(domain).bins) for column in named]
    groups = math.prod(bins.count for _, bins in axes)
    if groups > _MOST_GROUPS:
        return None
    held = _truths(conditions, axes, domain).reshape(len(conditions), groups)
    return tuple(named), {condition: np.flatnonzero(held[at]) for at, condition in enumerate(conditions)}


def _truths(conditions: Sequence[Predicate], axes: Sequence[tuple[str, Bins]], domain: Domain) -> BoolArray:
    """Where each condition holds, for every combination of bins, on which each is true or not."""
    shape = tuple(bins.count for _, bins in axes)
    boxes = np.unravel_index(np.arange(math.prod(shape)), shape)
    cells = {name: bins.first(box) for (name, bins), box in zip(axes, boxes, strict=True)}
    size = (math.prod(shape),)
    told = [np.broadcast_to(condition.on_cells(domain, cells), size) for condition in conditions]
    return np.asarray(np.stack(told).reshape(len(conditions), *shape), dtype=np.bool_)


def _alike(truths: BoolArray, axis: int) -> IntArray:
    """A label for each bin along an axis; those that no condition tells apart have the same."""
    slices = np.moveaxis(truths, axis + 1, 0).reshape(truths.shape[axis + 1], -1)
    _, first, labels = np.unique(slices, axis=0, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[labels.ravel()], dtype=np.int64)


def _column(name: str, bins: Bins, labels: IntArray, attribute: Attribute) -> ColumnForm | None:
    """A column in groups of bins: intervals where they are, else lists of values; None if these are long."""
    starts = bins.first(np.arange(bins.count))
    kept = starts < attribute.value_count  # missing values have a group of their own
    starts, labels = starts[kept], labels[kept]
    if len(set(labels.tolist())) == attribute.value_count:
        return ColumnForm(name)
    changes = np.flatnonzero(np.diff(labels, prepend=-1))
    if attribute.ordered and len(changes) == len(set(labels.tolist())):
        return ColumnForm(name, edges=tuple(attribute.lower(int(starts[at])) for at in changes))
    if attribute.value_count > _MOST_CUT and attribute.ordered:
        return ColumnForm(name, edges=tuple(attribute.lower(int(start)) for start in starts))
    cells = np.arange(attribute.value_count)
    told = labels[np.searchsorted(starts, cells, side="right") - 1]
    parts = labelled_parts([f"group {label + 1}" for label in told.tolist()], name, attribute)
    if parts is not None:
        return parts
    if attribute.value_count > _MOST_VALUES:
        if not attribute.ordered:
            return None
        return ColumnForm(name, edges=tuple(attribute.lower(int(start)) for start in starts))
    groups = {}
    for label in dict.fromkeys(told.tolist()):
        members = cells[told == label].tolist()
        few = ", ".join(map(attribute.label, members)) if len(members) <= _FEW else f"{len(members)} values"
        groups[few if few not in groups else f"{few} ({label + 1})"] = tuple(map(attribute.lower, members))
    return ColumnForm(name, groups=groups)


# --- what is asked, by what is released -------------------------------------------------------------------


def _told(
    asked: Sequence[OfSome],
    places: dict[Predicate, IntArray],
    columns: tuple[ColumnForm, ...],
    domain: Domain,
) -> Beside | None:
    needed: dict[Measure, None] = {}
    for each in asked:
        groups = len(places[each.holds])
        if not groups or (groups > 1 and each.measure.of in SPREADS):
            return None
        needed |= dict.fromkeys(_parts(each.measure, groups, domain))
    measures = tuple(needed)

    def total(measure: Measure, groups: IntArray) -> Number:
        told = [Told(int(group) * len(measures) + measures.index(measure)) for group in groups]
        return _sum(told)

    numbers = []
    for each in asked:
        parts = [
            total(part, places[each.holds]) for part in _parts(each.measure, len(places[each.holds]), domain)
        ]
        numbers.append(parts[0] if len(parts) == 1 else Computed("/", parts[0], parts[1]))
    return Beside(columns, measures, tuple(numbers))


def _parts(measure: Measure, groups: int, domain: Domain) -> tuple[Measure, ...]:
    """What an aggregate of so many groups is computed from: a mean of several from their sums and counts."""
    rows = Measure("count")
    if measure.column is not None:
        attribute = domain[measure.column]
        rows = Measure("count", measure.column) if attribute.has_missing_cell or attribute.may_drop else rows
    if measure.of == "count":
        return (rows,)
    return (Measure("sum", measure.column), rows) if measure.of == "mean" and groups > 1 else (measure,)


def _sum(numbers: Sequence[Number]) -> Number:
    """Added up in pairs, so that a long sum is not nested deeply."""
    if len(numbers) == 1:
        return numbers[0]
    middle = len(numbers) // 2
    return Computed("+", _sum(numbers[:middle]), _sum(numbers[middle:]))
