"""Sensitivity under constraints for a workload and a graph over the same cells, without a question around
them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfishdb.core.bins import LIMIT, ProductBins, single_cells
from blowfishdb.core.constraints.bound import most_change
from blowfishdb.core.constraints.declared import Constraints
from blowfishdb.core.constraints.known_cells import KnownCells, known_on_boxes, known_on_cells
from blowfishdb.core.constraints.moves import AnswerMoves
from blowfishdb.core.constraints.under_policy import refine
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.graphs import Cone, Grid, PolicyGraph, Product
from blowfishdb.core.policy import Policy
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Predicates, Workload
from blowfishdb.core.workloads.base import exact


def sensitivity(
    workload: Workload,
    graph: PolicyGraph,
    constraints: Constraints | None = None,
    *,
    domain: Domain | None = None,
) -> int | Fraction:
    """The exact policy-specific sensitivity of ``workload`` under ``graph``.

    A vertex that stands for "not counted" (⊥, *outside*) may be left out of the workload; its
    column is zero. With ``constraints`` it is a proven upper bound, or NotProven; they speak of the columns
    of ``domain``, and without one of bare cells and axes.
    """
    if not constraints:
        return exact(scaled_sensitivity(workload, graph), workload.denominator)
    return _constrained(workload, graph, constraints, domain)


def _constrained(
    workload: Workload, graph: PolicyGraph, constraints: Constraints, domain: Domain | None
) -> int | Fraction:
    """A proven upper bound of the change of the answers between neighbours under ``constraints``."""
    if domain is None and isinstance(workload, Predicates):
        domain = workload.domain
    if isinstance(workload, Predicates) and domain is not None and domain.size > LIMIT:
        return _conditions(workload, Policy(domain, graph, constraints))
    known = known_cells(constraints, graph, domain)
    if workload.size != known.size:
        raise SizeMismatch(
            f"The questions are about {workload.size:,} cells, but what is known is about {known.size:,}."
        )
    moves = AnswerMoves(workload, graph, np.arange(graph.size), graph)
    return exact(most_change(known, moves), workload.denominator)


def known_cells(constraints: Constraints, graph: PolicyGraph, domain: Domain | None = None) -> KnownCells:
    """What is known, over the cells of a graph: the records of ``domain``, or bare cells."""
    if domain is not None:
        constraints.check(domain)
        return known_on_boxes(constraints, domain, {name: single_cells(domain[name].size) for name in domain})
    inner = graph.base if graph.absent and isinstance(graph, Cone) else graph
    shape = inner.shape if isinstance(inner, Product | Grid) else (inner.size,)
    return known_on_cells(constraints, shape)


def _conditions(workload: Predicates, policy: Policy) -> int | Fraction:
    """Conditions on a domain that is too large to write out: over the boxes that they cut."""
    cells = workload.cells()
    assert isinstance(cells, ProductBins)  # the cuts of conditions, column by column
    boxes = dict(zip(policy.domain.names, cells.factors, strict=True))
    return refine(policy, boxes).sensitivity(workload.merged())
