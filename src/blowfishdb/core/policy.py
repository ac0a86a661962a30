"""Policy: a domain, the graph of what must stay hidden in it, and what the world already knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, final

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.bins import Bins, ProductBins
from blowfishdb.core.constraints.declared import Constraints
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import NotProven, PolicyConflict, SizeMismatch
from blowfishdb.core.graphs import Apart, Apex, Cone, Full, PolicyGraph, Product
from blowfishdb.core.policy_parts import own_graph, parts_of, without_presence


@final
@dataclass(frozen=True, eq=False)
class Policy:
    """Which differences between people must stay hidden, and what is known already ([B14] Def. 3.1).

    The graph has one vertex per record of the domain, and one more if it hides presence. Constraints that say
    nothing are none.
    """

    domain: Domain
    graph: PolicyGraph
    constraints: Constraints | None = None

    def __post_init__(self) -> None:
        if self.constraints is not None:
            self.constraints.check(self.domain)
            if not self.constraints:
                object.__setattr__(self, "constraints", None)
        records = self.graph.size - self.graph.absent
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
        columns = {
            name: _column_graph(domain, name, graphs.get(name, Full(domain[name].value_count)))
            for name in domain.names
        }
        return cls(domain, _combined(columns, joint=joint, hide_presence=hide_presence))

    def with_column(self, name: str, column: PolicyGraph) -> Policy:
        """This policy with another graph for one column; the other columns stay as they are."""
        if not self.separable:
            raise PolicyConflict(
                "This policy hides areas that span several columns, so one column cannot be changed alone.",
                fixes=("Policy.by_column with a graph for each column",),
            )
        columns = {other: without_presence(own_graph(self, other)) for other in self.domain.names}
        columns[name] = _column_graph(self.domain, name, column)
        graph = _combined(columns, joint=self.joint, hide_presence=self.hides_presence)
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
        found = parts_of(self)
        return found.whole_record or all(len(part.columns) == 1 for part in found.parts)

    @property
    def joint(self) -> bool:
        """Whether all columns of a record are hidden together, not one at a time."""
        return parts_of(self).joint

    @property
    def hides_presence(self) -> bool:
        """Whether an attacker must not learn that someone is in the data; the row count is then private."""
        return self.graph.absent

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


def _combined(columns: Mapping[str, PolicyGraph], *, joint: bool, hide_presence: bool) -> PolicyGraph:
    """One graph over whole records from a graph for each column, in the order of the domain."""
    factors = tuple(columns.values())
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
    groups = graph.components().count
    if isinstance(graph, Apart) and groups == 2:
        return f"how many values of '{column}' are missing"
    return f"how many rows are in each of the {groups:,} groups of '{column}'" if groups > 1 else None


def with_missing(attribute: Attribute, graph: PolicyGraph) -> PolicyGraph:
    """A graph over the values of a column, and over the cell of missing ones if there is one."""
    if not attribute.has_missing_cell:
        return graph
    if attribute.missing_is_public:
        return Apart(graph)
    return Full(graph.size + 1) if isinstance(graph, Full) else Cone(graph, Apex.MISSING)


def without_trivial_factors(graph: PolicyGraph) -> PolicyGraph:
    """Attributes with a single cell cannot move; what is left reads as the graph it is."""
    if isinstance(graph, Cone):
        return Cone(without_trivial_factors(graph.base), graph.apex)
    if not isinstance(graph, Product):
        return graph
    moving = tuple(factor for factor in graph.factors if factor.size > 1)
    if not moving:
        return Full(1)
    return moving[0] if len(moving) == 1 else Product(*moving, joint=graph.joint)
