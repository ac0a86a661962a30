"""Mechanisms: the ways to answer a workload privately, most with their error known beforehand."""

from typing import Literal

from blowfishdb.mechanisms.adaptive import Adaptive
from blowfishdb.mechanisms.adaptive.denoised import OrderedDenoised
from blowfishdb.mechanisms.adaptive.policy_tree import PolicyTree
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.check import ContractViolation, check_mechanism
from blowfishdb.mechanisms.dawa import Dawa, DawaTransformed
from blowfishdb.mechanisms.dawa.matching import MatchingTransformed
from blowfishdb.mechanisms.edge_noise import EdgeNoise
from blowfishdb.mechanisms.hierarchical import Hierarchical, Privelet
from blowfishdb.mechanisms.kmeans import KMeans
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered, OrderedHierarchical
from blowfishdb.mechanisms.plan import Certificate, DataDependentMechanism, DataDependentPlan, Mechanism, Plan
from blowfishdb.mechanisms.transformed import Transformed

NAMED: dict[str, Mechanism] = {
    "laplace": Laplace(on="workload"),
    "laplace-cells": Laplace(on="cells"),
    "transformed": Transformed(Laplace(on="workload")),
    "ordered": Ordered(),
    "ordered-hierarchical": OrderedHierarchical(),
    "hierarchical": Hierarchical(),
    "privelet": Privelet(),
    "edge-noise": EdgeNoise(),
    "optimized": Optimized(),
    "best": Best(),
}
"""Every mechanism that promises its error, by the name under which a question can ask for it."""

DATA_DEPENDENT: dict[str, DataDependentMechanism] = {
    "adaptive": Adaptive(),
    "adaptive-tree": AdaptiveTree(),
    "policy-tree": PolicyTree(),
    "ordered-denoised": OrderedDenoised(),
    "dawa": Dawa(),
    "dawa-transformed": DawaTransformed(),
    "matching-transformed": MatchingTransformed(),
}
"""Every mechanism whose error depends on the data, for questions that state an ε instead of an accuracy."""

CLUSTERING: dict[str, Literal["rounds", "histogram"]] = {
    "kmeans-rounds": "rounds",
    "kmeans-histogram": "histogram",
}
"""The ways to find clusters, by the name under which a question can ask for one of them."""

CATALOGUE: tuple[Mechanism, ...] = tuple(NAMED.values())
"""Each passes ``check_mechanism``."""

__all__ = [
    "CATALOGUE",
    "CLUSTERING",
    "DATA_DEPENDENT",
    "NAMED",
    "Adaptive",
    "AdaptiveTree",
    "Best",
    "Certificate",
    "ContractViolation",
    "DataDependentMechanism",
    "DataDependentPlan",
    "Dawa",
    "DawaTransformed",
    "EdgeNoise",
    "Hierarchical",
    "KMeans",
    "Laplace",
    "MatchingTransformed",
    "Mechanism",
    "Optimized",
    "Ordered",
    "OrderedDenoised",
    "OrderedHierarchical",
    "Plan",
    "PolicyTree",
    "Privelet",
    "Transformed",
    "check_mechanism",
]
