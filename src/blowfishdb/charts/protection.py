"""Protection: how sure an attacker can become, against how far two values are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blowfishdb.charts.frame import WIDTH, ChartTable, finished, number_axis, rounded
from blowfishdb.core.protection import Step, percent

if TYPE_CHECKING:
    from blowfishdb.core.budget import Epsilon

_HEIGHT = 220


def protection_chart(steps: Sequence[Step], column: str, budget: Epsilon, *, width: int = WIDTH) -> Any:
    """A step curve where values have distances, otherwise one bar for each kind of pair."""
    along = bool(steps) and all(step.high is not None for step in steps)
    drawn = _curve(steps, column, width) if along else _kinds(steps, width)
    return finished(drawn, f"How well '{column}' is hidden", _words(steps, budget), width=width)


def protection_table(steps: Sequence[Step], column: str, budget: Epsilon) -> ChartTable:
    """Every step of the curve."""
    rows = tuple((step.apart, percent(step.certainty)) for step in steps)
    columns = (f"two values of {column}", "an attacker is at most this sure")
    return ChartTable(_words(steps, budget), columns, rows)


def _words(steps: Sequence[Step], budget: Epsilon) -> str:
    if not steps:
        return "This column has a single value, so there is nothing to hide."
    first, last = steps[0], steps[-1]
    words = (
        f"After every answer that a budget of {budget} allows, someone who thought two values equally likely "
        f"is at most {percent(first.certainty)} sure which of them it is {_when(first)}"
    )
    if len(steps) == 1:
        return words + "."
    farther = _when(last) if last.high is None else f"{last.apart} apart"
    return f"{words}, and {percent(last.certainty)} sure {farther}."


def _when(step: Step) -> str:
    """Of which two values a step speaks."""
    if step.high is not None:
        return f"if they are {step.apart} apart"
    return f"for {step.apart}" if step.apart.endswith("values") else f"if they are {step.apart}"


def _curve(steps: Sequence[Step], column: str, width: int) -> Any:
    import altair as alt

    rows = [{"distance": 0.0, "sure": rounded(steps[0].certainty, 5), "apart": steps[0].apart}]
    rows += [
        {"distance": float(step.high or 0), "sure": rounded(step.certainty, 5), "apart": step.apart}
        for step in steps
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    x = alt.X("distance:Q", axis=number_axis(f"distance of two values of {column}", ticks=6))
    scale = alt.Scale(domain=[0.5, 1.0])
    y = alt.Y("sure:Q", scale=scale, axis=number_axis("attacker's certainty, at most", form=".0%"))
    line = base.mark_line(style="answer-line", interpolate="step-before").encode(x=x, y=y)
    tooltip = [alt.Tooltip("apart:N", title="apart"), alt.Tooltip("sure:Q", title="at most", format=".1%")]
    dots = base.mark_point(style="answer", filled=True, size=40).encode(x=x, y=y, tooltip=tooltip)
    return alt.layer(line, dots).properties(width=width, height=_HEIGHT)


def _kinds(steps: Sequence[Step], width: int) -> Any:
    import altair as alt

    rows = [
        {
            "apart": step.apart,
            "start": 0.5,
            "sure": rounded(step.certainty, 5),
            "words": percent(step.certainty),
        }
        for step in steps
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("apart:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, grid=False))
    axis = number_axis("attacker's certainty, at most", form=".0%")
    x = alt.X("sure:Q", scale=alt.Scale(domain=[0.5, 1.0]), axis=axis)
    bars = base.mark_bar(style="answer", height=alt.RelativeBandSize(0.5)).encode(x=x, x2="start:Q", y=y)
    words = base.mark_text(style="words", dy=-20, align="right").encode(x=x, y=y, text="words:N")
    return alt.layer(bars, words).properties(width=width, height=max(64, 56 * len(rows)))
