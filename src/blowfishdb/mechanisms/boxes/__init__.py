"""Data-independent plans for grids of two and more axes: boxes, flows, and both together."""

from blowfishdb.mechanisms.boxes.design import GridProblem, design
from blowfishdb.mechanisms.boxes.flux import Flux
from blowfishdb.mechanisms.boxes.lattice_noise import LatticeNoise
from blowfishdb.mechanisms.boxes.over_edges import BoxesOverEdges
from blowfishdb.mechanisms.boxes.separable import SeparablePlan
from blowfishdb.mechanisms.boxes.tensor import TensorBoxes

__all__ = ["BoxesOverEdges", "Flux", "GridProblem", "LatticeNoise", "SeparablePlan", "TensorBoxes", "design"]
