"""What the benchmarks share: a table on the screen, as CSV, and as a figure in docs/figures/."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
Row = Mapping[str, Any]


def show(rows: Sequence[Row]) -> None:
    """The rows as aligned columns."""
    names = list(rows[0])
    text = [names, *([_cell(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in text) for i in range(len(names))]
    for line in text:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))


def write(name: str, rows: Sequence[Row], chart: Any) -> None:
    """docs/figures/<name>.csv and .svg."""
    import vl_convert

    FIGURES.mkdir(parents=True, exist_ok=True)
    with (FIGURES / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    (FIGURES / f"{name}.svg").write_text(vl_convert.vegalite_to_svg(chart.to_json()))
    print(f"docs/figures/{name}.csv and .svg")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
