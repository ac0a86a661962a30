"""Hierarchical and Privelet: trees over a line of cells, the classical answers to ranges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray, ceil_div, whole
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.least_squares import LeastSquaresPlan
from blowfishdb.mechanisms.plan import Mechanism, Plan
from blowfishdb.mechanisms.strategy import Contrasts, tree_nodes

_LOG_BRANCHING = 3.0  # L levels over k cells err like L³·k^{1/L}: best near k^{1/L} = e³


@final
@dataclass(frozen=True)
class Hierarchical(Mechanism):
    """H_b: every node of a tree with the same noise, combined by least squares (Hay et al. 2010, [B14] §7.2).

    The root is measured only where presence is hidden; otherwise n is public. Without a ``fanout`` the exact
    error decides.

    *Guarantee*: ε-Blowfish for every graph. *Sensitivity*: K, the exact maximum over edges; 2h under the full
    policy for a tree of height h, h + 1 if records only come and go. *Error*: O(h²) nodes' worth, exact by
    least squares. *Theorem*: docs/proofs/hierarchical.md.
    """

    fanout: int | None = None

    def __post_init__(self) -> None:
        check_fanout(self.fanout)

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        if self.fanout is not None:
            return _tree_plan(workload, graph, self.fanout)
        return best_fanout(workload.size, lambda fanout: _tree_plan(workload, graph, fanout))


def _tree_plan(workload: Workload, graph: PolicyGraph, fanout: int) -> LeastSquaresPlan:
    root = np.zeros(1, dtype=np.int64), np.full(1, workload.size, dtype=np.int64)
    starts, stops = tree_nodes(*root, fanout)
    if graph.absent or workload.size == 1:
        starts, stops = np.append(root[0], starts), np.append(root[1], stops)
    strategy = Contrasts(workload.size, starts, stops, np.ones(starts.size, dtype=np.int64))
    reason = f"A tree of counts in which every node has up to {fanout:,} children."
    return LeastSquaresPlan(workload, graph, strategy, name=f"Hierarchical, fan-out {fanout}", reason=reason)


@final
@dataclass(frozen=True)
class Privelet(Mechanism):
    """Haar wavelets (Xiao, Wang and Gehrke 2010), as whole numbers: left half minus right half of every node.

    The published noise λ/W(c) on a coefficient c = (left − right)/|node| with weight W(c) = |node| is noise λ
    on the whole number left − right: all rows have weight one. The base coefficient is n, measured only where
    presence is hidden. Halves differ by at most one cell, so no cell is made up where k is not a power of
    two.

    *Guarantee*: ε-Blowfish for every graph. *Sensitivity*: K, exact; 2·⌈log₂ k⌉ under the full policy, 1 +
    ⌈log₂ k⌉ if records only come and go (the paper's ρ). *Error*: O(log² k) coefficients' worth; k − 1 rows
    and n determine the cells, so least squares is the inverse transform. *Theorem*:
    docs/proofs/hierarchical.md.
    """

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        size = workload.size
        nodes = tree_nodes(np.zeros(1, dtype=np.int64), np.full(1, size, dtype=np.int64), 2)
        starts, stops = np.append(0, nodes[0]), np.append(size, nodes[1])
        wide = stops - starts > 1
        low, high = starts[wide], stops[wide]
        middle = low + (high - low) // 2
        plus, minus = (low, middle), (middle, high)
        if graph.absent or size == 1:
            plus = np.append(0, plus[0]), np.append(size, plus[1])
            minus = np.append(0, minus[0]), np.append(0, minus[1])
        strategy = Contrasts(size, *plus, np.ones(plus[0].size, dtype=np.int64), minus=minus)
        reason = "Every interval of a binary tree is measured as its left half minus its right half."
        return LeastSquaresPlan(workload, graph, strategy, name="Privelet", reason=reason)


def check_fanout(fanout: int | None) -> None:
    """A number of children, at least two."""
    if fanout is not None and whole(fanout, "A fan-out", InvalidWorkload) < 2:
        raise InvalidWorkload(
            "A tree needs at least two children per node.", fixes=("choose a fan-out such as 16",)
        )


def best_fanout(span: int, plan: Callable[[int], LeastSquaresPlan]) -> LeastSquaresPlan:
    """The plan of least exact error: from the usual height, higher or lower as long as that improves."""
    heights = {fanout_for(span, height): height for height in range(max(1, (span - 1).bit_length()), 0, -1)}
    fanouts = sorted(heights)
    start = min(fanouts, key=lambda f: abs(heights[f] - math.log(span) / _LOG_BRANCHING))
    best = plan(start)
    for step in (1, -1):
        for index in _onwards(fanouts.index(start), step, len(fanouts)):
            candidate = plan(fanouts[index])
            if candidate.unit_error >= best.unit_error:
                break
            best = candidate
    return best


def _onwards(place: int, step: int, count: int) -> Iterator[int]:
    place += step
    while 0 <= place < count:
        yield place
        place += step


def fanout_for(span: int, height: int) -> int:
    """The least fan-out, at least two, with which ``height`` levels cover ``span`` cells."""
    fanout = max(2, math.floor(span ** (1 / height)))
    while fanout**height < span:
        fanout += 1
    return int(fanout)


def height_for(span: int, fanout: int) -> int:
    """⌈log_fanout span⌉ in whole numbers."""
    height = 0
    while span > 1:
        span, height = ceil_div(span, fanout), height + 1
    return height


def blocks(size: int, width: int) -> tuple[IntArray, IntArray]:
    """Intervals of ``width`` cells, the last possibly shorter."""
    starts = np.arange(0, size, width, dtype=np.int64)
    return starts, np.minimum(starts + width, size)
