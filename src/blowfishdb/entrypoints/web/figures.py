"""Charts on a page: the drawing for two widths, in whichever theme, and the table that says the same.

The page carries specifications without colours; ``static/charts.js`` draws them in the colours of the theme.
Both widths come along because a chart that is merely scaled down cannot be read on a telephone. Making them
takes longer than the rest of a page, so it waits until the page has begun to travel.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, final

from blowfishdb.charts import ChartTable
from blowfishdb.core.errors import BlowfishError

WIDE: Final = 640
NARROW: Final = 272
Drawing = Callable[[int], Any]
"""The chart for a width in pixels: ``lambda width: answer_chart(answer, width=width)``."""


@final
@dataclass(frozen=True, eq=False)
class Figure:
    """What ``figure`` in macros.html renders."""

    id: str
    table: ChartTable
    width: int
    headed: bool
    draw: Drawing = field(repr=False)
    elsewhere: str | None = None
    """Where else it can be had as a picture."""

    @property
    def drawn(self) -> bool:
        """Whether there is a chart; if not, its table says everything."""
        return self._specifications is not None

    @property
    def title(self) -> str:
        """What the chart shows."""
        return _lines(self._heading, "text") or self.table.caption

    @property
    def words(self) -> str:
        """What it promises."""
        return _lines(self._heading, "subtitle")

    @property
    def specification(self) -> dict[str, Any]:
        """What is drawn, with its title, for the width that was asked for."""
        return {} if self._specifications is None else self._specifications[0]

    @property
    def wide(self) -> str:
        """The specification for the width that was asked for."""
        return "null" if self._specifications is None else self._embedded(self._specifications[0])

    @property
    def narrow(self) -> str:
        """The specification for a telephone."""
        return "null" if self._specifications is None else self._embedded(self._specifications[1])

    def _embedded(self, spec: dict[str, Any]) -> str:
        return _embedded(spec if self.headed else {key: spec[key] for key in spec if key != "title"})

    @property
    def _heading(self) -> object:
        return {} if self._specifications is None else self._specifications[0].get("title", {})

    @cached_property
    def _specifications(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Both, at the first look at either; None for what cannot be drawn, which must not stop the page.

        Our charts are checked by their tests; checking every row again would take most of the time.
        """
        from altair.utils.schemapi import debug_mode

        try:
            with debug_mode(False):
                return _specification(self.draw(self.width)), _specification(self.draw(NARROW))
        except BlowfishError:
            return None


def figure(
    draw: Drawing,
    table: ChartTable,
    *,
    id: str,  # noqa: A002
    width: int = WIDE,
    headed: bool = True,
    elsewhere: str | None = None,
) -> Figure:
    """A chart and its table twin; ``id`` is unique on its page. Not ``headed`` if the page says its title."""
    return Figure(id, table, width, headed, draw, elsewhere)


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
