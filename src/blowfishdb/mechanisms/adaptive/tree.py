"""Going down a public tree of runs of cells, stopping where the answers say that little is left to learn.

A cell that stops early has budget left, which goes to a second look at its whole group: on every transcript
each cell of a tree pays exactly what its root was given.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.budget import NANO
from blowfishdb.mechanisms.adaptive.forest import Forest, Nodes
from blowfishdb.mechanisms.adaptive.measuring import Measuring

STOP = 8  # units of noise that a count must exceed to be worth a closer look; 7 to 10 behave alike


@final
@dataclass(frozen=True, eq=False)
class PublicTree:
    """Nested cuts of a line of cells: node i of level l is ``cuts[l][i] … cuts[l][i+1]``, level 0 the roots.

    ``order[p]`` is the cell at place p, where the line is not the cells' own order. ``shares[l−1]`` says how
    much of a root's budget the answers of level l take; a level without a share is not measured.
    ``stops[l−1]`` is how many units of noise a node of level l must exceed to be looked into.
    """

    cuts: tuple[IntArray, ...]
    shares: tuple[int, ...]
    stops: tuple[int, ...]
    order: IntArray | None = None

    @property
    def size(self) -> int:
        return int(self.cuts[0][-1])

    @property
    def levels(self) -> int:
        return len(self.shares)

    @cached_property
    def first_child(self) -> tuple[IntArray, ...]:
        """For every level but the last, where a node's children begin on the next one."""
        return tuple(
            np.searchsorted(finer, coarser).astype(np.int64)
            for coarser, finer in itertools.pairwise(self.cuts)
        )

    def paid_until(self, budgets: IntArray, level: int) -> IntArray:
        """What the first ``level`` levels take of each budget, rounded so that all of them take all."""
        return budgets * sum(self.shares[:level]) // sum(self.shares)


def line_levels(size: int, block: int, fanout: int, levels: int) -> tuple[IntArray, ...]:
    """Cuts of a line into blocks, and of every node into at most ``fanout`` nearly equal children."""
    cuts = [np.append(np.arange(0, size, block, dtype=np.int64), size)]
    for _ in range(levels):
        cuts.append(_divided(cuts[-1], fanout))
    return tuple(cuts)


def least_root(size: int, levels: int) -> int:
    """The least b ≥ 2 with b^levels ≥ size."""
    root = max(2, round(math.pow(size, 1 / levels)) - 1)
    while root**levels < size:
        root += 1
    return root


def _divided(cuts: IntArray, fanout: int) -> IntArray:
    lengths = np.diff(cuts)
    children = np.minimum(lengths, fanout)
    which, place = enumerated(children)
    inner = cuts[which] + lengths[which] * place // children[which]
    return np.append(inner, cuts[-1])


def enumerated(counts: IntArray) -> tuple[IntArray, IntArray]:
    """(owner, 0 … count−1) for every one of ``counts[owner]`` things, in order."""
    owner = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    return owner, np.arange(owner.size, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)


def descend(tree: PublicTree, budgets: IntArray, measuring: Measuring) -> Nodes:
    """Measure below every root whose budget (in nano-ε) is positive; a root itself is never measured.

    What is asked next depends on earlier answers and public values only. A cell lies in one question of every
    level until it stops, and then in one question about its group at all that is left.
    """
    forest = Forest.of_roots(tree.cuts[0])
    frontier = ids = np.flatnonzero(budgets > 0)
    each = budgets[frontier]
    for level in range(1, tree.levels + 1):
        first = tree.first_child[level - 1]
        family, place = enumerated(first[frontier + 1] - first[frontier])
        child = first[frontier][family] + place
        parents, runs = ids[family], (tree.cuts[level][child], tree.cuts[level][child + 1])
        if not tree.shares[level - 1]:
            frontier, ids, each = child, forest.add(*runs, parents), each[family]
            continue
        paid = tree.paid_until(each, level)
        rates = paid - tree.paid_until(each, level - 1)
        answers = measuring.ask(*runs, rates[family])
        if level == tree.levels:
            forest.note(forest.add(*runs, parents), answers, rates[family])
            break
        item, big = _group(answers, family, runs, tree.stops[level - 1] * NANO // rates, STOP * NANO // rates)
        ids = forest.add_groups(runs, parents, item, big, (each - paid)[family])
        forest.note(forest.last_children, answers, rates[family])
        frontier, each = child[big], each[family][big]
        if not frontier.size:
            break
    return forest.finished(measuring)


def _group(
    answers: IntArray, family: IntArray, runs: tuple[IntArray, IntArray], above: IntArray, limit: IntArray
) -> tuple[IntArray, BoolArray]:
    """Which children are looked into, and which item each belongs to: itself, or a group of small ones.

    Answers are whole, so thresholds rounded down decide as the exact ones would.
    """
    from blowfishdb.mechanisms.adaptive.loops import items

    big = np.asarray((answers > above[family]) & (runs[1] - runs[0] > 1))
    item: IntArray = items(answers, family, big, limit)
    return item, big
