"""What every policy graph has to do: a new kind of graph is right if it passes ``check_graph``."""

from __future__ import annotations

import json
from functools import reduce

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.core.workloads import Cumulative, Histogram
from tests.core import oracle


def check_graph(graph: PolicyGraph, table: np.ndarray, rng: np.random.Generator) -> None:
    """``table`` says of every two cells whether they are a secret pair: the definition, written out."""
    size = table.shape[0]
    assert graph.size == size
    assert (oracle.adjacency(graph) == table).all()
    assert graph.edge_count == table.sum() // 2
    edges = graph.edges()
    assert (edges[:, 0] < edges[:, 1]).all() and len(np.unique(edges, axis=0)) == len(edges)
    distances = shortest_path(csr_array(table), unweighted=True)
    for u in range(size):
        for v in range(size):
            assert graph.has_edge(u, v) == table[u, v]
            assert graph.distance(u, v) == distances[u, v]
    labels = connected_components(csr_array(table))[1]
    own = graph.components().assignment()
    assert ((labels[:, None] == labels) == (own[:, None] == own)).all()
    spans = {int(v - u) for u, v in edges}
    assert graph.reach is None or spans == set(range(1, graph.reach + 1))
    assert graph.span is None or graph.span == max(spans, default=0)
    assert graph.describe()
    _check_structure(graph, table)
    _check_projection(graph, table, rng)
    _check_plain_form(graph, table)
    _check_sensitivity(graph, table)


def _check_structure(graph: PolicyGraph, table: np.ndarray) -> None:
    """What a graph says of its structure is so; a graph may say nothing."""
    size = len(table)
    cells = np.arange(size)
    apart = np.abs(cells[:, None] - cells)
    assert not graph.complete or (table == (apart > 0)).all()
    assert graph.edgeless == (not table.any())
    assert not graph.axes or np.prod(graph.axes) == size
    assert graph.line_reach is None or (table == ((apart > 0) & (apart <= graph.line_reach))).all()
    if graph.cliques is not None:
        part = graph.cliques.assignment()
        assert (table == ((part[:, None] == part) & (apart > 0))).all()
    ends = graph.right_ends()
    assert graph.reach is None or ends is not None
    if ends is not None:
        low, high = np.minimum.outer(cells, cells), np.maximum.outer(cells, cells)
        assert (table == ((low < high) & (high <= ends[low]))).all() and (np.diff(ends) >= 0).all()
    split = graph.without_last()
    if split is not None:
        assert (oracle.adjacency(split[0]) == table[:-1, :-1]).all()
        assert (table[-1, :-1] == split[1]).all()
    if graph.factors:
        pairs = [np.eye(len(own), dtype=bool) | own for own in map(oracle.adjacency, graph.factors)]
        allowed = reduce(np.kron, pairs)  # every attribute stays or moves along an edge
        here = np.stack(np.unravel_index(cells, [factor.size for factor in graph.factors]))
        moved = (here[:, :, None] != here[:, None, :]).sum(axis=0)
        assert (table == (allowed & (moved > 0 if graph.joint else moved == 1))).all()


def _check_projection(graph: PolicyGraph, table: np.ndarray, rng: np.random.Generator) -> None:
    """Two bins adjoin where some pair of their members does."""
    if graph.absent:  # nobody is counted with those who are not there
        return
    bins = oracle.random_bins(rng, graph.size)
    expected = oracle.brute_force_projection(table, bins.assignment())
    assert (oracle.adjacency(graph.project(bins)) == expected).all()


def _check_plain_form(graph: PolicyGraph, table: np.ndarray) -> None:
    """What is stored is what was declared."""
    stored = json.loads(json.dumps(graph.to_plain()))
    again = PolicyGraph.from_plain(stored)
    assert type(again) is type(graph) and (oracle.adjacency(again) == table).all()


def _check_sensitivity(graph: PolicyGraph, table: np.ndarray) -> None:
    """The most that answers change along an edge, over all edges."""
    counted = graph.size - graph.absent
    for workload in (Histogram(counted), Cumulative(counted)) if counted else ():
        assert sensitivity(workload, graph) == oracle.brute_force_sensitivity(workload, table)
