"""How sure an attacker can become: the meaning of a policy and a budget, in numbers.

Someone who thought two values equally likely and then sees every answer that a budget B allows has odds of at
most e^(d·B), where d is the distance of the two values in the policy graph ([B14] Def. 4.2, d times).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.errors import NotFinite
from blowfishdb.core.graphs import Explicit, Grid, PolicyGraph
from blowfishdb.core.policy.columns import data_distance, shown_cell, shown_distance, typed_cell, values_graph
from blowfishdb.core.policy.policy import Policy, own_graph

MOST_STEPS = 60
SURE = 0.999
"""Beyond this nothing is left to draw."""
CERTAIN = 0.9995
"""From here on a certainty is "over 99.9 %", and someone who has it "practically certain"."""

_ALL_PAIRS = 1_500  # cells of an explicit graph whose distances are all computed


def certainty(loss: float) -> float:
    """How sure someone who thought two values equally likely can become: e^L / (1 + e^L) at a loss L."""
    if math.isnan(loss) or loss < 0:
        raise NotFinite(f"A privacy loss is at least zero, not {loss}.")
    return 1 / (1 + math.exp(-loss))


def certainty_at(distance: int | float, budget: Epsilon) -> float:
    """The same for two values a number of edges apart, after everything a budget allows."""
    return 1.0 if math.isinf(distance) else certainty(distance * float(budget))


def percent(sure: float) -> str:
    """A certainty as people read it. Only what is certain is called 100 %."""
    if sure >= 1:
        return "100 %"
    if sure >= CERTAIN:
        return "over 99.9 %"
    shown = round(100 * sure, 1)
    return f"{shown:g} %" if shown >= 98.5 or shown < 51 else f"{100 * sure:.0f} %"


def at_most(sure: float) -> str:
    """What an attacker can become at a certainty, in words."""
    return f"at most {percent(sure)} sure" if sure < CERTAIN else "practically certain"


# --- two values ---------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Probe:
    """Two values of a column and how sure an attacker can become which one it is.

    ``distance`` is in edges of the policy graph, None if the policy never hides which of the two it is.
    """

    column: str
    first: str
    second: str
    distance: int | None
    certainty: float
    sentence: str


def probe(policy: Policy, column: str, u: object, v: object, budget: Epsilon) -> Probe:
    """How well the policy hides which of two values someone has."""
    attribute = policy.domain[column]
    cells = typed_cell(attribute, u), typed_cell(attribute, v)
    distance = own_graph(policy, column).distance(*cells)
    sure = certainty_at(distance, budget)
    first, second = (shown_cell(attribute, cell) for cell in cells)
    if distance == 0:
        outcome = "The data does not tell them apart: still 50 %."
    elif math.isinf(distance):
        outcome = "Not hidden: an attacker may become certain (was 50 %)."
    else:
        outcome = f"{at_most(sure).capitalize()} (was 50 %)."
    steps = None if math.isinf(distance) else int(distance)
    return Probe(column, first, second, steps, sure, f"{first} or {second}? {outcome}")


# --- all distances ------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Step:
    """The largest certainty about any two values this far apart.

    Values more than ``low`` and at most ``high`` apart, in data units (in the column's units for dates);
    both None where values have no distance. ``distance`` is None where nothing hides such a pair.
    """

    apart: str
    low: float | None
    high: float | None
    distance: int | None
    certainty: float


def curve(policy: Policy, column: str, budget: Epsilon) -> tuple[Step, ...]:
    """Certainty against the distance of two values, in the worst case over all pairs that far apart.

    It ends where certainty reaches 99.9 %, or at the largest distance. Where there would be more than
    60 steps, neighbouring ones are merged and the largest certainty of each is kept.
    """
    attribute = policy.domain[column]
    graph, missing = values_graph(policy, column)
    capped = (
        missing or policy.hides_presence
    )  # a vertex joined to all makes every two values at most two apart
    if attribute.value_count == 1:
        return ()
    line = attribute.ordered and graph.size == attribute.value_count
    unlisted = graph.reach is None and graph.size > _ALL_PAIRS  # not all distances are computed
    if not line or graph.cliques is not None or unlisted:
        return tuple(_by_kind(graph, budget, capped))
    return tuple(_along(attribute, _ladder(graph, budget, capped), budget))


Rung = tuple[float, int]
"""A distance in edges (perhaps infinite) and the largest index distance up to which it is enough."""


def _ladder(graph: PolicyGraph, budget: Epsilon, capped: bool) -> Iterator[Rung]:
    if graph.reach is None:
        yield from _worst_pairs(graph, capped)
    elif not capped:
        yield from _greedy(graph, budget)
    else:
        yield 1, _covered(graph, 1)
        if not graph.complete:
            yield 2, graph.size - 1


def _greedy(graph: PolicyGraph, budget: Epsilon) -> Iterator[Rung]:
    """At most 60 distances, evenly spread up to the one at which nothing is left to hide."""
    last = graph.size - 1
    enough = math.ceil(math.log(SURE / (1 - SURE)) / float(budget)) if budget else last
    most = ceil_div(last, graph.line_reach or 1)
    connected = graph.components().count == 1
    stride = max(1, ceil_div(min(enough, most), MOST_STEPS))
    reached = 0
    for distance in range(stride, min(enough, most) + stride, stride):
        here = _covered(graph, distance)
        if here > reached:
            yield distance, here
        if here == last:
            return
        if here == reached and not connected:
            break
        reached = here
    if not connected:
        yield math.inf, last


def _covered(graph: PolicyGraph, distance: int) -> int:
    """The largest k such that every two cells at most k apart are at most ``distance`` edges apart.

    Where cells reach differently far, ``distance`` greedy jumps from i end at r(i), and jumping is repeated
    squaring of r. Cells k apart need more jumps iff some r(i) falls short of both i + k and the last cell.
    """
    last = graph.size - 1
    if graph.line_reach is not None:
        return min(distance * graph.line_reach, last)
    jump, left = graph.right_ends(), distance
    assert jump is not None  # its edges are intervals: it has a reach
    ends: IntArray = np.arange(graph.size)
    while left:
        if left & 1:
            ends = jump[ends]
        jump, left = jump[jump], left >> 1
    return int((ends - np.arange(graph.size))[ends < last].min(initial=last))


def _worst_pairs(graph: PolicyGraph, capped: bool) -> Iterator[Rung]:
    """From the distances of all pairs; they need not grow with the distance of the values."""
    apart = all_distances(graph)
    if capped:
        apart = np.minimum(apart, 2)
    worst = [float(np.diagonal(apart, offset).max()) for offset in range(1, graph.size)]
    runs = [(distance, len(list(run))) for distance, run in itertools.groupby(worst)]
    ends = list(itertools.accumulate(length for _, length in runs))
    stride = ceil_div(len(runs), MOST_STEPS)
    for start in range(0, len(runs), stride):
        merged = runs[start : start + stride]
        yield max(distance for distance, _ in merged), ends[start + len(merged) - 1]


def all_distances(graph: PolicyGraph) -> FloatArray:
    """The distance in edges of every two cells."""
    edges = graph.edges()
    table = scipy.sparse.csr_array(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(graph.size, graph.size)
    )
    return np.asarray(scipy.sparse.csgraph.shortest_path(table, directed=False, unweighted=True))


def _along(attribute: Attribute, ladder: Iterator[Rung], budget: Epsilon) -> Iterator[Step]:
    covered, worst = 0, 0.0
    for distance, upto in ladder:
        sure = certainty_at(distance, budget)
        low, high = (float(data_distance(attribute, cells)) for cells in (covered, upto))
        far = shown_distance(attribute, upto)
        apart = f"up to {far}" if sure >= worst else f"{shown_distance(attribute, covered + 1)} to {far}"
        yield Step(apart, low, high, None if math.isinf(distance) else int(distance), sure)
        covered, worst = upto, max(worst, sure)


def _by_kind(graph: PolicyGraph, budget: Epsilon, capped: bool) -> Iterator[Step]:
    """Where values have no distance: what joins two of them, and how many such steps it takes."""
    farthest, split = extent(graph)
    grouped = graph.cliques is not None
    names = {1: "in the same group", math.inf: "in different groups"} if grouped else {}
    if farthest == 1 and not split:
        names = {1: "any two values"}
    elif not farthest:
        names = {math.inf: "any two values"}
    distances: list[float] = [*range(1, farthest + 1), *([math.inf] if split else [])]
    if capped and any(distance > 1 for distance in distances):
        names[2] = names.get(math.inf, "any other two values")
        distances = [distance for distance in distances if distance == 1] + [2]
    for distance in distances:
        sure = certainty_at(distance, budget)
        finite = None if math.isinf(distance) else int(distance)
        yield Step(names.get(distance) or _steps_apart(distance), None, None, finite, sure)
        if SURE <= sure < 1 or distance >= MOST_STEPS:
            return


def _steps_apart(distance: float) -> str:
    if math.isinf(distance):
        return "not joined by any chain of pairs"
    return "joined by the policy" if distance == 1 else f"{distance:g} steps apart"


def extent(graph: PolicyGraph) -> tuple[int, bool]:
    """The largest finite distance of two cells (for long lists and grids at least), and whether some are
    infinite.
    """
    if graph.size == 1:
        return 0, False
    if graph.line_reach is not None:
        return ceil_div(graph.size - 1, graph.line_reach), False
    if isinstance(graph, Grid):
        longest = sum(int(graph.cost(axis, n - 1)) for axis, n in enumerate(graph.shape))
        return ceil_div(longest, graph.theta), False
    split = graph.components().count > 1
    if graph.cliques is not None:
        return int(graph.edge_count > 0), split
    if graph.edge_count == 0:
        return 0, True
    if graph.size <= _ALL_PAIRS:
        apart = all_distances(graph)
        return int(apart[np.isfinite(apart)].max()), split
    joined = np.unique(graph.pairs).size if isinstance(graph, Explicit) else graph.size
    return joined - 1, split
