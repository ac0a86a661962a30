"""Never pay twice: what follows from stored releases by arithmetic, and how sure it is (REUSE §1)."""

from blowfishdb.mechanisms.reuse.combination import Combination, Partition, combine
from blowfishdb.mechanisms.reuse.margins import Candidates, Label, Offer, candidates, cheapest, margin
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, Sparse, StoredRelease, rows_of

__all__ = [
    "Candidates",
    "Combination",
    "Intervals",
    "Label",
    "Offer",
    "Partition",
    "Rows",
    "Sparse",
    "StoredRelease",
    "candidates",
    "cheapest",
    "combine",
    "margin",
    "rows_of",
]
