"""Mechanisms: the ways to answer a workload privately, each with its error known beforehand."""

from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.certificate import Certificate
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.plan import Mechanism, Plan

__all__ = ["Best", "Certificate", "Laplace", "Mechanism", "Plan"]
