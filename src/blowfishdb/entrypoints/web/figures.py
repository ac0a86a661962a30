"""Charts on a page: the drawing for two widths, in whichever theme, and the table that says the same.

The page carries specifications without colours; ``static/charts.js`` draws them in the colours of the theme.
Both widths come along because a chart that is merely scaled down cannot be read on a telephone.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.charts import ChartTable

WIDE: Final = 640
NARROW: Final = 272
Drawing = Callable[[int], Any]
"""The chart for a width in pixels: ``lambda width: answer_chart(answer, width=width)``."""


@final
@dataclass(frozen=True)
class Figure:
    """What ``figure`` in macros.html renders; ``picture`` is an address of the same chart as a picture."""

    id: str
    title: str
    words: str
    wide: str
    narrow: str
    table: ChartTable
    picture: str = ""


def figure(draw: Drawing, table: ChartTable, *, id: str, width: int = WIDE, picture: str = "") -> Figure:  # noqa: A002
    """A chart and its table twin; ``id`` is unique on its page."""
    wide, narrow = _specification(draw(width)), _specification(draw(NARROW))
    return Figure(
        id=id,
        title=_lines(wide.get("title", {}), "text"),
        words=_lines(wide.get("title", {}), "subtitle"),
        wide=_embedded(wide),
        narrow=_embedded(narrow),
        table=table,
        picture=picture,
    )


def _specification(chart: Any) -> dict[str, Any]:
    """The chart without colours: they follow the theme of whoever looks."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    spec.pop("config", None)
    return spec


def _lines(title: object, part: str) -> str:
    said = title.get(part, "") if isinstance(title, dict) else title
    return " ".join(said) if isinstance(said, list) else str(said)


def _embedded(spec: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(spec, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
