"""What all charts share: titles that fit, labels that do not overlap, numbers that read, the table twin."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from blowfishdb.charts.theme import themed

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 640, 280
NUMBER = ",.6~f"
"""How axes write numbers: thousands apart, no trailing zeros."""
MOST_LABELS = 7
FILLED = 0.4
"""How much of its colour fills a bar: little enough to see a whisker on it, inside a full outline."""
_APART = "missing"
_LETTER = 7.2  # pixels of a 12 px letter, roughly


@final
@dataclass(frozen=True)
class ChartTable:
    """What a chart shows, for those who read rather than look."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"caption": self.caption, "columns": list(self.columns), "rows": [list(r) for r in self.rows]}


def finished(chart: Any, title: str, words: str, *, width: int) -> Any:
    """The chart with its title, what it promises, and the same for screen readers, in the light theme."""
    import altair as alt

    lines = textwrap.wrap(words, max(24, int(width / 6.6)))
    heads = textwrap.wrap(headline(title), max(16, int(width / 9.5)))
    named = chart.properties(
        title=alt.TitleParams(text=heads, subtitle=lines), description=f"{headline(title)}. {words}".strip()
    )
    return themed(named)


def headline(words: str) -> str:
    """A sentence begins with a capital letter, whatever the column is called."""
    return words[:1].upper() + words[1:]


# --- axes -----------------------------------------------------------------------------------------


def label_axis(labels: Sequence[str], width: int, *, most: int = MOST_LABELS) -> alt.Axis:
    """At most seven labels, evenly spread, as many as fit beside each other."""
    import altair as alt

    return alt.Axis(values=picked(labels, width, most=most), labelAngle=0, labelOverlap="parity", grid=False)


def picked(labels: Sequence[str], width: int, *, most: int = MOST_LABELS) -> list[str]:
    """The labels to show; the others stay in the table and in the tooltip."""
    longest = max((len(label) for label in labels), default=1)
    room = max(1, int(width // (longest * _LETTER + 16)))
    stride = max(1, math.ceil(len(labels) / min(most, room)))
    shown = list(labels[::stride])
    if len(shown) > 1 and labels[-1] == _APART:
        shown[-1] = _APART  # what stands at the end of a line without belonging to it has its name there
    return shown


def number_axis(title: str | None = None, *, ticks: int = 5, form: str = NUMBER) -> alt.Axis:
    """An axis of numbers."""
    import altair as alt

    return alt.Axis(title=title, format=form, tickCount=ticks)


# --- numbers --------------------------------------------------------------------------------------


def digits(scale: float) -> int:
    """How many decimals are worth showing of something that is uncertain by ``scale``."""
    if not math.isfinite(scale) or scale <= 0:
        return 3
    return min(9, max(0, 1 - math.floor(math.log10(scale))))


def rounded(value: float, decimals: int) -> float:
    """Without what is not worth showing, and without a minus in front of zero."""
    return round(float(value), decimals) + 0.0


def number_text(value: float, decimals: int) -> str:
    """A number as people read it."""
    text = f"{rounded(value, decimals):,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def epsilon_text(epsilon: object) -> str:
    """ε to three significant digits, never in powers of ten."""
    value = float(epsilon)  # type: ignore[arg-type]
    if value == 0:
        return "0"
    return number_text(value, max(0, 2 - math.floor(math.log10(abs(value)))))
