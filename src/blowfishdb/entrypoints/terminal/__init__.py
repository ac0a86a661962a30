"""Quotes, answers, receipts and tables in a terminal; plain text when the output is not a terminal."""

from blowfishdb.entrypoints.terminal.charts import answer_chart
from blowfishdb.entrypoints.terminal.prices import (
    budget_line,
    budget_table,
    quote_panel,
    receipt_line,
    receipt_table,
)
from blowfishdb.entrypoints.terminal.screen import Framed, console, grid, listed

__all__ = [
    "Framed",
    "answer_chart",
    "budget_line",
    "budget_table",
    "console",
    "grid",
    "listed",
    "quote_panel",
    "receipt_line",
    "receipt_table",
]
