"""What all charts share: titles that fit and labels that do not overlap.

Light and dark: the colours of what charts draw, and the two ways to make a picture of one.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, final

from blowfishdb.show.words import headline

if TYPE_CHECKING:
    import altair as alt


Chart = TypeVar("Chart")

FONT = "system-ui, 'DejaVu Sans', sans-serif"


@final
@dataclass(frozen=True)
class Palette:
    """The colours of one theme: text has a contrast of at least 4.5 to the background, marks have 3."""

    background: str
    text: str
    soft: str
    """Text of less weight: subtitles and the labels of axes."""
    line: str
    """Grid lines, which carry no meaning of their own."""
    ink: str
    interval: str
    alarm: str
    kinds: tuple[str, ...]
    ramp: tuple[str, str]
    diverging: tuple[str, str, str]


LIGHT = Palette(
    background="#ffffff",
    text="#16202a",
    soft="#4a5865",
    line="#dde3e8",
    ink="#2b6a99",
    interval="#b4560f",
    alarm="#b3261e",
    kinds=("#2b6a99", "#b4560f", "#2f7d4f", "#6d4b9e", "#9c3d6b", "#6b6a1f", "#27787e", "#8a4b2d"),
    ramp=("#eaf2f8", "#134a73"),
    diverging=("#b4560f", "#f4f4f4", "#2b6a99"),
)
DARK = Palette(
    background="#14191f",
    text="#eef2f5",
    soft="#b3bfca",
    line="#313b45",
    ink="#4b8fc4",
    interval="#f0a35e",
    alarm="#ff8a80",
    kinds=("#6fb1e0", "#f0a35e", "#72c493", "#b79ae6", "#e58ab5", "#c9c65e", "#66c2c9", "#d79a7a"),
    ramp=("#1d2b38", "#9fd0f5"),
    diverging=("#f0a35e", "#262d34", "#6fb1e0"),
)


def inline(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows that a chart brings along: a tuple, because altair copies lists with every layer and panel."""
    import altair as alt

    return alt.InlineData(values=tuple(rows))


def themed(chart: Chart, *, dark: bool = False) -> Chart:
    """The same chart in the colours of one theme."""
    copied: Any = chart.copy(deep=False)  # type: ignore[attr-defined]
    copied.config = config(DARK if dark else LIGHT)
    themed_chart: Chart = copied
    return themed_chart


def svg(chart: Any) -> str:
    """The chart as an SVG picture that screen readers announce by its description."""
    return _svg(chart.to_dict())


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    words = html.escape(str(spec.get("description", "")))
    drawn = str(vl_convert.vegalite_to_svg(spec))
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{words}" ', 1)


def picture_of(specification: dict[str, Any], *, dark: bool = False) -> str:
    """A specification without colours as an SVG picture in the colours of one theme."""
    return _svg({**specification, "config": config(DARK if dark else LIGHT)})


