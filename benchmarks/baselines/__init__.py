"""Baselines: published algorithms as their proofs have them, to compare with (docs/benchmarks-dawa.md)."""

from benchmarks.baselines.clustering import Ahp, DpCube
from benchmarks.baselines.fourier import Efpa
from benchmarks.baselines.grids import AdaptiveGrid, UniformGrid
from benchmarks.baselines.hybrid_tree import HybridTree
from benchmarks.baselines.mwem import Mwem
from benchmarks.baselines.php import Php
from benchmarks.baselines.simple import Identity, Uniform
from benchmarks.baselines.structure_first import StructureFirst
from benchmarks.baselines.trees import HB, GreedyH, HBGrid, QuadTree
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
