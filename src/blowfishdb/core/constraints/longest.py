"""The longest simple cycle and path of a small directed graph.

Finding them is hard in general, so the search has a limit; beyond it a proven upper bound is given: a cycle
stays inside one strongly connected component, and a path uses no vertex twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

WORK = 200_000
"""How many steps a search may take."""

Successors = Sequence[AbstractSet[int]]


@final
@dataclass(frozen=True)
class Longest:
    """A length: the longest that was found, and what no length exceeds. They agree when it is exact."""

    found: int
    at_most: int

    @property
    def exact(self) -> bool:
        """Whether the search came to an end."""
        return self.found == self.at_most


def longest_cycle(successors: Successors, work: int = WORK) -> Longest:
    """The number of edges of the longest simple cycle; 0 if there is none."""
    best, bound = 0, 0
    for part in sorted(_components(successors), key=len, reverse=True):
        if len(part) == 1:
            continue
        if len(part) <= best:
            break
        inside = {vertex: successors[vertex] & part for vertex in part}
        found = Longest(len(part), len(part)) if _complete(inside) else _cycle_within(inside, part, work)
        best, bound = max(best, found.found), max(bound, found.at_most)
    return Longest(best, max(best, bound))


def _complete(inside: dict[int, AbstractSet[int]]) -> bool:
    """Where everything leads to everything, one cycle visits all."""
    return all(len(found) == len(inside) - 1 for found in inside.values())


def _cycle_within(inside: dict[int, AbstractSet[int]], part: frozenset[int], work: int) -> Longest:
    """Every cycle has a smallest vertex: start there and use larger ones only."""
    best, steps = 0, 0
    for start in sorted(part):
        allowed = {vertex for vertex in part if vertex >= start}
        if len(allowed) <= best:
            break
        for length, closes in _walks(inside, start, allowed):
            steps += 1
            if start in closes and length > 0:
                best = max(best, length + 1)
            if best == len(part):
                return Longest(best, best)
            if steps > work:
                return Longest(best, len(part))
    return Longest(best, best)


def longest_path(successors: Successors, source: int, sink: int, work: int = WORK) -> Longest:
    """The number of edges of the longest simple path from one vertex to another; 0 if there is none."""
    useful = _reachable(successors, source) & _reachable(_reversed(successors), sink)
    if sink not in useful:
        return Longest(0, 0)
    inside = {vertex: successors[vertex] & useful for vertex in useful}
    most = len(useful) - 1
    best = 0
    for steps, (length, closes) in enumerate(_walks(inside, source, useful - {sink})):
        if sink in closes:
            best = max(best, length + 1)
        if best == most:
            break
        if steps > work:
            return Longest(best, most)
    return Longest(best, best)


def _walks(
    inside: dict[int, AbstractSet[int]], start: int, allowed: AbstractSet[int]
) -> Iterator[tuple[int, AbstractSet[int]]]:
    """Every simple path from ``start``: its length, and where its last vertex leads."""
    visited = {start}
    stack = [(start, iter(sorted(inside[start] & allowed)))]
    yield 0, inside[start]
    while stack:
        for vertex in stack[-1][1]:
            if vertex not in visited:
                visited.add(vertex)
                yield len(stack), inside[vertex]
                stack.append((vertex, iter(sorted(inside[vertex] & allowed))))
                break
        else:
            visited.discard(stack.pop()[0])


def _components(successors: Successors) -> list[frozenset[int]]:
    ends = [(u, v) for u, found in enumerate(successors) for v in found]
    rows, columns = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    shape = (len(successors), len(successors))
    table = csr_array((np.ones(len(ends), dtype=np.int8), (rows, columns)), shape=shape)
    labels = connected_components(table, directed=True, connection="strong")[1]
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return [frozenset(group.tolist()) for group in np.split(order, cuts)]


def _reversed(successors: Successors) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in successors]
    for u, after in enumerate(successors):
        for v in after:
            found[v].add(u)
    return found


def _reachable(successors: Successors, start: int) -> set[int]:
    seen, frontier = {start}, [start]
    while frontier:
        for vertex in successors[frontier.pop()]:
            if vertex not in seen:
                seen.add(vertex)
                frontier.append(vertex)
    return seen
