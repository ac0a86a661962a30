"""Sums of kernels: many releases about the same rows as few, with the same loss between any two values.

Kernels add pair by pair (REUSE §0). Releases of one shape, the same rows over the same boxes, lose together
what one release loses whose inverse scales are the sums of theirs; a release that is replaced is taken out by
subtracting its own. Shapes over the same columns are written over the boxes that they have in common, where
equal rows are one. So what thousands of answers lost takes as long to say as what a few questions lose.

Two kinds of terms are not sums of inverse scales, and are kept beside them: a row without noise loses
everything that it tells apart, however often it is told; and a bound by distance, ε for every step, adds up
by the policy that it was made under.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import LIMIT, Bins, common_bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Loss, Tightest
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, Sparse

_MOST_BOXES = 20_000


def added(losses: Iterable[Loss]) -> Loss:
    """The sum of losses."""
    listed = list(losses)
    return math.inf if any(math.isinf(loss) for loss in listed) else sum(listed, Fraction(0))


@final
@dataclass(frozen=True, eq=False)
class Added(Kernel):
    """Several releases: at most the sum of what each of them lost."""

    kernels: tuple[Kernel, ...]

    def worst(self, policy: Policy) -> Loss:
        return added(kernel.worst(policy) for kernel in self.kernels)


def known_rows(kernel: Kernel) -> ByRows | None:
    """The rows of a release, if they are known."""
    if isinstance(kernel, Tightest):
        return next((view for view in kernel.views if isinstance(view, ByRows)), None)
    return kernel if isinstance(kernel, ByRows) else None


def shape_of(kernel: Kernel) -> Hashable:
    """Equal for releases with the very same rows over the same boxes; None where these are not known."""
    rows = known_rows(kernel)
    if rows is None:
        return None
    zeros = tuple(not scale for scale in rows.scales)
    return id(rows.axes), id(rows.rows), id(rows.which), zeros, rows.rows_per_person


def proportions(kernel: Kernel) -> Hashable:
    """Equal for releases of one shape that lose the same, one times as much as the other.

    Their largest losses are then on the same pairs, and add up even if they are about other rows. What else
    is known of them must be proportional too: a bound that is the tighter one for some pairs and some
    releases only would move the largest loss of these elsewhere.
    """
    rows, bound = known_rows(kernel), _bound(kernel)
    if rows is None or not (bound is None or isinstance(bound, ByDistance)):
        return None
    least = min((scale for scale in rows.scales if scale), default=Fraction(1))
    beside = None if bound is None else (id(bound.policy), bound.epsilon.fraction * least)
    return shape_of(kernel), tuple(scale / least for scale in rows.scales), beside


def summed(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The same loss between any two values, from one kernel for each set of columns where that can be."""
    by_shape: dict[Hashable, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        by_shape[shape_of(kernel)].append(kernel)
    unknown = by_shape.pop(None, [])
    shapes = [_of_one_shape(alike) for alike in by_shape.values()]
    by_columns: dict[Hashable, list[Kernel]] = defaultdict(list)
    for kernel in shapes:
        rows = known_rows(kernel)
        assert rows is not None
        declared = frozenset((axis.column, axis.attribute) for axis in rows.axes)
        by_columns[declared, rows.rows_per_person].append(kernel)
    on_columns = [kernel for alike in by_columns.values() for kernel in _over_common_boxes(alike)]
    return [*on_columns, *_by_policy(unknown)]


def _of_one_shape(kernels: Sequence[Kernel]) -> Kernel:
    if len(kernels) == 1:
        return kernels[0]
    each = [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]
    inverse = [
        sum((1 / scale for scale in scales), Fraction(0)) if all(scales) else Fraction(0)
        for scales in zip(*(rows.scales for rows in each), strict=True)
    ]
    together = replace(each[0], scales=tuple(1 / total if total else total for total in inverse))
    return _beside_bounds(together, kernels)


def _beside_bounds(rows: ByRows, kernels: Sequence[Kernel]) -> Kernel:
    """Rows that stand for releases, and what is known of these otherwise."""
    bounds = [_bound(kernel) for kernel in kernels]
    known = [bound for bound in bounds if bound is not None]
    return Tightest((rows, Added(tuple(_by_policy(known))))) if len(known) == len(bounds) else rows


def _bound(kernel: Kernel) -> Kernel | None:
    """What else is known of a release whose rows are known."""
    views = kernel.views if isinstance(kernel, Tightest) else ()
    others = tuple(view for view in views if not isinstance(view, ByRows))
    return Tightest(others) if len(others) > 1 else next(iter(others), None)


def _by_policy(kernels: Iterable[Kernel]) -> list[Kernel]:
    """Bounds by distance, one for each policy that releases were made under."""
    sums: dict[int, int] = defaultdict(int)
    policies: dict[int, Policy] = {}
    others: list[Kernel] = []
    stack = list(kernels)[::-1]
    while stack:
        kernel = stack.pop()
        if isinstance(kernel, ByDistance):
            policies[id(kernel.policy)] = kernel.policy
            sums[id(kernel.policy)] += kernel.epsilon.nano
        elif isinstance(kernel, Added):
            stack += kernel.kernels[::-1]
        else:
            others.append(kernel)
    bounds = (ByDistance(policies[key], Epsilon.from_nano(nano)) for key, nano in sums.items())
    return [*bounds, *others]


# --- one kernel for the same columns ----------------------------------------------------------------------


def _over_common_boxes(kernels: Sequence[Kernel]) -> list[Kernel]:
    """One kernel over the boxes that refine those of all; the kernels themselves where these are too many."""
    if len(kernels) == 1:
        return list(kernels)
    each = [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]
    try:
        axes = _common_axes([rows.axes for rows in each])
        joined = None if axes is None else _joined(each, axes)
    except TooLarge:
        joined = None
    return list(kernels) if joined is None else [_beside_bounds(joined, kernels)]


def _common_axes(sides: Sequence[tuple[Axis, ...]]) -> tuple[Axis, ...] | None:
    """For every column the coarsest bins that refine those of all sides; None if there are too many boxes."""
    bins: dict[str, dict[int, Bins]] = defaultdict(dict)
    for axis in (axis for side in sides for axis in side):
        bins[axis.column][id(axis.bins)] = axis.bins
    axes = []
    for axis in sides[0]:
        common = _common(list(bins[axis.column].values()), axis.attribute.size)
        axes.append(Axis(axis.column, axis.attribute, common))
    return tuple(axes) if math.prod(axis.bins.count for axis in axes) <= _MOST_BOXES else None


def _common(each: Sequence[Bins], size: int) -> Bins:
    """The coarsest bins that refine all; intervals in one go."""
    if all(bins.contiguous for bins in each):
        starts = [bins.first(np.arange(bins.count)) for bins in each]
        return Bins.edges(size, np.unique(np.concatenate(starts)))
    refined: Bins | None = None
    for bins in each:
        refined = common_bins(refined, bins, size)
    assert refined is not None
    return refined


def _joined(each: Sequence[ByRows], axes: tuple[Axis, ...]) -> ByRows | None:
    """All rows over the boxes of ``axes``, equal ones once, with the sum of their inverse scales."""
    line = len(axes) == 1 and all(
        isinstance(rows.rows, Intervals) and rows.axes[0].bins.contiguous for rows in each
    )
    inverse: dict[tuple[object, object], Fraction] = defaultdict(Fraction)
    exact: dict[tuple[object, object], None] = {}
    for rows in each:
        names = _ends(rows, axes[0]) if line else _entries(rows, axes)
        for name, which in zip(names, rows.which.tolist(), strict=True):
            if rows.scales[which]:
                inverse[name] += 1 / rows.scales[which]
            else:
                exact[name] = None
    names = [*inverse, *exact]
    scales = (*(1 / total for total in inverse.values()), *[Fraction(0)] * len(exact))
    boxes = math.prod(axis.bins.count for axis in axes)
    written = _intervals(names, boxes) if line else _sparse(names, boxes)
    return ByRows(axes, written, scales, np.arange(len(names)), each[0].rows_per_person)


def _ends(rows: ByRows, axis: Axis) -> list[tuple[object, object]]:
    """The boxes of ``axis`` between which each row counts."""
    assert isinstance(rows.rows, Intervals)
    own, cuts = rows.axes[0].bins, axis.bins.first(np.arange(axis.bins.count))
    begins = np.append(np.searchsorted(cuts, own.first(np.arange(own.count))), axis.bins.count)
    return list(zip(begins[rows.rows.starts].tolist(), begins[rows.rows.stops].tolist(), strict=True))


def _entries(rows: ByRows, axes: tuple[Axis, ...]) -> list[tuple[object, object]]:
    """The boxes of ``axes`` that each row counts, and how often."""
    shape = tuple(axis.bins.count for axis in axes)
    count = math.prod(shape)
    places = np.unravel_index(np.arange(count), shape) if shape else ()
    at = {axis.column: axis.bins.first(place) for axis, place in zip(axes, places, strict=True)}
    own = tuple(axis.bins.count for axis in rows.axes)
    within = tuple(axis.bins.assign(at[axis.column]) for axis in rows.axes)
    box = np.ravel_multi_index(within, own) if own else np.zeros(count, dtype=np.int64)
    where = csr_array(
        (np.ones(count, dtype=np.int64), (box, np.arange(count))), shape=(rows.rows.size, count)
    )
    measured = rows.rows.sparse()
    if int(np.bincount(box, minlength=rows.rows.size)[measured.indices].sum()) > LIMIT:
        raise TooLarge("These rows are not written out.")
    written = csr_array(measured @ where)
    written.sum_duplicates()
    written.sort_indices()
    columns, entries = written.indices.astype(np.int64), written.data.astype(np.int64)
    return [
        (columns[begin:end].tobytes(), entries[begin:end].tobytes())
        for begin, end in itertools.pairwise(written.indptr.tolist())
    ]


def _intervals(names: Sequence[tuple[object, object]], boxes: int) -> Rows:
    ends = np.array(names, dtype=np.int64).reshape(-1, 2)
    return Intervals(boxes, ends[:, 0], ends[:, 1])


def _sparse(names: Sequence[tuple[object, object]], boxes: int) -> Rows:
    parts = [[np.frombuffer(part, dtype=np.int64) for part in name] for name in names]  # type: ignore[call-overload]
    none = np.zeros(0, dtype=np.int64)
    columns, entries = (np.concatenate([none, *(part[side] for part in parts)]) for side in (0, 1))
    return Sparse(boxes, columns, entries, np.cumsum([0, *(part[0].size for part in parts)]))
