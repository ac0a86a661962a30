"""What a policy is made of: which columns each of its graphs is about, and every column's own graph."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from blowfishdb.core.arrays import ceil_div
from blowfishdb.core.bins import Bins, ProductBins, single_cells, whole_bin
from blowfishdb.core.graphs import (
    Apex,
    Cone,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)

if TYPE_CHECKING:
    from blowfishdb.core.policy import Policy


@final
@dataclass(frozen=True)
class Part:
    """A graph over the combined values of some neighbouring columns."""

    columns: tuple[str, ...]
    graph: PolicyGraph


@final
@dataclass(frozen=True)
class Parts:
    """A policy taken apart. ``joint``: all parts of a record may move at once; otherwise one at a time."""

    parts: tuple[Part, ...]
    joint: bool
    hides_presence: bool

    def of(self, column: str) -> Part:
        """The part that is about a column."""
        return next(part for part in self.parts if column in part.columns)

    @property
    def whole_record(self) -> bool:
        """Whether every two records are joined, whatever their columns."""
        return len(self.parts) == 1 and isinstance(self.parts[0].graph, Full)


def parts_of(policy: Policy) -> Parts:
    """The policy, factor by factor. A graph that is no product is one part about all columns."""
    domain = policy.domain
    graph = policy.graph.base if policy.hides_presence and isinstance(policy.graph, Cone) else policy.graph
    columns = tuple((name, domain[name].size) for name in domain.names)
    joint = not isinstance(graph, Product) or graph.joint or len(columns) == 1
    found = _parts(graph, columns, joint) or (Part(domain.names, graph),)
    return Parts(found, joint, policy.hides_presence)


def _parts(graph: PolicyGraph, columns: tuple[tuple[str, int], ...], joint: bool) -> tuple[Part, ...] | None:
    """None when the factors of the graph do not end where columns end."""
    factors = _factors(graph, tuple(size for _, size in columns), joint)
    if factors is None:
        return (Part(tuple(name for name, _ in columns), _joined(graph)),)
    found: list[Part] = []
    taken = 0
    for factor in factors:
        start = taken
        while taken < len(columns) and (taken == start or _size(columns[start:taken]) < factor.size):
            taken += 1
        inner = _parts(factor, columns[start:taken], joint)
        if _size(columns[start:taken]) != factor.size or inner is None:
            return None
        found += inner
    rest = columns[taken:]  # columns of a single cell, which no factor needs
    return (*found, *(Part((name,), Full(size)) for name, size in rest)) if _size(rest) == 1 else None


def _factors(graph: PolicyGraph, shape: tuple[int, ...], joint: bool) -> tuple[PolicyGraph, ...] | None:
    """The factors of a graph that is composed in this way; None if it is one piece."""
    if isinstance(graph, Product) and (graph.joint == joint or len(graph.factors) == 1):
        return graph.factors
    if len(shape) == 1:
        return None
    if isinstance(graph, Partitioned) and isinstance(graph.parts, ProductBins) and joint:
        return tuple(Partitioned(factor) for factor in graph.parts.factors)
    if isinstance(graph, Explicit) and graph.edge_count == 0:
        return tuple(Explicit(size, ()) for size in shape)
    return None


def _joined(graph: PolicyGraph) -> PolicyGraph:
    """Where every two values are joined, and each to the missing one, everything is."""
    complete = isinstance(graph, Cone) and graph.apex is Apex.MISSING and isinstance(graph.base, Full)
    return Full(graph.size) if complete or graph.size == 1 else graph


def _size(columns: tuple[tuple[str, int], ...]) -> int:
    return math.prod(size for _, size in columns)


def own_graph(policy: Policy, column: str) -> PolicyGraph:
    """What the policy says about the values of one column alone: its projection onto them.

    The kind of graph is kept (a partition stays a partition), and nothing is written out. With hidden
    presence the last vertex is ⊥.
    """
    _ = policy.domain[column]
    found = parts_of(policy)
    part = found.of(column)
    sizes = {name: policy.domain[name].size for name in part.columns}
    graph = _onto(part, column, sizes)
    return graph.hide_presence() if found.hides_presence else graph


def _onto(part: Part, column: str, sizes: dict[str, int]) -> PolicyGraph:
    graph, size = part.graph, sizes[column]
    if size == 1:
        return Full(1)
    if isinstance(graph, Full):
        return Full(size)
    if isinstance(graph, Grid) and graph.shape == tuple(sizes.values()):
        axis = part.columns.index(column)
        return Threshold(size, ceil_div(graph.theta, graph.widths[axis]))
    if len(part.columns) == 1:
        return graph
    boxes = (single_cells(n) if name == column else whole_bin(n) for name, n in sizes.items())
    projected = graph.project(Bins.product(*boxes))
    return _moving(projected) if isinstance(projected, Product) else projected


def _moving(graph: Product) -> PolicyGraph:
    """The one factor that is not a single cell."""
    return next((factor for factor in graph.factors if factor.size > 1), Full(1))


def without_presence(graph: PolicyGraph) -> PolicyGraph:
    """The graph of the values alone, without ⊥."""
    return graph.base if isinstance(graph, Cone) and graph.apex is Apex.PRESENCE else graph
