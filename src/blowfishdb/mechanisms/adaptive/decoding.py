"""From noisy counts of a forest to cells: means upwards, shares downwards. Post-processing only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.mechanisms.adaptive.forest import Nodes


@final
@dataclass(frozen=True, eq=False)
class Estimates:
    """The best unbiased estimate of every node from itself and what is below, and its variance.

    A node about which nothing is known has an infinite variance.
    """

    nodes: Nodes
    values: FloatArray
    variances: FloatArray


def upwards(nodes: Nodes) -> Estimates:
    """Inverse-variance means of a node's own answers and the sum of its children."""
    from blowfishdb.mechanisms.adaptive.loops import up

    values, variances = up(*nodes.children, nodes.weighted, nodes.precision)
    return Estimates(nodes, values, variances)


def downwards(
    estimates: Estimates, totals: FloatArray | None, *, sparse: bool = False, smooth: bool = False
) -> FloatArray:
    """The cells: each family shares out its parent's count, nearest to its estimates and never negative.

    ``totals`` are the counts of the roots; without them the children of a root are only kept from being
    negative. ``sparse`` first takes children that hardly differ from zero as zero, while the others can hold
    the parent's count; ``smooth`` lets families of single cells shrink towards an even share, by as much as
    their noise explains their differences. A leaf of several cells is spread evenly.
    """
    from blowfishdb.mechanisms.adaptive.loops import down

    nodes = estimates.nodes
    first, counts = nodes.children
    roots = int(np.count_nonzero(nodes.parent < 0))
    shares = np.zeros(nodes.starts.size)
    if totals is None:
        shares[:roots] = -1.0
    else:
        shares[:roots] = np.maximum(totals, 0.0)
    single = np.asarray((nodes.stops - nodes.starts == 1) & (counts == 0))
    down(first, counts, estimates.values, estimates.variances, shares, single, sparse, smooth)
    leaves = np.flatnonzero(counts == 0)
    leaves = leaves[np.argsort(nodes.starts[leaves], kind="stable")]
    lengths = nodes.stops[leaves] - nodes.starts[leaves]
    return np.repeat(shares[leaves] / lengths, lengths)
