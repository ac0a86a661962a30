"""Every chart once, as an Altair chart: notebook, web page, export and documentation share it.

Each chart has a twin that says the same as a table. A chart names what its marks mean; ``themed`` gives them
the colours of the light or of the dark theme.
"""

from blowfishdb.charts.answers import answer_chart, answer_table
from blowfishdb.charts.budgets import budget_chart, budget_table
from blowfishdb.charts.clusters import Backdrop
from blowfishdb.charts.comparisons import comparison_chart, comparison_table
from blowfishdb.charts.frame import ChartTable
from blowfishdb.charts.graphs import graph_chart, graph_table
from blowfishdb.charts.previews import preview_chart, preview_table
from blowfishdb.charts.protection import protection_chart, protection_table
from blowfishdb.charts.theme import DARK, LIGHT, Palette, picture_of, png, svg, themed
from blowfishdb.charts.tradeoffs import tradeoff_chart, tradeoff_table

__all__ = [
    "DARK",
    "LIGHT",
    "Backdrop",
    "ChartTable",
    "Palette",
    "answer_chart",
    "answer_table",
    "budget_chart",
    "budget_table",
    "comparison_chart",
    "comparison_table",
    "graph_chart",
    "graph_table",
    "picture_of",
    "png",
    "preview_chart",
    "preview_table",
    "protection_chart",
    "protection_table",
    "svg",
    "themed",
    "tradeoff_chart",
    "tradeoff_table",
]
