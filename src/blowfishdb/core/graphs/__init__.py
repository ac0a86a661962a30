"""Policy graphs: which differences between people must stay hidden."""

from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.general import AddRemove, Apart, Apex, Cone, Explicit, Partitioned
from blowfishdb.core.graphs.line import Banded, Full, Threshold
from blowfishdb.core.graphs.product import Ball, Grid, Product, Within

__all__ = [
    "AddRemove",
    "Apart",
    "Apex",
    "Ball",
    "Banded",
    "Cone",
    "Explicit",
    "Full",
    "Grid",
    "Partitioned",
    "PolicyGraph",
    "Product",
    "Threshold",
    "Within",
]
