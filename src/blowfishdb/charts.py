"""Every chart once, as an Altair chart: notebook, web page, export and documentation share it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import altair as alt

    from blowfishdb.messages import Answer

INK = "#2b6a99"
INTERVAL = "#d9822b"


def answer_chart(answer: Answer) -> alt.LayerChart | alt.FacetChart:
    """Bars with whiskers for a histogram, a step line with a band for a cumulative answer."""
    import altair as alt

    data = alt.InlineData(values=_rows(answer))
    x = alt.X("bin:N", sort=None, title=answer.axes[0], axis=alt.Axis(labelOverlap=True, labelAngle=0))
    y = alt.Y("value:Q", title="people (noisy)")
    tooltip = ["bin:N", "value:Q", "low:Q", "high:Q"]
    base = alt.Chart(data)
    if answer.kind == "cumulative":
        line = base.mark_line(interpolate="step-after", color=INK, strokeWidth=2)
        mark = line.encode(x=x, y=y, tooltip=tooltip)
        noise = base.mark_area(interpolate="step-after", color=INTERVAL, opacity=0.35).encode(
            x=x, y=alt.Y("low:Q"), y2="high:Q"
        )
        layers = (noise, mark)
    else:
        mark = base.mark_bar(color=INK).encode(
            x=x, y=y, tooltip=tooltip, opacity=alt.condition("datum.low > 0", alt.value(1), alt.value(0.4))
        )
        noise = base.mark_rule(color=INTERVAL, strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
        layers = (mark, noise)
    return alt.layer(*layers).properties(
        width=640,
        height=280,
        title=alt.Title(answer.receipt.question, subtitle=_promise(answer)),
        description=f"{answer.receipt.question}. {_promise(answer)}",
    )


def _promise(answer: Answer) -> str:
    every = "every bar" if answer.simultaneous else "each bar"
    return (
        f"In {100 * (1 - answer.beta):g} of 100 runs {every} is within {answer.alpha:g} people of the truth. "
        f"ε = {answer.receipt.epsilon:.3g}"
    )


def _rows(answer: Answer) -> list[dict[str, Any]]:
    names = [" · ".join(parts) for parts in itertools.product(*answer.labels)]
    columns = (answer.values, answer.low, answer.high)
    return [
        {"bin": name, "value": float(value), "low": float(low), "high": float(high)}
        for name, value, low, high in zip(names, *(np.round(c, 1) for c in columns), strict=True)
    ]
