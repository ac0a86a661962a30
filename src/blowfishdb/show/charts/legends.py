"""Legends: below a chart, a sample of each of its marks beside what it means.

Marks get their colours from the theme by their meaning, not by a scale, so Vega has no legend for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from blowfishdb.show.charts.frame import FILLED, LETTER, inline

BAR: Final = "bar"
FAINT: Final = "faint"
WHISKER: Final = "whisker"
LINE: Final = "line"
BAND: Final = "band"
RAW: Final = "raw"
CELL: Final = "cell"
LIMIT: Final = "limit"
DIAMOND: Final = "diamond"
LEVEL: Final = "level"
Entry = tuple[str, str]
"""A mark, and its words."""
_SAMPLE: Final = 22  # pixels of the mark
_ROW: Final = 20  # of a line
_GAP: Final = 18  # between two entries


def with_legend(chart: Any, entries: Sequence[Entry], *, width: int) -> Any:
    """The chart, and below it what each of its marks means: a sample of the mark beside its words."""
    import altair as alt

    if not entries:
        return chart
    placed, lines = _placed(entries, width)
    base = alt.Chart(inline(placed))
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[lines * _ROW, 0], nice=False))
    words = base.mark_text(style="words", align="left", baseline="middle", dx=_SAMPLE + 6).encode(
        x=x, y=y, text=alt.Text("words:N")
    )
    samples = [_sample(base.transform_filter(f"datum.mark == '{mark}'"), mark, x, y) for mark, _ in entries]
    legend = alt.layer(*samples, words).properties(width=width, height=lines * _ROW)
    return alt.vconcat(chart, legend, spacing=12)


def _placed(entries: Sequence[Entry], width: int) -> tuple[list[dict[str, Any]], int]:
    """Each entry with its place, as many on a line as fit."""
    placed: list[dict[str, Any]] = []
    at, line = 0.0, 0
    for mark, words in entries:
        wide = _SAMPLE + 6 + len(words) * LETTER
        if at and at + wide > width:
            at, line = 0.0, line + 1
        middle = line * _ROW + _ROW / 2
        ends = {"x2": at + _SAMPLE, "x1": at + _SAMPLE / 2, "y1": middle - 6, "y2": middle + 6}
        placed.append({"mark": mark, "words": words, "x": at, "y": middle, **ends})
        at += wide + _GAP
    return placed, line + 1


def _sample(base: Any, mark: str, x: Any, y: Any) -> Any:
    """The mark itself, small; readers have its words."""
    import altair as alt

    middle = x.copy()
    middle.shorthand = "x1:Q"
    top = y.copy()
    top.shorthand = "y1:Q"
    box = {"x": x, "x2": alt.X2("x2:Q"), "y": top, "y2": alt.Y2("y2:Q")}
    match mark:
        case "bar":
            return base.mark_rect(aria=False, style="answer", fillOpacity=FILLED).encode(**box)
        case "faint":
            return base.mark_rect(aria=False, style="answer", fillOpacity=0.1, strokeDash=[3, 3]).encode(
                **box
            )
        case "band":
            return base.mark_rect(aria=False, style="band").encode(**box)
        case "cell":
            cells = base.mark_rect(aria=False, style="cell", fillOpacity=0.35).encode(**box)
            dot = base.mark_point(aria=False, style="dot", filled=True, size=8).encode(x=middle, y=y)
            return alt.layer(cells, dot)
        case "whisker":
            return base.mark_rule(aria=False, style="interval").encode(x=middle, y=top, y2=alt.Y2("y2:Q"))
        case "limit":
            return base.mark_rule(aria=False, style="alarm", strokeDash=[6, 3], strokeWidth=2).encode(
                x=x, x2=alt.X2("x2:Q"), y=y
            )
        case "level":
            return base.mark_rule(aria=False, style="zero").encode(x=x, x2=alt.X2("x2:Q"), y=y)
        case "raw":
            return base.mark_point(aria=False, style="raw", shape="circle", size=28).encode(x=middle, y=y)
        case "diamond":
            return base.mark_point(
                aria=False, style="alarm", shape="diamond", filled=True, opacity=1, size=90
            ).encode(x=middle, y=y)
        case "circle":
            return base.mark_point(aria=False, style="centroid", filled=True, opacity=1, size=140).encode(
                x=middle, y=y
            )
    return base.mark_rule(aria=False, style="answer-line").encode(x=x, x2=alt.X2("x2:Q"), y=y)
