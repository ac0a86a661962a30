"""Data-independent strategies for ranges under a θ-line policy: hats, ramps and their least squares."""

from blowfishdb.mechanisms.line.design import design
from blowfishdb.mechanisms.line.shape import Ramp, Shape
from blowfishdb.mechanisms.line.solver import LineSolver
from blowfishdb.mechanisms.line.strategy import LineStrategy
from blowfishdb.mechanisms.line.workload import Family, LineWorkload

__all__ = ["Family", "LineSolver", "LineStrategy", "LineWorkload", "Ramp", "Shape", "design"]
