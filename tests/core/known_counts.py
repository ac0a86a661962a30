"""Neighbours under constraints by brute force, word by word from [B14] Def. 4.1.

A database gives each of n people a value. Nothing of the code under test is used; every ordered pair of
neighbours is found, because the definition is not symmetric in the two. People are interchangeable, so the
first database of a pair is enumerated up to the order of people.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

Database = tuple[int, ...]
Answers = tuple[int, ...]


def neighbours(
    table: np.ndarray,
    counts: np.ndarray,
    people: int,
    reading: str = "literal",
    firsts: frozenset[Database] | None = None,
) -> Iterator[tuple[Database, Database]]:
    """N(P) for the graph with this adjacency table and 0/1 rows of known counts, with whatever answers.

    ``firsts`` limits the first database of a pair, where all of them would take too long.
    """
    size = table.shape[0]
    groups: dict[Answers, list[Database]] = {}
    for database in itertools.product(range(size), repeat=people):
        groups.setdefault(_answers(counts, database), []).append(database)
    for possible in groups.values():
        allowed = set(possible)
        for first in possible:
            if first in firsts if firsts is not None else list(first) == sorted(first):
                yield from ((first, second) for second in _of(table, first, allowed, reading))


def _answers(counts: np.ndarray, database: Database) -> Answers:
    return tuple(counts[:, list(database)].sum(axis=1).tolist())


def _of(table: np.ndarray, first: Database, allowed: set[Database], reading: str) -> Iterator[Database]:
    if reading == "edge":
        allowed = {d for d in allowed if all(a == b or table[a, b] for a, b in zip(first, d, strict=True))}
    secrets = {d: _secrets(table, first, d) for d in allowed}
    different = {found for found in secrets.values() if found}
    for second, mine in secrets.items():
        if not mine or any(part in different for part in _proper_parts(mine)):
            continue  # T is empty, or some D3 has a smaller one that is not empty: condition 3 (a)
        if not any(secrets.get(third) == mine for third in _fewer_changes(first, second)):  # 3 (b)
            yield second


def _secrets(table: np.ndarray, first: Database, second: Database) -> frozenset[tuple[int, int]]:
    """T(D1, D2): who moved along an edge, and where to."""
    pairs = enumerate(zip(first, second, strict=True))
    return frozenset((person, b) for person, (a, b) in pairs if table[a, b])


def _proper_parts(whole: frozenset[tuple[int, int]]) -> Iterator[frozenset[tuple[int, int]]]:
    for count in range(1, len(whole)):
        yield from map(frozenset, itertools.combinations(whole, count))


def _fewer_changes(first: Database, second: Database) -> Iterator[Database]:
    """Every D3 with Δ(D3, D1) strictly inside Δ(D2, D1): some changes, but not all, are taken back."""
    changed = [person for person, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]
    for count in range(1, len(changed) + 1):
        for back in itertools.combinations(changed, count):
            yield tuple(first[i] if i in back else value for i, value in enumerate(second))


def most_change(
    matrix: np.ndarray,
    table: np.ndarray,
    counts: np.ndarray,
    people: int,
    reading: str = "literal",
    firsts: frozenset[Database] | None = None,
) -> Fraction:
    """max over neighbours of ‖W·x(D1) − W·x(D2)‖₁; vertices beyond the matrix count nowhere."""
    best = Fraction(0)
    size = table.shape[0]
    seen: set[tuple[int, ...]] = set()
    for first, second in neighbours(table, counts, people, reading, firsts):
        shift = np.bincount(second, minlength=size) - np.bincount(first, minlength=size)
        key = tuple(shift.tolist())
        if key not in seen:
            seen.add(key)
            moved = matrix @ shift[: matrix.shape[1]].astype(object)
            best = max(best, Fraction(sum(abs(entry) for entry in moved)))
    return best
