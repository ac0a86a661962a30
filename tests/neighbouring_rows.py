"""Neighbouring tables of a small dataset, row by row, and what answers tell apart between them.

Everything here is written from the definitions and shares no code with what it checks: a row is a tuple of
cells, with None where its column drops it; ⊥ is the row of somebody who is not in the table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByRows

Row = tuple[int | None, ...] | None
ABSENT: Row = None


def all_rows(domain: Domain, *, absent: bool) -> list[Row]:
    """Every row that a table may hold; with ``absent`` also none at all."""
    columns = [
        [*range(attribute.size), *([None] if attribute.may_drop else [])] for _, attribute in domain.columns
    ]
    return [*itertools.product(*columns), *([ABSENT] if absent else [])]


def neighbours(policy: Policy) -> Iterator[tuple[Row, Row]]:
    """Every two rows that the policy hides, once: one person's row is the one or the other.

    They are joined if they differ, and the policy joins what is left of them in the columns that drop neither
    (or these are equal): a dropped value stands for every other. Nobody and anybody are joined where presence
    is hidden.
    """
    shape = policy.domain.shape
    cells = policy.domain.size
    joined = [
        tuple(tuple(int(i) for i in np.unravel_index(end, shape)) for end in edge)
        for edge in policy.graph.edges().tolist()
        if max(edge) < cells
    ]
    columns = range(len(shape))
    seen_in: dict[tuple[int, ...], set[tuple[tuple[int, ...], ...]]] = {}
    for kept in itertools.chain.from_iterable(
        itertools.combinations(columns, n) for n in range(len(shape) + 1)
    ):
        pairs = {tuple(tuple(end[i] for i in kept) for end in edge) for edge in joined}
        seen_in[kept] = pairs | {(v, u) for u, v in pairs}
    for u, v in itertools.combinations(all_rows(policy.domain, absent=policy.hides_presence), 2):
        if u is ABSENT or v is ABSENT:
            yield u, v
            continue
        kept = tuple(i for i in columns if u[i] is not None and v[i] is not None)
        ends = tuple(u[i] for i in kept), tuple(v[i] for i in kept)
        if ends[0] == ends[1] or ends in seen_in[kept]:
            yield u, v


def lost_between(u: Row, v: Row, releases: Iterable[ByRows], domain: Domain) -> Fraction | float:
    """What releases tell apart between two rows of one person who is in ``people`` of them."""
    lost: Fraction | float = Fraction(0)
    for release in releases:
        rows = release.rows.sparse().toarray()
        ends = [_column(rows, box_of(end, release, domain)) for end in (u, v)]
        for change, scale in zip(ends[0] - ends[1], (release.scales[i] for i in release.which), strict=True):
            if change:
                lost += release.rows_per_person * abs(int(change)) / scale if scale else math.inf
    return lost


def box_of(row: Row, release: ByRows, domain: Domain) -> int | None:
    """The box that a release counts a row in; None if it counts it nowhere."""
    if row is ABSENT:
        return None
    place = 0
    for axis in release.axes:
        cell = row[domain.names.index(axis.column)]
        if cell is None:
            return None
        place = place * axis.bins.count + int(axis.bins.assign([cell])[0])
    return place


def _column(rows: np.ndarray, box: int | None) -> np.ndarray:
    return np.zeros(len(rows), dtype=np.int64) if box is None else rows[:, box]


def most_lost(releases: Sequence[ByRows], policy: Policy) -> Fraction | float:
    """The largest loss of all releases together over every two rows that the policy hides."""
    lost = (lost_between(u, v, releases, policy.domain) for u, v in neighbours(policy))
    return max(lost, default=Fraction(0))
