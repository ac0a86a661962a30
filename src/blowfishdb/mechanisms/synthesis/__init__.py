"""Synthetic tables under a policy: noisy tables of few columns, and rows drawn from their model."""

from blowfishdb.mechanisms.synthesis.from_answers import Collected
from blowfishdb.mechanisms.synthesis.kept import GivenRows, KeptRows
from blowfishdb.mechanisms.synthesis.model import Counted, Model
from blowfishdb.mechanisms.synthesis.plan import MOST_COLUMNS, NAMES, Planned, SynthesisPlan
from blowfishdb.mechanisms.synthesis.rounds import Synthesis, TableCounts, release
from blowfishdb.mechanisms.synthesis.selection import Chosen, noisy_max, selection_law, selection_scale
from blowfishdb.mechanisms.synthesis.tables import Choice, Layout, Table, kernels

__all__ = [
    "MOST_COLUMNS",
    "NAMES",
    "Choice",
    "Chosen",
    "Collected",
    "Counted",
    "GivenRows",
    "KeptRows",
    "Layout",
    "Model",
    "Planned",
    "Synthesis",
    "SynthesisPlan",
    "Table",
    "TableCounts",
    "kernels",
    "noisy_max",
    "release",
    "selection_law",
    "selection_scale",
]
