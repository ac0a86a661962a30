"""Never pay twice: what follows from stored releases by arithmetic, and how sure it is (REUSE §1)."""

from blowfishdb.mechanisms.reuse.combination import Combination, Partition, combine
from blowfishdb.mechanisms.reuse.margins import Label, Offer, cheapest, margin
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, Sparse, StoredRelease, rows_of

__all__ = [
    "Combination",
    "Intervals",
    "Label",
    "Offer",
    "Partition",
    "Rows",
    "Sparse",
    "StoredRelease",
    "cheapest",
    "combine",
    "margin",
    "rows_of",
]
