"""Policy: a domain, the graph of what must stay hidden in it, and what the world already knows.

What a policy is made of: which columns each of its graphs is about, and every column's own graph.

What the rows of a source demand of every policy over them.

A column that says whose row it is, or that leaves out rows, is the same in all neighbouring databases only
if no policy hides it. Rows that come and go with hidden values make their number a secret, too: someone's
presence then has to be hidden, and no total is exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, final

from blowfishdb.core.arrays import ceil_div
from blowfishdb.core.constraints.declared import Constraints
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins, ProductBins, single_cells, whole_bin
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import NotProven, PolicyConflict, SizeMismatch
from blowfishdb.core.graphs import (
    Apart,
    Apex,
    Cone,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)


@final
@dataclass(frozen=True)
class Part:
    """A graph over the combined values of some neighbouring columns."""

    columns: tuple[str, ...]
    graph: PolicyGraph


@final
@dataclass(frozen=True)
class Parts:
    """A policy taken apart. ``joint``: all parts of a record may move at once; otherwise one at a time."""

    parts: tuple[Part, ...]
    joint: bool
    hides_presence: bool

    def of(self, column: str) -> Part:
        """The part that is about a column."""
        return next(part for part in self.parts if column in part.columns)

    @property
    def whole_record(self) -> bool:
        """Whether every two records are joined, whatever their columns."""
        return len(self.parts) == 1 and self.parts[0].graph.complete


def parts_of(policy: Policy) -> Parts:
    """The policy, factor by factor. A graph that is no product is one part about all columns."""
    domain = policy.domain
    graph = policy.graph.counted
    columns = tuple((name, domain[name].size) for name in domain.names)
    joint = graph.joint or len(columns) == 1
    parts = _parts(graph, columns, joint) or (Part(domain.names, graph),)
    return Parts(parts, joint, policy.hides_presence)


def _parts(graph: PolicyGraph, columns: tuple[tuple[str, int], ...], joint: bool) -> tuple[Part, ...] | None:
    """None when the factors of the graph do not end where columns end."""
    factors = _factors(graph, tuple(size for _, size in columns), joint)
    if factors is None:
        return (Part(tuple(name for name, _ in columns), _joined(graph)),)
    parts: list[Part] = []
    taken = 0
    for factor in factors:
        start = taken
        while taken < len(columns) and (taken == start or _size(columns[start:taken]) < factor.size):
            taken += 1
        inner = _parts(factor, columns[start:taken], joint)
        if _size(columns[start:taken]) != factor.size or inner is None:
            return None
        parts += inner
    rest = columns[taken:]  # columns of a single cell, which no factor needs
    return (*parts, *(Part((name,), Full(size)) for name, size in rest)) if _size(rest) == 1 else None


def _factors(graph: PolicyGraph, shape: tuple[int, ...], joint: bool) -> tuple[PolicyGraph, ...] | None:
    """The factors of a graph that is composed in this way; None if it is one piece."""
    if graph.factors and (graph.joint == joint or len(graph.factors) == 1):
        return graph.factors
    if len(shape) == 1:
        return None
    if isinstance(graph.cliques, ProductBins) and joint:
        return tuple(Partitioned(factor) for factor in graph.cliques.factors)
    return tuple(Explicit(size, ()) for size in shape) if graph.edgeless else None


def _joined(graph: PolicyGraph) -> PolicyGraph:
    """Where every two values are joined, and each to the missing one, everything is."""
    split = None if graph.absent else graph.without_last()
    complete = split is not None and split[1] and split[0].complete
    return Full(graph.size) if complete or graph.size == 1 else graph


def _size(columns: tuple[tuple[str, int], ...]) -> int:
    return math.prod(size for _, size in columns)


def own_graph(policy: Policy, column: str) -> PolicyGraph:
    """What the policy says about the values of one column alone: its projection onto them.

    The kind of graph is kept (a partition stays a partition), and nothing is written out. With hidden
    presence the last vertex is ⊥.
    """
    _ = policy.domain[column]
    part = parts_of(policy).of(column)
    graph = _onto(part, column, {name: policy.domain[name].size for name in part.columns})
    return graph.hide_presence() if policy.hides_presence else graph


def _onto(part: Part, column: str, sizes: dict[str, int]) -> PolicyGraph:
    graph, size = part.graph, sizes[column]
    if size == 1:
        return Full(1)
    if graph.complete:
        return Full(size)
    if isinstance(graph, Grid) and graph.shape == tuple(sizes.values()):
        axis = part.columns.index(column)
        return Threshold(size, ceil_div(graph.theta, graph.widths[axis]))
    if len(part.columns) == 1:
        return graph
    boxes = (single_cells(n) if name == column else whole_bin(n) for name, n in sizes.items())
    projected = graph.project(Bins.product(*boxes))
    return without_trivial_factors(projected)


@final
@dataclass(frozen=True, eq=False)
class Policy:
    """Which differences between people must stay hidden, and what is known already ([B14] Def. 3.1).

    The graph has one vertex per record of the domain, and one more if it hides presence. Constraints that say
    nothing are none.

    >>> domain = bf.Domain(age=bf.Integer(18, 90))
    >>> bf.Policy.by_column(domain, {"age": bf.graphs.Threshold(73, 5)}).describe()
    'values at most 5 cells apart'
    """

    domain: Domain
    graph: PolicyGraph
    constraints: Constraints | None = None

    def __post_init__(self) -> None:
        if self.constraints is not None:
            self.constraints.check(self.domain)
            if not self.constraints:
                object.__setattr__(self, "constraints", None)
        records = self.graph.counted.size
        if records != self.domain.size:
            raise SizeMismatch(
                f"The policy graph is about {records:,} values, but the domain has {self.domain.size:,}.",
                fixes=("build it with Policy.by_column, which fits the columns",),
            )

    @classmethod
    def differential_privacy(cls, domain: Domain) -> Self:
        """Everything about a record stays hidden, missing values included."""
        return cls(domain, Full(domain.size))

    @classmethod
    def whole_record(cls, domain: Domain) -> Self:
        """Everything about a record stays hidden, but for whose values are missing where that is public.

        What a dataset begins with; the same as ``differential_privacy`` if no column declares such a thing.
        """
        if any(attribute.missing_is_public for _, attribute in domain.columns):
            return cls.by_column(domain, {})
        return cls.differential_privacy(domain)

    @classmethod
    def by_column(
        cls,
        domain: Domain,
        graphs: Mapping[str, PolicyGraph],
        *,
        joint: bool = True,
        hide_presence: bool = False,
    ) -> Self:
        """One graph per column; columns that are not named stay hidden entirely.

        A graph speaks of the values of its column; if the column has a cell for missing values,
        that cell is joined to every value, or to none if it is declared public.
        """
        for name in graphs:
            _ = domain[name]
        columns = [
            _column_graph(domain, name, graphs.get(name, Full(domain[name].value_count)))
            for name in domain.names
        ]
        return cls(domain, combined(columns, joint=joint, hide_presence=hide_presence))

    def with_column(self, name: str, column: PolicyGraph) -> Policy:
        """This policy with another graph for one column; the other columns stay as they are."""
        return self.edited({name: column})

    def edited(
        self,
        graphs: Mapping[str, PolicyGraph] | None = None,
        *,
        joint: bool | None = None,
        hide_presence: bool | None = None,
    ) -> Policy:
        """This policy with what is given in place of what it says; the rest stays, what is known included.

        ``graphs`` as in ``by_column``; columns that are not named keep theirs.
        """
        columns = {name: _column_graph(self.domain, name, graph) for name, graph in (graphs or {}).items()}
        rest = [name for name in self.domain.names if name not in columns]
        if rest and not self.separable:
            raise PolicyConflict(
                "This policy hides areas that span several columns, so it is changed as a whole.",
                fixes=(
                    "Policy.by_column with a graph for each column",
                    "blowfishdb policy export, edit the file, and import it",
                ),
            )
        columns |= {name: own_graph(self, name).counted for name in rest}
        graph = combined(
            [columns[name] for name in self.domain.names],
            joint=self.joint if joint is None else joint,
            hide_presence=self.hides_presence if hide_presence is None else hide_presence,
        )
        return Policy(self.domain, graph, self.constraints)

    def hiding_records(self) -> Policy:
        """Everything about a record hidden; whether presence is, and what is known, stay."""
        graph = combined([Full(self.domain.size)], hide_presence=self.hides_presence)
        return Policy(self.domain, graph, self.constraints)

    def knowing(self, constraints: Constraints | None) -> Policy:
        """The same graph with other public knowledge."""
        return Policy(self.domain, self.graph, constraints)

    def describe(self) -> str:
        """The graph in short, and how much is known; for receipts and tables."""
        if self.constraints is None:
            return self.graph.describe()
        return f"{self.graph.describe()}, {self.constraints.describe()}"

    @property
    def separable(self) -> bool:
        """Whether the policy says one thing about each column, and nothing about several at once."""
        parts = parts_of(self)
        return parts.whole_record or all(len(part.columns) == 1 for part in parts.parts)

    @property
    def joint(self) -> bool:
        """Whether all columns of a record are hidden together, not one at a time."""
        return parts_of(self).joint

    @property
    def hides_presence(self) -> bool:
        """Whether an attacker must not learn that someone is in the data; the row count is then private."""
        return self.graph.absent

    def onto(self, domain: Domain) -> Policy:
        """What it says about some of its columns, in their order: every edge, seen in these alone."""
        parts, factors = parts_of(self), list[PolicyGraph]()
        for part in parts.parts:
            kept = [name for name in part.columns if name in domain]
            if len(kept) == len(part.columns):
                factors.append(part.graph)
            elif kept:
                sizes = {name: self.domain[name].size for name in part.columns}
                if part.graph.complete:
                    factors.append(Full(math.prod(sizes[name] for name in kept)))
                    continue
                boxes = (single_cells(n) if name in domain else whole_bin(n) for name, n in sizes.items())
                factors.append(part.graph.project(Bins.product(*boxes)))
        return Policy(domain, combined(factors, joint=parts.joint, hide_presence=self.hides_presence))

    def project(self, cells: Mapping[str, Bins]) -> PolicyGraph:
        """The policy over boxes of the named columns, row-major in the order of the domain.

        The graph alone, so it is refused where something is known: noise must then be calibrated by
        ``constraints.under_policy.refine``.
        """
        if self.constraints is not None:
            raise NotProven(
                "Counts that everyone knows tie records together, and this way of answering is proven only "
                "for records that change one by one.",
                fixes=("ask for a histogram", "a policy that says nothing about what is known"),
            )
        whole = {name: Bins.width(self.domain[name].size, self.domain[name].size) for name in self.domain}
        boxes = ProductBins(tuple(cells.get(name, whole[name]) for name in self.domain.names))
        single = boxes.factors[0] if len(boxes.factors) == 1 else boxes
        return without_trivial_factors(self.graph.project(single))


def combined(
    factors: Sequence[PolicyGraph], *, joint: bool = True, hide_presence: bool = False
) -> PolicyGraph:
    """One graph over whole records from a graph for each column or area, in the order of the domain."""
    graph = factors[0] if len(factors) == 1 else Product(*factors, joint=joint)
    return graph.hide_presence() if hide_presence else graph


def _column_graph(domain: Domain, name: str, graph: PolicyGraph) -> PolicyGraph:
    attribute = domain[name]
    if graph.size == attribute.size and not attribute.has_missing_cell:
        return graph
    if attribute.has_missing_cell and graph.size == attribute.value_count:
        return with_missing(attribute, graph)
    raise SizeMismatch(
        f"The graph for '{name}' is about {graph.size:,} values, but the column has "
        f"{attribute.value_count:,}."
    )


def group_counts(column: str, graph: PolicyGraph) -> str | None:
    """The counts of a column that its graph does not hide, in words; None if it hides them all.

    Only for columns that drop no rows: elsewhere one may always move in or out of a group unseen.
    """
    groups, split = graph.components().count, graph.without_last()
    if split is not None and not split[1] and groups == 2:
        return f"how many values of '{column}' are missing"
    return f"how many rows are in each of the {groups:,} groups of '{column}'" if groups > 1 else None


def with_missing(attribute: Attribute, graph: PolicyGraph) -> PolicyGraph:
    """A graph over the values of a column, and over the cell of missing ones if there is one."""
    if not attribute.has_missing_cell:
        return graph
    if attribute.missing_is_public:
        return Apart(graph)
    return Full(graph.size + 1) if graph.complete else Cone(graph, Apex.MISSING)


def without_trivial_factors(graph: PolicyGraph) -> PolicyGraph:
    """Attributes with a single cell cannot move; what is left reads as the graph it is."""
    if isinstance(graph, Cone):
        return Cone(without_trivial_factors(graph.base), graph.apex)
    if not graph.factors:
        return graph
    moving = tuple(factor for factor in graph.factors if factor.size > 1)
    if not moving:
        return Full(1)
    return moving[0] if len(moving) == 1 else Product(*moving, joint=graph.joint)


@final
@dataclass(frozen=True)
class RowRules:
    """``public``: declared columns that no policy may hide. ``vary``: hidden values decide which rows there
    are, so every policy hides presence. ``several``: a person has rows in several tables."""

    public: frozenset[str] = frozenset()
    vary: bool = False
    several: bool = False

    def first_policy(self, domain: Domain) -> Policy:
        """Everything that may be hidden is: the policy of a dataset for which nothing was said yet."""
        whole = Policy.whole_record(domain)
        factors = [whole.graph]
        if self.public:
            factors = [
                Explicit(domain[name].size, ()) if name in self.public else own_graph(whole, name)
                for name in domain.names
            ]
        return Policy(domain, combined(factors, hide_presence=self.vary))

    def check(self, policy: Policy) -> None:
        """Refuse a policy that the rows do not bear."""
        if self.vary and not policy.hides_presence:
            raise PolicyConflict(
                "Which rows there are depends on values that may be hidden, so how many there are must not "
                "be known: a policy for this dataset has to hide presence as well.",
                fixes=("hide presence: hide_presence=True", "declare what leaves out rows as public"),
            )
        hidden = [name for name in policy.domain if name in self.public and _hides(policy, name)]
        if hidden:
            raise PolicyConflict(
                f"'{hidden[0]}' was declared public, because it decides which rows there are or whose they "
                "are; no policy for this dataset can hide it.",
                fixes=(f"hide nothing of '{hidden[0]}'", "a dataset without that column"),
            )
        if self.several and policy.constraints is not None:
            raise PolicyConflict(
                "Counts that everyone knows tie records of one table together, and what that means for those "
                "of other tables is not proven.",
                fixes=("a policy that says nothing about what is known", "a dataset of that table alone"),
            )
        if self.public and policy.constraints is not None:
            raise PolicyConflict(
                "Counts that everyone knows tie records together, so that a public column could change with "
                "others; this dataset has columns that must not.",
                fixes=("a policy that says nothing about what is known",),
            )


def _hides(policy: Policy, column: str) -> bool:
    return own_graph(policy, column).counted.edge_count > 0
