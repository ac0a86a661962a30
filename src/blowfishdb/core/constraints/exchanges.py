"""Exchanges: sets of moves that together leave every known count as it was, and none of whose parts does.

Neighbours under constraints differ by one exchange (docs/proofs/constraints.md, Lemma 1), so the longest
one bounds in how many records they differ. Where known counts overlap, it is found by listing the minimal
non-negative whole solutions of V·x = 0 over the shifts V that moves can cause, in the order of Contejean
and Devie.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray

MOST_SHIFTS = 40
WORK = 20_000
"""How many partial exchanges a search may look at."""


def shifts(counts: BoolArray, pairs: IntArray | None) -> IntArray | None:
    """The distinct shifts of known counts, other than zero, that moves between these pairs of classes cause.

    ``pairs`` None means any two classes. None if there are too many of them.
    """
    if pairs is None:
        every = np.arange(counts.shape[1])
        if every.size > MOST_SHIFTS:
            return None
        u, v = (part.ravel() for part in np.meshgrid(every, every))
    else:
        u, v = np.concatenate((pairs, pairs[:, ::-1])).T
    found = np.unique((counts[:, v].astype(np.int64) - counts[:, u]).T, axis=0)
    moved = found[(found != 0).any(axis=1)]
    return moved if len(moved) <= MOST_SHIFTS else None


def longest_exchange(moved: IntArray, work: int = WORK) -> int | None:
    """The most moves in one exchange whose moves cause these shifts; None beyond the limit of work.

    A partial exchange x is extended by a shift v only if ⟨V·x, v⟩ < 0 (complete by Contejean–Devie 1994),
    and never to one that contains a finished exchange. A shift and its opposite are an exchange of two. Kept,
    because every question about the same known counts needs it.
    """
    return _longest(tuple(tuple(row) for row in moved.tolist()), work)


@lru_cache(maxsize=64)
def _longest(shifted: tuple[tuple[int, ...], ...], work: int) -> int | None:
    moved = np.array(shifted, dtype=np.int64).reshape(len(shifted), -1)
    vectors = [tuple(row) for row in moved.tolist()]
    index = {vector: at for at, vector in enumerate(vectors)}
    opposite = [index.get(tuple(-entry for entry in vector), -1) for vector in vectors]
    products = (moved @ moved.T).tolist()
    done: list[tuple[int, ...]] = []
    longest, looked = 1, 0
    units = [tuple(int(at == j) for at in range(len(vectors))) for j in range(len(vectors))]
    layer = {unit: products[j] for j, unit in enumerate(units)}
    length = 1
    while layer:
        length += 1
        grown: dict[tuple[int, ...], list[int]] = {}
        finished: list[tuple[int, ...]] = []
        parts = np.array(done, dtype=np.int64).reshape(len(done), len(vectors))
        for x, inner in layer.items():
            for j, product in enumerate(inner):
                if product >= 0:
                    continue
                looked += 1
                if looked > work:
                    return None
                after = (*x[:j], x[j] + 1, *x[j + 1 :])
                if opposite[j] >= 0 and x[opposite[j]]:
                    longest = max(longest, 2)
                elif after not in grown and not _contains_one(after, parts):
                    sums = [a + b for a, b in zip(inner, products[j], strict=True)]
                    if any(sums):  # V·x = 0 exactly when x is orthogonal to every shift, x's own included
                        grown[after] = sums
                    else:
                        finished.append(after)
        if finished:
            longest = max(longest, length)
            done += dict.fromkeys(finished)
        parts = np.array(finished, dtype=np.int64).reshape(len(finished), len(vectors))
        layer = {x: sums for x, sums in grown.items() if not _contains_one(x, parts)}
    return longest


def _contains_one(whole: tuple[int, ...], parts: IntArray) -> bool:
    return bool(len(parts)) and bool((parts <= np.array(whole)).all(axis=1).any())
