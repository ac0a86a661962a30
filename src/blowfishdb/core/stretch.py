"""Stretch: how far apart two values that one policy hides can be in the graph of another.

An answer given at ε under a graph G costs a pair (u, v) at most ε·d_G(u, v), whether or not it is an edge. So
what earlier answers lost under a new graph G\' is at most ε times the largest d_G over the edges of G\'.
"""

from __future__ import annotations

import math

import numpy as np

from blowfishdb.core.arrays import ceil_div
from blowfishdb.core.graphs import Apart, Apex, Cone, Full, Grid, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.inclusion import includes, longest_edge, shared_blocks, without_edges
from blowfishdb.core.protection import all_distances, extent

_MOST_CELLS = 1_500
_MOST_EDGES = 10**7


def stretch(old: PolicyGraph, new: PolicyGraph) -> float:
    """At least the largest distance in ``old`` of two values that ``new`` joins; ∞ if no path does.

    Exact for lines, partitions, products of them, and small graphs; otherwise an upper bound. Both are about
    the same values; one of them may have a vertex ⊥ more than the other.
    """
    if new.absent and isinstance(new, Cone):
        if not (old.absent and isinstance(old, Cone)):
            return math.inf
        return max(1.0, stretch(old, new.base))
    if isinstance(old, Cone) and (old.absent or old.apex is Apex.MISSING):
        return _around(old, new)
    if without_edges(new):
        return 0.0
    if includes(old, new):
        return 1.0
    if isinstance(old, Apart) and isinstance(new, Apart):
        return stretch(old.base, new.base)
    for rule in (_on_a_line, _on_a_grid, _factor_by_factor, _pair_by_pair):
        found = rule(old, new)
        if found is not None:
            return found
    farthest, split = extent(old)
    return math.inf if split else float(farthest)


def _around(old: Cone, new: PolicyGraph) -> float:
    """Over the vertex that is joined to all, any two are at most two steps apart."""
    if without_edges(new):
        return 0.0
    return 1.0 if includes(old, new) else 2.0


def _on_a_line(old: PolicyGraph, new: PolicyGraph) -> float | None:
    if isinstance(old, Partitioned):
        return math.inf  # it does not include the new one
    if not isinstance(old, Threshold):
        return None
    if isinstance(new, Full | Threshold | Partitioned):
        return float(ceil_div(longest_edge(new), old.theta))
    return float(ceil_div(old.size - 1, old.theta))


def _on_a_grid(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """Steps of length θ in an L1 metric: a move of length L takes ⌈L/θ⌉ where cells have width one."""
    if not (isinstance(old, Grid) and set(old.widths) == {1}):
        return None
    if isinstance(new, Grid) and new.shape == old.shape and set(new.widths) == {1}:
        longest = min(new.theta, sum(n - 1 for n in new.shape))
    elif isinstance(new, Product) and new.shape == old.shape:
        lengths = [0 if without_edges(factor) else longest_edge(factor) for factor in new.factors]
        longest = sum(lengths) if new.joint else max(lengths)
    else:
        longest = sum(n - 1 for n in old.shape)
    return float(ceil_div(longest, old.theta))


def _factor_by_factor(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """A joint step moves all columns at once, a Cartesian one only one of them."""
    if not isinstance(old, Product):
        return None
    if isinstance(new, Full):
        new = Product(*(Full(size) for size in old.shape))
    if isinstance(new, Grid) and new.shape == old.shape:
        axes = enumerate(new.shape)
        new = Product(*(Threshold(n, max(1, new.axis_reach(axis))) if n > 1 else Full(1) for axis, n in axes))
    if not isinstance(new, Product):
        return None
    blocks = shared_blocks(old, new)
    if blocks == [(old, new)]:
        return None
    each = [stretch(before, after) for before, after in blocks]
    return sum(each) if new.joint and not old.joint else max(each)


def _pair_by_pair(old: PolicyGraph, new: PolicyGraph) -> float | None:
    if old.size > _MOST_CELLS or new.edge_count > _MOST_EDGES:
        return None
    apart = all_distances(old)
    return max(float(np.max(apart[block[:, 0], block[:, 1]])) for block in new.edge_blocks())
