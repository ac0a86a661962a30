"""Workloads: sets of counting questions, as implicit matrices."""

from blowfishdb.core.workloads.base import Workload
from blowfishdb.core.workloads.boxes import Marginals, Product, Rectangles, one_per_cell
from blowfishdb.core.workloads.general import Matrix, Predicates, Selected
from blowfishdb.core.workloads.line import AllRanges, Balances, Cumulative, Histogram, Ranges, ValueSum

__all__ = [
    "AllRanges",
    "Balances",
    "Cumulative",
    "Histogram",
    "Marginals",
    "Matrix",
    "Predicates",
    "Product",
    "Ranges",
    "Rectangles",
    "Selected",
    "ValueSum",
    "Workload",
    "one_per_cell",
]
