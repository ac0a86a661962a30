"""What the benchmarks share: a table on the screen, as CSV, and as a figure in docs/figures/."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
Row = Mapping[str, Any]
_LABELS = re.compile(r' (?:aria-\w+|role)="[^"]*"')
_DIGITS = re.compile(r"(\.\d{2})\d+")


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
    (FIGURES / f"{name}.svg").write_text(_short(vl_convert.vegalite_to_svg(chart.to_json())))
    print(f"docs/figures/{name}.csv and .svg")


def _short(svg: str) -> str:
    """A picture without labels of single marks, which no image tells, and to a hundredth of a pixel."""
    return _DIGITS.sub(r"\1", _LABELS.sub("", svg))


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
