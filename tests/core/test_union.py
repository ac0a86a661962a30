"""The union of policy graphs has every edge of each; what is written out has no other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.graphs.union import between, covers, union

SIZE = 6


def pairs(graph: PolicyGraph) -> set[tuple[int, int]]:
    """Edges, with the vertex for "not counted" under a name of its own."""
    last = graph.size - 1 if graph.absent else None
    return {tuple(-1 if end == last else int(end) for end in edge) for edge in graph.edges()}  # type: ignore[misc]


@st.composite
def lines(draw: st.DrawFn, size: int = SIZE) -> PolicyGraph:
    """A graph of any kind over the cells of a line."""
    kind = draw(st.sampled_from(("full", "line", "parts", "banded", "pairs", "nothing", "apart")))
    if kind == "full":
        return bf.graphs.Full(size)
    if kind == "line":
        return bf.graphs.Threshold(size, draw(st.integers(1, size)))
    if kind == "parts":
        labels = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        return bf.graphs.Partitioned(np.unique(labels, return_inverse=True)[1])
    if kind == "banded":
        reach = sorted(draw(st.lists(st.integers(0, size - 1), min_size=size, max_size=size)))
        return bf.graphs.Banded(np.maximum(reach, np.arange(size)))
    if kind == "apart" and size > 1:
        return bf.graphs.Apart(bf.graphs.Full(size - 1))
    every = list(itertools.combinations(range(size), 2))
    some = draw(st.lists(st.sampled_from(every), max_size=4)) if kind == "pairs" and every else []
    return bf.graphs.Explicit(size, some)


@st.composite
def hiding(draw: st.DrawFn) -> PolicyGraph:
    """Over six cells: of one column, or of two."""
    graph = draw(lines())
    if draw(st.booleans()):
        graph = bf.graphs.Product(draw(lines(2)), draw(lines(3)), joint=draw(st.booleans()))
    return graph.hide_presence() if draw(st.sampled_from((False, False, True))) else graph


@given(graphs=st.lists(hiding(), min_size=2, max_size=3))
def test_union(graphs: list[PolicyGraph]) -> None:
    every = set().union(*(pairs(graph) for graph in graphs))
    smallest, *around = covers(graphs)
    assert smallest == union(graphs)
    assert pairs(smallest) == every  # six cells are written out
    assert all(every <= pairs(graph) for graph in around)


@given(graphs=st.lists(hiding(), min_size=2, max_size=3))
def test_graphs_between_hide_presence_wherever_one_does(graphs: list[PolicyGraph]) -> None:
    for graph in between(graphs):
        assert graph.absent == any(other.absent for other in graphs)
        assert graph.counted.size == SIZE


def test_lines_keep_their_shape() -> None:
    line, parts = bf.graphs.Threshold(64, 4), bf.graphs.Partitioned(np.arange(64) // 16)
    assert union([line, bf.graphs.Threshold(64, 9)]) == bf.graphs.Threshold(64, 9)
    assert union([line, bf.graphs.Full(64)]) == bf.graphs.Full(64)
    both = union([line, parts])
    assert isinstance(both, bf.graphs.Banded)
    assert covers([line, parts])[1] == bf.graphs.Threshold(64, 15)
    assert bf.graphs.Threshold(64, 8) in between([line, parts])
    assert all(graph.components().count == 1 for graph in between([line, parts]))


@pytest.mark.parametrize("joint", [False, True])
def test_what_is_too_large_to_write_out_is_covered(joint: bool) -> None:
    many, few = bf.graphs.Full(400), bf.graphs.Threshold(400, 2)
    one = bf.graphs.Product(many, few, joint=joint)
    other = bf.graphs.Product(few, many, joint=joint)
    cover = union([one, other])
    assert cover == bf.graphs.Product(many, many, joint=joint)
    assert includes(cover, one) and includes(cover, other)
