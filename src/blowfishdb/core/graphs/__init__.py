"""Policy graphs: which differences between people must stay hidden."""

from blowfishdb.core.graphs.apart import Apart
from blowfishdb.core.graphs.ball import Ball, Within
from blowfishdb.core.graphs.banded import Banded
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.cone import AddRemove, Apex, Cone
from blowfishdb.core.graphs.explicit import Explicit
from blowfishdb.core.graphs.full import Full
from blowfishdb.core.graphs.grid import Grid
from blowfishdb.core.graphs.partitioned import Partitioned
from blowfishdb.core.graphs.product import Product
from blowfishdb.core.graphs.threshold import Threshold

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
