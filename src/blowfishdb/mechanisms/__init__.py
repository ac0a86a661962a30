"""Mechanisms: the ways to answer a workload privately, each with its error known beforehand."""

from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.certificate import Certificate
from blowfishdb.mechanisms.check import ContractViolation, check_mechanism
from blowfishdb.mechanisms.edge_noise import EdgeNoise
from blowfishdb.mechanisms.hierarchical import Hierarchical, Privelet
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.mechanisms.ordered_hierarchical import OrderedHierarchical
from blowfishdb.mechanisms.plan import Mechanism, Plan
from blowfishdb.mechanisms.transformed import Transformed

CATALOGUE: tuple[Mechanism, ...] = (
    Laplace(on="workload"),
    Laplace(on="cells"),
    Transformed(Laplace(on="workload")),
    Ordered(),
    OrderedHierarchical(),
    Hierarchical(),
    Privelet(),
    EdgeNoise(),
    Optimized(),
    Best(),
)
"""Every mechanism once; each passes ``check_mechanism``."""

__all__ = [
    "CATALOGUE",
    "Best",
    "Certificate",
    "ContractViolation",
    "EdgeNoise",
    "Hierarchical",
    "Laplace",
    "Mechanism",
    "Optimized",
    "Ordered",
    "OrderedHierarchical",
    "Plan",
    "Privelet",
    "Transformed",
    "check_mechanism",
]
