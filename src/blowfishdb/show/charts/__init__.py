"""Every chart once, as an Altair chart: notebook, web page, export and documentation share it.

Each chart has a twin that says the same as a table. A chart names what its marks mean; ``themed`` gives them
the colours of the light or of the dark theme.
"""

from blowfishdb.show.charts.answers import answer_chart
from blowfishdb.show.charts.budgets import budget_chart, spending_chart, spending_table
from blowfishdb.show.charts.clusters import Backdrop
from blowfishdb.show.charts.comparisons import comparison_chart
from blowfishdb.show.charts.curator import preview_chart, preview_table, protection_chart, protection_table
from blowfishdb.show.charts.frame import DARK, LIGHT, Palette, picture_of, png, svg, themed
from blowfishdb.show.charts.graphs import box_labels, graph_chart, graph_table
from blowfishdb.show.charts.tradeoffs import tradeoff_chart

__all__ = [
    "DARK",
    "LIGHT",
    "Backdrop",
    "Palette",
    "answer_chart",
    "box_labels",
    "budget_chart",
    "comparison_chart",
    "graph_chart",
    "graph_table",
    "picture_of",
    "png",
    "preview_chart",
    "preview_table",
    "protection_chart",
    "protection_table",
    "spending_chart",
    "spending_table",
    "svg",
    "themed",
    "tradeoff_chart",
]