def png(chart: Any, *, scale: float = 2.0) -> bytes:
    """The chart as a PNG picture."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=scale))


def config(palette: Palette) -> dict[str, Any]:
    """How everything in a chart looks in one theme, as Vega-Lite reads it."""
    axis = {
        "labelColor": palette.soft,
        "titleColor": palette.text,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "gridColor": palette.line,
        "domainColor": palette.soft,
        "tickColor": palette.soft,
    }
    legend = {
        "labelColor": palette.text,
        "titleColor": palette.text,
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 400,
        "orient": "bottom",
        "direction": "horizontal",
        "symbolStrokeWidth": 2,
    }
    title = {
        "color": palette.text,
        "subtitleColor": palette.soft,
        "anchor": "start",
        "fontSize": 16,
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
        "offset": 16,
        "fontWeight": 600,
    }
    return {
        "background": palette.background,
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "title": title,
        "header": {"labelColor": palette.text, "titleColor": palette.text},
        "view": {"stroke": None},
        "padding": 8,
        "range": {
            "category": list(palette.kinds),
            "ramp": list(palette.ramp),
            "heatmap": list(palette.ramp),
            "diverging": list(palette.diverging),
        },
        "style": _styles(palette),
    }


def _styles(palette: Palette) -> dict[str, Any]:
    """What each kind of mark looks like, by its meaning."""
    return {
        "answer": {"color": palette.ink, "stroke": palette.ink},
        "answer-line": {"color": palette.ink, "strokeWidth": 2},
        "interval": {"color": palette.interval, "strokeWidth": 2},
        "band": {"color": palette.interval, "fillOpacity": 0.28},
        "raw": {"color": palette.text, "strokeWidth": 1.5},
        "zero": {"color": palette.soft, "strokeWidth": 1},
        "alarm": {"color": palette.alarm, "stroke": palette.alarm},
        "quiet": {"color": palette.soft, "strokeWidth": 1.5},
        "left": {"color": palette.background, "stroke": palette.soft, "strokeDash": [4, 3]},
        "edge": {"color": palette.ink, "strokeWidth": 1.2, "strokeOpacity": 0.75},
        "words": {"color": palette.text, "fontSize": 12},
        "on-colour": {"color": palette.background, "fontSize": 12, "fontWeight": 600},
        "number": {"color": palette.text, "fontSize": 44, "fontWeight": 700},
        "plus-minus": {"color": palette.soft, "fontSize": 20},
        "watermark": {"color": palette.alarm, "fontSize": 20, "fontWeight": 700},
        "heat": {"stroke": palette.background, "strokeWidth": 0.5},
        "cell": {"color": palette.ramp[1]},
        "dot": {"color": palette.soft},
        "centroid": {"color": palette.interval, "stroke": palette.background, "strokeWidth": 2},
        "cluster-name": {"color": palette.background, "fontSize": 13, "fontWeight": 700},
    }


WIDTH, HEIGHT = 640, 280
NUMBER = ",.6~f"
"""How axes write numbers: thousands apart, no trailing zeros."""
MOST_LABELS = 7
FILLED = 0.4
"""How much of its colour fills a bar: little enough to see a whisker on it, inside a full outline."""
LETTER = 7.2
"""Pixels of a 12 px letter, roughly."""


def finished(chart: Any, title: str, words: str, *, width: int) -> Any:
    """The chart with its title, what it promises, and the same for screen readers, in the light theme."""
    import altair as alt

    lines = textwrap.wrap(words, max(24, int(width / 6.6)))
    heads = textwrap.wrap(headline(title), max(16, int(width / 9.5)))
    named = chart.properties(
        title=alt.TitleParams(text=heads, subtitle=lines), description=f"{headline(title)}. {words}".strip()
    )
    return themed(named)


# --- axes -----------------------------------------------------------------------------------------


def label_axis(labels: Sequence[str], width: int, *, most: int = MOST_LABELS) -> alt.Axis:
    """At most seven labels, evenly spread, as many as fit beside each other."""
    import altair as alt

    return alt.Axis(values=picked(labels, width, most=most), labelAngle=0, labelOverlap="parity", grid=False)


def picked(labels: Sequence[str], width: int, *, most: int = MOST_LABELS) -> list[str]:
    """The labels to show; the others stay in the table and in the tooltip."""
    longest = max((len(label) for label in labels), default=1)
    room = max(1, int(width // (longest * LETTER + 16)))
    stride = max(1, math.ceil(len(labels) / min(most, room)))
    shown = list(labels[::stride])
    if len(shown) > 1:
        shown[-1] = labels[-1]  # where the last bin ends, or what stands at the end without belonging there
    return shown


def number_axis(title: str | None = None, *, ticks: int = 5, form: str = NUMBER) -> alt.Axis:
    """An axis of numbers."""
    import altair as alt

    return alt.Axis(title=title, format=form, tickCount=ticks)
