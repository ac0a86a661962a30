"""How far apart the cells of one class are: what a class contributes when it loses one record and gains
another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.constraints.moves import Moves
from blowfishdb.core.graphs import Full, PolicyGraph

_MOST_EDGES = 10**6
_AT_ONCE = 10**6


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """The largest cost of a move inside each class, and from each cell to the rest of its class.

    ``farthest`` is None where only upper bounds of ``widths`` are known.
    """

    classes: IntArray
    widths: NDArray[Any]
    farthest: NDArray[Any] | None

    @property
    def widest(self) -> int:
        """The most that any move inside a class costs."""
        return int(self.widths.max())

    @property
    def total(self) -> int:
        """Once round all classes: every one of them loses a record and gains another."""
        return sum(self.widths.tolist())

    def around(self, graph: PolicyGraph) -> int:
        """The same when one of the moves from class to class is along an edge of the policy."""
        if self.farthest is None or isinstance(graph, Full) or graph.edge_count > _MOST_EDGES:
            return self.total
        u, v = graph.edges().T
        across = self.classes[u] != self.classes[v]
        u, v = u[across], v[across]
        if not u.size:
            return 0
        lost = self.widths[self.classes] - self.farthest
        return self.total - int((lost[u] + lost[v]).min())


def spread(classes: IntArray, moves: Moves) -> Spread:
    """Class by class; classes with the same cells of the question are looked at once.

    Where pairs are too many, widths are bounded from one cell of each class by the triangle inequality.
    """
    pairs = np.unique(classes * moves.asked.size + moves.labels)
    groups = np.split(pairs % moves.asked.size, np.flatnonzero(np.diff(pairs // moves.asked.size)) + 1)
    sets: dict[bytes, IntArray] = {}
    keys = [group.tobytes() for group in groups]
    for key, group in zip(keys, groups, strict=True):
        sets.setdefault(key, group)
    if sum(group.size**2 for group in sets.values()) > 10 * LIMIT:
        bounds = {key: _from_one(group, moves) for key, group in sets.items()}
        return Spread(classes, np.array([bounds[key] for key in keys], dtype=object), None)
    found = {key: _farthest(group, moves) for key, group in sets.items()}
    widths = np.array([max(found[key]) for key in keys], dtype=object)
    each = np.concatenate([found[key] for key in keys])
    place = np.searchsorted(pairs, classes * moves.asked.size + moves.labels)
    return Spread(classes, widths, each[place])


def _from_one(labels: IntArray, moves: Moves) -> int:
    if labels.size == 1:
        return 0
    costs = moves.between(np.full_like(labels, labels[0]), labels)
    return min(2 * int(costs.max()), moves.anywhere)


def _farthest(labels: IntArray, moves: Moves) -> NDArray[Any]:
    """For every label, the largest cost of a move to another."""
    if labels.size == 1:
        return np.zeros(1, dtype=object)
    rows = max(1, _AT_ONCE // labels.size)
    found = []
    for start in range(0, labels.size, rows):
        some = labels[start : start + rows]
        here, there = np.repeat(some, labels.size), np.tile(labels, some.size)
        costs = np.asarray(moves.between(here, there))
        found.append(costs.reshape(some.size, -1).max(axis=1).astype(object))
    return np.concatenate(found)
