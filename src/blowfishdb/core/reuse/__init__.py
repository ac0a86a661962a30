"""Never pay twice: what follows from stored releases by arithmetic, and how sure it is (REUSE §1)."""

from blowfishdb.core.reuse.combination import Combination, combine
from blowfishdb.core.reuse.margins import Label, Offer, alpha_needed, cheapest, margin, owned
from blowfishdb.core.reuse.partition import Partition
from blowfishdb.core.reuse.rows import Intervals, Rows, Sparse, rows_of
from blowfishdb.core.reuse.stored import StoredRelease

__all__ = [
    "Combination",
    "Intervals",
    "Label",
    "Offer",
    "Partition",
    "Rows",
    "Sparse",
    "StoredRelease",
    "alpha_needed",
    "cheapest",
    "combine",
    "margin",
    "owned",
    "rows_of",
]
