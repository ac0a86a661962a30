"""From aggregates and a policy to the small problem: boxes, and three facts about hidden moves between them.

Which boxes a row can move between is told by the policy over them; how far a value moves inside one is taken
to be as far as it moves at all, which is exact unless values move further only together with their group.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import Bins, common_bins, whole_bin
from blowfishdb.core.domain.domain import Axis, CellQuery, Domain
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy.columns import values_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregate_problem import AggregateProblem, SumQuery, SumsProblem
from blowfishdb.core.questions.aggregates import (
    AggregateQuestion,
)
from blowfishdb.core.questions.kinds import inside_a_cell, units_of
from blowfishdb.core.questions.several_columns import ColumnsProblem
from blowfishdb.core.questions.sum_rows import sum_rows
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import ValueSum

_MOST_SQUARED: Final = 2**18
"""Cells of a column: of more, the squares of 10⁸ rows are beyond 64 bits."""
_MOST_MOVES: Final = 2 * 10**7


def project_aggregates(question: AggregateQuestion, policy: Policy) -> SumsProblem:
    """The small problem: boxes of groups and condition, and the facts about hidden moves between them."""
    if policy.constraints is not None:
        raise NotProven(
            "Aggregates in groups or under a condition are not proven private where something about the "
            "data is already known.",
            fixes=("ask for a histogram",),
        )
    domain, where = policy.domain, question.where
    where.check(domain)
    cells = CellQuery(_axes(question, domain))
    graph = policy.project({axis.column: axis.bins for axis in cells.axes})
    if any(axis.attribute.may_drop for axis in cells.axes) and not graph.absent:
        graph = Cone(graph, Apex.OUTSIDE)
    boxes = np.unravel_index(np.arange(cells.count), cells.shape)
    members = {axis.column: axis.bins.first(box) for axis, box in zip(cells.axes, boxes, strict=True)}
    inside = np.broadcast_to(where.on_cells(domain, members), (cells.count,))
    shape = tuple(axis.bins.count for axis in question.groups)
    group = np.zeros(cells.count, dtype=np.int64)
    if shape:
        group = np.ravel_multi_index(
            tuple(axis.bins.assign(members[axis.column]) for axis in question.groups), shape
        )

    def one_column(asked: AggregateQuestion) -> tuple[AggregateProblem, IntArray]:
        value, groups = asked.value, math.prod(shape)
        valued = inside
        if value is not None:
            valued = inside & (members[value.column] < value.attribute.value_count)
        part, all_rows = np.where(valued, group, -1), ""
        if asked.counts_rows and value is not None and value.attribute.has_missing_cell:
            together = _crossing(np.where(inside, group, -1), graph)
            part = np.where(inside & ~valued, groups + group, part)
            all_rows = "noisy" if together else "exact"
        labels = part if all_rows == "noisy" else np.where(valued, group, -1)
        hidden = _crossing(labels, graph)
        return _problem(asked, policy, cells, graph, part, all_rows, hidden, boxes), labels

    if not question.others:
        return one_column(question)[0]
    parts, labels = zip(*(one_column(question.about(axis.column)) for axis in question.values), strict=True)
    return ColumnsProblem.of(question, parts, labels, graph, policy)


def _problem(
    question: AggregateQuestion,
    policy: Policy,
    cells: CellQuery,
    graph: PolicyGraph,
    part: IntArray,
    all_rows: str,
    hidden: int,
    boxes: tuple[IntArray, ...],
) -> AggregateProblem:
    value = question.value
    summed = value is not None and any(each.of != "count" for each in question.measures)
    lowest, width, reach, first, step = 0, 0, 0, Fraction(0), Fraction(1)
    if value is not None and summed:
        place = next(at for at, axis in enumerate(cells.axes) if axis.column == value.column)
        bins = cells.axes[place].bins
        used = np.unique(
            boxes[place][(part >= 0) & (part < math.prod(axis.bins.count for axis in question.groups))]
        )
        if used.size:
            lowest = int(bins.first(used).min())
            width = int(bins.last(used).max()) - lowest
        reach = min(_reach(policy, value.column), width)
        _, start, step = units_of(value)
        first = start + step * lowest
    narrow = value is None or not inside_a_cell(value)
    rows = sum_rows(question.measures, width, hidden, reach, first, step, alone=narrow)
    if rows.degree == 2 and value is not None and value.attribute.size > _MOST_SQUARED:
        raise TooLarge(
            f"'{value.column}' has {value.attribute.size:,} cells; a variance has at most {_MOST_SQUARED:,}.",
            fixes=("ask for the mean", "ask the curator to declare a larger step"),
        )
    query = SumQuery(cells, value.column if value is not None and rows.degree else None, rows.degree)
    return AggregateProblem(question, query, graph, part, rows, lowest, width, all_rows)


def _axes(question: AggregateQuestion, domain: Domain) -> tuple[Axis, ...]:
    """Every column of the question, cut wherever groups, the condition or missing values tell rows apart."""
    cut: dict[str, Bins] = {}
    named = [(axis.column, axis.bins) for axis in (*question.groups, *question.values)]
    for name, bins in (*named, *question.where.cuts(domain).items()):
        cut[name] = common_bins(cut.get(name), bins, domain[name].size)
    if not cut:  # all rows: counted along a column that drops none, where there is one
        keeping = (name for name, attribute in domain.columns if not attribute.may_drop)
        name = next(keeping, domain.names[0])
        cut[name] = whole_bin(domain[name].size)
    return tuple(Axis(name, domain[name], cut[name]) for name in domain.names if name in cut)


def _crossing(part: IntArray, graph: PolicyGraph) -> int:
    """2 if a hidden move takes a row from one part to another, 1 if only in or out of them, 0 if neither.

    2 is assumed where there are too many moves to look through and none of those that were is one.
    """
    counted = part >= 0
    if not counted.any():
        return 0
    crossing = int(graph.absent)
    if counted.all() and (part == part[0]).all():
        return crossing
    seen = 0
    for block in graph.counted.edge_blocks():
        here, there = part[block[:, 0]], part[block[:, 1]]
        apart = here != there
        if (apart & (here >= 0) & (there >= 0)).any():
            return 2
        crossing = max(crossing, int(apart.any()))
        seen += len(block)
        if seen > _MOST_MOVES:
            return 2
    return crossing


def _reach(policy: Policy, column: str) -> int:
    """How many cells apart two values can be that the policy hides from each other."""
    graph, _ = values_graph(policy, column)
    if graph.complete:
        return graph.size - 1
    try:
        return scaled_sensitivity(ValueSum(graph.size), graph)
    except TooLarge:
        return graph.size - 1
