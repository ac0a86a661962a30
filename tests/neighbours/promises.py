"""Policies of a small world, and which records they join, word by word from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

import blowfishdb as bf
from tests.neighbours.columns import DROPPED, Column, Record
from tests.neighbours.known import Known, facts_known


@dataclass(frozen=True)
class Rule:
    """What one column hides: ``full``, ``line`` (within ``theta``), ``groups``, ``pairs``, or ``none``, which
    still may hide whether a value is missing; ``public``: not even that."""

    kind: str
    theta: int = 1
    labels: tuple[int, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()

    def graph(self, size: int) -> bf.graphs.PolicyGraph:
        """As the package has it, over the values of a column."""
        if self.kind == "full":
            return bf.graphs.Full(size)
        if self.kind == "line":
            return bf.graphs.Threshold(size, self.theta)
        if self.kind == "groups":
            return bf.graphs.Partitioned(self.labels)
        return bf.graphs.Explicit(size, list(self.pairs))

    def joins(self, column: Column, one: int, other: int) -> bool:
        """Whether the two cells are hidden from each other."""
        if one == other:
            return False
        if DROPPED in (one, other):
            return True  # what is left out stands for any value
        if self.kind == "public":
            return False
        if column.size in (one, other):
            return column.missing == "value"  # missing adjoins every value, or is public
        if self.kind == "full":
            return True
        if self.kind == "line":
            return abs(one - other) <= self.theta
        if self.kind == "groups":
            return self.labels[one] == self.labels[other]
        return (one, other) in self.pairs or (other, one) in self.pairs


@dataclass(frozen=True)
class Promise:
    """A policy: a rule for each column, taken ``together`` or one at a time; or ``whole`` records.

    ``known``: what everyone knows already.
    """

    rules: tuple[Rule, ...]
    together: bool = True
    presence: bool = False
    whole: bool = False
    known: Known | None = None

    def policy(self, columns: tuple[Column, ...]) -> bf.Policy:
        """As the package has it."""
        known = None if self.known is None else self.known.constraints(columns)
        return self._hiding(columns).knowing(known)

    def _hiding(self, columns: tuple[Column, ...]) -> bf.Policy:
        domain = domain_of(columns)
        if self.whole:
            graph: bf.graphs.PolicyGraph = bf.graphs.Full(domain.size)
            return bf.Policy(domain, graph.hide_presence() if self.presence else graph)
        graphs = {
            column.name: rule.graph(column.size) for column, rule in zip(columns, self.rules, strict=True)
        }
        return bf.Policy.by_column(domain, graphs, joint=self.together, hide_presence=self.presence)

    def joins(self, columns: tuple[Column, ...], one: Record | None, other: Record | None) -> bool:
        """Whether two records, or one and nobody, are hidden from each other, as far as nobody else moves.

        A value that its declaration leaves out stands for any, so it is no obstacle.
        """
        if one is None or other is None:
            return self.presence and one != other
        if one == other:
            return False
        if self.whole:
            return True
        moved = [
            place
            for place, ends in enumerate(zip(one, other, strict=True))
            if ends[0] != ends[1] and DROPPED not in ends
        ]
        joined = all(self.rules[place].joins(columns[place], one[place], other[place]) for place in moved)
        return joined and (self.together or len(moved) <= 1)


def domain_of(columns: tuple[Column, ...]) -> bf.Domain:
    """The declaration of all columns."""
    return bf.Domain.of({column.name: column.attribute for column in columns})


@st.composite
def promises(
    draw: st.DrawFn,
    columns: tuple[Column, ...],
    *,
    only: Sequence[Sequence[str]] = (),
    presence: Sequence[bool] = (),
    known: Sequence[bool] = (False,),
    facts: Sequence[str] = (),
) -> Promise:
    """A policy of any kind; ``only``: with rules of some kinds; ``presence``: which is hidden or not;
    ``known``: whether something is, and which kinds of ``facts``."""
    rules = tuple(draw(_rules(column, only[0] if only else ())) for column in columns)
    return Promise(
        rules,
        together=draw(st.booleans()),
        presence=draw(st.sampled_from(tuple(presence) or (False, False, True))),
        whole=not only and draw(st.sampled_from((False,) * 7 + (True,))),
        known=draw(facts_known(columns, facts)) if draw(st.sampled_from(tuple(known))) else None,
    )


@st.composite
def _rules(draw: st.DrawFn, column: Column, only: Sequence[str]) -> Rule:
    kinds = ["full", "groups", "none", "pairs"] + ["line", "line"] * column.ordered
    kind = draw(st.sampled_from([kind for kind in kinds if kind in only] or kinds))
    if kind == "line":
        return Rule(kind, theta=draw(st.integers(1, 2)))
    if kind == "groups":
        cut = draw(st.integers(1, column.size - 1))
        return Rule(kind, labels=tuple(int(cell >= cut) for cell in range(column.size)))
    if kind == "pairs":
        every = list(itertools.combinations(range(min(column.size, 4)), 2))
        return Rule(kind, pairs=tuple(draw(st.lists(st.sampled_from(every), max_size=2, unique=True))))
    return Rule(kind)
