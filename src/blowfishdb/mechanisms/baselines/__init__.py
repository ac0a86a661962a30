"""Baselines: published algorithms as their proofs have them, to compare with (docs/benchmarks-dawa.md)."""

from blowfishdb.mechanisms.baselines.clustering import Ahp, DpCube
from blowfishdb.mechanisms.baselines.fourier import Efpa
from blowfishdb.mechanisms.baselines.grids import AdaptiveGrid, UniformGrid
from blowfishdb.mechanisms.baselines.hybrid_tree import HybridTree
from blowfishdb.mechanisms.baselines.mwem import Mwem
from blowfishdb.mechanisms.baselines.php import Php
from blowfishdb.mechanisms.baselines.simple import Identity, Uniform
from blowfishdb.mechanisms.baselines.structure_first import StructureFirst
from blowfishdb.mechanisms.baselines.trees import HB, GreedyH, HBGrid, QuadTree
from blowfishdb.mechanisms.hierarchical import Privelet

__all__ = [
    "HB",
    "AdaptiveGrid",
    "Ahp",
    "DpCube",
    "Efpa",
    "GreedyH",
    "HBGrid",
    "HybridTree",
    "Identity",
    "Mwem",
    "Php",
    "Privelet",
    "QuadTree",
    "StructureFirst",
    "Uniform",
    "UniformGrid",
]
